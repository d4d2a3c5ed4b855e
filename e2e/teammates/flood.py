"""A flood of mail from four members at once, to an agent in the middle of a long turn: the model is told of
each message once, and of each sender's in order."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

from house import eventually, prove
from teammate import LEAD, Teammate, idle_notifications, nobody_left, script, team

SENDERS = (LEAD, "ann", "ben", "cem")
PATIENCE = 120


def scenario(house, report, short):
    each = 50 if short else 250
    with team(house, report, house.version) as (model, env):
        for name in SENDERS[1:]:
            house.brigade("team", "join", name)
        member = Teammate(house, "rev", house.version, env)
        member.start()
        # Between two tools the model takes its time. No two are the same: that ends a turn of Gemini's.
        steps = [{"subject": f"step {number}", "description": "-"} for number in range(10 if short else 40)]
        tools = [{"wait": 0.5, "tool": "team/task_create", "args": step} for step in steps]
        house.brigade("send", "rev", f"begin {script(*tools, {'say': 'fine'})}")
        if not eventually(lambda: len(model.turns()) > 1, PATIENCE):
            raise TimeoutError(f"the agent does not start: {member.pane()}")
        busy_before = len(idle_notifications(house, "rev"))
        begun = time.monotonic()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: write(house, name, each), SENDERS))
        took = time.monotonic() - begun
        report.figure("sent and acknowledged", f"{len(SENDERS) * each} messages in {took:.1f} s")
        wanted = {name: [f"«{name} {number}»" for number in range(each)] for name in SENDERS}

        def found():
            heard = model.last_input()
            return {name: re.findall(f"«{name} [0-9]*»", heard) for name in SENDERS}

        eventually(lambda: found() == wanted, PATIENCE)
        took = time.monotonic() - begun
        heard = model.last_input()
        report.check("it was busy when the flood began", busy_before == 0, busy_before)
        for name, there in found().items():
            promise = f"each of {name}'s {each} messages is in the last request once, in order"
            report.check(promise, there == wanted[name], there)
        notes = len(set(re.findall(r"\[mail [0-9]+-[0-9a-f]+ for ", heard)))
        report.figure("until all were with the model", f"{took:.1f} s")
        report.figure("given to the agent in", f"{notes} pieces; {len(model.turns())} requests to the model")
        idle = eventually(lambda: idle_notifications(house, "rev"), PATIENCE)
        report.check("in the end it is idle", bool(idle), member.pane()[-500:])
        eventually(lambda: not house.mail("rev", "--unread"), PATIENCE)
        unread = house.mail("rev", "--unread")
        report.check("and nothing is unread", not unread, len(unread))
        member.kill()
        report.check("no process is left", not nobody_left(house), nobody_left(house))


def write(house, name, each):
    for number in range(each):
        house.brigade("send", "rev", f"«{name} {number}»", by=name)


prove(scenario, "tmux")
