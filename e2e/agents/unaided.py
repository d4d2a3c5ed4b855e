"""Each agent without the help that the document gives it beyond registering the server.

If one of these gets through, the document asks for more than is needed.
"""

import re
import subprocess

from house import prove
from leads import BrigadeLead
from scripted import results, team_tools
from vendors import vendors

# What is left out: of which command, and what to look for.
HELP = {
    "codex": ("register_command", r"^sed .*?\n"),
    "gemini": ("register_command", r" --trust"),
    "claude": ("run_command", r" --allowedTools mcp__team"),
}


def scenario(house, report, short):
    subprocess.run(["git", "init", "--quiet", house.project], env=house.plain_env, check=True)
    BrigadeLead(house)
    for vendor in vendors(house):
        if vendor.name in HELP:
            with vendor:
                unaided(house, report, vendor)


def unaided(house, report, vendor):
    name = vendor.name
    house.brigade("team", "join", name, "--agent-type", name)
    command, pattern = HELP[name]
    whole = getattr(vendor, command)
    found = re.findall(pattern, whole, re.M)
    report.check(f"{name}: the document gives it this help, once", len(found) == 1, whole)
    setattr(vendor, command, whole.replace(found[0], ""))
    registered = vendor.register()
    report.check(f"{name}: registers the server", registered.code == 0, registered)
    ran = vendor.follow([call("send_message", f"{name} without help"), {"say": "That was all."}])
    turns = vendor.model.new_turns()
    report.figure(f"{name}: exit code", ran.code)
    report.figure(f"{name}: tools of the server that are offered", len(team_tools(turns[0])))
    told = results(turns)
    report.figure(f"{name}: the model is told", told[0]["text"][:200] if told else turns[-1]["answer"])
    sent = sent_by(house, name)
    report.check(f"{name}: cannot use the server without that help", sent == [], sent)
    if name == "codex":
        through_exec(house, report, vendor)
        other_models(report, vendor, found[0])


def through_exec(house, report, vendor):
    """What a newer model of Codex can do instead, if it thinks of looking for the tools."""
    text = "through exec"
    source = f'text(await tools.mcp__team__send_message({{to: "team-lead", message: "{text}"}}))'
    ran = vendor.follow([{"tool": "functions/exec", "args": source}, {"say": "That was all."}])
    sent = sent_by(house, vendor.name)
    report.check("codex: JavaScript in its tool exec reaches the server", sent == [text], (sent, ran))


def other_models(report, vendor, aid):
    """Whether the help is right as well for a model that searches for tools, and one Codex does not know."""
    models = ("gpt-5.5", "unheard-of")
    for model in models:
        report.figure(f"codex: tools that {model} is offered without it", offered_to(vendor, model))
    vendor.shell(aid)
    for model in models:
        report.check(f"codex: {model} is offered the tools with it", offered_to(vendor, model) > 0)


def offered_to(vendor, model):
    command = vendor.run_command
    vendor.run_command = command.replace("codex exec", f"codex exec -m {model}")
    vendor.follow([{"say": "That was all."}])
    vendor.run_command = command
    return len(team_tools(vendor.model.new_turns()[0]))


def call(tool, text):
    return {"tool": f"team/{tool}", "args": {"to": "team-lead", "message": text}}


def sent_by(house, name):
    return [entry["text"] for entry in house.mail("team-lead") if entry["from"] == name]


if __name__ == "__main__":
    prove(scenario, "tmux")
