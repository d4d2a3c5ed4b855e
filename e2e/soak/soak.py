"""A team of ten members, five of them real agents, works for hours while its processes are killed again and again.
A second team works on two hosts, one of which is cut off now and then. Checks that no message is lost, that no
task is done twice, and that the resource usage of no process grows."""

import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from contextlib import ExitStack
from pathlib import Path

import chart
import checks
from faults import CALM, STORM, STORM_MINIMUM, Faults
from linked import LINKED, LinkedTeam
from meter import MB, Meter
from soak_team import LONG_LIVED, PLAIN, REAL, SoakTeamEnv
from workload import BoardWork, MailWork

from lib.env import copy_kept, exit_on_sigterm
from lib.leftovers import check_leftovers, files_of
from lib.network import Machines
from lib.report import Report
from lib.util import SLACK, eventually

# The duration of a storm, as a fraction of the whole test. There is a storm at the beginning and one at the end.
# In the calm phase between them, the supervisor, the links and some members are not killed, so that they run for a
# long time.
STORM_FRACTION = 1 / 6
# Seconds between two kills, in a storm (True) and in the calm phase (False). Gemini CLI may take a minute to
# restart.
KILL_PAUSE = {True: (7, 14), False: (12, 24)}
# Seconds for which the network cable is plugged in, and unplugged.
PLUGGED, UNPLUGGED = (15, 45), (8, 30)
TIMEOUT = 240
# The size of the largest file to keep after a failure. Copying an agent's own session files would take too long.
MAX_KEPT_FILE = 8 * MB


class Soak:
    def __init__(self, env, linked, minutes, out):
        self.env, self.linked = env, linked
        self.seconds = minutes * 60
        self.board, self.mail, self.faults = BoardWork(env), MailWork(env), Faults(env)
        homes = {"files": env.home} | {host.machine.name: host.home for host in linked.hosts}
        self.meter = Meter(homes, out / "samples.jsonl", self._counters)
        # `_closing` stops the threads that create work. `_over` stops the other threads later.
        self._over, self._closing = threading.Event(), threading.Event()
        self.crashes = []
        self.calm = None
        self._threads = []

    def _counters(self):
        received = len(self.env.mail_log.received) + len(self.linked.mail_log.received)
        tasks = len(self.board.completed) + len(self.linked.completed)
        cut = self.linked.cut_since is not None
        return {"received": received, "tasks": tasks, "kills": len(self.faults.kills), "cut": cut}

    def _start(self, name, step, until):
        """Starts a thread that repeats `step` until the event `until` is set. A step returns the seconds to wait
        after it."""

        def run():
            while not until.is_set():
                try:
                    until.wait(step())
                except Exception:
                    self.crashes.append(f"{name}: {traceback.format_exc()}")
                    until.wait(1)

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def begin(self):
        every = 2 if self.seconds <= 600 else 5
        count = iter(range(10**9))

        def sample():
            self.meter.sample(disk=next(count) % 4 == 0)
            return every

        def poll_readers():
            self.env.poll_readers()
            self.linked.poll_readers()
            return 0.5

        self._start("meter", sample, self._over)
        self._start("readers", poll_readers, self._over)
        self._start("board", self.board.step, self._over)
        self._start("mail", self.mail.step, self._closing)
        self._start("linked", self.linked.step, self._closing)
        self._start("cable", self._cable_step(), self._closing)

    def _cable_step(self):
        rng = random.Random(15)

        def step():
            if self.linked.cut_since is None:
                self.linked.unplug()
                return rng.uniform(*UNPLUGGED)
            self.linked.plug()
            return rng.uniform(*PLUGGED)

        return step

    def run(self):
        """Kills processes in a storm, in the calm phase, and in another storm."""
        started = time.monotonic()
        storm = self.seconds * STORM_FRACTION
        self._kill(started + storm, True)
        first = self.meter.now()
        self._kill(started + self.seconds - storm, False)
        self.calm = (first, self.meter.now())
        self._kill(started + self.seconds, True)

    def _kill(self, end, is_storm):
        rng = random.Random(16 + is_storm)
        kinds = STORM if is_storm else CALM
        for number in itertools.count():
            time.sleep(rng.uniform(*KILL_PAUSE[is_storm]))
            if time.monotonic() >= end and not (is_storm and number < STORM_MINIMUM):
                break
            self.faults.restart_failed_members()
            kind = kinds[number % len(kinds)]
            if kind == "link":
                self.linked.kill_link()
            else:
                self.faults.kill(kind, () if is_storm else LONG_LIVED)

    def settle(self):
        """Stops creating work and killing processes, and waits until all work is finished. Returns the unfinished
        work."""
        self.board.closing = self.linked.closing = True
        self._closing.set()
        for thread in self._threads:
            if thread.name in ("mail", "linked", "cable"):
                thread.join(120)
        self.linked.plug()
        self.faults.resume()
        end = time.monotonic() + TIMEOUT * SLACK
        while time.monotonic() < end:
            self.linked.poll()
            self.env.read_lead_inbox()
            if not self.unfinished():
                break
            self.faults.restart_failed_members()
            time.sleep(2)
        return self.unfinished()

    def unfinished(self):
        found = {
            "messages": [tuple(message) for message in self.env.mail_log.missing()],
            "messages on two hosts": [tuple(message) for message in self.linked.mail_log.missing()],
            "tasks": self.board.open,
            "tasks on two hosts": self.linked.open,
        }
        return {kind: value for kind, value in found.items() if value}

    def end(self):
        self._closing.set()
        self._over.set()
        for thread in self._threads:
            thread.join(30)

    def long_lived(self):
        """Returns the names of the processes that were not killed in the calm phase."""
        hosts = [f"{host} {role}" for host in LINKED for role in ("link", "supervisor", *(f"member {n}" for n in LINKED[host]))]
        return ["files supervisor", *(f"files member {name}" for name in LONG_LIVED), *hosts]

    def write_chart(self, out, minutes):
        second_of = self.meter.second_of
        kills = [(second_of(at), kind) for at, kind, _ in (*self.faults.kills, *self.linked.kills)]
        cuts = [(second_of(started), second_of(ended)) for started, ended in self.linked.cuts]
        members = len(REAL) + len(PLAIN)
        title = f"{members} members on one host and {sum(map(len, LINKED.values()))} on two, {minutes} minutes"
        path = out / "soak.svg"
        path.write_text(chart.draw(self.meter.samples, kills, cuts, title))
        return path


