"""A test environment with a team from a brigade.toml: real agents of several vendors, all on one scripted model."""

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
    # The environment variable with the path of its program, if it is not that of its agent.
    program: str | None = None

    @property
    def native(self):
        return self.place == "native"

    def task_steps(self, name, task, seconds):
        """The steps of its model for a task. Every call is made twice: after a kill, the resumed session counts the
        interrupted call as answered. A repeated call changes nothing."""
        claim, complete = claim_step(name, task, self.native), complete_step(task, self.native)
        return [claim, claim, complete | {"wait": seconds}, complete, say(f"Task {task} is done.")]

    def shutdown_steps(self):
        """The steps by which its model agrees to stop."""
        return shutdown_steps(self.native, "old" if self.program == "CLAUDE_OLD" else "new")


MEMBERS = {
    "cody": Member("codex"),
    "gemma": Member("gemini"),
    "clara": Member("claude", model=MODEL),
    "nat": Member("claude", "native", MODEL),
    "olga": Member("claude", "native", MODEL, "CLAUDE_OLD"),
}


class TeamEnv(TestEnv):
    """Everything that brigade starts here inherits the variables that lead to the model."""

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
            # The path of a tmux socket must be short.
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
        """Starts brigade without waiting for it."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([self.program, *arguments], env=self.environ, cwd=self.project, **pipes)

    def write_team_file(self, members, tasks):
        """Writes brigade.toml from a `Member` and more keys for each member, and the blockers of each task."""
        lines = [f"team = {json.dumps(self.team)}"]
        for name, (member, more) in members.items():
            keys = {"agent": member.agent, "place": member.place} | more
            if member.model:
                keys["model"] = member.model
            if member.program:
                keys["program"] = os.environ[member.program]
            if member.native:
                # Claude Code's own check of permissions needs the servers of its vendor.
                keys["access"] = "full"
            lines += ["", *toml_table(f"members.{name}", keys)]
        for name, after in tasks.items():
            lines += ["", *toml_table(f"tasks.{name}", {"subject": f"Do {name}", "after": after})]
        (self.project / "brigade.toml").write_text("\n".join(lines) + "\n")

    def model_input(self, name):
        """The latest request for a member, which carries its whole conversation."""
        for turn in reversed(self.model.turns()):
            body = self.model.body(turn["number"])
            if f"«{name} " in body:
                return body
        return ""

    def ask_to_stop(self, members, limit=60, timeout=120):
        """Asks members to stop, all at once; returns how each ended."""
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
        """Asks every member to stop, and takes the team down."""
        started = time.monotonic()
        ended = self.ask_to_stop({name: MEMBERS[name] for name in names})
        report.check("every member agrees to stop", set(ended.values()) == {"agreed"}, ended)
        self.run_ok("down", "--now")
        report.figure("from the first request to the team being down", f"{time.monotonic() - started:.1f} s")
        self.check_no_process_left(report)


def run_team_scenario(scenario):
    run_scenario(scenario, TeamEnv)


def selected_members():
    """The members of this run."""
    return os.environ["MEMBERS"].split()


def toml_table(name, keys):
    """Lines of TOML. Strings, booleans and lists of strings look the same in JSON."""
    return [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
