"""Kills (kill -9) an agent, brigade's own process, both, or the guard between them, at random moments while the member
receives mail and works on a task. Checks that the agent continues its session after each restart, that the session has
every message once, that every task was claimed once and completed once, and that no earlier process is left."""

import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from teammate import LEAD, Teammate, team

from lib.env import run_scenario
from lib.scripted_model import claim_step, complete_step, say, script
from lib.task_graph import STATUSES, task_histories
from lib.util import eventually

SENDERS = (LEAD, "ann", "ben")
EACH = 3


class Pace(NamedTuple):
    """How often and when to kill processes, and how long to wait for the recovery."""

    # The number of rounds for each victim, without and with `--short`.
    long: int
    short: int
    # The latest moment of a kill, in seconds after the first message.
    latest: float
    # Maximum seconds for a round.
    timeout: float


def scenario(env, report, short):
    pace = PACES[env.version]
    with team(env, env.version) as (model, environ):
        member = Teammate(env, "rev", env.version, environ, senders=SENDERS[1:])
        member.start()
        env.brigade("send", "rev", f"hello {script(say('fine'))}")
        if not eventually(lambda: member.session() and model.turns(), pace.timeout):
            raise TimeoutError("the agent does not start")
        session = member.session()
        sent = {name: [] for name in SENDERS}
        rounds = pace.short if short else pace.long
        for victim in (agent, brigade, both, guard):
            started = time.monotonic()
            outcomes = [one_round(env, model, member, victim, sent, session, pace) for _ in range(rounds)]
            took = time.monotonic() - started
            report.figure(f"{victim.__name__} killed", f"{rounds} times, {took / rounds:.1f} s a round")
            for claim in outcomes[0]:
                failures = [f"round {n}: {found[claim]}" for n, found in enumerate(outcomes) if found[claim]]
                report.check(f"{victim.__name__} killed: {claim}", not failures, failures)
        check_totals(env, report, model, sent)
        member.kill()
        env.check_no_process_left(report)


def agent(member, tree):
    """Kills the first, the last or all processes of the agent. brigade has to restart the agent."""
    # The agent's processes have the same last argument as the guard. Short-lived programs such as git do not.
    vendor = [process for process in tree[2:] if process.argv[-1:] == tree[1].argv[-1:]]
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
    """Kills the guard. brigade has to end the processes that the guard leaves behind, and to restart the agent."""
    tree[1].kill()


# These timeouts allow for slow restarts. brigade pauses at most four seconds before a restart. Gemini CLI takes
# seconds to start, and cannot resume a session in the minute in which the session began.
PACES = {
    "codex": Pace(long=50, short=10, latest=1.5, timeout=60),
    "gemini": Pace(long=10, short=1, latest=3, timeout=120),
}


def one_round(env, model, member, victim, sent, session, pace):
    """Sends messages and a task, and kills the victim at a random moment. Returns the failures of each check."""
    task = env.brigade("task", "add", "work")["task_id"]
    # The model makes each call twice, because a resumed session counts an interrupted call as answered.
    claim = claim_step("rev", task, native=False) | {"wait": 0.1}
    complete = complete_step(task, native=False) | {"wait": 0.1}
    work = script(claim, claim, complete, complete, say("fine"))

    def write(name):
        for number in range(EACH):
            time.sleep(random.uniform(0, 0.3))
            mark = f"«{name} {len(sent[name])}»"
            more = f" {work}" if (name, number) == (LEAD, 1) else ""
            env.brigade("send", "rev", mark + more, by=name)
            sent[name].append(mark)

    # Wait until the agent has been restarted after the previous round.
    if not eventually(lambda: len(member.tree()) > 3, pace.timeout):
        raise TimeoutError("brigade does not restart the agent")
    with ThreadPoolExecutor() as pool:
        writing = [pool.submit(write, name) for name in SENDERS]
        time.sleep(random.uniform(0, pace.latest))
        tree = member.tree()
        victim(member, tree)
        for each in writing:
            each.result()

    def missing():
        body = model.last_input()
        return [mark for marks in sent.values() for mark in marks if mark not in body]

    def is_done():
        return next(each for each in env.brigade("task", "list") if each["id"] == task)["status"] == "completed"

    eventually(lambda: not missing() and is_done(), pace.timeout)
    # Wait for the end of the turn: after five crashes without a completed turn, brigade marks a member as failed.
    eventually(lambda: "say" in model.turns()[-1]["answer"], pace.timeout)
    old = tree[1:] if victim in (agent, guard) else tree
    eventually(lambda: not [process for process in old if process.is_alive()], 10)
    body = model.last_input()
    return {
        "every message arrives": missing(),
        "no message arrives twice": [mark for mark in re.findall("«[^»]*»", body) if body.count(mark) > 1],
        "the task is completed": [] if is_done() else [task],
        "the session is the same": [] if member.session() == session else [member.session()],
        "no earlier process is left": [process for process in old if process.is_alive()],
    }


def check_totals(env, report, model, sent):
    body = model.last_input()
    for name, marks in sent.items():
        found = re.findall(f"«{name} [0-9]*»", body)
        report.check(f"all {len(marks)} messages of {name} are in one request, in order", found == marks, found)
    histories = task_histories(env)
    wrong = {number: history.statuses for number, history in histories.items() if history.statuses != STATUSES}
    report.check(f"each of {len(histories)} tasks was claimed once and completed once", not wrong, wrong)
    report.figure("requests to the model", len(model.turns()))


run_scenario(scenario)