def scenario(env, linked, report, minutes, out):
    before = files_of(env)
    env.run_ok("up", timeout=300)
    report.check("the team on two hosts is up", linked.up())
    soak = Soak(env, linked, minutes, out)
    report.check(f"all {len(REAL) + len(PLAIN)} members are up", eventually(soak.faults.all_running, 60))
    soak.begin()
    try:
        soak.run()
        unfinished = soak.settle()
        report.check("all work is finished", not unfinished, unfinished)
        checks.check_mail(report, soak)
        checks.check_tasks(report, soak)
        checks.check_faults(report, soak)
        checks.shut_down(report, soak)
    finally:
        soak.end()
        report.figure("samples and chart", soak.write_chart(out, minutes))
    checks.check_growth(report, soak)
    check_leftovers(env, report, before)
    report.check("no thread of this test has failed", not soak.crashes, soak.crashes)


def is_big(path):
    return path.is_file() and path.stat().st_size > MAX_KEPT_FILE


def main():
    minutes = int(sys.argv[1])
    exit_on_sigterm()
    # If the test hangs, raise an exception, so that it still cleans up.
    signal.signal(signal.SIGALRM, lambda *_: raise_timeout())
    signal.alarm(int(minutes * 60 + (TIMEOUT + 600) * SLACK))
    report = Report(f"soak, {minutes} minutes")
    out = Path(os.environ["OUT"])
    with ExitStack() as stack:
        machines = stack.enter_context(Machines(LINKED))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-e2e-")))
        linked = stack.enter_context(LinkedTeam(machines, folder))
        env = stack.enter_context(SoakTeamEnv())
        folders = {"files": env.root, "nats": folder} | {host.machine.name: host.root for host in linked.hosts}
        with report.scenario(lambda: copy_kept(report, folders, ignore=is_big)):
            scenario(env, linked, report, minutes, out)
    sys.exit(report.end())


def raise_timeout():
    raise TimeoutError("the soak test did not end in time")


main()
