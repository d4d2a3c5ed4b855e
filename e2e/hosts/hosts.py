"""One team on three hosts: on each a real Claude Code in that host's files, which `brigade link` keeps in step
with the engine, and a real Codex on the engine itself. They work through a board of tasks that wait for each
other while one host is cut off for a time."""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import board
import once
from cluster import Cluster
from cut import cut_off
from foreman import Foreman, script
from homes import TEAM, Home
from house import eventually
from machines import Machines
from report import Report
from teammate import not_files


class Size(NamedTuple):
    """How much is done: tasks, seconds cut off, messages by which a wake-up is measured."""

    tasks: int
    cut: float
    pings: int


LONG, SHORT = Size(20, 30, 40), Size(8, 10, 12)
# The host with the Claude Code of the older generation is the one that is cut off.
VERSIONS = {"host-a": "new", "host-b": "old", "host-c": "new"}


def scenario(homes, report, size):
    a, b, _ = homes
    settle(homes, report)
    foreman = Foreman(homes, size.tasks)
    report.check("the lead's words come to everybody", foreman.greet())
    wakes(foreman, b.codex, report, size.pings)
    foreman.fill()
    mirrored = lambda: all(foreman.owners == home.owners() for home in homes)  # noqa: E731
    same = eventually(mirrored, 20)
    report.check("the board is in the files of every host", same, [home.owners() for home in homes])
    begun = time.monotonic()
    cut_off(foreman, b, report, size.cut)
    done = foreman.work_until(lambda: False, 240)
    report.check("all is done", done, None if done else foreman.tasks())
    report.figure("the board took", f"{time.monotonic() - begun:.1f} s, {foreman.reminders} reminders")
    found = board.deeds(a)
    board.check(report, found, foreman.members, size.tasks)
    print(board.chart(found, foreman.members), flush=True)
    report.check("every message has come", foreman.all_come(30), foreman.missing())
    once.tasks(foreman, found, report)
    once.letters(foreman, report)
    once.signed(homes, report)
    once.mailboxes(foreman, homes, report)
    part(homes, report)


def settle(homes, report):
    """The lead makes the team on the first host; the others find it in the engine."""
    begun = time.monotonic()
    homes[0].do("team", "create", TEAM, store=True)
    for home in homes:
        home.start_link()
    mirror = lambda: all(home.config.exists() for home in homes)  # noqa: E731
    report.check("every host has the team in its files", eventually(mirror, 20))
    for home in homes:
        home.do("up", store=False)
        home.do("spawn", home.codex.name, "--agent", "codex", store=True)
    everybody = {"team-lead"} | {member.name for home in homes for member in (home.native, home.codex)}
    rosters = lambda: [{*home.members()} for home in homes] + [homes[0].on_engine()]  # noqa: E731
    same = eventually(lambda: all(names == everybody for names in rosters()), 20)
    report.check("all seven are on every roster", same, rosters())
    report.figure("three hosts, six members up after", f"{time.monotonic() - begun:.1f} s")


def wakes(foreman, member, report, count):
    """How long from the acknowledgement of a message on the first host until it is in a request to the model
    of a member of another."""
    took = []
    for number in range(count + 1):
        mark, acknowledged = foreman.write(member.name, f"ping {script({'say': f'pong {number}'})}")
        at = eventually(lambda: member.heard_at(mark), 30)
        if at is None:
            report.check("a message comes to the model on another host", False, mark)
            return
        # The first one has the agent start its session.
        took += [(at - acknowledged) * 1e3] if number else []
        eventually(lambda: member.has_said(f"pong {number}"), 10)
        time.sleep(random.uniform(0.2, 0.4))
    took.sort()
    half, most = took[len(took) // 2], took[len(took) * 95 // 100]
    words = f"p50 {half:.1f} ms, p95 {most:.1f} ms, most {took[-1]:.1f} ms, of {len(took)}"
    report.figure(f"sent on host-a, in a request of {member.name} on {member.home.machine.name}", words)


def part(homes, report):
    """Everybody is asked to stop, and agrees; then nothing is left on any host."""
    begun = time.monotonic()
    leaving = {
        member.name: home.stop(member, script(*member.goodbye()))
        for home in homes
        for member in (home.native, home.codex)
    }
    ended = {name: wait() for name, wait in leaving.items()}
    report.check("everybody is asked to stop, and agrees", set(ended.values()) == {"agreed"}, ended)
    lead = lambda: homes[0].on_engine() == {"team-lead"}  # noqa: E731
    report.check("only the lead is on the roster", eventually(lead, 10), homes[0].on_engine())
    for home in homes:
        home.end_link()
    for home in homes:
        home.do("down", "--now", store=False)
    homes[0].do("down", "--now", store=True)
    left = lambda: {home.machine.name: at for home in homes if (at := home.left())}  # noqa: E731
    eventually(lambda: not left(), 10)
    report.check("no process is left", not left(), left())
    report.figure("from the first asked to the end", f"{time.monotonic() - begun:.1f} s")


def keep(folder, homes, report):
    """What explains a failure, for the hosts will be gone."""
    kept = Path(os.environ["KEEP"])
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(folder, kept / "engine", ignore=lambda *_: ["store"])
    for home in homes:
        shutil.copytree(home.root, kept / home.machine.name, symlinks=True, ignore=not_files)
    report.figure("what explains it is kept in", kept)


def main():
    size = SHORT if "--short" in sys.argv[1:] else LONG
    # Being ended must still take the hosts away: a SystemExit unwinds, a bare signal would not.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report(f"three hosts, {size.tasks} tasks, one host cut off for {size.cut} s")
    with ExitStack() as stack:
        machines = stack.enter_context(Machines(VERSIONS))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hosts-proof-")))
        cluster = stack.enter_context(Cluster(machines, folder))
        homes = [
            stack.enter_context(Home(machine, VERSIONS[machine.name], cluster.store(machine)))
            for machine in machines
        ]
        report.check("the nodes agree on a leader", cluster.agrees())
        try:
            scenario(homes, report, size)
        except Exception:
            traceback.print_exc()
            report.check("the scenario runs to its end", False)
        finally:
            if report.failures:
                keep(folder, homes, report)
    report.end()
    sys.exit(1 if report.failures else 0)


main()
