"""A home with a team that brigade leads and a person's terminals, in which `brigade ui` runs."""

import json
import os
import subprocess
from contextlib import ExitStack

from house import House, eventually, prove
from scripted import ScriptedModel, as_json_lines
from teammate import end_all, keep, processes
from terminals import Bare, Tmux
from vendors import SETTLE_IN

TEAM = "proof"


class Desk(House):
    """All that is started here inherits the variables that lead Codex to the scripted model."""

    def __init__(self, version, _):
        super().__init__("new", "tmux")
        self.version = version
        self.team = TEAM
        self._stack = ExitStack()
        self._terminals = 0
        # What the model was asked is kept if something fails; most scenarios have none.
        (self.root / "model").mkdir()
        subprocess.run(["git", "init", "--quiet", self.project], env=self.plain_env, check=True)
        self.plain_env |= {
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "PS1": "desk> ",
            "HISTFILE": "/dev/null",
            "TMPDIR": str(self.root / "tmp"),
            "TMUX_TMPDIR": str(self.root / "tmp"),
            "TZ": "UTC",
        }

    def __exit__(self, *failure):
        self._stack.close()
        end_all(self)
        super().__exit__(*failure)

    def screen(self):
        return "\n".join(tmux.screen() for tmux in self._open)

    _open = ()

    @property
    def state(self):
        """brigade's own folder."""
        return self.home / ".local/state/brigade"

    def with_codex(self):
        """Has a model that Codex finds, and Codex where brigade finds it."""
        self.model = self._stack.enter_context(ScriptedModel(self.root / "model" / "codex"))
        self.plain_env |= SETTLE_IN["codex"](self, self.model.url) | {
            "BRIGADE_CODEX": os.environ["PROGRAM_CODEX"],
            # A model that Codex does not know is offered its plain tools.
            "BRIGADE_CODEX_ARGS": '-c model="scripted"',
        }

    def run(self, *arguments, timeout=120):
        return subprocess.run(
            [self._brigade, *arguments],
            env=self.plain_env,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def do(self, *arguments, **more):
        done = self.run(*arguments, **more)
        if done.returncode != 0:
            raise RuntimeError(f"brigade {' '.join(arguments)}: {done.returncode}: {done.stderr.strip()}")
        return done

    def log(self):
        return as_json_lines(self.try_brigade("log").stdout)

    def small_team(self):
        """A team of a few, with some mail and some tasks, and nobody at work."""
        self.do("team", "create", TEAM)
        for name in ("ann", "bob"):
            self.do("--team", TEAM, "team", "join", name)
            self.do("--team", TEAM, "send", name, f"welcome, {name}")
            self.do("--team", TEAM, "--as", name, "send", "team-lead", f"{name} says hello")
        self.do("--team", TEAM, "task", "add", "lay the table")

    @property
    def program(self):
        return self._brigade

    def ui(self, *arguments):
        """The words that start it."""
        return [self._brigade, "ui", "--team", TEAM, *arguments]

    def bare(self, words, **more):
        return self._stack.enter_context(Bare(words, self.plain_env, self.project, **more))

    def tmux(self, **more):
        self._terminals += 1
        socket = self.root / f"term{self._terminals}"
        tmux = self._stack.enter_context(Tmux(socket, self.plain_env, self.project, **more))
        self._open = (*self._open, tmux)
        if not tmux.shows("desk>"):
            raise RuntimeError("no shell in tmux")
        return tmux

    def process_of_ui(self, above, patience=10):
        """The process of `brigade ui` that a shell started."""

        def found():
            return next((process for process in processes() if process.parent == above and "ui" in process.words), None)

        return eventually(found, patience)


def prove_at_desk(scenario):
    """Runs a scenario at such a desk, as a program; what explains a failure is kept."""

    def whole(desk, report, short):
        try:
            scenario(desk, report, short)
        finally:
            keep(desk, report)

    prove(whole, "tmux", Desk)


def script(*steps):
    return f"[script]{json.dumps(steps)}[/script]"
