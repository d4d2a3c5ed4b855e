"""Tests everyday work: starting teammates, sending messages, doing tasks, and receiving messages during a turn."""

import time
from typing import NamedTuple

import answers
from guest_env import instruction

from lib import processes
from lib.scripted_model import say, team_tool, tool
from lib.util import eventually

NAMES = {"codex": "cody", "gemini": "gemma", "opencode": "otto", "copilot": "cora", "qwen": "quin"}
# Steps that keep an agent busy for three seconds. Codex adds a message to the running turn after a tool call, so
# its steps contain a slow tool call. The other agents wait for a slow model.
SLOW = {"codex": [tool("exec_command", cmd="sleep 3; echo slept"), say("That took long.")]}
SLOW_MODEL = [{"wait": 3}, say("That took long.")]


class Mate(NamedTuple):
    name: str
    vendor: str


def spawn_mates(env, report):
    """Makes the lead start one teammate from each vendor, and a second teammate from the first vendor."""
    mates = [Mate(NAMES[vendor], vendor) for vendor in env.models]
    mates.append(Mate("rita", mates[0].vendor))
    for mate in mates:
        first_turn(env, report, mate)
    return mates


def native_teammate(env, report, mate):
    """Checks that a teammate of any other agent type is a real Claude Code."""
    result = env.spawn_agent("alice", "general-purpose", "[agent:alice] Wait for messages.")
    alice = env.agent("alice")
    alice.open_turn()
    report.check("alice: a general-purpose teammate is a real Claude Code", not result.failed, result)
    if env.version == "new":
        answers.native(env, report, alice)
    alice.call(*env.message(mate.name, f"alice greets {mate.name}"))
    received = env.receives(mate.vendor, mate.name, f"alice greets {mate.name}")
    report.check(f"the model of {mate.name} receives alice's message", received, env.pane(mate.name)[-300:])
    alice.only_listen()
    text = f"{mate.name} greets alice"
    env.order(mate.name, "Say hello.", team_tool("send_message", to="alice", message=text), say("I did."))
    report.check(f"alice's model receives the message from {mate.name}", alice.receives(text), alice.input()[-300:])
    env.becomes_idle(mate.name)


def first_turn(env, report, mate):
    name, vendor = mate
    text, prompt = f"{name} is here & ready", f"The first words for {name}."
    answer = team_tool("send_message", to="team-lead", message=text, summary="a report")
    started = time.monotonic()
    result = env.spawn_agent(name, vendor, instruction(prompt, answer, say("That was all.")))
    report.check(f"{name}: the lead's tool reports that it was started", not result.failed, result)
    # opencode takes forty seconds to start on a busy machine.
    received = env.receives(vendor, name, prompt, 90)
    report.figure(f"{name}: from the lead's call to its model's first turn", f"{time.monotonic() - started:.1f} s")
    first = env.requests(vendor, name)[:1]
    complete = received and first[0][0]["heard"].count(prompt) == 1 and "<teammate-message" in first[0][0]["heard"]
    report.check(f"{name}: its first turn is the lead's prompt", complete, first and first[0][0]["heard"])
    received = env.lead_receives(text, 30)
    turn = env.lead.message_with(text)
    is_turn = received and f'teammate_id="{name}"' in turn and 'summary="a report"' in turn
    claim = f"{name}: its message is a turn of the lead's model"
    env.check_lead_receives(report, claim, text, is_turn, turn or env.pane(name)[-600:])
    report.check(f"{name}: reports that it is idle after the first turn", env.becomes_idle(name), env.member(name))
    times = env.count_received(vendor, name, prompt)
    report.check(f"{name}: its model receives the prompt once", times == 1, times)


def check_no_terminal(env, report, mate):
    """Checks that no program can type into the agent: the agent reads a pipe. It has no terminal, not even that of the
    pane."""
    name, terminal = mate.name, env.terminal(mate.name)
    runner = env.runner(name)
    report.check(f"{name}: brigade has the terminal of the pane", runner.stdin() == terminal, runner.stdin())
    descendants = processes.tree(runner.pid)[1:]
    guard = next(process for process in descendants if " guard " in process.command_line)
    agent = next(process for process in descendants if process.parent == guard.pid)
    report.check(f"{name}: its agent reads a pipe", agent.stdin().startswith("pipe:"), (agent, agent.stdin()))
    with_terminal = [process for process in descendants if process.has_terminal(terminal)]
    report.check(f"{name}: no process that brigade started has a terminal", descendants and not with_terminal, with_terminal)


