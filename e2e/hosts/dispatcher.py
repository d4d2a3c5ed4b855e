"""Acts as the lead of the team, on the first host. Assigns tasks, makes members write to each other, and tracks
every message."""

import itertools
import json
import random
import time
from typing import NamedTuple

from host_env import marks

from lib.scripted_model import say, script
from lib.task_graph import build_graph, task_histories
from lib.util import SLACK, eventually

# How many seconds a model works on a task: minimum and maximum.
WORK_SECONDS = (0.2, 1.0)
# Seconds after which the lead reminds a member that has ended its turn but has not completed its task.
REMIND_AFTER = 20


class TrackedMessage(NamedTuple):
    """A message that must arrive once. `mark` is the unique text that identifies it; `by` is None if the lead sent
    it."""

    mark: str
    by: str | None
    to: str


class HostsAssignment(NamedTuple):
    """The latest task of a member, and the text with which the member's model ends the turn for this task."""

    last_text: str
    task: str
    assigned_at: float


class HostsDispatcher:
    def __init__(self, hosts, count):
        self._hosts, self._lead_host = hosts, hosts[0]
        # Tasks are assigned to members in this order: first to the native members, then to the others.
        members = [host.native for host in hosts] + [host.codex for host in hosts]
        self.members = {member.name: member for member in members}
        self._count = count
        self._rng = random.Random(7)
        self._numbers = itertools.count(1)
        self._assignments = {}
        self._assigned = set()
        self._peers = {member.name: self._peers_of(member) for member in members}
        self.messages = []
        self._acknowledged = set()
        self.reminders = 0
        # The ids of tasks that are not assigned for now.
        self.held = set()
        # The names of members on a host that is cut off. These members get no reminders.
        self.away = set()
        self.done = set()

    def _peers_of(self, member):
        """Returns an endless iterator over the members that this member writes to: both members on both other
        hosts."""
        one, other = (host for host in self._hosts if host is not member.host)
        return itertools.cycle([one.native.name, other.codex.name, one.codex.name, other.native.name])

    def greet(self):
        """Sends every member a first message. Returns whether all members answer."""
        for name in self.members:
            self.send(name, f"Be there. {script(say('I am there.'))}")
        return eventually(lambda: all(member.has_said("I am there.") for member in self.members.values()), 60)

    # The board.

    def fill(self):
        """Puts the tasks on the board, each with an owner."""
        names = list(self.members)
        self.owners = {}
        numbers = {}
        for index, (key, after) in enumerate(build_graph(self._count).items()):
            blockers = [word for before in after for word in ("--blocked-by", numbers[before])]
            numbers[key] = str(self._lead_host.run_json("task", "add", f"Do {key}", *blockers, store=True)["task_id"])
            self.owners[numbers[key]] = names[index % len(names)]
        for number, owner in self.owners.items():
            self._lead_host.run_ok("task", "update", number, "--owner", owner, store=True)

    def tasks(self):
        return {task["id"]: task for task in self._lead_host.run_json("task", "list", store=True)}

    def first_task_of(self, name):
        return next(number for number, owner in self.owners.items() if owner == name)

    def unblocked(self):
        """Returns the ids of the tasks without blockers."""
        return [number for number, task in self.tasks().items() if not task["blockedBy"]]

    def histories(self, tasks):
        """Returns the histories of these tasks, under the keys of `tasks`."""
        found = task_histories(self._lead_host)
        return {name: found[int(number)] for name, number in tasks.items()}

    def poll(self):
        """Assigns ready tasks to idle members. Returns whether all tasks are done and all members are idle."""
        tasks = self.tasks()
        self.done = {number for number, task in tasks.items() if task["status"] == "completed"}
        for name in self.members:
            assignment = self._assignments.get(name)
            if not self._is_idle(name):
                continue
            if assignment and assignment.task not in self.done:
                if name not in self.away and time.monotonic() - assignment.assigned_at > REMIND_AFTER * SLACK:
                    self._remind(name, assignment.task)
                continue
            ready = (number for number in tasks if self._is_ready(name, tasks[number]))
            if number := next(ready, None):
                self.assign(name, number)
        return len(self.done) == self._count and all(map(self._is_idle, self.members))

    def _is_idle(self, name):
        """Returns whether the member's model has ended the turn for the member's latest task."""
        return name not in self._assignments or self.members[name].has_said(self._assignments[name].last_text)

    def _is_ready(self, name, task):
        number = task["id"]
        free = number not in self.held and number not in self._assigned and set(task["blockedBy"]) <= self.done
        return free and self.owners[number] == name and name not in self.away

    def assign(self, name, task, work=None, again=0.0):
        """Makes a member do a task and meanwhile write to one member on each of the other hosts. If `again` is set,
        the member's model completes the task once more after that many seconds."""
        member = self.members[name]
        work = self._rng.uniform(*WORK_SECONDS) if work is None else work
        first, second = [member.send(to, self._mark(name, to)) for to in (next(self._peers[name]) for _ in range(2))]
        steps = [member.claim(task), first | {"wait": round(work, 1)}, second, member.complete(task)]
        if again:
            steps.append(member.complete(task) | {"wait": again})
        self._assigned.add(task)
        self._instruct(name, task, steps)

    def _remind(self, name, task):
        """Reminds a member to complete its task. A native member does not claim the task again, because Claude
        Code's tool would claim even a completed task."""
        self.reminders += 1
        member = self.members[name]
        self._instruct(name, task, [*([] if member.native else [member.claim(task)]), member.complete(task)])

    def _instruct(self, name, task, steps):
        last_text = f"Task {task} is done, {next(self._numbers)}."
        self._assignments[name] = HostsAssignment(last_text, task, time.monotonic())
        self.send(name, f"Do task {task}. {script(*steps, say(last_text))}")

    def all_back(self):
        """Records that no member is cut off any more. Restarts the reminder timers of the members that were cut off,
        because their work reaches the lead with a delay."""
        for name in self.away:
            self._assignments[name] = self._assignments[name]._replace(assigned_at=time.monotonic())
        self.away = set()

    # Messages.

    def _mark(self, by, to):
        message = TrackedMessage(f"«{to} {next(self._numbers)}»", by, to)
        self.messages.append(message)
        return message.mark

    def send(self, to, text):
        """Sends a message from the lead to a member. Returns the mark of the message, and when it was
        acknowledged."""
        mark = self._mark(None, to)
        self._lead_host.run_ok("send", to, f"{mark} {text}", store=True)
        self._acknowledged.add(mark)
        return mark, time.time()

    def sent(self):
        """Returns the messages that `brigade send` or a member's tool acknowledged. Only acknowledged messages are
        guaranteed to arrive."""
        sent = set(self._acknowledged)
        for member in self.members.values():
            for arguments in member.acknowledged():
                sent.update(marks(json.dumps(arguments, ensure_ascii=False)))
        return [message for message in self.messages if message.mark in sent]

    def missing(self, pending=False):
        """Returns the acknowledged messages that have not arrived. If `pending` is true, also returns messages that
        the lead is still sending."""
        sent = self.sent()
        due = [message for message in self.messages if message in sent or (pending and message.by is None)]
        return [message for message in due if not self.has_arrived(message)]

    def all_arrived(self, timeout):
        return eventually(lambda: not self.missing(), timeout)

    def has_arrived(self, message):
        return message.mark in self.members[message.to].input()

    def arrived_at(self, message):
        return self.members[message.to].received_at(message.mark)

    def dispatch_until(self, condition, timeout):
        """Assigns tasks until all are done or the condition is true. Returns False if that takes longer than
        `timeout`."""
        end = time.monotonic() + timeout * SLACK
        while not (self.poll() or condition()):
            if time.monotonic() > end:
                return False
            # Do not poll more often, because every poll starts a brigade process.
            time.sleep(0.3)
        return True
