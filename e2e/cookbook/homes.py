"""The homes in which recipes run: empty ones, one with a team without agents, and one whose agents run for many recipes."""

import os
from pathlib import Path

from lib.scripted_model import say, script, team_tool, tool
from lib.user_home import UserHome

TEAM = "parser"
# The tool call by which each vendor's agent runs a shell command, with permission.
RUN_COMMAND = {
    "codex": lambda command: tool(
        "exec_command", cmd=command, sandbox_permissions="require_escalated", justification="to test"
    ),
    "gemini": lambda command: tool("run_shell_command", command=command, description="to test"),
}


class Homes:
    """Creates homes. All agents use one model."""

    def __init__(self, root, model, url, exchange):
        self._root, self.model, self._url = root, model, url
        self._homes, self._count = [], 0
        self._live = None
        self.bob, self.ann = ("gemini", "codex") if exchange else ("codex", "gemini")

    def close(self, all=True):
        """Ends the processes of all homes, or of all but the one that many recipes use."""
        for home in self._homes:
            if all or home is not self._live:
                home.__exit__()
        self._homes = [home for home in self._homes if not all and home is self._live]

    def empty(self, *agents, project="parser"):
        """Returns a home with a repository, and with these agents on the path; without names, both agents."""
        names = agents or ("codex", "gemini")
        programs = {name: os.environ[f"PROGRAM_{name.upper()}"] for name in names if name != "none"}
        programs |= {"brigade": os.environ["BRIGADE"]}
        self._count += 1
        home = UserHome(self._root / f"home{self._count}", self._url, programs, project)
        self._homes.append(home)
        return home

    def board(self, *subjects, members=("bob", "ann")):
        """Returns a home with a team whose members have no agents, and with these tasks."""
        home = self.empty("none")
        home.brigade("team", "create", TEAM)
        for name in members:
            home.brigade("team", "join", name)
        for subject in subjects:
            home.brigade("task", "add", subject)
        return home

    def team(self, *names, ann=None, **more):
        """Returns a new home with a team of agents, whose names are `bob`, `ann` and so on. All have bob's agent, which starts
        faster, unless `ann` is another one. `more` are keys of bob's table in brigade.toml."""
        home = self.empty()
        lines = [f'team = "{TEAM}"']
        for name in names:
            lines += [f"[members.{name}]", f'agent = "{ann or self.bob if name == "ann" else self.bob}"']
            if name == "bob":
                lines += [f"{key} = {value}" for key, value in more.items()]
        (home.project / "brigade.toml").write_text("\n".join(lines) + "\n")
        home.brigade("trust", "--yes")
        home.brigade("up")
        return home

    def live(self):
        """Returns the home whose agents bob and ann run for many recipes. Waits until both are idle."""
        if not self._live:
            self._live = self.team("bob", "ann", ann=self.ann, allow='["git log *", "git status *"]')
            for name in ("bob", "ann"):
                self.say(self._live, name, "Welcome.")
        for name in ("bob", "ann"):
            self._live.wait_for(name, "idle")
        return self._live

    def reset(self):
        """Makes the members idle that many recipes use, after a recipe has failed."""
        if self._live:
            for request in self._live.approvals():
                self._live.try_brigade("deny", str(request["number"]))
            self._live.try_brigade("unpause", "--all")
            self._live.try_brigade("interrupt", "--all")

    def say(self, home, name, text):
        """Sends a message to an agent, and waits until the agent has answered."""
        home.brigade("ask", name, f"{text} {script(say(f'I have read: {text}'))}")

    def slow_turn(self, home, name="bob"):
        """Starts a turn of a minute, and waits until it has begun."""
        home.brigade("send", name, f"Think. {script(say('late') | {'wait': 60})}")
        home.wait_for(name, "working")

    def request(self, home, command, name="bob", agent=None):
        """Lets an agent ask for permission to run a command; returns the number of the request."""
        before = {request["number"] for request in home.approvals()}
        step = RUN_COMMAND[agent or (self.ann if name == "ann" else self.bob)](command)
        home.brigade("send", name, f"Run it. {script(step, say('It ran.'))}")
        home.brigade("wait", "--approval", "--timeout", "60s")
        while not (new := [one["number"] for one in home.approvals() if one["number"] not in before]):
            pass
        return new[0]

    def plan(self, home, name):
        """Lets an agent submit a plan; returns the number of the request."""
        steps = team_tool("submit_plan", plan="# Plan\n1. Split the lexer"), say("I wait.")
        home.brigade("send", name, f"Plan it. {script(*steps)}")
        home.brigade("wait", "--approval", "--timeout", "60s")
        return home.approvals()[0]["number"]


def write(path: Path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
