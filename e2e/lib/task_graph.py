"""Creates tasks that block each other, assigns them to members, and checks the history of each task."""

import random
import re
import time
from datetime import datetime

from lib.scripted_model import script
from lib.team_env import MEMBERS
from lib.util import SLACK, eventually

TASKS = 20
# How many seconds a model works on a task: minimum and maximum.
WORK_SECONDS = (0.2, 1.2)
# If a member has not completed its task after this many seconds, the lead asks the member again.
REMIND_AFTER = 45
STATUSES = ["pending", "in_progress", "completed"]


def build_graph(count=TASKS):
    """Returns the blockers of each task. The first five tasks have none; each later task has one to three, chosen
    from the nine tasks before it. The graph is the same in every run."""
    rng = random.Random(20)
    names = [f"t{number:02}" for number in range(1, count + 1)]
    after = {}
    for index, name in enumerate(names):
        earlier = names[max(0, index - 9) : index]
        after[name] = [] if index < 5 else sorted(rng.sample(earlier, rng.randint(1, 3)))
    return after


class Dispatcher:
    """Assigns ready tasks to idle members in the lead's name, and remembers every message it sent."""

    def __init__(self, env, names):
        self._env = env
        self._rng = random.Random(7)
        # For each member, its latest task and the time of the assignment.
        self._assigned = dict.fromkeys(names)
        self.sent = {name: [] for name in names}
        # For each message, the number of its task.
        self._task_of = {}
        self.reminders = 0
        # The number of completed tasks at the last poll.
        self.done = 0

    def tasks(self):
        return {task["id"]: task for task in self._env.brigade("task", "list")}

    def poll(self):
        """Assigns ready tasks to idle members; returns whether all tasks are completed."""
        tasks = self.tasks()
        done = {number for number, task in tasks.items() if task["status"] == "completed"}
        self.done = len(done)
        assigned = {latest[0] for latest in self._assigned.values() if latest}
        ready = [
            number
            for number, task in sorted(tasks.items(), key=lambda pair: int(pair[0]))
            if task["status"] == "pending" and number not in assigned and set(task["blockedBy"]) <= done
        ]
        # A Claude Code that received a message twice begins the task again. Wait for it like for a new task.
        again = {task.get("owner"): number for number, task in tasks.items() if task["status"] == "in_progress"}
        # Members that got the fewest messages so far come first.
        for name in sorted(self._assigned, key=lambda name: len(self.sent[name])):
            latest = self._assigned[name]
            if name in again and latest and latest[0] in done:
                latest = self._assigned[name] = (again[name], time.monotonic())
            if latest and latest[0] not in done:
                if time.monotonic() - latest[1] > REMIND_AFTER * SLACK:
                    self.reminders += 1
                    self._assign(name, latest[0])
            elif ready:
                self._assign(name, ready.pop(0))
        return len(done) == TASKS

    def _assign(self, name, task):
        mark = f"«{name} {len(self.sent[name])}»"
        seconds = round(self._rng.uniform(*WORK_SECONDS), 1)
        steps = MEMBERS[name].task_steps(name, task, seconds)
        self._env.brigade("send", name, f"{mark} Do task {task}. {script(*steps)}")
        # Record the message only now: a message is guaranteed to arrive only if `brigade send` has succeeded.
        self.sent[name].append(mark)
        self._task_of[mark] = int(task)
        self._assigned[name] = (task, time.monotonic())

    def finish(self, report, timeout):
        """Assigns tasks until all are completed; checks that each was done once; returns the tasks' histories."""
        started = time.monotonic()
        done = eventually(self.poll, timeout)
        report.check("all tasks are done", done, None if done else self.tasks())
        report.figure("all tasks took", f"{time.monotonic() - started:.1f} s, {self.reminders} reminders")
        histories = task_histories(self._env)
        check_histories(report, histories, self.sent, repeated=self._repeated_tasks())
        return histories

    def _repeated_tasks(self):
        """Returns the tasks whose message a real Claude Code received twice. Such a member does the task again. Whether
        the message may be repeated is for the scenario to decide (`wrong_deliveries`)."""
        return {
            self._task_of[mark]
            for name in self.sent
            if MEMBERS[name].native
            for mark, times in self.wrong_deliveries(name).items()
            if times == 2
        }

    def wrong_deliveries(self, name):
        """Returns each message that a member's model did not receive exactly once, with the number of times."""
        found = re.findall(f"«{name} [0-9]+»", self._env.model_input(name))
        return {mark: found.count(mark) for mark in self.sent[name] if found.count(mark) != 1}


class TaskHistory:
    """The changes of one task, read from the journal."""

    def __init__(self, subject, blocked_by):
        self.subject, self.blocked_by = subject, blocked_by
        self.statuses, self.owner, self.started, self.ended = [], None, None, None


def task_histories(env):
    """Returns the history of each task, by task id."""
    found = {}
    for record in env.log():
        if not (event := record["event"].get("task")):
            continue
        task, at = event["task"], datetime.fromisoformat(record["at"]).timestamp()
        history = found.setdefault(event["id"], TaskHistory(task["subject"], task["blockedBy"]))
        if not history.statuses or history.statuses[-1] != task["status"]:
            history.statuses.append(task["status"])
            # If a member does a task again, the times of the first run count.
            if task["status"] == "in_progress" and not history.started:
                history.owner, history.started = task.get("owner"), at
            elif task["status"] == "completed" and not history.ended:
                history.ended = at
                history.owner = history.owner or task.get("owner")
    return found


def check_histories(report, histories, names, count=TASKS, repeated=(), linked=()):
    """Checks that members did every task once, and no task before its blockers. A task of `repeated` may have been done
    twice. A link forwards the state of a task file, so the claim of a `linked` member may be missing if the member completed the
    task before the link read the file."""
    report.check(f"all {count} tasks are on the board", len(histories) == count, len(histories))
    wrong = {
        number: history.statuses
        for number, history in histories.items()
        if history.statuses != STATUSES
        and not (number in repeated and history.statuses == STATUSES + STATUSES[1:])
        and not (history.owner in linked and history.statuses == [STATUSES[0], STATUSES[-1]])
    }
    report.check("each task was claimed once and completed once", not wrong, wrong)
    strangers = {number: history.owner for number, history in histories.items() if history.owner not in names}
    report.check("each task was done by a member", not strangers, strangers)
    early = [
        (number, blocker)
        for number, history in histories.items()
        for blocker in map(int, history.blocked_by)
        if history.started and not (histories[blocker].ended and histories[blocker].ended <= history.started)
    ]
    report.check("no task was started before its blockers were completed", not early, early)
