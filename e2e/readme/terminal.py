"""A terminal in which tests run interactive programs."""

import os
import time

from lib.util import capture, eventually


class Terminal:
    """A tmux server with a shell in it."""

    def __init__(self, environ, folder, socket):
        self._environ, self._socket = environ, socket
        window = ["-x", "180", "-y", "48", "-c", str(folder)]
        self._tmux("-f", os.devnull, "new-session", "-d", *window, "--", "bash", "--norc", "--noprofile")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._tmux("kill-server")

    def _tmux(self, *arguments):
        command = ["tmux", "-S", str(self._socket), *arguments]
        return capture(command, env=self._environ).stdout

    def type(self, text):
        self._tmux("send-keys", "-t", "{top-left}", "-l", text)
        # Programs treat an Enter immediately after text as part of a paste.
        time.sleep(0.5)
        self.press("Enter")

    def prompt(self, text, reaction, timeout):
        """Types a prompt and presses Enter; returns whether the expected reaction appears. Presses Enter repeatedly,
        because a busy program treats even a late Enter as part of a paste. On an empty line, Enter does nothing."""
        self.type(text)
        end = time.monotonic() + timeout
        while not (reacted := self.shows(reaction, 4)) and time.monotonic() < end:
            self.press("Enter")
        return reacted

    def press(self, key):
        self._tmux("send-keys", "-t", "{top-left}", key)

    def screens(self):
        """Returns the text of every pane, newest pane first, without empty lines."""
        panes = reversed(self._tmux("list-panes", "-a", "-F", "#{pane_id}").split())
        shown = "\n".join(self._tmux("capture-pane", "-p", "-t", pane) for pane in panes)
        return "\n".join(line for line in shown.splitlines() if line.strip())

    def shows(self, text, timeout):
        return eventually(lambda: text in self.screens(), timeout)
