"""A house with a team from a brigade.toml: real agents of several vendors, all on one scripted model."""

import json
import os
import re
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from house import MODEL, House, eventually, prove
from scripted import ScriptedModel, as_json_lines
from teammate import at_home, end_all, keep
from vendors import SETTLE_IN

TEAM = "proof"
FAKE = Path(__file__).parents[2] / "crates/brigade/tests/it/fake-agent.sh"


class Member(NamedTuple):
    """Who somebody is in brigade.toml."""

    agent: str
    place: str = "headless"
    model: str | None = None
    # The variable that says where its program is, if it is not the one of its agent.
    program: str | None = None

    def work(self, name, task, seconds):
        """The steps by which its model does a task. A call that was cut off by a kill counts as answered in
        a resumed session, so each is made twice; the second changes nothing."""
        if self.place == "native":
            claim = {"tool": "TaskUpdate", "args": {"taskId": task, "status": "in_progress", "owner": name}}
            complete = {"tool": "TaskUpdate", "args": {"taskId": task, "status": "completed"}}
        else:
            claim = {"tool": "team/task_claim", "args": {"taskId": task}}
            complete = {"tool": "team/task_update", "args": {"taskId": task, "status": "completed"}}
        return [claim, claim, complete | {"wait": seconds}, complete, {"say": f"Task {task} is done."}]

    def goodbye(self, name):
        """The steps by which its model agrees to stop."""
        if self.place != "native":
            yes = {"tool": "team/answer_shutdown", "args": {"request_id": "{heard:request_id}", "approve": True}}
            return [yes, {"say": "Goodbye."}]
        form = {"type": "shutdown_response", "request_id": "{heard:requestId}", "approve": True}
        if name != "olga":
            form = {"to": "team-lead", "message": form}
        return [{"tool": "SendMessage", "args": form}, {"say": "Goodbye."}]


CREW = {
    "cody": Member("codex"),
    "gemma": Member("gemini"),
    "clara": Member("claude", model=MODEL),
    "nat": Member("claude", "native", MODEL),
    "olga": Member("claude", "native", MODEL, "CLAUDE_OLD"),
}


class HostHouse(House):
    """A home where brigade hosts a team. Everything it starts inherits the variables that lead to the model."""

    def __init__(self, version, _):
        super().__init__("new", "tmux")
        self.version = version
        self.team = TEAM
        self._stack = ExitStack()
        subprocess.run(["git", "init", "--quiet", self.project], env=self.plain_env, check=True)
        self.model = self._stack.enter_context(ScriptedModel(self.root / "model"))
        # All that Claude Code's own lead has, its place among other things, and brigade's ways to programs.
        self.plain_env = self._lead_env | {
            "BRIGADE_CLAUDE": os.environ["CLAUDE_NEW"],
            "BRIGADE_CODEX": os.environ["PROGRAM_CODEX"],
            "BRIGADE_GEMINI": os.environ["PROGRAM_GEMINI"],
            # A model that Codex does not know is offered its plain tools.
            "BRIGADE_CODEX_ARGS": '-c model="scripted"',
            "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
            # Where tmux has its sockets; a long path would not do.
            "TMUX_TMPDIR": str(self.root / "tmp"),
        }
        for vendor in ("codex", "gemini", "claude"):
            self.plain_env |= SETTLE_IN[vendor](self, self.model.url)

    def __exit__(self, *failure):
        end_all(self)
        self._stack.close()
        super().__exit__(*failure)

    def screen(self):
        log = self.state.glob("host/*/supervisor.log")
        return "".join(path.read_text(errors="replace") for path in log)

    # The program, as a person uses it.

    def run(self, *arguments, env=None, timeout=180):
        return subprocess.run(
            [self._brigade, *arguments],
            env=env or self.plain_env,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def start(self, *arguments, env=None):
        """Starts it without waiting for it."""
        return subprocess.Popen(
            [self._brigade, *arguments],
            env=env or self.plain_env,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def do(self, *arguments, **more):
        done = self.run(*arguments, **more)
        if done.returncode != 0:
            raise RuntimeError(f"brigade {' '.join(arguments)}: {done.returncode}: {done.stderr.strip()}")
        return done

    def status(self):
        """How the team is; None if none is up."""
        found = self.run("status", "--json")
        states = json.loads(found.stdout) if found.stdout.strip() else []
        return next((state for state in states if state["team"] == self.team), None)

    def log(self):
        return as_json_lines(self.try_brigade("log").stdout)

    @property
    def state(self):
        """brigade's own folder."""
        return self.home / ".local/state/brigade"

    # The team's file.

    def write_file(self, members, tasks):
        """Writes brigade.toml. Of a member its `Member` and keys of its own; of a task whom it waits for."""
        lines = [f"team = {json.dumps(self.team)}"]
        for name, (member, more) in members.items():
            keys = {"agent": member.agent, "place": member.place} | more
            if member.model:
                keys["model"] = member.model
            if member.program:
                keys["program"] = os.environ[member.program]
            if member.place == "native":
                # Its own way of asking itself would need its vendor's servers.
                keys["access"] = "full"
            lines += ["", f"[members.{name}]", *(f"{key} = {toml(value)}" for key, value in keys.items())]
        for name, after in tasks.items():
            lines += ["", f"[tasks.{name}]", f"subject = {json.dumps(f'Do {name}')}", f"after = {toml(after)}"]
        (self.project / "brigade.toml").write_text("\n".join(lines) + "\n")

    # The members' models.

    def heard(self, name):
        """All that the model of a member has in mind: its latest request, which carries its conversation."""
        for turn in reversed(self.model.turns()):
            body = self.model.body(turn["number"])
            if f"«{name} " in body:
                return body
        return ""

    def odd_mail(self, name, sent):
        """What a member's model was not told, or not once, of what was sent to it."""
        found = re.findall(f"«{name} [0-9]+»", self.heard(name))
        return {words: found.count(words) for words in sent if found.count(words) != 1}

    def nobody(self, patience=10):
        """Waits until no process of this house is left; gives those that are."""
        eventually(lambda: not at_home(self.home), patience)
        return at_home(self.home)

    def part(self, report, crew):
        """Everybody is asked to stop, and agrees; then the team is taken down."""
        begun = time.monotonic()
        leaving = {
            name: self.start("stop", name, "--json", "--limit", "60", "--reason", script(*CREW[name].goodbye(name)))
            for name in crew
        }
        ended = {}
        for name, process in leaving.items():
            out, err = process.communicate(timeout=120)
            ended[name] = json.loads(out)["members"][0]["ended"] if out.strip() else err
        report.check("everybody is asked to stop, and agrees", set(ended.values()) == {"agreed"}, ended)
        self.do("down", "--now")
        report.figure("from the first asked to the team down", f"{time.monotonic() - begun:.1f} s")
        report.check("no process is left", not self.nobody(), self.nobody(0))


def prove_team(scenario):
    """Runs a scenario in such a house, as a program; what explains a failure is kept."""

    def whole(house, report, short):
        try:
            scenario(house, report, short)
        finally:
            keep(house, report)

    prove(whole, "tmux", HostHouse)


def crew():
    """The members this run is about."""
    return os.environ["MEMBERS"].split()


def script(*steps):
    return f"[script]{json.dumps(steps)}[/script]"


def toml(value):
    """A string, a truth or a list of strings, as TOML and JSON both write them."""
    return json.dumps(value)
