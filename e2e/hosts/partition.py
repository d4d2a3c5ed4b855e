"""A host whose cable is taken out of the switch in the middle of the work, and put back."""

import time
from concurrent.futures import ThreadPoolExecutor

from house import eventually


def cut_off(foreman, home, report, seconds):
    """Cuts this host off for so long. Both its members have a task in hand when that happens, and complete it
    and write to the other hosts meanwhile; the other hosts go on, and write to them."""
    native, codex = home.native, home.codex
    kept = {member.name: foreman.first_of(member.name) for member in (native, codex)}
    # Of the tasks that wait for none, one is done before, and the other hosts have the rest to do meanwhile.
    first, *rest = foreman.roots()
    foreman.held = {*rest}
    report.check("the work has begun", foreman.work_until(lambda: first in foreman.done, 60))
    foreman.give(native.name, kept[native.name], work=seconds / 3)
    # What its tool cannot do while the engine is out of reach, its model tries once more when it is back.
    foreman.give(codex.name, kept[codex.name], work=seconds / 3, again=3)
    both = lambda: all(foreman.tasks()[number]["status"] == "in_progress" for number in kept.values())  # noqa: E731
    report.check("its members are at work", eventually(both, 20))

    begun = time.monotonic()
    end = begun + seconds
    foreman.away, foreman.held = set(kept), set()
    home.machine.unplug()
    with ThreadPoolExecutor(1) as lead:
        # The lead may have to wait for the others to agree without the host; the cut does not wait for the lead.
        goes_on = lead.submit(go_on, foreman, report, end)
        time.sleep(max(0, end - 1 - time.monotonic()))
        there = home.status_here(kept[native.name])
        report.check("its Claude Code has completed its task in the host's files", there == "completed", there)
        waiting = [letter for letter in foreman.missing(begun=True) if kept.keys() & {letter.by, letter.to}]
        inwards = [letter for letter in waiting if letter.to in kept]
        both_ways = inwards and len(inwards) < len(waiting)
        report.check("messages wait to get to it, and to get out of it", both_ways, waiting)
        time.sleep(max(0, end - time.monotonic()))
        home.machine.plug()
        healed = time.time()
        goes_on.result()
    foreman.back()
    heal(foreman, waiting, kept, healed, report)


def go_on(foreman, report, end):
    """What the lead does meanwhile."""
    begun, before = time.monotonic(), len(foreman.done)
    for name in foreman.away:
        foreman.write(name, "A word to whoever is away.")
    report.figure("two messages of the lead's, just after the cut, took", f"{time.monotonic() - begun:.1f} s")
    foreman.look()
    for name in foreman.members:
        foreman.write(name, "A word to everybody.")
    foreman.work_until(lambda: time.monotonic() > end, end - begun)
    report.figure("tasks completed elsewhere meanwhile", len(foreman.done) - before)


def heal(foreman, waiting, kept, healed, report):
    """How long until all that waited has come."""
    known = {}

    def all_come():
        for name, number in kept.items():
            if number in foreman.done:
                known.setdefault(name, time.time() - healed)
        return len(known) == len(kept) and all(map(foreman.has_come, waiting))

    foreman.work_until(all_come, 90)
    come = eventually(all_come, 30)
    early = {name: deed.ended - healed for name, deed in foreman.deeds(kept).items() if (deed.ended or healed) < healed}
    report.check("what its members completed was known to nobody before", not early, early)
    lost = [letter for letter in waiting if not foreman.has_come(letter)]
    report.check(f"all of {len(waiting)} messages that waited have come", not lost, lost)
    report.check("the tasks completed meanwhile are known", come or len(known) == len(kept), known)
    came = {letter: foreman.come_at(letter) - healed for letter in waiting if letter not in lost}
    ways = {
        "in": [took for letter, took in came.items() if letter.to in kept],
        "out": [took for letter, took in came.items() if letter.to not in kept],
    }
    for way, took in ways.items():
        if took:
            words = f"first message {min(took):.1f} s, last {max(took):.1f} s, of {len(took)}"
            report.figure(f"healed: the way {way}", words)
    for name, took in known.items():
        report.figure(f"healed: the lead sees the task of {name} completed", f"{took:.1f} s")
