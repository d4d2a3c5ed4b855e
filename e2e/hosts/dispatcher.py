"""Whoever leads the team, from one host: it hands out tasks and has members write to each other, and knows
every message that it wrote or had written."""

import itertools
import json
import random
import time
from typing import NamedTuple

import board
from homes import marks
from house import SLACK, eventually

# How long a task takes its model, in seconds.
WORK = (0.2, 1.0)
# Whoever has ended its turn and not its task is told again after this time, as a lead would ask.
REMIND = 20


class Letter(NamedTuple):
    """A message of which it is to be shown that it comes once. `by` is None for the lead's own."""

    mark: str
    by: str | None
    to: str


class Job(NamedTuple):
    """What a member was last given: the words with which its model ends it, and its task."""

    words: str
    task: str
    given: float


class Foreman:
    def __init__(self, homes, count):
        # It sits on the first host.
        self._homes, self._home = homes, homes[0]
        # In the order in which tasks are given to them: all natives, then all others.
        members = [home.native for home in homes] + [home.codex for home in homes]
        self.members = {member.name: member for member in members}
        self._count = count
        self._dice = random.Random(7)
        self._numbers = itertools.count(1)
        self._jobs = {}
        self._given = set()
        self._peers = {member.name: self._peers_of(member) for member in members}
        self.letters = []
        self._acknowledged = set()
        self.reminders = 0
        # Tasks that are not handed out yet, whoever waits for them.
        self.held = set()
        # Members that nobody can reach, and who are not told again.
        self.away = set()
        self.done = set()

    def _peers_of(self, member):
        """Whom a member writes to, in turns: both members of both other hosts."""
        one, other = (home for home in self._homes if home is not member.home)
        return itertools.cycle([one.native.name, other.codex.name, one.codex.name, other.native.name])

    def greet(self):
        """Everybody is told something, and has a last word for what comes without a script."""
        for name in self.members:
            self.write(name, f"Be there. {script({'say': 'I am there.'})}")
        return eventually(lambda: all(member.has_said("I am there.") for member in self.members.values()), 60)

    # The board.

    def fill(self):
        """Puts the tasks on the board, each somebody's."""
        names = list(self.members)
        self.owners = {}
        numbers = {}
        for place, (key, after) in enumerate(board.graph(self._count).items()):
            waits = [word for before in after for word in ("--blocked-by", numbers[before])]
            numbers[key] = str(self._home.ask("task", "add", f"Do {key}", *waits, store=True)["task_id"])
            self.owners[numbers[key]] = names[place % len(names)]
        for number, owner in self.owners.items():
            self._home.do("task", "update", number, "--owner", owner, store=True)

    def tasks(self):
        return {task["id"]: task for task in self._home.ask("task", "list", store=True)}

    def first_of(self, name):
        """The first task of a member."""
        return next(number for number, owner in self.owners.items() if owner == name)

    def roots(self):
        """The tasks that wait for none."""
        return [number for number, task in self.tasks().items() if not task["blockedBy"]]

    def deeds(self, tasks):
        """What the journal says of these tasks, by the same names."""
        found = board.deeds(self._home)
        return {name: found[int(number)] for name, number in tasks.items()}

    def look(self):
        """Hands out what is ready to those who have nothing to do; whether everything is done."""
        tasks = self.tasks()
        self.done = {number for number, task in tasks.items() if task["status"] == "completed"}
        for name in self.members:
            job = self._jobs.get(name)
            if not self._has_ended(name):
                continue
            if job and job.task not in self.done:
                if name not in self.away and time.monotonic() - job.given > REMIND * SLACK:
                    self._remind(name, job.task)
                continue
            ready = (number for number in tasks if self._is_ready(name, tasks[number]))
            if number := next(ready, None):
                self.give(name, number)
        return len(self.done) == self._count and all(map(self._has_ended, self.members))

    def _has_ended(self, name):
        """Whether it has nothing in hand."""
        return name not in self._jobs or self.members[name].has_said(self._jobs[name].words)

    def _is_ready(self, name, task):
        number = task["id"]
        free = number not in self.held and number not in self._given and set(task["blockedBy"]) <= self.done
        return free and self.owners[number] == name and name not in self.away

    def give(self, name, task, work=None, again=0.0):
        """Tells a member to do a task, and to write to somebody on each other host meanwhile. With `again` its
        model says once more after so many seconds that it is completed."""
        member = self.members[name]
        work = self._dice.uniform(*WORK) if work is None else work
        letters = [member.write(to, self._mark(name, to)) for to in (next(self._peers[name]) for _ in range(2))]
        first, second = letters
        steps = [member.claim(task), first | {"wait": round(work, 1)}, second, member.complete(task)]
        if again:
            steps.append(member.complete(task) | {"wait": again})
        self._given.add(task)
        self._tell(name, task, steps)

    def _remind(self, name, task):
        """Tells a member once more to complete its task. Claude Code is not told to take it once more: its tool
        would do so even if the task were completed by then."""
        self.reminders += 1
        member = self.members[name]
        self._tell(name, task, [*([] if member.native else [member.claim(task)]), member.complete(task)])

    def _tell(self, name, task, steps):
        words = f"Task {task} is done, {next(self._numbers)}."
        self._jobs[name] = Job(words, task, time.monotonic())
        self.write(name, f"Do task {task}. {script(*steps, {'say': words})}")

    def back(self):
        """Nobody is away any more; what those who were have done is not known at once."""
        for name in self.away:
            self._jobs[name] = self._jobs[name]._replace(given=time.monotonic())
        self.away = set()

    # Mail.

    def _mark(self, by, to):
        letter = Letter(f"«{to} {next(self._numbers)}»", by, to)
        self.letters.append(letter)
        return letter.mark

    def write(self, to, text):
        """The lead writes to a member; gives its mark, and when it was acknowledged."""
        mark = self._mark(None, to)
        self._home.do("send", to, f"{mark} {text}", store=True)
        self._acknowledged.add(mark)
        return mark, time.time()

    def sent(self):
        """The letters that were acknowledged: by the command, or by the tool of a member. Only what is
        acknowledged is promised to come."""
        sent = set(self._acknowledged)
        for member in self.members.values():
            for arguments in member.acknowledged():
                sent.update(marks(json.dumps(arguments, ensure_ascii=False)))
        return [letter for letter in self.letters if letter.mark in sent]

    def missing(self, begun=False):
        """The letters that were acknowledged and have not come; with `begun` also those of the lead's that it is
        still trying to send."""
        sent = self.sent()
        return [letter for letter in self.letters if self._is_due(letter, sent, begun) and not self.has_come(letter)]

    def _is_due(self, letter, sent, begun):
        return letter in sent or (begun and letter.by is None)

    def all_come(self, patience):
        return eventually(lambda: not self.missing(), patience)

    def has_come(self, letter):
        return letter.mark in self.members[letter.to].told()

    def come_at(self, letter):
        return self.members[letter.to].told_at(letter.mark)

    def work_until(self, enough, patience):
        """Hands out until this holds; whether it does."""
        end = time.monotonic() + patience * SLACK
        while not (self.look() or enough()):
            if time.monotonic() > end:
                return False
            # Every look is a program of its own, and the machine is shared.
            time.sleep(0.3)
        return True


def script(*steps):
    return f"[script]{json.dumps(steps)}[/script]"
