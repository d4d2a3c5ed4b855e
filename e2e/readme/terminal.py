"""A shell in which a page is typed, and a terminal for what asks."""

import os
import signal
import subprocess
import time
import uuid

from house import eventually


class Shell:
    """One for a block: what it exports and what it leaves running ends with it."""

    def __init__(self, env, folder):
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            env=env,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()

    def type(self, line):
        """What a line prints, and its exit code."""
        mark = str(uuid.uuid4())
        self._process.stdin.write(f"{{\n{line}\n}} </dev/null\necho {mark} $?\n")
        self._process.stdin.flush()
        printed = []
        for came in self._process.stdout:
            before, found, code = came.partition(mark)
            printed.append(before)
            if found:
                return "".join(printed), int(code)
        raise RuntimeError(f"the shell ended at: {line}")


class Terminal:
    """A terminal of tmux with a shell in it."""

    def __init__(self, env, folder, socket):
        self._env, self._socket = env, socket
        place = ["-x", "180", "-y", "48", "-c", str(folder)]
        self._tmux("-f", os.devnull, "new-session", "-d", *place, "--", "bash", "--norc", "--noprofile")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._tmux("kill-server")

    def _tmux(self, *arguments):
        words = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(words, env=self._env, capture_output=True, text=True).stdout

    def type(self, text):
        self._tmux("send-keys", "-t", "{top-left}", "-l", text)
        # What comes at once is taken for one paste, with its end of the line in it.
        time.sleep(0.5)
        self.press("Enter")

    def say(self, text, seen, patience):
        """Says something to an agent; whether it is seen that it was heard. A program that is busy takes even a
        late Enter for a part of the paste, and one at an empty line for nothing."""
        self.type(text)
        end = time.monotonic() + patience
        while not (heard := self.shows(seen, 4)) and time.monotonic() < end:
            self.press("Enter")
        return heard

    def press(self, key):
        self._tmux("send-keys", "-t", "{top-left}", key)

    def screens(self):
        """What every pane shows, the newest first, without empty lines."""
        panes = reversed(self._tmux("list-panes", "-a", "-F", "#{pane_id}").split())
        shown = "\n".join(self._tmux("capture-pane", "-p", "-t", pane) for pane in panes)
        return "\n".join(line for line in shown.splitlines() if line.strip())

    def shows(self, text, patience):
        return eventually(lambda: text in self.screens(), patience)
