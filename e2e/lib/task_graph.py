"""A board of twenty tasks that wait for each other, somebody who hands them out, and what the journal says of
how they were done."""

import random
import time
from datetime import datetime

from crew import CREW, script
from house import SLACK, eventually

TASKS = 20
# How long a task takes its model, in seconds.
WORK = (0.2, 1.2)
# After this time without a change a member is told again what it is at, as a lead would ask.
REMIND = 45


def graph(count=TASKS):
    """So many tasks: five that wait for none, and the others for up to three of the nine before them; the same
    in every run."""
    dice = random.Random(20)
    names = [f"t{number:02}" for number in range(1, count + 1)]
    after = {}
    for place, name in enumerate(names):
        near = names[max(0, place - 9) : place]
        after[name] = [] if place < 5 else sorted(dice.sample(near, dice.randint(1, 3)))
    return after


class Foreman:
    """Writes to whoever has nothing to do which task is ready; knows what it wrote."""

    def __init__(self, house, crew, work=WORK):
        self._house = house
        self._work = work
        self._dice = random.Random(7)
        # By member: the task it was last given, and when.
        self._at = dict.fromkeys(crew)
        self.sent = {name: [] for name in crew}
        self.reminders = 0
        # How many tasks were done at the last look.
        self.done = 0

    def tasks(self):
        return {task["id"]: task for task in self._house.brigade("task", "list")}

    def look(self):
        """Hands out what is ready; whether everything is done."""
        tasks = self.tasks()
        done = {number for number, task in tasks.items() if task["status"] == "completed"}
        self.done = len(done)
        given = {at[0] for at in self._at.values() if at}
        ready = [
            number
            for number, task in sorted(tasks.items(), key=lambda pair: int(pair[0]))
            if task["status"] == "pending" and number not in given and set(task["blockedBy"]) <= done
        ]
        # Whoever has had least comes first.
        for name in sorted(self._at, key=lambda name: len(self.sent[name])):
            at = self._at[name]
            if at and at[0] not in done:
                if time.monotonic() - at[1] > REMIND * SLACK:
                    self.reminders += 1
                    self._give(name, at[0])
            elif ready:
                self._give(name, ready.pop(0))
        return len(done) == TASKS

    def _give(self, name, task):
        words = f"«{name} {len(self.sent[name])}»"
        seconds = round(self._dice.uniform(*self._work), 1)
        steps = CREW[name].work(name, task, seconds)
        self._house.brigade("send", name, f"{words} Do task {task}. {script(*steps)}")
        # Only what is acknowledged is promised to come.
        self.sent[name].append(words)
        self._at[name] = (task, time.monotonic())

    def work_through(self, patience):
        """Hands out until everything is done; whether it is."""
        return eventually(self.look, patience)


class Deed:
    """What the journal says of one task."""

    def __init__(self, key, after):
        self.key, self.after = key, after
        self.steps, self.owner, self.begun, self.ended = [], None, None, None


def deeds(house):
    """From the journal: each task by its number, with what became of it, in order."""
    found = {}
    for record in house.log():
        if not (event := record["event"].get("task")):
            continue
        task, at = event["task"], datetime.fromisoformat(record["at"]).timestamp()
        deed = found.setdefault(event["id"], Deed(task["subject"], task["blockedBy"]))
        if not deed.steps or deed.steps[-1] != task["status"]:
            deed.steps.append(task["status"])
            if task["status"] == "in_progress":
                deed.owner, deed.begun = task.get("owner"), at
            elif task["status"] == "completed":
                deed.ended = at
    return found


def check(report, found, crew, count=TASKS):
    """What must hold of every task, whoever did it."""
    report.check(f"all {count} tasks are on the board", len(found) == count, len(found))
    wanted = ["pending", "in_progress", "completed"]
    odd = {number: deed.steps for number, deed in found.items() if deed.steps != wanted}
    report.check("each was taken once and completed once", not odd, odd)
    strange = {number: deed.owner for number, deed in found.items() if deed.owner not in crew}
    report.check("each by a member", not strange, strange)
    early = [
        (number, before)
        for number, deed in found.items()
        for before in map(int, deed.after)
        if deed.begun and not (found[before].ended and found[before].ended <= deed.begun)
    ]
    report.check("none was begun before what it waits for was completed", not early, early)


def chart(found, crew, width=96):
    """Who did which task when: a line for each member, from the first beginning to the last end."""
    done = [deed for deed in found.values() if deed.begun and deed.ended]
    if not done:
        return "nothing was done"
    start, end = min(deed.begun for deed in done), max(deed.ended for deed in done)
    scale = width / max(end - start, 0.001)
    lines = []
    for name in crew:
        line = [" "] * (width + 1)
        for number, deed in found.items():
            if deed.owner != name or not deed.begun or not deed.ended:
                continue
            first = int((deed.begun - start) * scale)
            last = max(first + 1, int((deed.ended - start) * scale))
            label = str(number)
            line[first : last + 1] = "▕" + "━" * (last - first - 1) + "▏"
            middle = max(first + 1, (first + last + 1 - len(label)) // 2)
            line[middle : middle + len(label)] = label
        lines.append(f"      {name:>6} {''.join(line).rstrip()}")
    seconds = end - start
    ruler = "".join(f"{mark * seconds / 8:<{width // 8}.1f}" for mark in range(9))
    return "\n".join([*lines, f"      {'s':>6} {ruler.rstrip()}"])
