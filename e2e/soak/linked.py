"""A team on two hosts: the engine, a link on each, and members without a model in the files of each host. The
second host is cut off now and then."""

import itertools
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import ExitStack

from crew import Member, toml
from crowd import plain_agent
from house import House, eventually
from post import LEAD, LeadsDesk, Notebook, Post
from scripted import as_json_lines
from teammate import at_home, end_all

TEAM = "linked"
MEMBERS = {"host-a": ("ann", "abe"), "host-b": ("bea", "ben")}
CONFIG = """
listen: {address}:4222
max_payload: 8MB
jetstream {{ store_dir: "{store}" }}
"""
# Seconds between two messages, and between two looks at board and mail.
PACE, LOOK = (0.4, 1.2), 3
OPEN, KEPT = 4, 30


class Host(House):
    """The home of one host. Everything started in it is started on that host."""

    def __init__(self, machine, store, post):
        super().__init__("new", "tmux")
        self.machine, self.store, self.team = machine, store, TEAM
        self.plain_env = self._lead_env | {"TMUX_TMPDIR": str(self.root / "tmp")}
        subprocess.run(["git", "init", "--quiet", self.project], env=self.plain_env, check=True)
        agent = plain_agent(self.root / "bin")
        lines = [f'team = "{TEAM}"']
        for name in MEMBERS[machine.name]:
            (self.project / name).mkdir()
            keys = {"agent": Member(f"acp:{agent}").agent, "dir": name}
            lines += [f"[members.{name}]", *(f"{key} = {toml(value)}" for key, value in keys.items())]
        (self.project / "brigade.toml").write_text("\n".join(lines) + "\n")
        self.notebooks = [Notebook(name, self.project / name, post) for name in MEMBERS[machine.name]]
        self._link = None

    def __exit__(self, *failure):
        end_all(self)
        super().__exit__(*failure)

    def leave(self):
        pass

    @property
    def state(self):
        return self.home / ".local/state/brigade"

    def _command(self, arguments, store, by=None):
        where = ["--claude-dir", str(self.claude_dir), *(["--store", self.store] if store else [])]
        who = ["--as", by] if by else []
        return [*self.machine.inside(self.project), self._brigade, *where, "--team", TEAM, *who, *arguments]

    def run(self, *arguments, store, by=None, timeout=90):
        """Runs it once, on the engine (`store`) or on this host's files."""
        return subprocess.run(
            self._command(arguments, store, by),
            env=self.plain_env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def do(self, *arguments, store, by=None):
        done = self.run(*arguments, store=store, by=by)
        if done.returncode != 0:
            what = f"{self.machine.name}: brigade {' '.join(arguments)}"
            raise RuntimeError(f"{what}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def start_link(self):
        with (self.root / "link.log").open("ab") as log:
            command = self._command(["link", "--host", self.machine.name], True)
            silent = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self._link = subprocess.Popen(command, env=self.plain_env, **silent)

    def link(self):
        """The process of the link itself; what was started is the way into the host."""
        return [one for one in self.left() if "link" in one.words and one.words[:1] == (self._brigade,)]

    def end_link(self, how=signal.SIGTERM):
        for process in self.link():
            os.kill(process.pid, how)
        if self._link:
            self._link.wait(15)

    def left(self):
        return at_home(self.home)


class Linked:
    """The two hosts and their engine, while it is entered."""

    def __init__(self, machines, folder):
        self._machines, self._folder = machines, folder
        self._stack = ExitStack()
        self._dice = random.Random(14)
        self._numbers = itertools.count(1)
        self.post = Post()
        self.desk = LeadsDesk(self.post)
        self.failures = Counter()
        self.killed_commands = 0
        self._look_at = 0.0
        self._taken_at = {}
        self.owners = {}
        self.completed = set()
        self.open = 0
        self.closing = False
        # From when to when the cable was out, and since when it is.
        self.cuts = []
        self.cut_since = None
        self.kills = []
        self.healed = []

    def __enter__(self):
        first = self._machines[0]
        config = self._folder / "nats.conf"
        config.write_text(CONFIG.format(address=first.address, store=self._folder / "store"))
        with (self._folder / "log").open("wb") as log:
            command = [*first.inside(), os.environ["NATS_SERVER"], "--config", config]
            self._engine = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"HOME": str(self._folder)})
        self._stack.callback(self._end_engine)
        store = f"nats://{first.address}:4222"
        self.hosts = [self._stack.enter_context(Host(machine, store, self.post)) for machine in self._machines]
        self._of = {name: host for host in self.hosts for name in MEMBERS[host.machine.name]}
        return self

    def __exit__(self, *failure):
        self._stack.__exit__(*failure)

    def _end_engine(self):
        for process in at_home(self._folder):
            os.kill(process.pid, signal.SIGTERM)
        self._engine.wait()

    def up(self):
        if not eventually(lambda: "Server is ready" in (self._folder / "log").read_text(), 15):
            raise RuntimeError("the engine does not start")
        self.hosts[0].do("team", "create", TEAM, store=True)
        for host in self.hosts:
            host.start_link()
        if not eventually(lambda: all(host.config.exists() for host in self.hosts), 30):
            raise RuntimeError("the team is not in the files of every host")
        for host in self.hosts:
            host.do("up", store=False)
        everybody = {LEAD, *self._of}
        return eventually(lambda: all(set(host.members()) == everybody for host in self.hosts), 40)

    def listen(self):
        for host in self.hosts:
            for notebook in host.notebooks:
                notebook.listen()

    # What goes on.

    def command(self, host, *arguments, store, by=None):
        """Runs brigade on a host; gives what it printed as JSON, or None if it failed or was killed."""
        try:
            done = host.run("--json", *arguments, store=store, by=by)
        except subprocess.TimeoutExpired:
            self.failures[f"{host.machine.name}: {arguments[0]}: not done after 90 s"] += 1
            return None
        if done.returncode in (-9, 137):
            self.killed_commands += 1
            return None
        if done.returncode not in (0, 4):
            words = f"{' '.join(arguments[:2])}: {done.returncode}: {done.stderr.strip()[:160]}"
            self.failures[f"{host.machine.name}: {words}"] += 1
            return None
        return json.loads(done.stdout) if done.stdout.strip() else []

    def turn(self):
        """One message from somebody to somebody, mostly to the other host; board and lead's mail now and then."""
        by = self._dice.choice((LEAD, *self._of))
        others = [name for name in (LEAD, *self._of) if name != by]
        far = [name for name in others if self._of.get(name) is not self._of.get(by)]
        to = self._dice.choice(far if self._dice.random() < 0.8 else others)
        # The lead sits on the first host, at the engine.
        host = self._of.get(by, self.hosts[0])
        mark = self.post.letter(by, to)
        words = [f"{mark} A word from {by}."]
        if self.command(host, "send", to, *words, store=by == LEAD, by=by) is not None:
            self.post.acknowledge(mark)
        if time.monotonic() > self._look_at:
            self.look()
            self._look_at = time.monotonic() + LOOK
        return self._dice.uniform(*PACE)

    def look(self):
        lead = self.hosts[0]
        for flags in (["--unread"], ["--unread", "--mark-read"]):
            self.desk.read(self.command(lead, "inbox", LEAD, *flags, store=True, by=LEAD) or [])
        self._board(lead)
        for host in self.hosts:
            for task in self.command(host, "task", "list", store=False) or []:
                self._work(host, task)

    def _board(self, lead):
        found = self.command(lead, "task", "list", store=True)
        if found is None:
            return
        done = sorted((task["id"] for task in found if task["status"] == "completed"), key=int)
        self.completed.update(done)
        self.open = len(found) - len(done)
        if not self.closing and self.open < OPEN:
            added = self.command(lead, "task", "add", f"Work {next(self._numbers)}", store=True)
            if added:
                owner = self._dice.choice([*self._of])
                self.command(lead, "task", "update", str(added["task_id"]), "--owner", owner, store=True)
        for task in found:
            # Whoever added it was cut off before it could be given to somebody.
            if task["status"] == "pending" and not task.get("owner"):
                self.command(lead, "task", "update", task["id"], "--owner", self._dice.choice([*self._of]), store=True)
        for number in done[:-KEPT]:
            self.command(lead, "task", "delete", number, store=True)

    def _work(self, host, task):
        """Whose task it is takes it and completes it, in the files of its own host."""
        number, owner = task["id"], task.get("owner")
        if self._of.get(owner) is not host:
            return
        if task["status"] == "pending":
            self.command(host, "task", "claim", number, store=False, by=owner)
        elif task["status"] == "in_progress":
            if time.monotonic() > self._taken_at.setdefault(number, time.monotonic()) + 2:
                self.command(host, "task", "done", number, store=False, by=owner)

    # What goes wrong.

    def cut(self):
        self._machines[1].unplug()
        self.cut_since = time.monotonic()

    def mend(self):
        if self.cut_since is not None:
            self._machines[1].plug()
            self.cuts.append((self.cut_since, time.monotonic()))
            self.cut_since = None

    def kill_link(self):
        """kill -9 of the link of one host, and another one after a while."""
        host = self._dice.choice(self.hosts)
        host.end_link(signal.SIGKILL)
        self.kills.append((time.monotonic(), "link", 1))
        time.sleep(self._dice.uniform(0, 3))
        host.start_link()

    # What there is to see.

    def log(self):
        return as_json_lines(self.hosts[0].do("--json", "log", store=True))

    def down(self):
        for host in self.hosts:
            host.end_link()
        for host in self.hosts:
            host.do("down", "--now", store=False)
        self.hosts[0].do("team", "delete", TEAM, store=True)

    def left(self):
        return {host.machine.name: found for host in self.hosts if (found := host.left())}
