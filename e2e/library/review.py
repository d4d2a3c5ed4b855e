"""The library's example `review` with real agents: one writes a draft, the other comments on it, the first one writes a
better draft. The models follow the scripts that the messages carry."""

import json
import os
import time
from contextlib import ExitStack

from lib.env import run_scenario
from lib.scripted_model import ScriptedModel, say, team_tool
from lib.util import capture
from lib.vendors import CONFIGURE, link_programs, selected_programs


def scenario(env, report, short):
    env.git_init()
    writer, reviewer = os.environ["WRITER"], os.environ["REVIEWER"]
    environ = env.environ | {"PATH": link_programs(env, selected_programs() | {"brigade": env.program})}
    task = message_script("a draft", message_script("a remark", message_script("a better draft")))
    with ExitStack() as stack:
        stack.callback(env.kill_all)
        models = {}
        for name in dict.fromkeys((writer, reviewer)):
            models[name] = stack.enter_context(ScriptedModel(env.root / "model" / name))
            environ |= CONFIGURE[name](env, models[name].url)
        began = time.monotonic()
        command = [os.environ["REVIEW"], writer, reviewer, f"Say what this is. {task}"]
        ran = capture(command, env=environ, cwd=env.project, timeout=180)
        report.figure("the whole review", f"{time.monotonic() - began:.1f} s")
        report.check("the example exits with 0", ran.returncode == 0, ran)
        printed = [line.split(" [script]")[0] for line in ran.stdout.splitlines()]
        expected = ["writer: a draft", "reviewer: a remark", "writer: a better draft"]
        report.check("it prints a draft, a remark and a better draft, in this order", printed == expected, ran)
        body = models[reviewer].last_input()
        report.check(f"{reviewer} gets the draft to comment on", "better? a draft" in body, body)
        body = models[writer].last_input()
        report.check(f"{writer} gets the remark", "in mind: a remark" in body, body)
        env.check_no_process_left(report)
        teams = list((env.claude_dir / "teams").glob("*"))
        report.check("the team is gone", not teams, teams)


def message_script(text, then=""):
    """The script of a model that sends this text to the lead, together with a script for the next reader."""
    message = team_tool("send_message", to="team-lead", message=f"{text} {then}".strip())
    steps = json.dumps([message, say("That was all.")])
    # The scripted model follows the last mark in a text, so inner marks are escaped. Claude Code removes the escapes
    # from its model's text, and so cannot be the writer.
    steps = steps.replace("[script]", "\\u005bscript]").replace("[/script]", "\\u005b/script]")
    return f"[script]{steps}[/script]"


run_scenario(scenario)
