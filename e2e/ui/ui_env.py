"""A test environment for `brigade ui`: a team whose lead uses brigade, and terminals to run the UI in."""

import os
from contextlib import ExitStack

from lib.env import TestEnv, run_scenario
from lib.processes import all_processes
from lib.scripted_model import ScriptedModel
from lib.terminals import Pty, Tmux
from lib.util import eventually
from lib.vendors import CODEX_PLAIN_TOOLS, CONFIGURE

TEAM = "test-team"


class UiEnv(TestEnv):
    def __init__(self, version, _):
        super().__init__("new", "tmux")
        self.version = version
        self.team = TEAM
        self._stack = ExitStack()
        self._terminals = []
        self.git_init()
        self.environ |= {
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "PS1": "prompt> ",
            "HISTFILE": "/dev/null",
            "TMPDIR": str(self.root / "tmp"),
            "TMUX_TMPDIR": str(self.root / "tmp"),
            "TZ": "UTC",
        }

    def __exit__(self, *failure):
        self._stack.close()
        self.kill_all()
        super().__exit__(*failure)

    def screen(self):
        return "\n".join(tmux.screen() for tmux in self._terminals)

    def with_codex(self):
        """Starts a scripted model for Codex, and configures brigade with the path of Codex."""
        self.model = self._stack.enter_context(ScriptedModel(self.root / "model" / "codex"))
        self.environ |= CONFIGURE["codex"](self, self.model.url) | CODEX_PLAIN_TOOLS
        self.environ["BRIGADE_CODEX"] = os.environ["PROGRAM_CODEX"]

    def small_team(self):
        """Creates a team of idle members with some messages and a task."""
        self.run_ok("team", "create", TEAM)
        for name in ("ann", "bob"):
            self.run_ok("--team", TEAM, "team", "join", name)
            self.run_ok("--team", TEAM, "send", name, f"welcome, {name}")
            self.run_ok("--team", TEAM, "--as", name, "send", "team-lead", f"{name} says hello")
        self.run_ok("--team", TEAM, "task", "add", "lay the table")

    def ui(self, *arguments):
        """Returns the command that starts the UI."""
        return [self.program, "ui", "--team", TEAM, *arguments]

    def pty(self, argv, **more):
        return self._stack.enter_context(Pty(argv, self.environ, self.project, **more))

    def tmux(self, **more):
        socket = self.root / f"term{len(self._terminals)}"
        tmux = self._stack.enter_context(Tmux(socket, self.environ, self.project, **more))
        self._terminals.append(tmux)
        if not tmux.shows("prompt>"):
            raise RuntimeError("the shell in tmux did not start")
        return tmux

    def ui_process(self, parent, timeout=10):
        """Waits for the `brigade ui` process that the shell `parent` started, and returns it."""

        def found():
            running = all_processes()
            return next((process for process in running if process.parent == parent and "ui" in process.argv), None)

        return eventually(found, timeout)


def run_ui_scenario(scenario):
    run_scenario(scenario, UiEnv)
