"""Two terminals to run a program in: a bare one, which tells when each byte came, and a real tmux."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

from grid import Grid
from house import SLACK, eventually

COLUMNS, ROWS = 120, 40
# After so long without a byte a drawing is over.
QUIET = 0.015


class Bare:
    """A program in a pseudo-terminal of its own."""

    def __init__(self, words, env, cwd, columns=COLUMNS, rows=ROWS):
        self.grid = Grid(columns, rows)
        self.code = None
        self.raw = b""
        self._decoder = Utf8()
        self.begun = time.monotonic()
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            try:
                # The size is there before the program looks.
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.chdir(cwd)
                os.execvpe(words[0], words, env)
            finally:
                os._exit(127)

    def read(self, patience):
        """Waits for more, and takes what is there; when it came, None if nothing did."""
        ready, _, _ = select.select([self._master], [], [], max(patience, 0))
        if not ready:
            return None
        came = time.monotonic()
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            data = b""
        if not data:
            raise EOFError("the program has let go of its terminal")
        self.raw += data
        self.grid.feed(self._decoder.text(data))
        return came

    def until(self, condition, patience):
        """Reads until the screen is so; when the bytes came that made it so, None if they did not."""
        end = time.monotonic() + patience * SLACK
        came = time.monotonic()
        while not condition(self.grid):
            came = self.read(end - time.monotonic())
            if came is None:
                return None
        return came

    def settle(self, patience=1.0, quiet=QUIET):
        """Reads until nothing more comes; when the last byte came, None if none did."""
        last = None
        end = time.monotonic() + patience
        while came := self.read(quiet if last else end - time.monotonic()):
            last = came
        return last

    def skip(self, seconds):
        """Reads whatever comes in that time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def write(self, text):
        os.write(self._master, text.encode())

    def press(self, key):
        """Presses a key; the seconds until the last byte of the answer came."""
        begun = time.monotonic()
        self.write(key)
        last = self.settle()
        if last is None:
            raise TimeoutError(f"no answer to {key!r}")
        return last - begun

    def hang_up(self):
        """Takes the terminal away."""
        os.close(self._master)

    def wait(self, patience):
        """Reads on until the program ends; its exit code, None if it does not end."""
        end = time.monotonic() + patience * SLACK
        while self.code is None and time.monotonic() < end:
            try:
                self.read(0.05)
            except (EOFError, OSError, ValueError):
                time.sleep(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def end(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Utf8:
    """Text out of pieces that may end within a letter."""

    def __init__(self):
        self._rest = b""

    def text(self, data):
        data = self._rest + data
        for cut in range(min(4, len(data)) + 1):
            try:
                text = data[: len(data) - cut].decode()
            except UnicodeDecodeError:
                continue
            self._rest = data[len(data) - cut :]
            return text
        self._rest = b""
        return data.decode(errors="replace")


class Tmux:
    """A real tmux, its server our own, with an interactive shell in it."""

    def __init__(self, socket, env, cwd, columns=COLUMNS, rows=ROWS):
        self._socket, self._env, self._cwd = socket, env, cwd
        self._raw = socket.with_name(socket.name + ".raw")
        self._raw.touch()
        size = ["-x", str(columns), "-y", str(rows)]
        self._do("-f", os.devnull, "new-session", "-d", *size, "--", "bash", "--norc", "--noprofile", "-i")
        self._do("pipe-pane", "-o", f"exec cat >>{self._raw}")

    def _do(self, *arguments):
        done = subprocess.run(
            ["tmux", "-S", self._socket, *arguments], env=self._env, cwd=self._cwd, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(f"tmux {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def type(self, text):
        self._do("send-keys", "-l", "--", text)

    def press(self, *keys):
        self._do("send-keys", "--", *keys)

    def run(self, line):
        """Types a line into the shell, or wherever one types."""
        self.type(line)
        self.press("Enter")

    def screen(self):
        return self._do("capture-pane", "-p")

    def drawn(self):
        """The screen with its colours, and what is coloured behind the last letter of a line."""
        return self._do("capture-pane", "-p", "-e", "-N")

    def resize(self, columns, rows):
        self._do("resize-window", "-x", str(columns), "-y", str(rows))

    def shows(self, *words, patience=10):
        """Waits until all of these are on the screen."""
        return eventually(lambda: all(word in self.screen() for word in words), patience)

    def lacks(self, *words, patience=10):
        """Waits until none of these is on the screen."""
        return eventually(lambda: not any(word in self.screen() for word in words), patience)

    def modes(self):
        """What the terminal thinks of itself: whether the other screen is on, the cursor, the mouse."""
        names = ("alternate_on", "cursor_flag", "mouse_any_flag", "mouse_button_flag", "mouse_standard_flag")
        values = self._do("display-message", "-p", " ".join(f"#{{{name}}}" for name in names)).split()
        return dict(zip(names, values))

    def raw(self):
        """Every byte that was written to it so far."""
        return self._raw.read_bytes()

    def shell(self):
        """The process of the shell."""
        return int(self._do("list-panes", "-F", "#{pane_pid}").split()[0])

    def in_front(self):
        """The group of processes that has the terminal."""
        return int(Path(f"/proc/{self.shell()}/stat").read_text().rpartition(")")[2].split()[5])

    def close(self):
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], env=self._env, capture_output=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
