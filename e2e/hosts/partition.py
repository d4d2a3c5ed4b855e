"""Unplugs the network cable of one host while its members work, and plugs the cable in again."""

import time
from concurrent.futures import ThreadPoolExecutor

from lib.util import eventually


def cut_off(dispatcher, host, report, seconds):
    """Cuts this host off for some seconds while both its members work on a task. Meanwhile, its members complete their
    tasks, the members on the other hosts keep working, and both sides write to each other."""
    native, codex = host.native, host.codex
    tasks = {member.name: dispatcher.first_task_of(member.name) for member in (native, codex)}
    # Members complete one unblocked task before the cut. The other hosts' members do the other tasks during the cut.
    first, *others = dispatcher.unblocked()
    dispatcher.held = {*others}
    report.check("before the cut: one task is done", dispatcher.dispatch_until(lambda: first in dispatcher.done, 60))
    dispatcher.assign(native.name, tasks[native.name], work=seconds / 3)
    # Codex's tool fails while the NATS store is unreachable, so Codex's model tries again later.
    dispatcher.assign(codex.name, tasks[codex.name], work=seconds / 3, again=3)

    def both_started():
        return all(dispatcher.tasks()[number]["status"] == "in_progress" for number in tasks.values())

    report.check("before the cut: both members on the host have started their tasks", eventually(both_started, 20))

    started = time.monotonic()
    end = started + seconds
    dispatcher.away, dispatcher.held = set(tasks), set()
    host.machine.unplug()
    with ThreadPoolExecutor(1) as pool:
        # The lead runs in a thread, because the lead may have to wait until the remaining NATS nodes have a quorum
        # again.
        lead = pool.submit(lead_meanwhile, dispatcher, report, end)
        time.sleep(max(0, end - 1 - time.monotonic()))
        status = host.task_status(tasks[native.name])
        report.check("during the cut: Claude Code has completed its task in files", status == "completed", status)
        waiting = [message for message in dispatcher.missing(pending=True) if tasks.keys() & {message.by, message.to}]
        inbound = [message for message in waiting if message.to in tasks]
        both_ways = inbound and len(inbound) < len(waiting)
        report.check("during the cut: messages wait in both directions", both_ways, waiting)
        time.sleep(max(0, end - time.monotonic()))
        host.machine.plug()
        plugged = time.time()
        lead.result()
    dispatcher.all_back()
    check_recovery(dispatcher, waiting, tasks, plugged, report)


def lead_meanwhile(dispatcher, report, end):
    """Sends messages and assigns tasks as the lead until the cut ends."""
    started, before = time.monotonic(), len(dispatcher.done)
    for name in dispatcher.away:
        dispatcher.send(name, "A message to a host that is cut off.")
    report.figure("sending two messages just after the cable was unplugged took", f"{time.monotonic() - started:.1f} s")
    dispatcher.poll()
    for name in dispatcher.members:
        dispatcher.send(name, "A message to every member.")
    dispatcher.dispatch_until(lambda: time.monotonic() > end, end - started)
    report.figure("tasks completed on other hosts during the cut", len(dispatcher.done) - before)


def check_recovery(dispatcher, waiting, tasks, plugged, report):
    """Checks that all waiting messages arrive after the cable was plugged in, and measures how long that takes."""
    seen = {}

    def all_arrived():
        for name, number in tasks.items():
            if number in dispatcher.done:
                seen.setdefault(name, time.time() - plugged)
        return len(seen) == len(tasks) and all(map(dispatcher.has_arrived, waiting))

    dispatcher.dispatch_until(all_arrived, 90)
    arrived = eventually(all_arrived, 30)
    ended = {name: history.ended for name, history in dispatcher.histories(tasks).items()}
    early = {name: at - plugged for name, at in ended.items() if at and at < plugged}
    report.check("the lead did not see the cut-off members' completed tasks during the cut", not early, early)
    lost = [message for message in waiting if not dispatcher.has_arrived(message)]
    report.check(f"all of {len(waiting)} waiting messages have arrived", not lost, lost)
    report.check("the lead sees the tasks that the cut-off members completed", arrived or len(seen) == len(tasks), seen)
    delays = {message: dispatcher.arrived_at(message) - plugged for message in waiting if message not in lost}
    directions = {
        "inbound": [took for message, took in delays.items() if message.to in tasks],
        "outbound": [took for message, took in delays.items() if message.to not in tasks],
    }
    for direction, took in directions.items():
        if took:
            line = f"the first of {len(took)} arrived after {min(took):.1f} s, the last after {max(took):.1f} s"
            report.figure(f"after plugging in: {direction} messages", line)
    for name, took in seen.items():
        report.figure(f"after plugging in: the lead sees that {name} completed its task, after", f"{took:.1f} s")
