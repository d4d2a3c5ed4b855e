"""Tests that each agent needs the extra settings in docs/agents.md: without them, the agent cannot use the server."""

import re

from leads import BrigadeLead

from lib.env import run_scenario
from lib.scripted_model import say, team_tool, team_tools, tool_results
from lib.vendors import vendors

# For each agent: the command that contains the extra setting, and a pattern that matches the setting.
SETTINGS = {
    "codex": ("register_command", r"^sed .*?\n"),
    "gemini": ("register_command", r" --trust"),
    "claude": ("run_command", r" --allowedTools mcp__team"),
}


def scenario(env, report, short):
    env.git_init()
    BrigadeLead(env)
    for vendor in vendors(env):
        if vendor.name in SETTINGS:
            with vendor:
                unaided(env, report, vendor)


def unaided(env, report, vendor):
    name = vendor.name
    env.brigade("team", "join", name, "--agent-type", name)
    command, pattern = SETTINGS[name]
    complete = getattr(vendor, command)
    found = re.findall(pattern, complete, re.M)
    report.check(f"{name}: the page has the setting exactly once", len(found) == 1, complete)
    setattr(vendor, command, complete.replace(found[0], ""))
    registered = vendor.register()
    report.check(f"{name}: registers the server", registered.code == 0, registered)
    message = team_tool("send_message", to="team-lead", message=f"{name} without the setting")
    ran = vendor.follow([message, say("That was all.")])
    turns = vendor.model.new_turns()
    report.figure(f"{name}: exit code", ran.code)
    report.figure(f"{name}: number of the server's tools that the model is offered", len(team_tools(turns[0])))
    results = tool_results(turns)
    report.figure(f"{name}: the model receives", results[0]["text"][:200] if results else turns[-1]["answer"])
    sent = sent_by(env, name)
    report.check(f"{name}: cannot use the server without the setting", sent == [], sent)
    if name == "codex":
        through_exec(env, report, vendor)
        other_models(report, vendor, found[0])


def through_exec(env, report, vendor):
    """Checks that a newer model of Codex can call the server's tools from JavaScript even without the setting."""
    text = "through exec"
    source = f'text(await tools.mcp__team__send_message({{to: "team-lead", message: "{text}"}}))'
    ran = vendor.follow([{"tool": "functions/exec", "args": source}, say("That was all.")])
    sent = sent_by(env, vendor.name)
    report.check("codex: JavaScript in its tool exec reaches the server", sent == [text], (sent, ran))


def other_models(report, vendor, setting):
    """Checks the setting for a model that must search for tools, and for a model that Codex does not know."""
    models = ("gpt-5.5", "unheard-of")
    for model in models:
        report.figure(f"codex: number of tools offered to {model} without the setting", offered_to(vendor, model))
    vendor.shell(setting)
    for model in models:
        report.check(f"codex: the tools are offered to {model} with the setting", offered_to(vendor, model) > 0)


def offered_to(vendor, model):
    command = vendor.run_command
    vendor.run_command = command.replace("codex exec", f"codex exec -m {model}")
    vendor.follow([say("That was all.")])
    vendor.run_command = command
    return len(team_tools(vendor.model.new_turns()[0]))


def sent_by(env, name):
    return [entry["text"] for entry in env.mail("team-lead") if entry["from"] == name]


if __name__ == "__main__":
    run_scenario(scenario)
