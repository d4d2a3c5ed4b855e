"""Checks that `brigade ui` restores the terminal when it exits (by the quit key, a signal, a panic or a hangup) and
while it is suspended."""

import os
import signal
import subprocess
import time

from shell_state import ShellState
from ui_env import TEAM, run_ui_scenario

from lib.processes import find, stat_fields
from lib.util import eventually

# The exit code of brigade after a panic.
PANIC_EXIT_CODE = 70
# Texts that every view shows.
FRAME = ("1 Team", "6 Member")
SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2")


def scenario(env, report, short):
    env.small_team()
    tmux = env.tmux()
    shell = ShellState(env, tmux)
    for key, name in (("q", "q"), ("C-c", "ctrl-c")):
        opened(env, report, tmux, name)
        tmux.press(key)
        shell.check(report, f"after {name}", 0)
    report.check("brigade ui used the alternate screen, the cursor and the mouse", shell.was_used())
    for name in SIGNALS:
        process = opened(env, report, tmux, name)
        os.kill(process.pid, signal.Signals[name])
        gone = eventually(lambda: not process.is_alive(), 5)
        report.check(f"after {name}: brigade ui exits", gone)
        shell.check(report, f"after {name}", 0)
    panics(env, report, tmux, shell)
    suspended(env, report, tmux, shell)
    resized(env, report, tmux, shell)
    hung_up(env, report)


def opened(env, report, tmux, why):
    tmux.run(" ".join(env.ui()))
    shows = tmux.shows(*FRAME, TEAM)
    report.check(f"before {why}: brigade ui opens", shows, tmux.screen())
    return env.ui_process(tmux.shell())


def panics(env, report, tmux, shell):
    """Causes a real panic: strace injects errors into system calls that the async runtime needs."""
    process = opened(env, report, tmux, "a panic")
    calls = "epoll_wait,epoll_pwait,epoll_pwait2"
    injection = FaultInjection(env, process, f"inject={calls}:error=EBADF", calls)
    gone = eventually(lambda: not process.is_alive(), 10)
    injection.end()
    report.check("after a panic: brigade ui exits", gone, tmux.screen())
    printed = tmux.shows("this is a bug in brigade", timeout=3)
    report.check("after a panic: the panic message is readable", printed, tmux.screen()[-900:])
    shell.check(report, "after a panic", PANIC_EXIT_CODE)


class FaultInjection:
    """Uses strace to make system calls of a running process fail."""

    def __init__(self, env, process, fault, calls):
        log = env.root / "strace.log"
        command = ["strace", "-f", "-q", "-o", log, "-e", f"trace={calls}", "-e", fault, "-p", str(process.pid)]
        nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._strace = subprocess.Popen(command, **nothing)
        traced = f"TracerPid:\t{self._strace.pid}\n"
        status = f"/proc/{process.pid}/status"

        def attached():
            try:
                return traced in open(status).read()
            except OSError:
                return True

        if not eventually(attached, 10):
            raise RuntimeError("strace could not attach to brigade ui")

    def end(self):
        self._strace.terminate()
        self._strace.wait()


def suspended(env, report, tmux, shell):
    """Suspends the UI with ctrl-z and resumes it with fg."""
    process = opened(env, report, tmux, "ctrl-z")
    tmux.press("3")
    tmux.press("C-z")
    stopped = eventually(lambda: state(process) == "T", 5)
    report.check("after ctrl-z: brigade ui is stopped", stopped and tmux.shows("Stopped"), tmux.screen()[-600:])
    shell.check(report, "after ctrl-z")
    tmux.run("fg")
    drawn = tmux.shows(*FRAME, TEAM)
    report.check("after fg: brigade ui draws the screen again", drawn, tmux.screen())
    tmux.press("?")
    helped = tmux.shows("Keys in")
    report.check("after fg: brigade ui reacts to keys", helped, tmux.screen())
    tmux.press("Escape")
    tmux.lacks("Keys in")
    tmux.press("q")
    gone = eventually(lambda: not process.is_alive(), 5)
    report.check("after fg and q: brigade ui exits", gone, tmux.screen())
    shell.check(report, "after fg and q", 0)


def resized(env, report, tmux, shell):
    """Checks that the UI redraws after each change of the terminal size."""
    process = opened(env, report, tmux, "resizing")
    for columns, rows in ((80, 24), (20, 5), (200, 60), (120, 40)):
        tmux.resize(columns, rows)
        time.sleep(0.3)
        lines = tmux.screen().splitlines()
        fits = len(lines) == rows and all(len(line) <= columns for line in lines)
        title = lines[0].startswith(TEAM) if lines else False
        report.check(f"at {columns}x{rows}: brigade ui redraws", process.is_alive() and fits and title, tmux.screen())
    tmux.press("q")
    eventually(lambda: not process.is_alive(), 5)
    shell.check(report, "after resizing", 0)


def hung_up(env, report):
    """Closes the terminal, as a broken connection does, and checks that the UI exits."""
    pty = env.pty(env.ui())
    pty.read_until(lambda grid: FRAME[0] in grid.text(), 10)
    process = find(pty.pid)
    pty.hang_up()
    code = pty.wait(10)
    # The exit code depends on what the UI notices first: SIGHUP, or an error while drawing.
    report.check("brigade ui exits when its terminal is closed", code in (0, 1), (code, find(process.pid)))


def state(process):
    return stat_fields(process.pid)[0]


run_ui_scenario(scenario)
