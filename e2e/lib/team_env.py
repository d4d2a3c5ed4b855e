"""A test environment for a team from a brigade.toml, with agents of several vendors and one scripted model."""

import json
import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from lib.env import MODEL, TestEnv, run_scenario
from lib.scripted_model import ScriptedModel, claim_step, complete_step, say, script, shutdown_steps
from lib.vendors import CODEX_PLAIN_TOOLS, CONFIGURE

TEAM = "test-team"
FAKE_AGENT = Path(__file__).parents[2] / "crates/brigade/tests/it/fake-agent.sh"


class Member(NamedTuple):
    """A member in brigade.toml."""

    agent: str
    place: str = "headless"
    model: str | None = None
    # The environment variable with the path of the member's program; None for the agent's default program.
    program: str | None = None

    @property
    def native(self):
        return self.place == "native"

    def task_steps(self, name, task, seconds):
        """Returns the steps in which the member's model does a task. The model makes every tool call twice: if the
        agent is killed during a call, the resumed session counts that call as answered. A repeated call changes
        nothing."""
        claim, complete = claim_step(name, task, self.native), complete_step(task, self.native)
        return [claim, claim, complete | {"wait": seconds}, complete, say(f"Task {task} is done.")]

    def shutdown_steps(self):
        """Returns the steps in which the member's model agrees to shut down."""
        return shutdown_steps(self.native, "old" if self.program == "CLAUDE_OLD" else "new")


MEMBERS = {
    "cody": Member("codex"),
    "gemma": Member("gemini"),
    "clara": Member("claude", model=MODEL),
    "nat": Member("claude", "native", MODEL),
    "olga": Member("claude", "native", MODEL, "CLAUDE_OLD"),
}


class TeamEnv(TestEnv):
    """All agents inherit from brigade the environment variables that make them use the scripted model."""

    def __init__(self, version, _):
        super().__init__("new", "tmux")
        self.version = version
        self.team = TEAM
        self._stack = ExitStack()
        self.git_init()
        self.model = self._stack.enter_context(ScriptedModel(self.root / "model"))
        self.environ = self.lead_environ | CODEX_PLAIN_TOOLS | {
            "BRIGADE_CLAUDE": os.environ["CLAUDE_NEW"],
            "BRIGADE_CODEX": os.environ["PROGRAM_CODEX"],
            "BRIGADE_GEMINI": os.environ["PROGRAM_GEMINI"],
            "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
            # tmux needs a short path for its socket.
            "TMUX_TMPDIR": str(self.root / "tmp"),
        }
        for vendor in ("codex", "gemini", "claude"):
            self.environ |= CONFIGURE[vendor](self, self.model.url)

    def __exit__(self, *failure):
        self.kill_all()
        self._stack.close()
        super().__exit__(*failure)

    def screen(self):
        log = self.state.glob("host/*/supervisor.log")
        return "".join(path.read_text(errors="replace") for path in log)

    def start(self, *arguments):
        """Starts brigade without waiting until it ends."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([self.program, *arguments], env=self.environ, cwd=self.project, **pipes)

    def write_team_file(self, members, tasks):
        """Writes brigade.toml. `members` maps names to a `Member` and further keys; `tasks` maps tasks to blockers."""
        lines = [f"team = {json.dumps(self.team)}"]
        for name, (member, more) in members.items():
            keys = {"agent": member.agent, "place": member.place} | more
            if member.model:
                keys["model"] = member.model
            if member.program:
                keys["program"] = os.environ[member.program]
            if member.native:
                # Allow everything, because Claude Code's own permission checks need its vendor's servers.
                keys["access"] = "full"
            lines += ["", *toml_table(f"members.{name}", keys)]
        for name, after in tasks.items():
            lines += ["", *toml_table(f"tasks.{name}", {"subject": f"Do {name}", "after": after})]
        (self.project / "brigade.toml").write_text("\n".join(lines) + "\n")

    def model_input(self, name):
        """Returns the body of a member's latest request to the model, which contains the whole conversation."""
        for turn in reversed(self.model.turns()):
            body = self.model.body(turn["number"])
            if f"«{name} " in body:
                return body
        return ""

    def ask_to_stop(self, members, limit=60, timeout=120):
        """Runs `brigade stop` for all members at once; returns how each member ended, by name."""
        stopping = {
            name: self.start("stop", name, "--json", "--limit", str(limit), "--reason", script(*member.shutdown_steps()))
            for name, member in members.items()
        }
        ended = {}
        for name, process in stopping.items():
            out, err = process.communicate(timeout=timeout)
            ended[name] = json.loads(out)["members"][0]["ended"] if out.strip() else err
        return ended

    def shut_down(self, report, names):
        """Asks every member to shut down, and then takes the team down."""
        started = time.monotonic()
        ended = self.ask_to_stop({name: MEMBERS[name] for name in names})
        # Two Claude Codes that write into the lead's inbox at the same moment can overwrite each other's message. Then
        # the process of one has ended, but its answer is lost, and brigade cannot know why the process ended.
        lost = [name for name, how in ended.items() if how == "was_gone" and MEMBERS[name].native][:1]
        report.figure("answers that one Claude Code lost by overwriting another's", len(lost))
        agreed = all(how == "agreed" for name, how in ended.items() if name not in lost)
        report.check("every member agrees to stop", agreed, ended)
        self.run_ok("down", "--now")
        report.figure("from the first shutdown request until the team is down", f"{time.monotonic() - started:.1f} s")
        self.check_no_process_left(report)


def run_team_scenario(scenario):
    run_scenario(scenario, TeamEnv)


def selected_members():
    """Returns the names of the members of this test run, from $MEMBERS."""
    return os.environ["MEMBERS"].split()


def toml_table(name, keys):
    """Returns the lines of a TOML table. Strings, booleans and lists of strings are written as in JSON."""
    return [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
