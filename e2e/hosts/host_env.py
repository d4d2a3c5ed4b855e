"""One host of the team: a home folder, one native Claude Code and one Codex, each with its own scripted model."""

import json
import os
import re
import subprocess
from contextlib import ExitStack

from lib.env import MODEL
from lib.linked_host import LinkedHost
from lib.scripted_model import ScriptedModel, claim_step, complete_step, shutdown_steps, team_tool, tool_calls
from lib.team_env import toml_table
from lib.util import json_lines, read_json
from lib.vendors import CODEX_PLAIN_TOOLS, CONFIGURE

TEAM = "test-team"
# Matches the result of a tool call that succeeded.
SUCCESS = re.compile(r'"success"\s*:\s*true')


class HostMember:
    """A member that has its own scripted model."""

    def __init__(self, name, host, native, model):
        self.name, self.host, self.native, self.model = name, host, native, model

    # The steps of the member's model.

    def claim(self, task):
        return claim_step(self.name, task, self.native)

    def complete(self, task):
        return complete_step(task, self.native)

    def send(self, to, text):
        if not self.native:
            return team_tool("send_message", to=to, message=text, summary="a message")
        return dict(zip(("tool", "args"), self.host.message(to, text)))

    def shutdown_steps(self):
        return shutdown_steps(self.native, self.host.version)

    # The requests of the member's model.

    def input(self):
        """Returns the latest request of the model, which contains the whole conversation."""
        return self.model.last_input()

    def received_at(self, text):
        """Returns when the model first received this text, in seconds since 1970, or None if it never did."""
        for turn in self.model.turns():
            if text in self.model.body(turn["number"]):
                return turn["at"] / 1e6
        return None

    def turn_started_at(self, text):
        """Returns when a turn began whose input contains this text. Faster than `received_at`."""
        return next((turn["at"] / 1e6 for turn in self.model.turns() if text in turn["heard"]), None)

    def calls(self):
        return tool_calls(self.model.turns())

    def acknowledged(self):
        """Returns the arguments of the model's tool calls that succeeded."""
        return [arguments for _, arguments, result in self.calls() if result and SUCCESS.search(result["text"])]

    def has_said(self, text):
        return any(turn["answer"].get("say") == text for turn in self.model.turns())


class HostEnv(LinkedHost):
    def __init__(self, machine, version, store):
        os.environ["CLAUDE"] = os.environ[f"CLAUDE_{version.upper()}"]
        super().__init__(version, machine, store, TEAM)
        self._stack = ExitStack()
        letter = machine.name[-1]
        native, codex = (self._start_model(kind) for kind in ("native", "codex"))
        self.native = HostMember(f"nat-{letter}", self, True, native)
        self.codex = HostMember(f"cody-{letter}", self, False, codex)
        self.git_init()
        self.environ = self.lead_environ | CODEX_PLAIN_TOOLS | {
            "BRIGADE_CLAUDE": self.claude,
            "BRIGADE_CODEX": os.environ["PROGRAM_CODEX"],
            "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
            # The path of a tmux socket must be short.
            "TMUX_TMPDIR": str(self.root / "tmp"),
        }
        self.environ |= CONFIGURE["claude"](self, native.url) | CONFIGURE["codex"](self, codex.url)
        keys = {"agent": "claude", "place": "native", "model": MODEL, "access": "full"}
        lines = [f'team = "{TEAM}"', *toml_table(f"members.{self.native.name}", keys)]
        (self.project / "brigade.toml").write_text("\n".join(lines) + "\n")

    def _start_model(self, kind):
        return self._stack.enter_context(ScriptedModel(self.root / "models" / kind, prefix=self.machine.enter()))

    def __exit__(self, *failure):
        self.kill_all()
        self._stack.close()
        super().__exit__(*failure)

    def stop(self, member, reason):
        """Asks a member on this host to stop. Returns a function that waits for the result."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        arguments = ["stop", member.name, "--json", "--limit", "60", "--reason", reason]
        process = self._start(*arguments, store=not member.native, **pipes)

        def wait():
            out, err = process.communicate(timeout=120)
            return json.loads(out)["members"][0]["ended"] if out.strip() else err

        return wait

    # The NATS store.

    def log(self):
        """Returns the records of the team's journal."""
        return json_lines(self.run_ok("--json", "log", store=True))

    def roster(self):
        """Returns the names of the members on the roster."""
        return {member["name"] for member in self.run_json("team", "show", store=True)["members"]}

    def mailbox(self, name):
        done = self.run("--json", "inbox", name, store=True)
        return json.loads(done.stdout) if done.stdout.strip() else []

    # The files of this host.

    def texts(self):
        """Yields the inbox name and the text of every message in the files of this host."""
        for path in (self.claude_dir / "teams" / TEAM / "inboxes").glob("*.json"):
            yield from ((path.stem, entry["text"]) for entry in read_json(path))

    def owners(self):
        """Returns the owner of each task, by task id."""
        tasks = map(read_json, self.tasks.glob("[0-9]*.json"))
        return {str(task["id"]): task.get("owner") for task in tasks}

    def task_status(self, number):
        return read_json(self.tasks / f"{number}.json")["status"]


def marks(text):
    """Returns the marks of all messages in this text."""
    return re.findall("«[a-z-]+ [0-9]+»", text)
