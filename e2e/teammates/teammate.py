"""Runs one teammate with brigade and a real agent, on a team that brigade created."""

import json
import os
import subprocess
from contextlib import contextmanager

from lib import processes
from lib.scripted_model import ScriptedModel
from lib.vendors import CONFIGURE

LEAD = "team-lead"
TEAM = "test-team"


class Teammate:
    """A member that brigade runs. It can be started and killed any number of times. `senders` are the names of other
    members, which only send messages."""

    def __init__(self, env, name, agent, environ, program=None, senders=()):
        self.name = name
        self._env = env
        self._agent = agent
        program = program or os.environ[f"PROGRAM_{agent.upper()}"]
        self._environ = env.environ | environ | {f"BRIGADE_{agent.upper()}": str(program)}
        self._pane = env.root / f"pane-{name}"
        self._running = None
        env.brigade("team", "join", name, "--agent-type", agent)
        for sender in senders:
            env.brigade("team", "join", sender)

    def start(self):
        team = self._env.team
        identity = ["--agent-id", f"{self.name}@{team}", "--agent-name", self.name, "--team-name", team]
        with self._pane.open("ab") as pane:
            self._running = subprocess.Popen(
                [os.environ["BRIGADE"], *identity, "--agent-type", self._agent, "--dangerously-skip-permissions"],
                env=self._environ,
                cwd=self._env.project,
                stdin=subprocess.DEVNULL,
                stdout=pane,
                stderr=pane,
                start_new_session=True,
            )

    def kill(self):
        """Kills brigade's own process. The guard has to end the agent and everything the agent started."""
        self._running.kill()
        self._running.wait()

    def tree(self):
        """Returns brigade's process and all its descendants, parents first."""
        return processes.tree(self._running.pid)

    def session(self):
        """Returns the id of the agent's session, from brigade's saved state; None if there is no session yet."""
        found = list(self._env.state.glob(f"files/*/{self._env.team}/kept/{self.name}.json"))
        return json.loads(found[0].read_text())["memory"].get("session") if found else None

    def pane(self):
        return self._pane.read_text(errors="replace") if self._pane.exists() else ""


@contextmanager
def team(env, agent, bodies=True):
    """Creates a team in a git repository, and runs a scripted model. Yields the model, and the environment variables
    that make this agent use it. Kills every process at the end."""
    env.git_init()
    env.team = TEAM
    env.brigade("team", "create", env.team)
    try:
        with ScriptedModel(env.root / "model", bodies=bodies) as model:
            yield model, CONFIGURE[agent](env, model.url)
    finally:
        env.kill_all()


def idle_notifications(env, name):
    """Returns the idle notifications that a member sent to the lead."""
    texts = [entry["text"] for entry in env.mail(LEAD) if entry["from"] == name]
    bodies = (json.loads(text) for text in texts if text.startswith("{"))
    return [body for body in bodies if body.get("type") == "idle_notification"]
