"""Creates the work for the ten members: a steady supply of tasks, and messages between all members."""

import itertools
import random
import time
from typing import NamedTuple

from mail_log import LEAD
from soak_team import PLAIN, REAL, SLOW, is_native

from lib.scripted_model import say
from lib.util import SLACK

# Seconds between two tasks of a real agent, and between two tasks of an agent without a model.
PAUSE, PLAIN_PAUSE = (6, 12), (4, 9)
# How many seconds a model works on a task: minimum and maximum.
WORK_SECONDS = (0.2, 1.5)
# Seconds without a change after which the lead asks a member again to do its task.
REMIND_AFTER = 75
# The minimum number of pending tasks without an owner, and the maximum number of completed tasks on the board.
MIN_OPEN, MAX_COMPLETED = 6, 40
# Seconds between two `brigade send` commands, between two polls of the lead's inbox, and between two polls of the
# board.
SEND_PAUSE, LEAD_POLL = (0.15, 0.6), 4
BOARD_POLL = 0.6


class SoakAssignment(NamedTuple):
    task: str
    last_text: str
    assigned_at: float


class BoardWork:
    """Creates tasks. Real agents do their tasks by script. For agents without a model, this program runs the
    commands."""

    def __init__(self, env):
        self._env = env
        self._rng = random.Random(11)
        self._numbers = itertools.count(1)
        self._assignments = dict.fromkeys(REAL)
        self._free_at = dict.fromkeys((*REAL, *PLAIN), 0.0)
        self._taken_at = {}
        # Set at the end of the test, so that no new tasks are created.
        self.closing = False
        self.completed = set()
        self.reminders = 0
        self.open = MIN_OPEN

    def poll(self):
        found = self._env.command("task", "list")
        if found is None:
            return
        tasks = {task["id"]: task for task in found}
        done = [number for number, task in tasks.items() if task["status"] == "completed"]
        self.completed.update(done)
        assigned = {assignment.task for assignment in self._assignments.values() if assignment}
        free = [number for number, task in tasks.items() if task["status"] == "pending" and not task.get("owner")]
        pending = [number for number in free if number not in assigned]
        self.open = len(tasks) - len(done)
        now = time.monotonic()
        for name in REAL:
            self._manage(name, tasks, pending, now)
        for name in PLAIN:
            self._work_by_command(name, tasks, pending, now)
        if not self.closing and len(pending) < MIN_OPEN:
            self._env.command("task", "add", f"Work {next(self._numbers)}", by=self._rng.choice((LEAD, *PLAIN)))
        for number in sorted(done, key=int)[:-MAX_COMPLETED]:
            self._env.command("task", "delete", number)

    def _manage(self, name, tasks, pending, now):
        """Assigns a real agent its next task, or reminds the agent of its current task."""
        assignment = self._assignments[name]
        if assignment is None:
            # The member may have a task already: the command that assigned the task may have been killed afterwards.
            left = [n for n, task in tasks.items() if task.get("owner") == name and task["status"] == "in_progress"]
            if left:
                self._assignments[name] = SoakAssignment(left[0], "", now)
            elif pending and now > self._free_at[name]:
                self._assign(name, pending.pop(0))
            return
        status = tasks[assignment.task]["status"] if assignment.task in tasks else "completed"
        late = now - assignment.assigned_at
        if status == "completed":
            # If the agent was killed, its turn may have ended with another text.
            if assignment.last_text in self._env.readers[name].said or late > REMIND_AFTER:
                self._assignments[name] = None
                self._free_at[name] = now + self._rng.uniform(*PAUSE) * SLOW.get(name, 1)
        elif late > (REMIND_AFTER / 2 if self.closing else REMIND_AFTER) * SLACK:
            self.reminders += 1
            self._instruct(name, assignment.task, self._env.finish_steps(name, assignment.task))

    def _assign(self, name, task):
        if is_native(name):
            # The member must not claim the task itself: Claude Code's own tool claims even a completed task. After a
            # repeated message, Claude Code would do the task twice.
            owner = ["--owner", name, "--status", "in_progress"]
            if self._env.command("task", "update", task, *owner) is None:
                return
        others = [other for other in (*REAL, *PLAIN) if other != name and self._has_time(other)]
        readers = self._rng.sample([LEAD, *others], 3)
        mark, steps = self._env.assignment(name, task, readers, round(self._rng.uniform(*WORK_SECONDS), 1))
        self._instruct(name, task, steps, mark)

    def _has_time(self, name):
        return self._rng.random() < 1 / SLOW.get(name, 1)

    def _instruct(self, name, task, steps, mark=None):
        last_text = f"That was {next(self._numbers)}."
        self._env.instruct(name, f"Do task {task}.", [*steps, say(last_text)], mark)
        # The message may have arrived without an acknowledgement. If it has not, the member gets a reminder later.
        self._assignments[name] = SoakAssignment(task, last_text, time.monotonic())

    def _work_by_command(self, name, tasks, pending, now):
        """Claims and completes tasks for an agent without a model."""
        mine = [number for number, task in tasks.items() if task.get("owner") == name and task["status"] == "in_progress"]
        for number in mine:
            if now > self._taken_at.setdefault(number, now) + 1:
                self._env.command("task", "done", number, by=name)
        if not mine and pending and now > self._free_at[name]:
            self._env.command("task", "claim", pending.pop(0), by=name)
            self._free_at[name] = now + self._rng.uniform(*PLAIN_PAUSE)

    def step(self):
        """Does one step of this work. Returns the seconds until the next step."""
        started = time.monotonic()
        self.poll()
        return max(0.1, BOARD_POLL - (time.monotonic() - started))


class MailWork:
    """Sends messages from the lead and the agents without a model to all members, and reads the lead's mail."""

    def __init__(self, env):
        self._env = env
        self._rng = random.Random(12)
        self._read_lead_at = 0.0

    def step(self):
        """Does one step of this work. Returns the seconds until the next step."""
        by = self._rng.choice((LEAD, *PLAIN))
        # Real agents get fewer messages, because a message that causes a request to a model costs a hundred times
        # as much.
        kinds = [(PLAIN, 70), (tuple(REAL), 18), ((LEAD,), 12)]
        group = self._rng.choices([group for group, _ in kinds], [share for _, share in kinds])[0]
        if others := [name for name in group if name != by]:
            shares = [1 / SLOW.get(name, 1) for name in others]
            self._env.send(by, self._rng.choices(others, shares)[0])
        if time.monotonic() > self._read_lead_at:
            self._env.read_lead_inbox()
            self._read_lead_at = time.monotonic() + LEAD_POLL
        return self._rng.uniform(*SEND_PAUSE)
