"""The daily life of a team: arriving, talking, working down the board, being spoken to while busy."""

import time
from typing import NamedTuple

from guest import say, script, team, tool
from house import eventually
from processes import below, children, command, has_terminal, input_of

NAMES = {"codex": "cody", "gemini": "gemma", "opencode": "otto", "copilot": "cora", "qwen": "quin"}
# What keeps an agent busy for three seconds: a tool where a message can join the turn, which it does
# behind a tool; a slow model where it has to wait for the end.
SLOW = {"codex": [tool("exec_command", cmd="sleep 3; echo slept"), say("That took long.")]}
SLOW_MODEL = [{"wait": 3}, say("That took long.")]


class Mate(NamedTuple):
    name: str
    vendor: str


def arrive(house, report):
    """The lead starts one teammate of each vendor, a second one of the first."""
    crew = [Mate(NAMES[vendor], vendor) for vendor in house.models]
    crew.append(Mate("rita", crew[0].vendor))
    for mate in crew:
        first_turn(house, report, mate)
    return crew


def plain(house, report, mate):
    """Every other agent type is the real Claude Code's."""
    outcome = house.hire("alice", "general-purpose", "[agent:alice] Wait for messages.")
    alice = house.agent("alice")
    alice.open_turn()
    report.check("alice: a plain teammate is started, a real Claude Code", not outcome.failed, outcome)
    alice.call(*house.message(mate.name, f"alice greets {mate.name}"))
    told = house.told(mate.vendor, mate.name, f"alice greets {mate.name}")
    report.check(f"what alice writes to {mate.name} is told its model", told, house.pane(mate.name)[-300:])
    alice.rest()
    words = f"{mate.name} greets alice"
    house.order(mate.name, "Say hello.", team("send_message", to="alice", message=words), say("I did."))
    report.check(f"what {mate.name} writes to alice is told her model", alice.hears(words), alice.heard()[-300:])
    house.idle(mate.name)


def first_turn(house, report, mate):
    name, vendor = mate
    words, prompt = f"{name} is here & ready", f"The first words for {name}."
    report_back = team("send_message", to="team-lead", message=words, summary="a report")
    begun = time.monotonic()
    outcome = house.hire(name, vendor, script(prompt, report_back, say("That was all.")))
    report.check(f"{name}: the lead's tool says that it was started", not outcome.failed, outcome)
    # opencode needs forty seconds on a machine that is busy with other things.
    told = house.told(vendor, name, prompt, 90)
    report.figure(f"{name}: from the lead's call to its model's first turn", f"{time.monotonic() - begun:.1f} s")
    first = house.requests(vendor, name)[:1]
    whole = told and first[0][0]["heard"].count(prompt) == 1 and "<teammate-message" in first[0][0]["heard"]
    report.check(f"{name}: its first turn is the prompt of the lead", whole, first and first[0][0]["heard"])
    heard = house.listens(words, 30)
    turn = house.turn_with(words)
    is_turn = heard and f'teammate_id="{name}"' in turn and 'summary="a report"' in turn
    if house.lost_by_lead(words):
        report.figure(f"{name}: its message was lost by the lead itself", "old")
    else:
        report.check(f"{name}: its message is a turn of the lead's model", is_turn, turn or house.pane(name)[-600:])
    report.check(f"{name}: it is idle afterwards, and says so", house.idle(name), house.member(name))
    once = house.times_told(vendor, name, prompt)
    report.check(f"{name}: its model is told the prompt once", once == 1, once)


def hands_off(house, report, mate):
    """Nothing could be typed into the agent: it reads a pipe, and has no terminal, the pane's least of all."""
    name, terminal = mate.name, house.terminal(mate.name)
    player = house.player(name)
    report.check(f"{name}: brigade has the pane's terminal", input_of(player) == terminal, input_of(player))
    started = {pid: command(pid) for pid in below(player)}
    guard = next(pid for pid, run in started.items() if " guard " in run)
    agent = children(guard)[0]
    report.check(f"{name}: its agent reads a pipe", input_of(agent).startswith("pipe:"), (started[agent], input_of(agent)))
    reach = [run for pid, run in started.items() if has_terminal(pid, terminal)]
    report.check(f"{name}: nothing that brigade started has a terminal", started and not reach, reach)


