"""Ten members on one team, real agents among them, at work for hours while everything is killed over and over; and
a team on two hosts of which one is cut off now and then. Nothing is lost, nothing is done twice, nothing leaks."""

import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from contextlib import ExitStack
from pathlib import Path

import chart
import verdicts
from crowd import PLAIN, REAL, STEADY, Crowd
from havoc import AT_LEAST, MIDDLE, STORM, Havoc, spared
from house import SLACK, eventually
from linked import MEMBERS, Linked
from machines import Machines
from meter import MB, Meter
from report import Report
from teammate import not_files
from work import Board, Mail

# Which part of the time is a storm, at the beginning and at the end. In between the supervising process, the
# links and some members are left alone, so that they get old.
STORMS = 1 / 6
# Seconds between two kills, in a storm and in the middle; Gemini CLI may need a minute to come back.
BETWEEN = {True: (7, 14), False: (12, 24)}
# Seconds with the cable in and out.
PLUGGED, UNPLUGGED = (15, 45), (8, 30)
PATIENCE = 240
# Of what explains a failure, the longest file.
KEEP_UP_TO = 8 * MB


class Soak:
    def __init__(self, house, linked, minutes, out):
        self.house, self.linked = house, linked
        self.seconds = minutes * 60
        self.board, self.mail, self.havoc = Board(house), Mail(house), Havoc(house)
        homes = {"files": house.home} | {host.machine.name: host.home for host in linked.hosts}
        self.meter = Meter(homes, out / "samples.jsonl", self._tell)
        # Everybody stops at once, or first those who make work.
        self._over, self._closing = threading.Event(), threading.Event()
        self.crashes = []
        self.middle = None
        self._threads = []

    def _tell(self):
        told = len(self.house.post.told) + len(self.linked.post.told)
        tasks = len(self.board.completed) + len(self.linked.completed)
        return {"told": told, "tasks": tasks, "kills": len(self.havoc.kills), "cut": self.linked.cut_since is not None}

    def _go(self, name, turn, until):
        """Takes turns in a thread of its own until it is over; what a turn gives is how long to wait."""

        def run():
            while not until.is_set():
                try:
                    until.wait(turn())
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

        def listen():
            self.house.listen()
            self.linked.listen()
            return 0.5

        self._go("meter", sample, self._over)
        self._go("ears", listen, self._over)
        self._go("board", self.board.turn, self._over)
        self._go("mail", self.mail.turn, self._closing)
        self._go("linked", self.linked.turn, self._closing)
        self._go("cable", self._cable(), self._closing)

    def _cable(self):
        dice = random.Random(15)

        def turn():
            if self.linked.cut_since is None:
                self.linked.cut()
                return dice.uniform(*UNPLUGGED)
            self.linked.mend()
            return dice.uniform(*PLUGGED)

        return turn

    def run(self):
        """The storm, the long middle, the storm."""
        begun = time.monotonic()
        storm = self.seconds * STORMS
        self._kill(begun + storm, True)
        first = self.meter.now()
        self._kill(begun + self.seconds - storm, False)
        self.middle = (first, self.meter.now())
        self._kill(begun + self.seconds, True)

    def _kill(self, end, is_storm):
        dice = random.Random(16 + is_storm)
        kinds = STORM if is_storm else MIDDLE
        for number in itertools.count():
            time.sleep(dice.uniform(*BETWEEN[is_storm]))
            if time.monotonic() >= end and not (is_storm and number < AT_LEAST):
                break
            self.havoc.bring_back()
            what = kinds[number % len(kinds)]
            if what == "link":
                self.linked.kill_link()
            else:
                self.havoc.strike(what, spared(not is_storm))

    def settle(self):
        """Nothing new is begun and nobody is killed; all that was begun is finished."""
        self.board.closing = self.linked.closing = True
        self._closing.set()
        for thread in self._threads:
            if thread.name in ("mail", "linked", "cable"):
                thread.join(120)
        self.linked.mend()
        self.havoc.resume()
        end = time.monotonic() + PATIENCE * SLACK
        while time.monotonic() < end:
            self.linked.look()
            self.house.read_lead()
            if not self.open():
                break
            self.havoc.bring_back()
            time.sleep(2)
        return self.open()

    def open(self):
        """What is still to come."""
        found = {
            "messages": [tuple(letter) for letter in self.house.post.missing()],
            "messages on two hosts": [tuple(letter) for letter in self.linked.post.missing()],
            "tasks": self.board.open,
            "tasks on two hosts": self.linked.open,
        }
        return {what: value for what, value in found.items() if value}

    def end(self):
        self._closing.set()
        self._over.set()
        for thread in self._threads:
            thread.join(30)

    def lasting(self):
        """The processes that nobody killed in the middle."""
        hosts = [f"{host} {role}" for host in MEMBERS for role in ("link", "supervisor", *(f"player {n}" for n in MEMBERS[host]))]
        return ["files supervisor", *(f"files player {name}" for name in STEADY), *hosts]

    def picture(self, out, minutes):
        since = self.meter.since
        kills = [(since(at), kind) for at, kind, _ in (*self.havoc.kills, *self.linked.kills)]
        cuts = [(since(begun), since(ended)) for begun, ended in self.linked.cuts]
        members = len(REAL) + len(PLAIN)
        title = f"{members} members on one host and {sum(map(len, MEMBERS.values()))} on two, {minutes} minutes"
        path = out / "soak.svg"
        path.write_text(chart.draw(self.meter.samples, kills, cuts, title))
        return path


