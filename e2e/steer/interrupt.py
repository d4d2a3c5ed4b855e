"""Interrupts a member's turn while its model streams text, during shell commands, and while a permission request is
open. Checks that the turn is over at once, that no process of a command is left, that the permission request is
withdrawn, that the session goes on, and what the model sees of the interrupted turn."""

import re
import time
from typing import NamedTuple

from lib.env import run_scenario
from lib.scripted_model import say
from lib.steer_env import ANSWER_WITHIN, NAME, SteerEnv, timed, with_argument
from lib.util import SLACK, eventually

# The limits for the end of a turn, in seconds: the goal, and the limit on a machine that is busy with other work.
LIMIT = 3 * SLACK

# The commands that are interrupted. Each contains one argument that only this command has.
COMMANDS = {
    "command": "sleep {seconds}",
    "ignores SIGTERM": "trap '' TERM\nsleep {seconds}\nsleep {seconds}",
    "setsid": "setsid -f sleep {seconds}\nsetsid sleep {seconds}",
}


class Memory(NamedTuple):
    """The view that a model has of an interrupted turn, in its next turn."""

    # Whether it sees the text that it had begun.
    text: bool
    # The pattern that matches its view of a command.
    command: str


MEMORIES = {
    "codex": Memory(False, "turn_aborted"),
    "gemini": Memory(False, "interrupted"),
    "claude": Memory(True, "rejected|interrupted"),
    # opencode records an empty result if the command has not ended at once.
    "opencode": Memory(True, '(aborted|"content":"")'),
    "copilot": Memory(False, "interrupted"),
    "qwen": Memory(True, "cancel|abort|interrupt|completed"),
}


def scenario(env, report, short):
    env.start_member()
    session = env.session()
    rows = [waiting(env, report), streaming(env, report), permission(env, report), after_command(env, report)]
    rows += [command(env, report, name) for name in COMMANDS]
    report.check("the session is the same", env.session() == session, env.session())
    print_table(env.version, rows)
    env.run_ok("down", "--now")
    env.check_no_process_left(report)


class Row(NamedTuple):
    """A line of the table."""

    case: str
    seconds: float
    survivors: list
    seen: str


def waiting(env, report):
    """Interrupts the turn before the model has answered with a word."""
    env.send("«waiting»", say("late") | {"wait": 60})
    wait_for_request(env, "«waiting»")
    time.sleep(0.5)
    seconds = interrupt(env, report, "waiting")
    time.sleep(1)
    requests = [turn for turn in env.model.turns() if "«waiting»" in turn["heard"]]
    report.check("waiting: the turn does not begin again", env.is_idle() and len(requests) == 1, requests)
    body = next_turn(env, report, "waiting")
    return Row("waiting", seconds, [], seen_of_command(body[body.find("«waiting»") :]))


def slow_text(code):
    """Returns a text that takes half a minute. It begins with a word that is not itself part of the message: the model
    takes the code from the message. Gemini CLI stops a model that repeats itself, so no word is repeated."""
    return say(f"begun-{{heard:{code}}} " + " ".join(map(str, range(600)))) | {"pace": 0.05}


def streaming(env, report):
    env.send("«streaming» code 4711.", slow_text("code"))
    wait_for_request(env, "«streaming»")
    time.sleep(1)
    seconds = interrupt(env, report, "streaming")
    body = next_turn(env, report, "streaming")
    seen = "begun-4711" in body
    expected = MEMORIES[env.version].text
    report.check(f"streaming: the model sees its text: {expected}", seen == expected, around(body, "begun-4711"))
    return Row("streaming", seconds, [], f"text {'kept' if seen else 'dropped'}")


