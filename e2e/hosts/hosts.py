"""One team on three hosts. On each host a real Claude Code works on that host's files, which `brigade link`
synchronizes with the NATS store, and a real Codex works on the NATS store itself. The agents do tasks that block
each other while one host is cut off for some time."""

import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import delivery
from dispatcher import HostsDispatcher
from host_env import TEAM, HostEnv
from partition import cut_off

from lib.env import copy_kept, exit_on_sigterm
from lib.nats_cluster import NatsCluster
from lib.network import Machines
from lib.report import Report
from lib.scripted_model import say, script
from lib.task_graph import check_histories, task_histories
from lib.util import eventually, percentiles


class Size(NamedTuple):
    """The number of tasks, how many seconds one host is cut off, and the number of messages whose latency is
    measured."""

    tasks: int
    cut: float
    pings: int


LONG, SHORT = Size(20, 30, 40), Size(8, 10, 12)
# The Claude Code version on each host. The host with the older version, host-b, is the one that is cut off.
VERSIONS = {"host-a": "new", "host-b": "old", "host-c": "new"}


def scenario(hosts, report, size):
    a, b, _ = hosts
    start_team(hosts, report)
    dispatcher = HostsDispatcher(hosts, size.tasks)
    report.check("the lead's messages reach every member", dispatcher.greet())
    measure_latency(dispatcher, b.codex, report, size.pings)
    dispatcher.fill()
    same = eventually(lambda: all(dispatcher.owners == host.owners() for host in hosts), 20)
    report.check("the board is in the files of every host", same, [host.owners() for host in hosts])
    started = time.monotonic()
    cut_off(dispatcher, b, report, size.cut)
    done = dispatcher.dispatch_until(lambda: False, 240)
    report.check("all tasks are done", done, None if done else dispatcher.tasks())
    report.figure("the tasks took", f"{time.monotonic() - started:.1f} s, {dispatcher.reminders} reminders")
    histories = task_histories(a)
    linked = [name for name in dispatcher.members if name.startswith("nat-")]
    check_histories(report, histories, dispatcher.members, size.tasks, linked=linked)
    report.check("every message has arrived", dispatcher.all_arrived(30), dispatcher.missing())
    delivery.check_tasks(dispatcher, histories, report)
    delivery.check_messages(dispatcher, report)
    delivery.check_signatures(hosts, report)
    delivery.check_mailboxes(dispatcher, hosts, report)
    shut_down(hosts, report)


def start_team(hosts, report):
    """Creates the team on the first host, and starts the members on all hosts. They find the team in the NATS
    store."""
    started = time.monotonic()
    hosts[0].run_ok("team", "create", TEAM, store=True)
    for host in hosts:
        host.start_link()
    report.check("every host has the team in its files", eventually(lambda: all(host.config.exists() for host in hosts), 20))
    for host in hosts:
        host.run_ok("up", store=False)
        host.run_ok("spawn", host.codex.name, "--agent", "codex", store=True)
    expected = {"team-lead"} | {member.name for host in hosts for member in (host.native, host.codex)}

    def rosters():
        return [{*host.members()} for host in hosts] + [hosts[0].roster()]

    same = eventually(lambda: all(names == expected for names in rosters()), 20)
    report.check("all seven members are on every roster", same, rosters())
    links = [link for host in hosts for link in host.run_json("link", "--list", store=False)]
    connected = len(links) == len(hosts) and all(link["state"] == "connected" for link in links)
    report.check("the link of every host reports that it is connected", connected, links)
    report.figure("six members on three hosts are up after", f"{time.monotonic() - started:.1f} s")


def measure_latency(dispatcher, member, report, count):
    """Measures the time from the acknowledgement of a message on the first host until a model on another host
    receives the message."""
    took = []
    for number in range(count + 1):
        mark, acknowledged = dispatcher.send(member.name, f"ping {script(say(f'pong {number}'))}")
        at = eventually(lambda: member.turn_started_at(mark), 30)
        if at is None:
            report.check("a message reaches the model on another host", False, mark)
            return
        # Do not count the first message, because it also starts the agent's session.
        took += [(at - acknowledged) * 1e3] if number else []
        eventually(lambda: member.has_said(f"pong {number}"), 10)
        time.sleep(random.uniform(0.2, 0.4))
    _, line = percentiles(took)
    report.figure(f"latency from host-a to the model of {member.name} on {member.host.machine.name}", line)


def shut_down(hosts, report):
    """Asks every member to stop, and checks that no process is left on any host."""
    started = time.monotonic()
    stopping = {
        member.name: host.stop(member, script(*member.shutdown_steps()))
        for host in hosts
        for member in (host.native, host.codex)
    }
    ended = {name: wait() for name, wait in stopping.items()}
    report.check("every member agrees to stop", set(ended.values()) == {"agreed"}, ended)
    alone = eventually(lambda: hosts[0].roster() == {"team-lead"}, 10)
    report.check("only the lead is on the roster", alone, hosts[0].roster())
    for host in hosts:
        host.end_link()
    for host in hosts:
        host.run_ok("down", "--now", store=False)
    hosts[0].run_ok("down", "--now", store=True)

    def left():
        return {host.machine.name: found for host in hosts if (found := host.left())}

    eventually(lambda: not left(), 10)
    report.check("no process is left", not left(), left())
    report.figure("from the first shutdown request until no process is left", f"{time.monotonic() - started:.1f} s")


def main():
    size = SHORT if "--short" in sys.argv[1:] else LONG
    exit_on_sigterm()
    report = Report(f"three hosts, {size.tasks} tasks, one host cut off for {size.cut} s")
    with ExitStack() as stack:
        machines = stack.enter_context(Machines(VERSIONS))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hosts-e2e-")))
        cluster = stack.enter_context(NatsCluster(machines, folder))
        hosts = [
            stack.enter_context(HostEnv(machine, VERSIONS[machine.name], cluster.store(machine)))
            for machine in machines
        ]
        report.check("the NATS nodes have a leader", cluster.is_ready())
        folders = {"nats": folder} | {host.machine.name: host.root for host in hosts}
        with report.scenario(lambda: copy_kept(report, folders, ignore=lambda path: path.name == "store")):
            scenario(hosts, report, size)
    sys.exit(report.end())


main()
