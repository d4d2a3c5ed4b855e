"""What keeps the ten busy: tasks that are made, taken and completed all the time, and mail in all directions."""

import itertools
import random
import time
from typing import NamedTuple

from crowd import PLAIN, REAL, SLOW, is_native
from house import SLACK
from post import LEAD

# Seconds between two jobs of a real agent, and between two tasks of one without a model.
REST, PLAIN_REST = (6, 12), (4, 9)
# How long a task takes, in seconds.
TAKES = (0.2, 1.5)
# After this time without a change a member is told again what it is at, as a lead would ask.
REMIND = 75
# Tasks that wait for somebody, and completed ones that are left on the board.
OPEN, KEPT = 6, 40
# Seconds between two messages by command, and between two looks at the lead's mail.
MAIL, DESK = (0.15, 0.6), 4
BOARD = 0.6


class Job(NamedTuple):
    task: str
    words: str
    given: float


class Board:
    """Makes tasks, has real agents do them by script, does those of the others by command."""

    def __init__(self, house):
        self._house = house
        self._dice = random.Random(11)
        self._numbers = itertools.count(1)
        self._jobs = dict.fromkeys(REAL)
        self._free_at = dict.fromkeys((*REAL, *PLAIN), 0.0)
        self._taken_at = {}
        # No more tasks are made, and no more given out but those that are there.
        self.closing = False
        self.completed = set()
        self.reminders = 0
        self.open = OPEN

    def look(self):
        found = self._house.command("task", "list")
        if found is None:
            return
        tasks = {task["id"]: task for task in found}
        done = [number for number, task in tasks.items() if task["status"] == "completed"]
        self.completed.update(done)
        given = {job.task for job in self._jobs.values() if job}
        pending = [n for n, task in tasks.items() if task["status"] == "pending" and not task.get("owner") and n not in given]
        self.open = len(tasks) - len(done)
        now = time.monotonic()
        for name in REAL:
            self._attend(name, tasks, pending, now)
        for name in PLAIN:
            self._do(name, tasks, pending, now)
        if not self.closing and len(pending) < OPEN:
            self._house.command("task", "add", f"Work {next(self._numbers)}", by=self._dice.choice((LEAD, *PLAIN)))
        for number in sorted(done, key=int)[:-KEPT]:
            self._house.command("task", "delete", number)

    def _attend(self, name, tasks, pending, now):
        """Gives a real agent its next job, or reminds it of the one it has."""
        job = self._jobs[name]
        if job is None:
            # What somebody was killed over while it was given out.
            left = [n for n, task in tasks.items() if task.get("owner") == name and task["status"] == "in_progress"]
            if left:
                self._jobs[name] = Job(left[0], "", now)
            elif pending and now > self._free_at[name]:
                self._give(name, pending.pop(0))
            return
        status = tasks[job.task]["status"] if job.task in tasks else "completed"
        late = now - job.given
        if status == "completed":
            # Its turn may have ended with other words, where a kill cut it off.
            if job.words in self._house.ears[name].said or late > REMIND:
                self._jobs[name] = None
                self._free_at[name] = now + self._dice.uniform(*REST) * SLOW.get(name, 1)
        elif late > (REMIND / 2 if self.closing else REMIND) * SLACK:
            self.reminders += 1
            self._tell(name, job.task, self._house.finish(name, job.task))

    def _give(self, name, task):
        if is_native(name):
            # Claude Code's own tool takes even a task that is completed: told twice, it would do it twice.
            given = ["--owner", name, "--status", "in_progress"]
            if self._house.command("task", "update", task, *given) is None:
                return
        others = [other for other in (*REAL, *PLAIN) if other != name and self._has_time(other)]
        readers = self._dice.sample([LEAD, *others], 3)
        mark, steps = self._house.job(name, task, readers, round(self._dice.uniform(*TAKES), 1))
        self._tell(name, task, steps, mark)

    def _has_time(self, name):
        return self._dice.random() < 1 / SLOW.get(name, 1)

    def _tell(self, name, task, steps, mark=None):
        words = f"That was {next(self._numbers)}."
        self._house.instruct(name, f"Do task {task}.", [*steps, {"say": words}], mark)
        # Whether or not that was acknowledged it may have come; if it has not, there is the reminder.
        self._jobs[name] = Job(task, words, time.monotonic())

    def _do(self, name, tasks, pending, now):
        """One without a model takes a task and completes it, by command."""
        mine = [number for number, task in tasks.items() if task.get("owner") == name and task["status"] == "in_progress"]
        for number in mine:
            if now > self._taken_at.setdefault(number, now) + 1:
                self._house.command("task", "done", number, by=name)
        if not mine and pending and now > self._free_at[name]:
            self._house.command("task", "claim", pending.pop(0), by=name)
            self._free_at[name] = now + self._dice.uniform(*PLAIN_REST)

    def turn(self):
        begun = time.monotonic()
        self.look()
        return max(0.1, BOARD - (time.monotonic() - begun))


class Mail:
    """The lead and those without a model write to everybody; the lead reads what comes."""

    def __init__(self, house):
        self._house = house
        self._dice = random.Random(12)
        self._desk_at = 0.0

    def turn(self):
        by = self._dice.choice((LEAD, *PLAIN))
        # A message to a real agent is a request to its model, which costs a hundred times as much.
        kinds = [(PLAIN, 70), (tuple(REAL), 18), ((LEAD,), 12)]
        group = self._dice.choices([group for group, _ in kinds], [share for _, share in kinds])[0]
        if others := [name for name in group if name != by]:
            shares = [1 / SLOW.get(name, 1) for name in others]
            self._house.write(by, self._dice.choices(others, shares)[0])
        if time.monotonic() > self._desk_at:
            self._house.read_lead()
            self._desk_at = time.monotonic() + DESK
        return self._dice.uniform(*MAIL)
