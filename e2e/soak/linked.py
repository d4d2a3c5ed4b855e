"""A team on two hosts: a NATS server, a `brigade link` on each host, and agents without a model in the files of each
host. The second host is cut off now and then."""

import itertools
import random
import signal
import time
from contextlib import ExitStack

from mail_log import LEAD, LeadInbox, MailLog, PromptFileReader
from soak_team import Commands, plain_agent

from lib.linked_host import LinkedHost
from lib.nats_cluster import NatsCluster
from lib.team_env import toml_table
from lib.util import eventually, json_lines

TEAM = "linked"
LINKED = {"host-a": ("ann", "abe"), "host-b": ("bea", "ben")}
# Seconds between two messages, and seconds between two polls of the board and the lead's inbox.
SEND_PAUSE, POLL_INTERVAL = (0.4, 1.2), 3
# The minimum number of open tasks, and the maximum number of completed tasks on the board.
MIN_OPEN, MAX_COMPLETED = 4, 30


class SoakHost(LinkedHost):
    def __init__(self, machine, store, mail_log):
        super().__init__("new", machine, store, TEAM)
        self.environ = self.lead_environ | {"TMUX_TMPDIR": str(self.root / "tmp")}
        self.git_init()
        agent = plain_agent(self.root / "bin")
        lines = [f'team = "{TEAM}"']
        for name in LINKED[machine.name]:
            (self.project / name).mkdir()
            lines += toml_table(f"members.{name}", {"agent": f"acp:{agent}", "dir": name})
        (self.project / "brigade.toml").write_text("\n".join(lines) + "\n")
        self.readers = [PromptFileReader(name, self.project / name, mail_log) for name in LINKED[machine.name]]


class LinkedTeam:
    """A context manager for the two hosts and their NATS server."""

    def __init__(self, machines, folder):
        self._machines, self._folder = machines, folder
        self._stack = ExitStack()
        self._rng = random.Random(14)
        self._numbers = itertools.count(1)
        self.mail_log = MailLog()
        self._lead_inbox = LeadInbox(self.mail_log)
        self.commands = Commands()
        self._poll_at = 0.0
        self._taken_at = {}
        self.owners = {}
        self.completed = set()
        self.open = 0
        self.closing = False
        # `cuts` has the start and end of each past network cut, `cut_since` the start of the current cut.
        self.cuts = []
        self.cut_since = None
        self.kills = []

    def __enter__(self):
        self._nats = self._stack.enter_context(NatsCluster(self._machines[:1], self._folder))
        store = self._nats.store(self._machines[0])
        self.hosts = [self._stack.enter_context(SoakHost(machine, store, self.mail_log)) for machine in self._machines]
        self._host_of = {name: host for host in self.hosts for name in LINKED[host.machine.name]}
        return self

    def __exit__(self, *failure):
        self._stack.__exit__(*failure)

    def up(self):
        if not self._nats.is_ready():
            raise RuntimeError("the NATS server does not start")
        self.hosts[0].run_ok("team", "create", TEAM, store=True)
        for host in self.hosts:
            host.start_link()
        if not eventually(lambda: all(host.config.exists() for host in self.hosts), 30):
            raise RuntimeError("the team is not in the files of every host")
        for host in self.hosts:
            host.run_ok("up", store=False)
        expected = {LEAD, *self._host_of}
        return eventually(lambda: all(set(host.members()) == expected for host in self.hosts), 40)

    def poll_readers(self):
        for host in self.hosts:
            for reader in host.readers:
                reader.poll()

    # Work.

    def command(self, host, *arguments, store, by=None):
        """Runs brigade on a host. Returns its JSON output, or None if the command failed or was killed."""
        title = f"{host.machine.name}: {' '.join(arguments[:2])}"
        return self.commands.run(title, lambda: host.run("--json", *arguments, store=store, by=by, timeout=90))

    def step(self):
        """Sends one message, mostly to the other host, and sometimes polls the board and the lead's inbox. Returns the
        seconds until the next step."""
        by = self._rng.choice((LEAD, *self._host_of))
        others = [name for name in (LEAD, *self._host_of) if name != by]
        far = [name for name in others if self._host_of.get(name) is not self._host_of.get(by)]
        to = self._rng.choice(far if self._rng.random() < 0.8 else others)
        # The lead is on the first host and uses the NATS store. Members use the files of their own host.
        host = self._host_of.get(by, self.hosts[0])
        mark = self.mail_log.new_mark(by, to)
        if self.command(host, "send", to, f"{mark} A message from {by}.", store=by == LEAD, by=by) is not None:
            self.mail_log.acknowledge(mark)
        if time.monotonic() > self._poll_at:
            self.poll()
            self._poll_at = time.monotonic() + POLL_INTERVAL
        return self._rng.uniform(*SEND_PAUSE)

    def poll(self):
        lead = self.hosts[0]
        self._lead_inbox.poll(lambda *flags: self.command(lead, "inbox", LEAD, *flags, store=True, by=LEAD))
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
        if not self.closing and self.open < MIN_OPEN:
            added = self.command(lead, "task", "add", f"Work {next(self._numbers)}", store=True)
            if added:
                owner = self._rng.choice([*self._host_of])
                self.command(lead, "task", "update", str(added["task_id"]), "--owner", owner, store=True)
        for task in found:
            # Assign this task now, because the command that should have assigned it may have failed.
            if task["status"] == "pending" and not task.get("owner"):
                self.command(lead, "task", "update", task["id"], "--owner", self._rng.choice([*self._host_of]), store=True)
        for number in done[:-MAX_COMPLETED]:
            self.command(lead, "task", "delete", number, store=True)

    def _work(self, host, task):
        """Claims and completes a task for its owner, in the files of the owner's host."""
        number, owner = task["id"], task.get("owner")
        if self._host_of.get(owner) is not host:
            return
        if task["status"] == "pending":
            self.command(host, "task", "claim", number, store=False, by=owner)
        elif task["status"] == "in_progress" and time.monotonic() > self._taken_at.setdefault(number, time.monotonic()) + 2:
            self.command(host, "task", "done", number, store=False, by=owner)

    # Faults.

    def unplug(self):
        self._machines[1].unplug()
        self.cut_since = time.monotonic()

    def plug(self):
        if self.cut_since is not None:
            self._machines[1].plug()
            self.cuts.append((self.cut_since, time.monotonic()))
            self.cut_since = None

    def kill_link(self):
        """Kills the `brigade link` process of one host, and starts another one after a while."""
        host = self._rng.choice(self.hosts)
        host.end_link(signal.SIGKILL)
        self.kills.append((time.monotonic(), "link", 1))
        time.sleep(self._rng.uniform(0, 3))
        host.start_link()

    # State.

    def log(self):
        return json_lines(self.hosts[0].run_ok("--json", "log", store=True))

    def down(self):
        for host in self.hosts:
            host.end_link()
        for host in self.hosts:
            host.run_ok("down", "--now", store=False)
        self.hosts[0].run_ok("team", "delete", TEAM, store=True)

    def left(self):
        return {host.machine.name: found for host in self.hosts if (found := host.left())}
