"""A real agent as a teammate of a team that brigade leads, and the processes it consists of."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from house import eventually
from scripted import ScriptedModel
from vendors import SETTLE_IN

LEAD = "team-lead"


class Process(NamedTuple):
    """A process. Numbers are given out again, so a number alone does not say which."""

    pid: int
    parent: int
    session: int
    begun: int
    words: tuple

    def is_alive(self):
        now = look_at(self.pid)
        return now is not None and now.begun == self.begun

    def is_brigade(self, command):
        """Whether it is brigade with this command: `guard`, `mcp`, or `--agent-id` for a teammate."""
        return self.words[:1] == (os.environ["BRIGADE"],) and self.words[1:2] == (command,)

    def kill(self):
        """Ends this process and no other, at once."""
        if self.is_alive():
            os.kill(self.pid, signal.SIGKILL)

    def used(self):
        """The seconds of a core it has used so far."""
        fields = stat(self.pid)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self):
        """The bytes of memory it holds: its own, and those of files, its program for one."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        field = lambda name: next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
        return field("RssAnon:") + field("RssShmem:"), field("RssFile:")


def stat(pid):
    """The fields behind the name, which may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def look_at(pid):
    """The process of that number, None if there is none or it has only to be waited for."""
    try:
        fields = stat(pid)
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), tuple(words))


def processes():
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in map(look_at, pids) if process]


def at_home(home):
    """Every process whose home is this house: all that a teammate ever started."""
    mark = f"HOME={home}".encode()

    def is_ours(process):
        try:
            return mark in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False

    return [process for process in processes() if is_ours(process)]


class Teammate:
    """One member that brigade plays, started and ended as often as one likes."""

    def __init__(self, house, name, agent, env, program=None):
        self.name = name
        self._house = house
        self._agent = agent
        program = program or os.environ[f"PROGRAM_{agent.upper()}"]
        self._env = house.plain_env | env | {f"BRIGADE_{agent.upper()}": str(program)}
        self._pane = house.root / f"pane-{name}"
        self._running = None
        house.brigade("team", "join", name, "--agent-type", agent)

    def start(self):
        team = self._house.team
        who = ["--agent-id", f"{self.name}@{team}", "--agent-name", self.name, "--team-name", team]
        with self._pane.open("ab") as pane:
            self._running = subprocess.Popen(
                [os.environ["BRIGADE"], *who, "--agent-type", self._agent, "--dangerously-skip-permissions"],
                env=self._env,
                cwd=self._house.project,
                stdin=subprocess.DEVNULL,
                stdout=pane,
                stderr=pane,
                start_new_session=True,
            )

    def runs(self):
        return self._running is not None and self._running.poll() is None

    def kill(self):
        """Ends brigade's own process, at once; what it started is for the guard to end."""
        self._running.kill()
        self._running.wait()

    def tree(self):
        """Its process and all below, parents first."""
        found = [look_at(self._running.pid)]
        if found == [None]:
            return []
        everybody = processes()
        for process in found:
            found += [child for child in everybody if child.parent == process.pid]
        return found

    def kept(self):
        """What brigade has written down of it; nothing at the beginning."""
        folder = Path(self._house.home) / ".local/state/brigade"
        found = list(folder.glob(f"files/*/{self._house.team}/kept/{self.name}.json"))
        return json.loads(found[0].read_text())["memory"] if found else {}

    def pane(self):
        return self._pane.read_text(errors="replace") if self._pane.exists() else ""


@contextmanager
def team(house, report, agent, record=True):
    """A team in a project, and a model for one kind of agent; gives the model and its variables. All that
    was started is ended with it, and that none had to be ended by us is the last check."""
    subprocess.run(["git", "init", "--quiet", house.project], env=house.plain_env, check=True)
    house.team = "proof"
    house.brigade("team", "create", house.team)
    try:
        with ScriptedModel(house.root / "model", bodies=record) as model:
            yield model, SETTLE_IN[agent](house, model.url)
    finally:
        keep(house, report)
        end_all(house)


def end_all(house):
    while left := at_home(house.home):
        for process in left:
            process.kill()
        time.sleep(0.05)


def nobody_left(house, patience=10):
    """Waits until no process of this house is left; gives those that are."""
    eventually(lambda: not at_home(house.home), patience)
    return at_home(house.home)


def keep(house, report):
    """What explains a failure, for the house will be gone."""
    if report.failures or sys.exception():
        kept = Path(os.environ["KEEP"]) / f"{Path(sys.argv[0]).stem}-{house.version}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for path in (*house.root.glob("pane-*"), house.root / "model", house.home):
            if path.is_dir():
                # Sockets and links of the agents explain nothing.
                shutil.copytree(path, kept / path.name, symlinks=True, ignore=not_files)
            else:
                shutil.copy(path, kept)
        report.figure("what explains it is kept in", kept)


def not_files(folder, names):
    return [name for name in names if not ((path := Path(folder) / name).is_dir() or path.is_file())]


def idle_notifications(house, name):
    """What the lead was told of a member's being idle."""
    said = [entry["text"] for entry in house.mail(LEAD) if entry["from"] == name]
    bodies = (json.loads(text) for text in said if text.startswith("{"))
    return [body for body in bodies if body.get("type") == "idle_notification"]


def script(*steps):
    return f"[script]{json.dumps(steps)}[/script]"
