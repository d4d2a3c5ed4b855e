"""kill -9 of an agent, of brigade's own process, of both, and of the guard between them, at any moment while
mail flows and a task is worked on. Whoever is started again goes on in the same session: every message is in
it once, every task was taken once and completed once, and nothing that ran before is left."""

import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from house import eventually, prove
from scripted import as_json_lines
from teammate import LEAD, Teammate, nobody_left, script, team

SENDERS = (LEAD, "ann", "ben")
EACH = 3


class Pace(NamedTuple):
    """How an agent is treated. A round is over when all of it has come to the model."""

    # The rounds for each victim, in the long form and in the short one.
    long: dict
    short: dict
    # The latest moment of a kill, in seconds after the first message was begun.
    latest: float
    patience: float


def scenario(house, report, short):
    pace = PACES[house.version]
    with team(house, report, house.version) as (model, env):
        for name in SENDERS[1:]:
            house.brigade("team", "join", name)
        member = Teammate(house, "rev", house.version, env)
        member.start()
        house.brigade("send", "rev", f"hello {script({'say': 'fine'})}")
        if not eventually(lambda: member.kept().get("session") and model.turns(), pace.patience):
            raise TimeoutError("the agent does not start")
        session = member.kept()["session"]
        sent = {name: [] for name in SENDERS}
        for victim, rounds in (pace.short if short else pace.long).items():
            begun = time.monotonic()
            outcome = [one_round(house, model, member, victim, sent, session, pace) for _ in range(rounds)]
            took = time.monotonic() - begun
            report.figure(f"{victim.__name__} killed", f"{rounds} times, {took / rounds:.1f} s a round")
            for promise in outcome[0]:
                broken = [f"round {n}: {found[promise]}" for n, found in enumerate(outcome) if found[promise]]
                report.check(f"{victim.__name__} killed: {promise}", not broken, broken)
        summary(house, report, model, sent)
        member.kill()
        report.check("no process is left in the end", not nobody_left(house), nobody_left(house))


def agent(member, tree):
    """Its first process, its last, or all of it; brigade itself starts it again."""
    # What it runs for a moment, git for one, is not the agent: it has other arguments than its guard.
    vendor = [process for process in tree[2:] if process.words[-1:] == tree[1].words[-1:]]
    for process in random.choice([vendor[:1], vendor[-1:], tree[2:]]):
        process.kill()


def brigade(member, tree):
    member.kill()
    time.sleep(random.choice([0, 0, random.uniform(0, 2)]))
    member.start()


def both(member, tree):
    for process in tree[2:]:
        process.kill()
    brigade(member, tree)


def guard(member, tree):
    """Brigade itself ends what is left, and starts the agent again."""
    tree[1].kill()


# A restart waits for four seconds at most; in the minute in which Gemini CLI began its session, for the next
# one. It takes seconds to start.
PACES = {
    "codex": Pace(
        long=dict.fromkeys((agent, brigade, both, guard), 50),
        short=dict.fromkeys((agent, brigade, both, guard), 10),
        latest=1.5,
        patience=60,
    ),
    "gemini": Pace(
        long=dict.fromkeys((agent, brigade, both, guard), 10),
        short=dict.fromkeys((agent, brigade, both, guard), 1),
        latest=3,
        patience=120,
    ),
}


def one_round(house, model, member, victim, sent, session, pace):
    """Mail from all sides and one task, with a kill at some moment; gives what broke of each promise."""
    task = house.brigade("task", "add", "work")["task_id"]
    # A call that was cut off counts as answered in the resumed session, so each is made twice.
    claim = {"wait": 0.1, "tool": "team/task_claim", "args": {"taskId": task}}
    complete = {"wait": 0.1, "tool": "team/task_update", "args": {"taskId": task, "status": "completed"}}
    work = script(claim, claim, complete, complete, {"say": "fine"})

    def write(name):
        for number in range(EACH):
            time.sleep(random.uniform(0, 0.3))
            words = f"«{name} {len(sent[name])}»"
            more = f" {work}" if (name, number) == (LEAD, 1) else ""
            house.brigade("send", "rev", words + more, by=name)
            sent[name].append(words)

    # Between two restarts there may be nothing to kill.
    if not eventually(lambda: len(member.tree()) > 3, pace.patience):
        raise TimeoutError("the agent, behind its guard, is not started again")
    with ThreadPoolExecutor() as pool:
        writing = [pool.submit(write, name) for name in SENDERS]
        time.sleep(random.uniform(0, pace.latest))
        tree = member.tree()
        victim(member, tree)
        for each in writing:
            each.result()

    def lacking():
        heard = model.last_input()
        return [words for all_of in sent.values() for words in all_of if words not in heard]

    def is_done():
        return next(each for each in house.brigade("task", "list") if each["id"] == task)["status"] == "completed"

    eventually(lambda: not lacking() and is_done(), pace.patience)
    # Who dies five times before it has ended a turn is given up until somebody writes, and that is as it should be.
    eventually(lambda: "say" in model.turns()[-1]["answer"], pace.patience)
    old = tree[1:] if victim in (agent, guard) else tree
    eventually(lambda: not [process for process in old if process.is_alive()], 10)
    heard = model.last_input()
    return {
        "every message comes": lacking(),
        "none comes twice": [words for words in re.findall("«[^»]*»", heard) if heard.count(words) > 1],
        "the task is completed": [] if is_done() else [task],
        "the session is the same": [] if member.kept().get("session") == session else [member.kept()],
        "nothing that ran before is left": [process for process in old if process.is_alive()],
    }


def summary(house, report, model, sent):
    heard = model.last_input()
    for name, words in sent.items():
        found = re.findall(f"«{name} [0-9]*»", heard)
        report.check(f"all {len(words)} messages of {name} are in one request, in order", found == words, found)
    steps = {}
    for record in as_json_lines(house.try_brigade("log").stdout):
        if task := record["event"].get("task"):
            steps.setdefault(task["id"], []).append(task["task"]["status"])
    odd = {task: seen for task, seen in steps.items() if seen != ["pending", "in_progress", "completed"]}
    report.check(f"each of {len(steps)} tasks was taken once and completed once", not odd, odd)
    report.figure("requests to the model", len(model.turns()))


prove(scenario, "tmux")
