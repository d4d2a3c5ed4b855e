"""Agents of four vendors are members of one team, each with `brigade mcp` as its own registered server.

Each reads what the lead wrote to it, answers, claims the task the lead made for it and completes it.
The lead is a real Claude Code, old or new, or `brigade` itself.
"""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from house import prove
from leads import BrigadeLead, ClaudeLead
from scripted import as_json_lines, results, team_tools
from vendors import served_tools, vendors


def scenario(house, report, short):
    subprocess.run(["git", "init", "--quiet", house.project], env=house.plain_env, check=True)
    lead = BrigadeLead(house) if house.version == "brigade" else ClaudeLead(house)
    with ExitStack() as stack:
        stack.callback(keep_exchanges, house, report)
        agents = [stack.enter_context(vendor) for vendor in vendors(house)]
        for vendor in agents:
            member(house, report, lead, vendor)
        if not short:
            for number in range(1, 4):
                together(house, report, lead, agents, f"round {number}")
    house.check_locks(report)


def keep_exchanges(house, report):
    """What went over the wire is what explains a failure; the house will be gone."""
    if report.failures or sys.exception():
        kept = Path(os.environ["KEEP"]) / house.version
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(house.root / "models", kept)
        report.figure("what the models were asked is kept in", kept)


def member(house, report, lead, vendor):
    """One vendor's agent joins, does its work and is heard."""
    name = vendor.name
    house.brigade("team", "join", name, "--agent-type", name)
    asked, words = f"please do your work, {name}", f"{name} has done its work <really> & says so"
    lead.write(name, asked)
    task = task_of(house, lead, f"work for {name}")
    script = [
        {"tool": "team/read_messages"},
        {"tool": "team/send_message", "args": {"to": "team-lead", "message": words, "summary": "a report"}},
        {"tool": "team/task_claim", "args": {"taskId": task}},
        {"tool": "team/task_update", "args": {"taskId": task, "status": "completed"}},
        {"say": "That was all."},
    ]
    registered = vendor.register()
    report.check(f"{name}: registers the server", registered.code == 0, registered)
    begun = time.monotonic()
    ran = vendor.follow(script)
    report.figure(f"{name}: its whole run", f"{time.monotonic() - begun:.1f} s")
    report.check(f"{name}: its run ends well", ran.code == 0, ran)
    turns = vendor.model.new_turns()
    offered = team_tools(turns[0]) if turns else {}
    same = set(offered) == served_tools(house, name)
    report.check(f"{name}: every tool of the server is offered directly", same, sorted(offered))
    report.figure(f"{name}: send_message is offered as", offered.get("send_message"))
    expected = [asked, "sent to team-lead", f"#{task} is yours", f"#{task} updated"]
    in_the_model(report, name, turns, script, expected)
    on_disk(house, report, name, task, asked)
    sent = sent_to_lead(house, name)
    report.check(f"{name}: it has sent one message, to the lead", sent == [words], sent)
    lead.check(report, name, task, words)


def task_of(house, lead, subject):
    lead.add_task(subject)
    return next(task["id"] for task in house.brigade("task", "list") if task["subject"] == subject)


def sent_to_lead(house, name):
    """What one has ever sent, by the log: the lead may have taken it out of its inbox."""
    records = as_json_lines(house.try_brigade("log").stdout)
    sent = [record["event"]["sent"] for record in records if "sent" in record["event"]]
    own = [event for event in sent if event["message"]["from"] == name]
    return [event["message"]["text"] for event in own if event["to"] == "team-lead"]


def together(house, report, lead, agents, label):
    """All of them at once: each writes to the lead three times, and all want the same task."""
    task = task_of(house, lead, label)

    def words(name):
        return [f"{label}: {name} says {number}" for number in range(3)]

    def script(name):
        calls = [
            {"tool": "team/send_message", "args": {"to": "team-lead", "message": text}} for text in words(name)
        ]
        claim = {"tool": "team/task_claim", "args": {"taskId": task}}
        return [*calls, claim, {"say": "That was all."}]

    with ThreadPoolExecutor() as pool:
        ran = list(pool.map(lambda vendor: vendor.follow(script(vendor.name)), agents))
    report.check(f"{label}: all runs end well", all(run.code == 0 for run in ran), ran)
    names = [vendor.name for vendor in agents]
    arrived = all(sent_to_lead(house, name)[-3:] == words(name) for name in names)
    report.check(f"{label}: every message is sent, once and in order", arrived)
    owner = house.brigade("task", "show", task).get("owner")
    claims = [vendor.model.new_turns()[-1]["returned"]["text"] for vendor in agents]
    told = [f"belongs to {owner}" in claim for claim in claims]
    one = owner in names and told == [name != owner for name in names]
    report.check(f"{label}: one of them gets the task, and the others are told who", one, (owner, claims))


def in_the_model(report, name, turns, script, expected):
    """What the agent's model did, and what it was told of each call."""
    did = [turn["answer"] for turn in turns]
    wanted = [step.get("tool") for step in script]
    as_scripted = [answer.get("call", {}).get("wanted") for answer in did] == wanted
    said = bool(did) and did[-1].get("say") == script[-1]["say"]
    report.check(f"{name}: each step is one request, and nothing else is asked", as_scripted and said, did)
    got = results(turns)
    told = len(got) == len(expected) and all(words in it["text"] for words, it in zip(expected, got))
    well = told and not any(result["failed"] for result in got)
    report.check(f"{name}: no tool is refused, and its model sees what each gave", well, got)


def on_disk(house, report, name, task_id, asked):
    """What brigade finds in the files afterwards."""
    own = [(entry["from"], entry["text"], entry["read"]) for entry in house.mail(name)]
    report.check(f"{name}: its own message is marked read", own == [("team-lead", asked, True)], own)
    task = house.brigade("task", "show", task_id)
    done = (task["status"], task.get("owner")) == ("completed", name)
    report.check(f"{name}: the task is completed, and its own", done, task)


if __name__ == "__main__":
    prove(scenario, "tmux")
