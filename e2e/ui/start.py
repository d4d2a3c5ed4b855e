"""Measures the startup of `brigade ui` with a small team: from the start of the process to the last byte of the
first complete frame."""

from ui_env import TEAM, run_ui_scenario

from lib.util import SLACK

TIMES, SHORT_TIMES = 40, 20
BAR = 0.050


def scenario(env, report, short):
    env.small_team()
    took = sorted(start(env) for _ in range(SHORT_TIMES if short else TIMES))
    median = took[len(took) // 2]
    line = f"p50 {ms(median)}, min {ms(took[0])}, max {ms(took[-1])}"
    report.figure("time from the start to the first complete frame", line)
    report.check(f"the median startup time is at most {ms(BAR * SLACK)}", median <= BAR * SLACK, ms(median))


def start(env):
    with env.pty(env.ui()) as pty:
        arrived = pty.read_until(is_complete, 10)
        if arrived is None:
            raise TimeoutError(pty.grid.text())
        # Read the rest of the frame, which may arrive in several parts.
        arrived = pty.read_until_quiet(0.02) or arrived
        pty.write("q")
        pty.wait(5)
        return arrived - pty.started


def is_complete(grid):
    """Returns whether the screen shows the team, its members' last messages, and the key hints."""
    text = grid.text()
    return all(words in text for words in (TEAM, "2 members", "ann", "bob says hello", "quit"))


def ms(seconds):
    return f"{seconds * 1e3:.1f} ms"


run_ui_scenario(scenario)
