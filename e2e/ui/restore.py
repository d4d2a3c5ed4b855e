"""The terminal after `brigade ui`, however that ends: by its key, by a signal, by a panic, by a terminal that
is taken away; and while it is suspended."""

import os
import signal
import subprocess
import time

from desk import TEAM, prove_at_desk
from house import eventually
from shell import Shell
from teammate import look_at

# The exit code of a bug.
BUG = 70
# What the frame of the UI has in every view.
FRAME = ("1 Team", "6 Member")
SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2")


def scenario(desk, report, short):
    desk.small_team()
    tmux = desk.tmux()
    shell = Shell(desk, tmux)
    for key, name in (("q", "q"), ("C-c", "ctrl-c")):
        opened(desk, report, tmux, name)
        tmux.press(key)
        shell.check(report, f"after {name}", 0)
    report.check("the screen, the cursor and the mouse had been taken", shell.was_taken())
    for name in SIGNALS:
        process = opened(desk, report, tmux, name)
        os.kill(process.pid, signal.Signals[name])
        gone = eventually(lambda: not process.is_alive(), 5)
        report.check(f"after {name}: it ends", gone)
        shell.check(report, f"after {name}", 0)
    panics(desk, report, tmux, shell)
    suspended(desk, report, tmux, shell)
    resized(desk, report, tmux, shell)
    hung_up(desk, report)


def opened(desk, report, tmux, why):
    tmux.run(" ".join(desk.ui()))
    shows = tmux.shows(*FRAME, TEAM)
    report.check(f"for {why}: it opens", shows, tmux.screen())
    return desk.process_of_ui(tmux.shell())


def panics(desk, report, tmux, shell):
    """A real panic in the real program: the kernel is made to refuse what its runtime cannot do without."""
    process = opened(desk, report, tmux, "a panic")
    calls = "epoll_wait,epoll_pwait,epoll_pwait2"
    refused = Refusal(desk, process, f"inject={calls}:error=EBADF", calls)
    gone = eventually(lambda: not process.is_alive(), 10)
    refused.end()
    report.check("after a panic: it ends", gone, tmux.screen())
    said = tmux.shows("this is a bug in brigade", patience=3)
    report.check("after a panic: it says so, where it can be read", said, tmux.screen()[-900:])
    shell.check(report, "after a panic", BUG)


class Refusal:
    """Has a running process refused some calls of the kernel, by strace."""

    def __init__(self, desk, process, fault, calls):
        self._log = desk.root / "refused"
        words = ["strace", "-f", "-q", "-o", self._log, "-e", f"trace={calls}", "-e", fault, "-p", str(process.pid)]
        nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._strace = subprocess.Popen(words, **nothing)
        traced = f"TracerPid:\t{self._strace.pid}\n"
        status = f"/proc/{process.pid}/status"

        def attached():
            try:
                return traced in open(status).read()
            except OSError:
                return True

        if not eventually(attached, 10):
            raise RuntimeError("strace cannot attach")

    def end(self):
        self._strace.terminate()
        self._strace.wait()


def suspended(desk, report, tmux, shell):
    """ctrl-z and fg, as in any shell."""
    process = opened(desk, report, tmux, "ctrl-z")
    tmux.press("3")
    tmux.press("C-z")
    stopped = eventually(lambda: state(process) == "T", 5)
    report.check("after ctrl-z: it is stopped", stopped and tmux.shows("Stopped"), tmux.screen()[-600:])
    shell.check(report, "after ctrl-z")
    tmux.run("fg")
    drawn = tmux.shows(*FRAME, TEAM)
    report.check("after fg: everything is drawn again", drawn, tmux.screen())
    tmux.press("?")
    helped = tmux.shows("Keys in")
    report.check("after fg: it heeds keys", helped, tmux.screen())
    tmux.press("Escape")
    tmux.lacks("Keys in")
    tmux.press("q")
    gone = eventually(lambda: not process.is_alive(), 5)
    report.check("after fg and q: it ends", gone, tmux.screen())
    shell.check(report, "after fg and q", 0)


def resized(desk, report, tmux, shell):
    """Another size is another drawing, whatever the size."""
    process = opened(desk, report, tmux, "other sizes")
    for columns, rows in ((80, 24), (20, 5), (200, 60), (120, 40)):
        tmux.resize(columns, rows)
        time.sleep(0.3)
        lines = tmux.screen().splitlines()
        fits = len(lines) == rows and all(len(line) <= columns for line in lines)
        title = lines[0].startswith(TEAM) if lines else False
        report.check(f"at {columns}x{rows}: it is drawn anew", process.is_alive() and fits and title, tmux.screen())
    tmux.press("q")
    eventually(lambda: not process.is_alive(), 5)
    shell.check(report, "after other sizes", 0)


def hung_up(desk, report):
    """A terminal that is taken away, as when a connection breaks."""
    bare = desk.bare(desk.ui())
    bare.until(lambda grid: FRAME[0] in grid.text(), 10)
    process = look_at(bare.pid)
    bare.hang_up()
    code = bare.wait(10)
    # It hears of it, or finds that it cannot draw any more, whichever comes first; neither is a bug of ours.
    report.check("when its terminal is taken away it ends", code in (0, 1), (code, look_at(process.pid)))


def state(process):
    return open(f"/proc/{process.pid}/stat").read().rpartition(")")[2].split()[0]


prove_at_desk(scenario)
