"""Shows the board in the real `less`: Ctrl-C does not end it, and leaving it is no error."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from lib.report import Report

BRIGADE = os.environ["BRIGADE"]


class Screen:
    """A command on a terminal with 24 lines."""

    def __init__(self, folder, environ, *arguments):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.chdir(folder)
            os.execvpe(BRIGADE, ["brigade", *arguments], environ)

    def read(self, seconds=1.0):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                break
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            self.text += data.decode(errors="replace")
        return self.text

    def type(self, keys):
        os.write(self.fd, keys.encode())
        self.read()

    def is_running(self):
        return os.waitpid(self.pid, os.WNOHANG) == (0, 0)

    def exit_code(self):
        self.read(2)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main():
    report = Report("pager")
    with tempfile.TemporaryDirectory() as root, report.scenario(lambda: None):
        home = Path(root)
        environ = {"PATH": "/usr/bin:/bin", "HOME": root, "TERM": "xterm", "LANG": "C.UTF-8"}
        run = lambda *arguments: subprocess.run([BRIGADE, *arguments], cwd=home, env=environ, check=True, stdout=subprocess.DEVNULL)
        run("team", "create", "demo")
        (home / "tasks.md").write_text("".join(f"- [ ] task {number}\n" for number in range(1, 101)))
        run("task", "add", "--from", "tasks.md")
        screen = Screen(home, environ, "task", "list")
        first = screen.read(2)
        report.check("less shows the first page", "task 1\x1b" in first and "task 100" not in first, first)
        screen.type("\x03")
        report.check("Ctrl-C does not end less", screen.is_running())
        screen.type("G")
        report.check("less shows the last page", "task 100" in screen.text, screen.text[-500:])
        screen.type("q")
        report.check("leaving less is no error", screen.exit_code() == 0)
        report.check("no error is shown", "error" not in screen.text, screen.text[-500:])
        screen = Screen(home, environ, "task", "show", "1")
        report.check("a short text needs no less", screen.exit_code() == 0 and "(END)" not in screen.text, screen.text)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