def scenario(house, linked, report, minutes, out):
    before = verdicts.files_of(house)
    house.do("up", timeout=300)
    report.check("the team on two hosts is up", linked.up())
    soak = Soak(house, linked, minutes, out)
    report.check(f"all {len(REAL) + len(PLAIN)} members are up", eventually(soak.havoc.all_there, 60))
    soak.begin()
    try:
        soak.run()
        still = soak.settle()
        report.check("everything that was begun is finished", not still, still)
        verdicts.mail(report, soak)
        verdicts.tasks(report, soak)
        verdicts.load(report, soak)
        verdicts.part(report, soak)
    finally:
        soak.end()
        report.figure("samples and chart", soak.picture(out, minutes))
    verdicts.growth(report, soak)
    verdicts.litter(report, house, before)
    report.check("the proof itself has not stumbled", not soak.crashes, soak.crashes)


def keep(house, linked, folder, report):
    """What explains a failure, for the house will be gone."""
    kept = Path(os.environ["KEEP"])
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    places = {"files": house.root, "engine": folder} | {host.machine.name: host.root for host in linked.hosts}
    for name, place in places.items():
        shutil.copytree(place, kept / name, symlinks=True, ignore=too_much, dirs_exist_ok=True)
    report.figure("what explains it is kept in", kept)


def too_much(folder, names):
    """What is no file, and what would take hours to copy: two hours of an agent's own records."""
    odd = not_files(folder, names)
    return [*odd, *(name for name in names if name not in odd and big(Path(folder) / name))]


def big(path):
    return path.is_file() and path.stat().st_size > KEEP_UP_TO


def main():
    minutes = int(sys.argv[1])
    # Being ended must still take everything away, and so must a run that hangs: an exception unwinds.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGALRM, lambda *_: hangs())
    signal.alarm(int(minutes * 60 + (PATIENCE + 600) * SLACK))
    report = Report(f"soak, {minutes} minutes")
    out = Path(os.environ["OUT"])
    with ExitStack() as stack:
        machines = stack.enter_context(Machines(MEMBERS))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-proof-")))
        linked = stack.enter_context(Linked(machines, folder))
        house = stack.enter_context(Crowd())
        try:
            scenario(house, linked, report, minutes, out)
        except Exception:
            traceback.print_exc()
            report.check("the scenario runs to its end", False)
        finally:
            if report.failures:
                keep(house, linked, folder, report)
    report.end()
    sys.exit(1 if report.failures else 0)


def hangs():
    raise TimeoutError("the run does not end")


main()
