"""An empty home of a person who uses brigade: a git repository, and real agents on the path that use a scripted model."""

import json
import os
import subprocess
from contextlib import ExitStack

from lib.env import mark_trusted
from lib.pages import Shell
from lib.processes import kill_home
from lib.terminals import Tmux
from lib.util import capture, eventually
from lib.vendors import CODEX_PLAIN_TOOLS, CONFIGURE

# How long an agent may take to start, or to answer a message.
ANSWER_WITHIN = 60
# The exit code of brigade when there is nothing to show.
NOTHING_FOUND = 4
COMMITTER = {
    "GIT_AUTHOR_NAME": "me",
    "GIT_AUTHOR_EMAIL": "me@example.com",
    "GIT_COMMITTER_NAME": "me",
    "GIT_COMMITTER_EMAIL": "me@example.com",
}


class UserHome:
    """A context manager. `programs` maps names to the paths of the programs that are on the path besides the system's."""

    def __init__(self, root, model_url, programs, project="parser"):
        self.root, self.home = root, root / "home"
        self.project = self.home / project
        self._stack = ExitStack()
        self._terminals = 0
        folder = root / "bin"
        for path in (self.project, folder, root / "tmp", self.home / ".claude"):
            path.mkdir(parents=True)
        for name, path in programs.items():
            (folder / name).symlink_to(path)
        self.environ = {
            "HOME": str(self.home),
            "PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "USER": "dev",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "PS1": "$ ",
            "HISTFILE": "/dev/null",
            "TMPDIR": str(root / "tmp"),
            "TMUX_TMPDIR": str(root / "tmp"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            **COMMITTER,
            **CODEX_PLAIN_TOOLS,
            "DISABLE_AUTOUPDATER": "1",
        }
        mark_trusted(self.home, self.project)
        for vendor in ("codex", "gemini", "claude"):
            self.environ |= CONFIGURE[vendor](self, model_url)
        (self.project / "README.md").write_text("# A parser\n")
        for arguments in (["init", "--quiet", "-b", "main"], ["add", "."], ["commit", "--quiet", "-m", "begin"]):
            subprocess.run(["git", *arguments], cwd=self.project, env=self.environ, check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()
        kill_home(self.home)

    # Methods that run commands.

    def shell(self):
        return self._stack.enter_context(Shell(self.environ, self.project))

    def terminal(self, columns=120, rows=40, **variables):
        """Returns a tmux with a shell, with more environment variables."""
        self._terminals += 1
        socket = self.root / f"terminal{self._terminals}"
        tmux = self._stack.enter_context(Tmux(socket, self.environ | variables, self.project, columns, rows))
        if not tmux.shows("$"):
            raise RuntimeError("the shell in tmux did not start")
        return tmux

    def try_brigade(self, *arguments):
        return capture(["brigade", *arguments], env=self.environ, cwd=self.project, timeout=120)

    def brigade(self, *arguments, ok=(0,)):
        """Runs brigade; returns its standard output."""
        done = self.try_brigade(*arguments)
        if done.returncode not in ok:
            raise RuntimeError(f"brigade {' '.join(arguments)}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def json(self, *arguments):
        """Runs brigade with --json; returns the parsed output, None if there is none."""
        output = self.brigade(*arguments, "--json", ok=(0, NOTHING_FOUND))
        return json.loads(output) if output.strip() else None

    # Methods that read the state of the team.

    def members(self):
        """Returns the entries of `brigade status`, by member name."""
        return {member["name"]: member for team in self.json("status") or [] for member in team["members"]}

    def liveness(self, name):
        return self.members().get(name, {}).get("liveness")

    def wait_for(self, name, *states):
        """Waits until the member is in one of these states."""
        if not eventually(lambda: self.liveness(name) in states, ANSWER_WITHIN):
            raise TimeoutError(f"{name} is {self.members().get(name)}, not {states}")

    def approvals(self):
        return self.json("approvals") or []

    def inbox(self, name="team-lead"):
        return self.json("inbox", name) or []

    def tasks(self):
        """Returns the task files of the only team, by id."""
        files = (self.home / ".claude/tasks").glob("*/*.json")
        return {file.stem: json.loads(file.read_text()) for file in files if file.stem.isdigit()}

    @property
    def state(self):
        """brigade's own state folder."""
        return self.home / ".local/state/brigade"

    def saved_session(self, name):
        """Returns the id of the session of a member's agent, from brigade's saved state; None if there is none yet."""
        found = list(self.state.glob(f"files/*/*/kept/{name}.json"))
        return json.loads(found[0].read_text())["memory"].get("session") if found else None

    def worktree(self, name):
        return next(self.state.glob(f"worktrees/*/{name}"))
