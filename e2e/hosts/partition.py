"""Unplugs the network cable of one host during the work, and plugs it in again."""

import time
from concurrent.futures import ThreadPoolExecutor

from lib.util import eventually


def cut_off(dispatcher, host, report, seconds):
    """Cuts this host off for some seconds. Both its members are working on a task then; they complete it and write to the
    other hosts meanwhile. The other hosts go on, and write to them."""
    native, codex = host.native, host.codex
    tasks = {member.name: dispatcher.first_task_of(member.name) for member in (native, codex)}
    # One unblocked task is done before the cut; the other hosts do the others during the cut.
    first, *others = dispatcher.unblocked()
    dispatcher.held = {*others}
    report.check("a first task is done", dispatcher.dispatch_until(lambda: first in dispatcher.done, 60))
    dispatcher.assign(native.name, tasks[native.name], work=seconds / 3)
    # Its tool fails while the NATS store is out of reach, so its model tries again later.
    dispatcher.assign(codex.name, tasks[codex.name], work=seconds / 3, again=3)

    def both_started():
        return all(dispatcher.tasks()[number]["status"] == "in_progress" for number in tasks.values())

    report.check("its members have started their tasks", eventually(both_started, 20))

    started = time.monotonic()
    end = started + seconds
    dispatcher.away, dispatcher.held = set(tasks), set()
    host.machine.unplug()
    with ThreadPoolExecutor(1) as pool:
        # In a thread, because the lead may have to wait until the other nodes have a quorum again.
        lead = pool.submit(lead_meanwhile, dispatcher, report, end)
        time.sleep(max(0, end - 1 - time.monotonic()))
        status = host.task_status(tasks[native.name])
        report.check("its Claude Code has completed its task in the host's files", status == "completed", status)
        waiting = [message for message in dispatcher.missing(pending=True) if tasks.keys() & {message.by, message.to}]
        inbound = [message for message in waiting if message.to in tasks]
        both_ways = inbound and len(inbound) < len(waiting)
        report.check("messages wait in both directions", both_ways, waiting)
        time.sleep(max(0, end - time.monotonic()))
        host.machine.plug()
        plugged = time.time()
        lead.result()
    dispatcher.all_back()
    check_recovery(dispatcher, waiting, tasks, plugged, report)


def lead_meanwhile(dispatcher, report, end):
    """The lead's work during the cut."""
    started, before = time.monotonic(), len(dispatcher.done)
    for name in dispatcher.away:
        dispatcher.send(name, "A message to a host that is cut off.")
    report.figure("two messages of the lead's, just after the cut, took", f"{time.monotonic() - started:.1f} s")
    dispatcher.poll()
    for name in dispatcher.members:
        dispatcher.send(name, "A message to every member.")
    dispatcher.dispatch_until(lambda: time.monotonic() > end, end - started)
    report.figure("tasks completed on other hosts meanwhile", len(dispatcher.done) - before)


def check_recovery(dispatcher, waiting, tasks, plugged, report):
    """Measures how long it takes until all waiting messages have arrived."""
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
    report.check("the lead did not see their completed tasks during the cut", not early, early)
    lost = [message for message in waiting if not dispatcher.has_arrived(message)]
    report.check(f"all of {len(waiting)} waiting messages have arrived", not lost, lost)
    report.check("the lead sees the tasks that they completed", arrived or len(seen) == len(tasks), seen)
    delays = {message: dispatcher.arrived_at(message) - plugged for message in waiting if message not in lost}
    directions = {
        "inbound": [took for message, took in delays.items() if message.to in tasks],
        "outbound": [took for message, took in delays.items() if message.to not in tasks],
    }
    for direction, took in directions.items():
        if took:
            line = f"first message {min(took):.1f} s, last {max(took):.1f} s, of {len(took)}"
            report.figure(f"plugged in: {direction}", line)
    for name, took in seen.items():
        report.figure(f"plugged in: the lead sees the task of {name} completed", f"{took:.1f} s")