def talk(env, report, mates):
    """Makes each member send a message to the next member."""
    for mate, other in zip(mates, mates[1:] + mates[:1]):
        text = f"{mate.name} greets {other.name}"
        env.order(mate.name, "Say hello.", team_tool("send_message", to=other.name, message=text), say("I did."))
        arrived = env.receives(other.vendor, other.name, text)
        inputs = [record["heard"] for record, _ in env.requests(other.vendor, other.name)]
        turn = next((received for received in inputs if text in received), "")
        is_turn = arrived and f'teammate_id="{mate.name}"' in turn
        report.check(f"the message from {mate.name} is a turn of the model of {other.name}", is_turn, turn)
    for mate in mates:
        env.becomes_idle(mate.name)


def tasks(env, report, mates):
    """Creates a chain of tasks on the lead's own board. Each member does one task when that task is unblocked."""
    lead = env.lead
    # Claude Code deletes all tasks once all are completed. To prevent that, this task is left open.
    lead.call("TaskCreate", {"subject": "stay", "description": "do not"})
    chain = []
    for mate in mates:
        lead.call("TaskCreate", {"subject": f"work for {mate.name}", "description": "do it"})
        chain.append(env.task_id(f"work for {mate.name}"))
    for before, after in zip(chain, chain[1:]):
        lead.call("TaskUpdate", {"taskId": after, "addBlockedBy": [before]})
    last, task = mates[-1], chain[-1]
    env.order(last.name, "Try it now.", team_tool("task_claim", taskId=task), say("It is not free."))
    results = eventually(lambda: tool_texts(env, last, "task_claim"), 20)
    refused = bool(results) and "is blocked by" in results[-1]
    report.check(f"{last.name}: cannot claim a blocked task", refused, results)
    for mate, task in zip(mates, chain):
        done = team_tool("task_update", taskId=task, status="completed")
        env.order(mate.name, "Do your work.", team_tool("task_claim", taskId=task), done, say("Done."))
        completed = eventually(lambda: env.brigade("task", "show", task)["status"] == "completed", 30)
        shown = env.brigade("task", "show", task)
        owned = completed and shown.get("owner") == mate.name
        report.check(f"{mate.name}: claims its unblocked task and completes it", owned, shown)
    lines = [lead.task_line(task) for task in chain]
    seen = all("[completed]" in line and f"({mate.name})" in line for line, mate in zip(lines, mates))
    report.check("the lead's TaskList shows the completed chain with its owners", seen, lines)
    for mate in mates:
        env.becomes_idle(mate.name)


def tool_texts(env, mate, name):
    """Returns the results that a member's model got from a tool of `brigade mcp`, in order."""
    return [text for wanted, text in env.calls(mate.vendor, mate.name) if wanted == f"team/{name}" and text]


def interrupt(env, report, mates):
    """Sends each member a message during a turn. Checks that the model receives the message once."""
    for name, vendor in mates[:-1]:
        before = len(env.requests(vendor, name))
        env.order(name, "Take your time.", *SLOW.get(vendor, SLOW_MODEL))
        # Wait until the slow tool or the slow model has started.
        eventually(lambda: name in env.busy(), 20)
        time.sleep(1)
        text = f"by the way, {name}, mind the step"
        env.send(name, text)
        received = env.receives(vendor, name, text)
        env.becomes_idle(name)
        times = env.count_received(vendor, name, text)
        report.check(f"{name}: receives a message during a turn once", received and times == 1, times)
        after = env.requests(vendor, name)[before:]
        ends = [body for record, body in after if record["answer"].get("say") == "That took long."]
        joined = bool(ends) and text in ends[0]
        if vendor in SLOW:
            report.check(f"{name}: the message is added to the running turn", joined, env.calls(vendor, name)[-2:])
        else:
            report.check(f"{name}: the message comes after the running turn", ends and not joined, env.calls(vendor, name)[-2:])
