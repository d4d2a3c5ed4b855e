"""Runs the library's example `review` with two real agents: the writer writes a draft, the reviewer comments on it, and
the writer improves it. The messages contain scripts, which the scripted model follows."""

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
        report.figure("duration of the whole review", f"{time.monotonic() - began:.1f} s")
        report.check("the example exits with 0", ran.returncode == 0, ran)
        printed = [line.split(" [script]")[0] for line in ran.stdout.splitlines()]
        expected = ["writer: a draft", "reviewer: a remark", "writer: a better draft"]
        report.check("the example prints a draft, a remark and a better draft, in this order", printed == expected, ran)
        body = models[reviewer].last_input()
        report.check(f"the reviewer, {reviewer}, receives the draft", "better? a draft" in body, body)
        body = models[writer].last_input()
        report.check(f"the writer, {writer}, receives the remark", "in mind: a remark" in body, body)
        env.check_no_process_left(report)
        teams = list((env.claude_dir / "teams").glob("*"))
        report.check("the team is deleted at the end", not teams, teams)


def message_script(text, then=""):
    """Returns a script that sends `text` to the lead, followed by the script `then` for the next reader."""
    message = team_tool("send_message", to="team-lead", message=f"{text} {then}".strip())
    steps = json.dumps([message, say("That was all.")])
    # The scripted model follows the last [script] marker in a text, so the markers of nested scripts are escaped.
    # Claude Code removes these escapes from the model's text, so Claude Code cannot be the writer.
    steps = steps.replace("[script]", "\\u005bscript]").replace("[/script]", "\\u005b/script]")
    return f"[script]{steps}[/script]"


run_scenario(scenario)
