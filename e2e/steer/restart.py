"""Pauses a member, and restarts its agent in the same session, with another model, and in a new session. Checks that no
message is lost or delivered twice. Gemini CLI cannot resume a session in the minute in which the session began; brigade
waits."""

import time

from lib.env import run_scenario
from lib.scripted_model import say
from lib.steer_env import NAME, SteerEnv, timed
from lib.util import eventually


def scenario(env, report, short):
    env.start_member()
    first = env.session()
    env.brigade("pause", NAME)
    env.send("«held»", say("fine"))
    time.sleep(2)
    begun = any("«held»" in turn["heard"] for turn in env.model.turns())
    report.check("a paused member gets no message", not begun)
    env.brigade("unpause", NAME)
    eventually(lambda: env.answered("«held»"), 20)
    count = env.model.last_input().count("«held»")
    report.check("the message that waited is delivered once", count == 1, count)

    _, seconds = timed(lambda: env.brigade("restart", NAME))
    report.figure("restarted in", f"{seconds:.1f} s")
    body, _ = env.next_answer("«again»")
    counts = [body.count(mark) for mark in ("«hello»", "«held»", "«again»")]
    report.check("after a restart, the session has each message once", counts == [1, 1, 1], counts)
    report.check("after a restart, the session is the same", env.session() == first, env.session())

    env.brigade("restart", NAME, "--model", "other-model")
    body, _ = env.next_answer("«model»")
    path = env.model.turns()[-1]["path"]
    report.check("the request names the new model", "other-model" in body + path, path)
    report.check("with another model, the session is the same", env.session() == first, env.session())

    env.brigade("restart", NAME, "--fresh")
    body, _ = env.next_answer("«fresh»")
    report.check("--fresh begins another session", env.session() != first, env.session())
    report.check("the briefing has earlier messages", "«held»" in body, body[-1500:])
    env.run_ok("down", "--now")
    env.check_no_process_left(report)


run_scenario(scenario, SteerEnv)
