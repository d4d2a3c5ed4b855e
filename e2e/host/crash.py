"""kill -9 of the supervising process, and then of every process of a team, while it works through twenty tasks;
then `brigade resume`. In the end every task was done once and never too early, every message was told its
model once, and `brigade down` leaves no process."""

import random
import time

import board
from crew import CREW, crew, prove_team
from house import eventually
from teammate import at_home

# How many teams, and how often each is killed.
LONG, SHORT = (5, 4), (1, 3)
# Gemini CLI loses a session that it resumes in the minute it began, so it may have to wait for the next one.
PATIENCE = 150


def scenario(house, report, short):
    teams, kills = SHORT if short else LONG
    names = crew()
    for number in range(teams):
        if teams > 1:
            report.figure("team", f"{number + 1} of {teams}")
        house.team = f"proof-{number}"
        one_team(house, report, names, kills)
        if report.failures:
            break


def one_team(house, report, names, kills):
    house.write_file({name: (CREW[name], {}) for name in names}, board.graph())
    house.do("up")
    foreman = board.Foreman(house, names)
    begun = time.monotonic()
    for number in range(1, kills + 1):
        # Evenly over the work, and then at any moment of it.
        far = board.TASKS * number // (kills + 1)
        eventually(lambda: foreman.look() or foreman.done >= far, PATIENCE)
        time.sleep(random.uniform(0, 1.5))
        one_round(house, report, f"at {foreman.done} tasks")
    done = foreman.work_through(PATIENCE * 2)
    report.check("all is done", done, foreman.tasks() if not done else None)
    report.figure("that took", f"{time.monotonic() - begun:.1f} s, {foreman.reminders} reminders")
    found = board.deeds(house)
    board.check(report, found, names)
    print(board.chart(found, names), flush=True)
    for name in names:
        sent, odd = foreman.sent[name], house.odd_mail(name, foreman.sent[name])
        if CREW[name].place == "native":
            # A Claude Code that dies with the lock of an inbox may as well be asleep; what is taken out of that
            # inbox is then put back (docs/store.md), once.
            twice = [words for words, times in odd.items() if times == 2]
            report.figure(f"{name}: told once more after a lock was taken from the dead", len(twice))
            odd = {words: times for words, times in odd.items() if words not in twice}
        report.check(f"{name}: each of {len(sent)} messages was told its model once", not odd, odd)
    house.do("down", "--now")
    report.check("no process is left", not house.nobody(), house.nobody(0))


def one_round(house, report, when):
    before = players(house)
    supervisor = next(process for process in at_home(house.home) if "supervise" in process.words)
    supervisor.kill()
    eventually(lambda: not supervisor.is_alive(), 5)
    time.sleep(random.choice([0, random.uniform(0, 1)]))
    house.do("resume")
    after = players(house)
    report.check(f"{when}: the members go on without a supervisor, and the next finds them", before == after, (before, after))
    time.sleep(random.choice([0, random.uniform(0, 2)]))
    killed = 0
    while left := at_home(house.home):
        killed += len(left)
        for process in random.sample(left, len(left)):
            process.kill()
    begun = time.monotonic()
    house.do("resume", timeout=300)
    took = time.monotonic() - begun
    report.figure(f"{when}", f"all {killed} processes killed, everybody there again after {took:.1f} s")


def players(house):
    """Who plays whom."""
    found = [process for process in at_home(house.home) if "play" in process.words and "--as" in process.words]
    return {process.words[process.words.index("--as") + 1]: process.pid for process in found}


prove_team(scenario)
