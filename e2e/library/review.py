"""The example of the library, with real agents: one drafts, the other says what should be better, the first
writes it anew. The models follow the scripts that the mail carries."""

import json
import os
import subprocess
import time
from contextlib import ExitStack

from house import prove
from scripted import ScriptedModel
from teammate import end_all, keep, nobody_left
from vendors import SETTLE_IN

PATIENCE = 180


def scenario(house, report, short):
    subprocess.run(["git", "init", "--quiet", house.project], env=house.plain_env, check=True)
    agents = [agent.split("=", 1) for agent in os.environ["AGENTS"].split(":")]
    (writer, _), (reviewer, _) = agents
    folder = house.root / "bin"
    folder.mkdir()
    for link, target in dict([*agents, ("brigade", os.environ["BRIGADE"])]).items():
        (folder / link).symlink_to(target)
    env = house.plain_env | {"PATH": f"{folder}:{house.plain_env['PATH']}"}
    task = writes("a draft", writes("a remark", writes("a better draft")))
    with ExitStack() as stack:
        stack.callback(keep, house, report)
        stack.callback(end_all, house)
        models = {}
        for name in dict.fromkeys((writer, reviewer)):
            models[name] = stack.enter_context(ScriptedModel(house.root / "model" / name))
            env |= SETTLE_IN[name](house, models[name].url)
        began = time.monotonic()
        ran = subprocess.run(
            [os.environ["REVIEW"], writer, reviewer, f"Say what this is. {task}"],
            env=env,
            cwd=house.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        report.figure("the whole review", f"{time.monotonic() - began:.1f} s")
        report.check("it ends well", ran.returncode == 0, ran)
        said = [line.split(" [script]")[0] for line in ran.stdout.splitlines()]
        wanted = ["writer: a draft", "reviewer: a remark", "writer: a better draft"]
        report.check("a draft, a remark and a better draft are told, in this order", said == wanted, ran)
        asked = models[reviewer].last_input()
        report.check(f"{reviewer} is asked what should be better in the draft", "better? a draft" in asked, asked)
        asked = models[writer].last_input()
        report.check(f"{writer} is told the remark", "in mind: a remark" in asked, asked)
        left = nobody_left(house)
        report.check("no process is left", not left, left)
        teams = list((house.claude_dir / "teams").glob("*"))
        report.check("the team is gone", not teams, teams)


def writes(text, then=""):
    """The script of a model that writes this to the lead, with a script in it for whoever reads it next."""
    message = {"to": "team-lead", "message": f"{text} {then}".strip()}
    steps = json.dumps([{"tool": "team/send_message", "args": message}, {"say": "That was all."}])
    # The last mark in a text counts, so those within have a second spelling. Claude Code undoes it in what its
    # model writes, and so cannot be the first to write.
    steps = steps.replace("[script]", "\\u005bscript]").replace("[/script]", "\\u005b/script]")
    return f"[script]{steps}[/script]"


prove(scenario, "tmux")
