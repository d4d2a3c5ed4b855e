"""Lets four members send many messages at once to an agent in the middle of a long turn. The agent's model must
receive each message once, and each sender's messages in order."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

from teammate import LEAD, Teammate, idle_notifications, team

from lib.env import run_scenario
from lib.scripted_model import say, script, team_tool
from lib.util import eventually

SENDERS = (LEAD, "ann", "ben", "cem")
TIMEOUT = 120


def scenario(env, report, short):
    each = 50 if short else 250
    with team(env, env.version) as (model, environ):
        member = Teammate(env, "rev", env.version, environ, senders=SENDERS[1:])
        member.start()
        # Start a slow turn with many tool calls. All calls differ, because Gemini CLI ends a turn that repeats a call.
        calls = [
            team_tool("task_create", subject=f"step {number}", description="-") | {"wait": 0.5}
            for number in range(10 if short else 40)
        ]
        env.brigade("send", "rev", f"begin {script(*calls, say('fine'))}")
        if not eventually(lambda: len(model.turns()) > 1, TIMEOUT):
            raise TimeoutError(f"the agent does not start: {member.pane()}")
        idle_before = len(idle_notifications(env, "rev"))
        started = time.monotonic()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: send_all(env, name, each), SENDERS))
        took = time.monotonic() - started
        report.figure("sent and acknowledged", f"{len(SENDERS) * each} messages in {took:.1f} s")
        expected = {name: [f"«{name} {number}»" for number in range(each)] for name in SENDERS}

        def received():
            body = model.last_input()
            return {name: re.findall(f"«{name} [0-9]*»", body) for name in SENDERS}

        eventually(lambda: received() == expected, TIMEOUT)
        took = time.monotonic() - started
        body = model.last_input()
        report.check("the agent was busy when the messages were sent", idle_before == 0, idle_before)
        for name, messages in received().items():
            claim = f"each of {name}'s {each} messages is in the last request once, in order"
            report.check(claim, messages == expected[name], messages)
        batches = len(set(re.findall(r"\[mail [0-9]+-[0-9a-f]+ for ", body)))
        report.figure("time until the model had all messages", f"{took:.1f} s")
        report.figure("messages delivered in", f"{batches} batches; {len(model.turns())} requests to the model")
        idle = eventually(lambda: idle_notifications(env, "rev"), TIMEOUT)
        report.check("the member is idle at the end", bool(idle), member.pane()[-500:])
        eventually(lambda: not env.mail("rev", "--unread"), TIMEOUT)
        unread = env.mail("rev", "--unread")
        report.check("no message is unread at the end", not unread, len(unread))
        member.kill()
        env.check_no_process_left(report)


def send_all(env, name, each):
    for number in range(each):
        env.brigade("send", "rev", f"«{name} {number}»", by=name)


run_scenario(scenario)
