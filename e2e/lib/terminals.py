"""Two terminals to run a program in: a pseudo-terminal, which measures when each byte arrives, and a real tmux."""

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

from lib.grid import Grid
from lib.processes import stat_fields
from lib.util import SLACK, capture, eventually

COLUMNS, ROWS = 120, 40
# A frame counts as complete after this many seconds without output.
QUIET = 0.015


class Pty:
    """A program that runs in a pseudo-terminal of its own."""

    def __init__(self, argv, environ, cwd, columns=COLUMNS, rows=ROWS):
        self.grid = Grid(columns, rows)
        self.code = None
        # A read may end in the middle of a UTF-8 character.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.started = time.monotonic()
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            try:
                # Set the size before the program starts.
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.chdir(cwd)
                os.execvpe(argv[0], argv, environ)
            finally:
                os._exit(127)

    def read(self, timeout):
        """Waits for output and reads it; returns the time of its arrival, or None after the timeout."""
        ready, _, _ = select.select([self._master], [], [], max(timeout, 0))
        if not ready:
            return None
        arrived = time.monotonic()
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            data = b""
        if not data:
            raise EOFError("the program has closed its terminal")
        self.grid.feed(self._decoder.decode(data))
        return arrived

    def read_until(self, condition, timeout):
        """Reads until the screen meets a condition; returns when the last bytes arrived, None after the timeout."""
        end = time.monotonic() + timeout * SLACK
        arrived = time.monotonic()
        while not condition(self.grid):
            arrived = self.read(end - time.monotonic())
            if arrived is None:
                return None
        return arrived

    def read_until_quiet(self, timeout=1.0, quiet=QUIET):
        """Reads until no more output arrives; returns when the last byte arrived, or None if there was no output."""
        last = None
        end = time.monotonic() + timeout
        while arrived := self.read(quiet if last else end - time.monotonic()):
            last = arrived
        return last

    def read_for(self, seconds):
        """Reads all output for some seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def write(self, text):
        os.write(self._master, text.encode())

    def press(self, key):
        """Presses a key; returns the seconds until the last byte of the next frame."""
        started = time.monotonic()
        self.write(key)
        last = self.read_until_quiet()
        if last is None:
            raise TimeoutError(f"no output after {key!r}")
        return last - started

    def hang_up(self):
        """Closes the terminal while the program runs."""
        os.close(self._master)

    def wait(self, timeout):
        """Reads until the program exits; returns its exit code, or None after the timeout."""
        end = time.monotonic() + timeout * SLACK
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


class Tmux:
    """An interactive shell in a private tmux server."""

    def __init__(self, socket, environ, cwd, columns=COLUMNS, rows=ROWS):
        self._socket, self._environ, self._cwd = socket, environ, cwd
        self._raw = socket.with_name(socket.name + ".raw")
        self._raw.touch()
        size = ["-x", str(columns), "-y", str(rows)]
        self._do("-f", os.devnull, "new-session", "-d", *size, "--", "bash", "--norc", "--noprofile", "-i")
        self._do("pipe-pane", "-o", f"exec cat >>{self._raw}")

    def _do(self, *arguments):
        done = capture(["tmux", "-S", self._socket, *arguments], env=self._environ, cwd=self._cwd)
        if done.returncode != 0:
            raise RuntimeError(f"tmux {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def type(self, text):
        self._do("send-keys", "-l", "--", text)

    def press(self, *keys):
        self._do("send-keys", "--", *keys)

    def run(self, line):
        """Types a line and presses Enter."""
        self.type(line)
        self.press("Enter")

    def screen(self):
        return self._do("capture-pane", "-p")

    def drawn(self):
        """Returns the screen with its escape sequences, including trailing spaces that have a colour."""
        return self._do("capture-pane", "-p", "-e", "-N")

    def resize(self, columns, rows):
        self._do("resize-window", "-x", str(columns), "-y", str(rows))

    def shows(self, *argv, timeout=10):
        """Waits until all of these texts are on the screen."""
        return eventually(lambda: all(word in self.screen() for word in argv), timeout)

    def lacks(self, *argv, timeout=10):
        """Waits until none of these texts is on the screen."""
        return eventually(lambda: not any(word in self.screen() for word in argv), timeout)

    def modes(self):
        """Returns what tmux reports about the terminal: alternate screen, cursor and mouse."""
        names = ("alternate_on", "cursor_flag", "mouse_any_flag", "mouse_button_flag", "mouse_standard_flag")
        values = self._do("display-message", "-p", " ".join(f"#{{{name}}}" for name in names)).split()
        return dict(zip(names, values))

    def raw(self):
        """Returns every byte that was written to the terminal so far."""
        return self._raw.read_bytes()

    def shell(self):
        """Returns the process id of the shell."""
        return int(self._do("list-panes", "-F", "#{pane_pid}").split()[0])

    def foreground_group(self):
        """Returns the foreground process group of the terminal."""
        return int(stat_fields(self.shell())[5])

    def close(self):
        capture(["tmux", "-S", self._socket, "kill-server"], env=self._environ)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