def after_command(env, report):
    """Interrupts the model's text after a command has ended."""
    file = env.root / "quick.sh"
    file.write_text("echo result-$((4000 + 712))\n")
    env.send("«after a command» code 4713.", env.run_command(file), slow_text("code"))
    began = env.approve_until(lambda: any("result-4712" in str(turn["returned"]) for turn in env.model.turns()))
    report.check("text after a command: the command has ended", began)
    time.sleep(1)
    seconds = interrupt(env, report, "after a command")
    body = next_turn(env, report, "after a command")
    seen = [name for name, mark in (("result", "result-4712"), ("text", "begun-4713")) if mark in body]
    return Row("text after it", seconds, [], f"kept: {', '.join(seen) or 'neither result nor text'}")


def permission(env, report):
    file = env.root / "never.sh"
    made = env.root / "made"
    file.write_text(f"touch {made}\n")
    env.send("«permission»", env.run_command(file), say("unexpected"))
    asked = eventually(env.approvals, ANSWER_WITHIN)
    report.check("permission: the request is listed", asked)
    seconds = interrupt(env, report, "permission")
    report.check("permission: the request is no longer listed", not env.approvals(), env.approvals())
    body = next_turn(env, report, "permission")
    report.check("permission: the command has not run", not made.exists())
    return Row("permission", seconds, [], seen_of_command(body[body.find("«permission»") :]))


def command(env, report, case):
    seconds = f"300.{list(COMMANDS).index(case) + 1}{time.time_ns() % 10**8:08}"
    file = env.root / f"{case.replace(' ', '-')}.sh"
    file.write_text(COMMANDS[case].format(seconds=seconds) + "\n")
    count = COMMANDS[case].count("setsid") or 1
    env.send(f"«{case}»", env.run_command(file), say("unexpected"))
    runs = env.approve_until(lambda: len(with_argument(seconds)) >= count)
    report.check(f"{case}: the command runs", runs, env.model.turns()[-1])
    took = interrupt(env, report, case)
    survivors = [f"{process.pid} {process.command_line}" for process in with_argument(seconds)]
    report.check(f"{case}: no process is left", not survivors, survivors)
    body = next_turn(env, report, case)
    pattern = MEMORIES[env.version].command
    since = body[body.find(f"«{case}»") :]
    report.check(f"{case}: the model sees {pattern}", re.search(pattern, since), since)
    return Row(case, took, survivors, seen_of_command(since))


def wait_for_request(env, mark):
    if not eventually(lambda: any(mark in turn["heard"] for turn in env.model.turns()), ANSWER_WITHIN):
        raise TimeoutError(f"no request with {mark}")


def interrupt(env, report, case):
    """Interrupts the member. Returns how long the command took."""
    done, seconds = timed(lambda: env.brigade("interrupt", NAME, ok=(0, 5)))
    report.figure(f"{case}: interrupted in", f"{seconds:.2f} s, {done}")
    report.check(f"{case}: the turn is over within {LIMIT} s", seconds < LIMIT and env.is_idle(), done)
    return seconds


def next_turn(env, report, case):
    """Checks that the next message gets an answer and that the model sees the interrupted turn's message once. Returns
    the next request."""
    body, idle = env.next_answer(f"«after {case}»")
    report.check(f"{case}: the next message is answered", body and idle, env.member())
    count = body.count(f"«{case}»")
    report.check(f"{case}: the model sees the interrupted message once", count == 1, f"{count} times: {body[-3000:]}")
    return body


def seen_of_command(body):
    """Returns the part of a request that describes the interrupted command."""
    last = body.rfind("«after")
    words = re.findall(r"[^\"\\<>\n]*(?:turn_aborted|interrupted|rejected|aborted|cancell?ed|completed)[^\"\\<>\n]*", body[:last])
    return words[-1].strip()[:70] if words else "nothing"


def around(body, mark):
    place = body.find(mark)
    return body[max(place - 200, 0) : place + 200] if place >= 0 else f"no {mark}"


def print_table(agent, rows):
    print(f"      {agent:9}{'case':17}{'seconds':>8}  {'left':5} the model sees", flush=True)
    for row in rows:
        print(f"      {agent:9}{row.case:17}{row.seconds:8.2f}  {len(row.survivors):<5} {row.seen}", flush=True)


run_scenario(scenario, SteerEnv)
