"""Tests an agent whose program exits at once. brigade starts the program five times, with growing pauses, and then
reports the reason to the lead once. The next message starts the program again. Once the program works, the agent
gets all messages."""

import os
import time

from teammate import Teammate, idle_notifications, team

from lib.env import run_scenario
from lib.scripted_model import say, script
from lib.util import eventually

STARTS = 5
# The pauses between the starts, in seconds.
PAUSES = [0.5, 1.0, 2.0, 4.0]
# The maximum time that a start takes on a busy machine, in seconds.
START_SECONDS = 2.0


def scenario(env, report, short):
    with team(env, env.version) as (model, environ):
        times = env.root / "starts"
        program = env.root / "agent"
        program.write_text(f'#!/bin/sh\ndate +%s.%N >>{times}\necho "no licence for this machine" >&2\nexit 3\n')
        program.chmod(0o755)
        member = Teammate(env, "rev", env.version, environ, program)

        def starts():
            return [float(line) for line in times.read_text().split()] if times.exists() else []

        env.brigade("send", "rev", f"one {script(say('fine'))}")
        member.start()
        check_series(env, report, starts, 0)
        if not short:
            env.brigade("send", "rev", f"another {script(say('fine'))}")
            again = eventually(lambda: len(starts()) > STARTS, 2)
            report.check("a new message starts the program again at once", again, starts())
            check_series(env, report, starts, STARTS)
        program.unlink()
        program.symlink_to(os.environ[f"PROGRAM_{env.version.upper()}"])
        env.brigade("send", "rev", f"two {script(say('fine'))}")
        received = eventually(lambda: "two" in model.last_input(), 20)
        report.check("the repaired program receives the next message", received, member.pane())
        numbers = [model.last_input().count(f">\\n{text} [") for text in ("one", "two")]
        report.check("the model gets the earlier and the next message once each", numbers == [1, 1], numbers)
        member.kill()
        env.check_no_process_left(report)


def check_series(env, report, starts, before):
    done = eventually(lambda: len(starts()) == before + STARTS, sum(PAUSES) + STARTS * START_SECONDS)
    times = starts()[before:]
    gaps = [later - earlier for earlier, later in zip(times, times[1:])]
    report.figure("starts", len(times))
    report.figure("seconds between the starts", [round(gap, 2) for gap in gaps])
    report.check(f"the program is started {STARTS} times", done, times)
    backs_off = len(gaps) == len(PAUSES) and all(
        pause <= gap <= pause + START_SECONDS for pause, gap in zip(PAUSES, gaps)
    )
    report.check("each pause is twice as long as the one before", backs_off, gaps)
    eventually(lambda: idle_notifications(env, "rev"), 5)
    time.sleep(1 + 2 * PAUSES[-1] if before == 0 else 1)
    bodies = idle_notifications(env, "rev")
    reasons = [body.get("failureReason", "") for body in bodies if body.get("idleReason") == "failed"]
    report.figure("failure reasons sent to the lead", reasons)
    once = len(bodies) == 1 and len(reasons) == 1 and "no licence for this machine" in reasons[0]
    report.check("the lead gets one notification of the failure, with the reason", once, bodies)
    report.check("the program is not started again after that", len(starts()) == before + STARTS, starts())


run_scenario(scenario)
