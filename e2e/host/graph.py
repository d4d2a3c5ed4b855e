"""A team of real agents, brought up from its file, works through twenty tasks that wait for each other. Every
task is done once, and never before what it waits for; every message is told its model once."""

import time

import board
from crew import CREW, crew, prove_team


def scenario(house, report, short):
    names = crew()
    house.write_file({name: (CREW[name], {}) for name in names}, board.graph())
    begun = time.monotonic()
    house.do("up")
    report.figure(f"{len(names)} members up after", f"{time.monotonic() - begun:.1f} s")
    foreman = board.Foreman(house, names)
    begun = time.monotonic()
    done = foreman.work_through(240)
    report.check("all is done", done, foreman.tasks() if not done else None)
    report.figure("that took", f"{time.monotonic() - begun:.1f} s, {foreman.reminders} reminders")
    found = board.deeds(house)
    board.check(report, found, names)
    idle = [name for name in names if not any(deed.owner == name for deed in found.values())]
    report.check("everybody did some of it", not idle, idle)
    print(board.chart(found, names), flush=True)
    for name in names:
        odd = house.odd_mail(name, foreman.sent[name])
        report.check(f"{name}: each of {len(foreman.sent[name])} messages was told its model once", not odd, odd)
    house.part(report, names)


prove_team(scenario)