def talk(house, report, crew):
    """Each writes to the next one."""
    for mate, other in zip(crew, crew[1:] + crew[:1]):
        words = f"{mate.name} greets {other.name}"
        greet = team("send_message", to=other.name, message=words)
        house.order(mate.name, "Say hello.", greet, say("I did."))
        arrived = house.told(other.vendor, other.name, words)
        told = [record["heard"] for record, _ in house.requests(other.vendor, other.name)]
        turn = next((text for text in told if words in text), "")
        is_turn = arrived and f'teammate_id="{mate.name}"' in turn
        report.check(f"what {mate.name} writes to {other.name} is a turn of its model", is_turn, turn)
    for mate in crew:
        house.idle(mate.name)


def tasks(house, report, crew):
    """A chain of tasks on the lead's own board; each member does one when it is free."""
    lead = house.lead
    # The lead throws all tasks away once all are completed; with this one they never are.
    lead.call("TaskCreate", {"subject": "stay", "description": "do not"})
    chain = []
    for mate in crew:
        lead.call("TaskCreate", {"subject": f"work for {mate.name}", "description": "do it"})
        listed = house.brigade("task", "list")
        chain.append(next(task["id"] for task in listed if task["subject"] == f"work for {mate.name}"))
    for before, after in zip(chain, chain[1:]):
        lead.call("TaskUpdate", {"taskId": after, "addBlockedBy": [before]})
    last, task = crew[-1], chain[-1]
    house.order(last.name, "Try it now.", team("task_claim", taskId=task), say("It is not free."))
    refused = eventually(lambda: said(house, last, "task_claim"), 20)
    early = bool(refused) and "waits for" in refused[-1]
    report.check(f"{last.name}: a task that waits for another cannot be had", early, refused)
    for mate, task in zip(crew, chain):
        done = team("task_update", taskId=task, status="completed")
        house.order(mate.name, "Do your work.", team("task_claim", taskId=task), done, say("Done."))
        status = eventually(lambda: house.brigade("task", "show", task)["status"] == "completed", 30)
        shown = house.brigade("task", "show", task)
        well = status and shown.get("owner") == mate.name
        report.check(f"{mate.name}: claims its task when it is free, and completes it", well, shown)
    listed = lead.call("TaskList", {}).text
    lines = [next((line for line in listed.splitlines() if line.startswith(f"#{task} ")), "") for task in chain]
    seen = all("[completed]" in line and f"({mate.name})" in line for line, mate in zip(lines, crew))
    report.check("the lead's TaskList shows the chain done, and by whom", seen, listed)
    for mate in crew:
        house.idle(mate.name)


def said(house, mate, name):
    """What a tool of the team's has given a member's model, in order."""
    return [text for wanted, text in house.calls(mate.vendor, mate.name) if wanted == f"team/{name}" and text]


def interrupt(house, report, crew):
    """A message comes in the middle of a turn."""
    for name, vendor in crew[:-1]:
        before = len(house.requests(vendor, name))
        house.order(name, "Take your time.", *SLOW.get(vendor, SLOW_MODEL))
        # The request, and then the tool or the slow answer.
        eventually(lambda: name in house.busy(), 20)
        time.sleep(1)
        words = f"by the way, {name}, mind the step"
        house.write(name, words)
        told = house.told(vendor, name, words)
        house.idle(name)
        times = house.times_told(vendor, name, words)
        report.check(f"{name}: what comes in the middle of a turn is told once", told and times == 1, times)
        after = house.requests(vendor, name)[before:]
        ends = [body for record, body in after if record["answer"].get("say") == "That took long."]
        joined = bool(ends) and words in ends[0]
        if vendor in SLOW:
            report.check(f"{name}: and joins the turn", joined, house.calls(vendor, name)[-2:])
        else:
            report.check(f"{name}: and comes after the turn", ends and not joined, house.calls(vendor, name)[-2:])
