"""A team with one headless member, `bob`, whose real agent uses the scripted model."""

import json
import os
import time
from contextlib import ExitStack

from lib import processes
from lib.env import NOTHING_FOUND, TestEnv
from lib.scripted_model import ScriptedModel, say, script, tool
from lib.util import eventually
from lib.vendors import CODEX_PLAIN_TOOLS, CONFIGURE, opencode

NAME = "bob"
TEAM = "test-team"
# How long an agent may take to start, or to answer a message.
ANSWER_WITHIN = 60

# The tool call by which each vendor's agent runs a shell command, in most of them only with permission.
RUN_COMMAND = {
    "codex": lambda command: tool(
        "exec_command", cmd=command, sandbox_permissions="require_escalated", justification="to test"
    ),
    "gemini": lambda command: tool("run_shell_command", command=command, description="to test"),
    "claude": lambda command: tool("Bash", command=command, description="to test"),
    "opencode": lambda command: tool("bash", command=command, description="to test"),
    "copilot": lambda command: tool("bash", command=command, description="to test"),
    "qwen": lambda command: tool("run_shell_command", command=command, description="to test", is_background=False),
}


class SteerEnv(TestEnv):
    """The version is the name of the agent."""

    def __init__(self, agent, _):
        super().__init__(agent, "tmux")
        self.team = TEAM
        self._stack = ExitStack()
        self.git_init()
        self.model = self._stack.enter_context(ScriptedModel(self.root / "model"))
        configure = CONFIGURE | {"opencode": opencode_that_asks}
        self.environ |= CODEX_PLAIN_TOOLS | configure[agent](self, self.model.url)
        self.environ |= {
            f"BRIGADE_{agent.upper()}": os.environ[f"PROGRAM_{agent.upper()}"],
            "TERM": "xterm-256color",
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "IS_SANDBOX": "1",
        }

    def __exit__(self, *failure):
        self.kill_all()
        self._stack.close()
        super().__exit__(*failure)

    def screen(self):
        logs = self.state.glob("host/**/*.log")
        return "".join(f"{path.name}:\n{path.read_text(errors='replace')[-3000:]}" for path in logs)

    def start_member(self):
        """Creates the team and starts the member. Returns when the agent has answered its first message."""
        self.brigade("team", "create", TEAM)
        self.brigade("spawn", NAME, "--agent", self.version, "--prompt", f"«hello» {script(say('ready'))}")
        if not eventually(lambda: self.is_idle() and self.answered("«hello»"), ANSWER_WITHIN):
            raise TimeoutError("the agent does not answer its first message")

    def send(self, text, *steps):
        self.brigade("send", NAME, f"{text} {script(*steps)}")

    def answered(self, mark):
        """Returns whether the model has answered a message with this mark with text."""
        return any(mark in turn["heard"] and "say" in turn["answer"] for turn in self.model.turns())

    def member(self):
        """Returns the entry of the member in the output of `brigade status`."""
        status = self.brigade("status")
        team = next(team for team in status if team["team"] == TEAM)
        return next(member for member in team["members"] if member["name"] == NAME)

    def is_idle(self):
        return self.member()["liveness"] == "idle"

    def session(self):
        """Returns the id of the agent's session, from brigade's saved state; None if there is no session yet."""
        found = list(self.state.glob(f"files/*/{TEAM}/kept/{NAME}.json"))
        return json.loads(found[0].read_text())["memory"].get("session") if found else None

    def approvals(self):
        return self.brigade("approvals", ok=(0, NOTHING_FOUND)) or []

    def run_command(self, file):
        """Returns a step in which the model runs a shell script."""
        return RUN_COMMAND[self.version](f"sh {file}")

    def approve_until(self, condition):
        """Approves the member's requests until the condition is true."""

        def is_true():
            if condition():
                return True
            for request in self.approvals():
                self.try_brigade("approve", str(request["request_id"]))
            return condition()

        return eventually(is_true, ANSWER_WITHIN)

    def next_answer(self, mark):
        """Sends the member a message with this mark. Returns the body of the request that contains the message, and
        whether the model's answer ended the turn."""
        self.send(mark, say("fine"))
        answered = eventually(lambda: self.answered(mark), ANSWER_WITHIN)
        return self.model.last_input() if answered else "", eventually(self.is_idle, ANSWER_WITHIN)


def opencode_that_asks(env, url):
    return opencode(env, url, permission={"bash": "ask"})


def with_argument(argument):
    """Returns the processes that have this argument."""
    return [process for process in processes.all_processes() if argument in process.argv]


def timed(action):
    """Returns the result of the action and its duration in seconds."""
    started = time.monotonic()
    result = action()
    return result, time.monotonic() - started
