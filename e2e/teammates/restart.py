"""A program that exits at once is started again, ever later, five times; then the lead is told why, once.
The next message is a reason to try again, and once the program works nothing was lost."""

import os
import time

from house import eventually, prove
from teammate import Teammate, idle_notifications, nobody_left, script, team

TRIES = 5
# Half a second before the second try, and twice as long before each one after.
WAITS = [0.5, 1.0, 2.0, 4.0]
# A try takes this long at most, on a machine that has other things to do.
TRY = 2.0


def scenario(house, report, short):
    with team(house, report, house.version) as (model, env):
        told = house.root / "tries"
        program = house.root / "agent"
        program.write_text(f'#!/bin/sh\ndate +%s.%N >>{told}\necho "no licence for this machine" >&2\nexit 3\n')
        program.chmod(0o755)
        member = Teammate(house, "rev", house.version, env, program)

        def tries():
            return [float(line) for line in told.read_text().split()] if told.exists() else []

        house.brigade("send", "rev", f"one {script({'say': 'fine'})}")
        member.start()
        series(house, report, tries, 0)
        if not short:
            house.brigade("send", "rev", f"another {script({'say': 'fine'})}")
            again = eventually(lambda: len(tries()) > TRIES, 2)
            report.check("a new message makes it try again at once", again, tries())
            series(house, report, tries, TRIES)
        program.unlink()
        program.symlink_to(os.environ[f"PROGRAM_{house.version.upper()}"])
        house.brigade("send", "rev", f"two {script({'say': 'fine'})}")
        heard = eventually(lambda: "two" in model.last_input(), 20)
        report.check("the next message finds the mended program, and is heard", heard, member.pane())
        numbers = [model.last_input().count(f">\\n{word} [") for word in ("one", "two")]
        report.check("what was sent before is heard with it, each once", numbers == [1, 1], numbers)
        member.kill()
        report.check("no process is left", not nobody_left(house), nobody_left(house))


def series(house, report, tries, before):
    done = eventually(lambda: len(tries()) == before + TRIES, sum(WAITS) + TRIES * TRY)
    times = tries()[before:]
    gaps = [later - earlier for earlier, later in zip(times, times[1:])]
    report.figure("tries", len(times))
    report.figure("seconds between them", [round(gap, 2) for gap in gaps])
    report.check(f"it is tried {TRIES} times", done, times)
    backs_off = len(gaps) == len(WAITS) and all(wait <= gap <= wait + TRY for wait, gap in zip(WAITS, gaps))
    report.check("each try waits twice as long as the one before", backs_off, gaps)
    eventually(lambda: idle_notifications(house, "rev"), 5)
    time.sleep(1 + 2 * WAITS[-1] if before == 0 else 1)
    told = idle_notifications(house, "rev")
    reasons = [body.get("failureReason", "") for body in told if body.get("idleReason") == "failed"]
    report.figure("the lead is told", reasons)
    once = len(told) == 1 and len(reasons) == 1 and "no licence for this machine" in reasons[0]
    report.check("the lead is told once that it failed, and why", once, told)
    report.check("then it is left alone", len(tries()) == before + TRIES, tries())


prove(scenario, "tmux")
