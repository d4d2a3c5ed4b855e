"""Tests agents of four vendors as members of one team, each with `brigade mcp` registered as an MCP server.

Each agent reads the lead's message, answers, claims the task that the lead created for it, and completes it.
The lead is a real Claude Code, old or new, or a person who uses the `brigade` command line.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from leads import BrigadeLead, ClaudeLead

from lib.env import run_scenario
from lib.scripted_model import say, team_tool, team_tools, tool_results
from lib.vendors import served_tools, vendors


def scenario(env, report, short):
    env.git_init()
    lead = BrigadeLead(env) if env.version == "brigade" else ClaudeLead(env)
    with ExitStack() as stack:

        agents = [stack.enter_context(vendor) for vendor in vendors(env)]
        for vendor in agents:
            member(env, report, lead, vendor)
        if not short:
            for number in range(1, 4):
                together(env, report, lead, agents, f"round {number}")
    env.check_locks(report)


def member(env, report, lead, vendor):
    """Lets one vendor's agent join the team, do its task and report to the lead, and checks all of that."""
    name = vendor.name
    env.brigade("team", "join", name, "--agent-type", name)
    request, answer = f"please do your work, {name}", f"{name} has done its work <really> & reports it"
    lead.write(name, request)
    task = create_task(env, lead, f"work for {name}")
    steps = [
        {"tool": "team/read_messages"},
        team_tool("send_message", to="team-lead", message=answer, summary="a report"),
        team_tool("task_claim", taskId=task),
        team_tool("task_update", taskId=task, status="completed"),
        say("That was all."),
    ]
    registered = vendor.register()
    report.check(f"{name}: registers the server", registered.code == 0, registered)
    started = time.monotonic()
    ran = vendor.follow(steps)
    report.figure(f"{name}: time of the whole run", f"{time.monotonic() - started:.1f} s")
    report.check(f"{name}: exits with 0", ran.code == 0, ran)
    turns = vendor.model.new_turns()
    offered = team_tools(turns[0]) if turns else {}
    same = set(offered) == served_tools(env, name)
    report.check(f"{name}: every tool of the server is offered directly", same, sorted(offered))
    report.figure(f"{name}: send_message is offered as", offered.get("send_message"))
    expected = [request, "sent to team-lead", f"#{task} is yours", f"#{task} updated"]
    check_requests(report, name, turns, steps, expected)
    check_files(env, report, name, task, request)
    sent = sent_to_lead(env, name)
    report.check(f"{name}: the agent has sent one message to the lead", sent == [answer], sent)
    lead.check(report, name, task, answer)


def create_task(env, lead, subject):
    lead.add_task(subject)
    return env.task_id(subject)


def sent_to_lead(env, name):
    """Returns a member's messages to the lead. Reads the journal, because the lead may have emptied its inbox."""
    sent = [record["event"]["sent"] for record in env.log() if "sent" in record["event"]]
    own = [event for event in sent if event["message"]["from"] == name]
    return [event["message"]["text"] for event in own if event["to"] == "team-lead"]


def together(env, report, lead, agents, label):
    """Runs all agents at once: each sends three messages to the lead, and all try to claim the same task."""
    task = create_task(env, lead, label)

    def texts(name):
        return [f"{label}: {name} says {number}" for number in range(3)]

    def steps(name):
        calls = [team_tool("send_message", to="team-lead", message=text) for text in texts(name)]
        return [*calls, team_tool("task_claim", taskId=task), say("That was all.")]

    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(lambda vendor: vendor.follow(steps(vendor.name)), agents))
    report.check(f"{label}: all agents exit with 0", all(run.code == 0 for run in runs), runs)
    names = [vendor.name for vendor in agents]
    arrived = all(sent_to_lead(env, name)[-3:] == texts(name) for name in names)
    report.check(f"{label}: every message is sent, once and in order", arrived)
    owner = env.brigade("task", "show", task).get("owner")
    claims = [vendor.model.new_turns()[-1]["returned"]["text"] for vendor in agents]
    refused = [f"belongs to {owner}" in claim for claim in claims]
    one = owner in names and refused == [name != owner for name in names]
    report.check(f"{label}: one agent gets the task, and the others learn the owner", one, (owner, claims))


def check_requests(report, name, turns, steps, expected):
    """Checks the model's answers to the agent, and the tool results that the model received."""
    answers = [turn["answer"] for turn in turns]
    wanted = [step.get("tool") for step in steps]
    as_scripted = [answer.get("call", {}).get("wanted") for answer in answers] == wanted
    ended = bool(answers) and answers[-1].get("say") == steps[-1]["say"]
    report.check(f"{name}: each step is one request, and there is no other request", as_scripted and ended, answers)
    results = tool_results(turns)
    complete = len(results) == len(expected) and all(text in got["text"] for text, got in zip(expected, results))
    passed = complete and not any(result["failed"] for result in results)
    report.check(f"{name}: every tool call succeeds, and the model sees its result", passed, results)


def check_files(env, report, name, task_id, request):
    """Checks the member's inbox and task."""
    own = [(entry["from"], entry["text"], entry["read"]) for entry in env.mail(name)]
    report.check(f"{name}: the lead's message is marked as read", own == [("team-lead", request, True)], own)
    task = env.brigade("task", "show", task_id)
    done = (task["status"], task.get("owner")) == ("completed", name)
    report.check(f"{name}: the agent owns the task, and the task is completed", done, task)


if __name__ == "__main__":
    run_scenario(scenario)
