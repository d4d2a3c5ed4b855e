"""Tests that brigade and Claude Code tolerate each other's changes to the team's files.

Both keep fields and backends that they do not know, and both can change the same task. brigade waits for locks that
another program holds, and removes locks that another program left behind.
"""

import os
import threading
import time

from lib.env import edit, run_scenario
from lib.util import eventually, read_json


def scenario(env, report, short):
    lead = env.start_lead("tolerance")
    env.brigade("team", "join", "carol", "--agent-type", "codex", "--model", "gpt-5")
    config(env, report, lead)
    entries(env, report, lead)
    held_locks(env, report, lead, short)
    lead_changes_our_task(env, report, lead)
    we_change_the_leads_task(env, report, lead)
    dependencies(env, report, lead)
    env.check_locks(report)


def without(value, *keys):
    """Returns all fields of an object except `keys`, in order, so that a comparison also notices moved fields."""
    return [(key, field) for key, field in value.items() if key not in keys]


def config(env, report, lead):
    def add_strangers(team):
        team["x_team"] = {"keep": [1, 2.50, None]}
        team["members"][-1]["x_member"] = "keep me"
        stranger = {"agentId": f"dora@{env.team}", "name": "dora", "agentType": "other", "joinedAt": 1}
        stranger |= {"tmuxPaneId": "", "cwd": str(env.project), "subscriptions": []}
        stranger |= {"backendType": "teleprinter", "isActive": False, "x_member": {"deep": True}}
        team["members"].append(stranger)

    edit(env.config, add_strangers)
    before = read_json(env.config)
    env.spawn("alice").only_listen()
    if not eventually(lambda: "alice" in env.members(), 5):
        raise RuntimeError("the lead has not added its new teammate to config.json")
    after = read_json(env.config)
    kept = [member for member in after["members"] if member["name"] != "alice"]
    same = kept == before["members"]
    report.check("the lead's rewrite keeps brigade's member, unknown backends and unknown fields", same, kept)
    same = after.get("x_team") == before["x_team"]
    report.check("the lead's rewrite keeps an unknown field of the team", same, after.keys())

    for word, active in (("active", True), ("idle", False)):
        before = read_json(env.config)
        env.brigade("team", "activity", "carol", word)
        after = read_json(env.config)
        carol = next(member for member in after["members"] if member["name"] == "carol")
        command = f"brigade team activity carol {word}"
        report.check(f"{command}: isActive is {active}", carol.get("isActive") is active, carol)
        others = [[without(member, "isActive") for member in team["members"]] for team in (before, after)]
        same = others[0] == others[1] and without(before, "members") == without(after, "members")
        report.check(f"{command}: nothing else changes", same, after)


def entries(env, report, lead):
    inbox = env.inbox("carol")
    first = env.brigade("send", "carol", "first from dora", "--summary", "one", by="dora")
    foreign = {"from": "stranger", "text": "foreign", "timestamp": "2026-01-01T00:00:00.000Z"}
    foreign |= {"read": False, "id": "u-1", "x_entry": {"keep": [1, None, "ä"]}}
    edit(inbox, lambda box: box.append(foreign))
    before = read_json(inbox)
    sent = lead.call(*env.message("carol", "from the lead"))
    after = read_json(inbox)
    # The new Claude Code adds a `type` to entries that have none, but removes nothing.
    kept = sent.is_success() and all(old.items() <= new.items() for old, new in zip(before, after))
    report.check("the lead's rewrite keeps brigade's msg_id and unknown fields of entries", kept, after)
    same = after[0].get("msg_id") == first["message_id"]
    report.check("the message_id that send printed is the entry's msg_id", same, after[0])

    before = after
    env.brigade("send", "carol", "second from dora", by="dora")
    after = read_json(inbox)
    kept = list(map(without, after[:-1])) == list(map(without, before))
    added = after[-1]["text"] == "second from dora"
    report.check("brigade send leaves every other entry unchanged", kept and added, after)

    before = after
    env.mail("carol", "--unread", "--mark-read")
    unread = env.mail("carol", "--unread")
    report.check("brigade inbox --mark-read leaves nothing unread", unread == [], unread)
    # brigade may move a read message from the inbox file to the journal, but must keep all fields of the message.
    after = env.mail("carol")
    kept = [without(entry, "read") for entry in before] == [without(entry, "read") for entry in after]
    report.check("brigade inbox --mark-read keeps every other field", kept, after)
    expected = [without(entry, "read") for entry in before]
    changed = [entry for entry in read_json(inbox) if without(entry, "read") not in expected]
    report.check("in entries that stay in the inbox file, only `read` changes", not changed, changed)


class LiveLock:
    """A lock that another program holds and refreshes for some seconds. `read` returns the protected data."""

    def __init__(self, path, seconds, read):
        self._directory = path.with_name(path.name + ".lock")
        self._directory.mkdir()
        self._read, self._respected = read, True
        self._holder = threading.Thread(target=self._hold, args=(seconds, read()))
        self._holder.start()

    def _hold(self, seconds, before):
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                time.sleep(0.1)
                os.utime(self._directory)
            self._respected = self._read() == before
            self._directory.rmdir()
        except FileNotFoundError:
            self._respected = False

    def respected(self):
        """Returns whether, until the lock was released, the lock stayed in place and its data stayed unchanged."""
        self._holder.join()
        return self._respected


def dead_lock(path, age):
    """Creates the lock of a program that crashed `age` seconds ago while it held the lock."""
    directory = path.with_name(path.name + ".lock")
    directory.mkdir()
    then = time.time() - age
    os.utime(directory, (then, then))


def held_locks(env, report, lead, short):
    inbox = env.inbox("carol")

    def send(text):
        started = time.monotonic()
        done = env.try_brigade("send", "carol", text, by="dora")
        acknowledged = time.monotonic() - started
        found = eventually(lambda: text in inbox.read_text(), 15)
        arrived = time.monotonic() - started
        report.check(f"{text} is acknowledged and arrives", done.returncode == 0 and found, done.stderr)
        report.figure(f"{text}: time until acknowledged, until arrived", f"{acknowledged:.2f} s, {arrived:.2f} s")

    for seconds in (1, 5):
        held = LiveLock(inbox, seconds, inbox.read_bytes)
        send(f"a message behind a lock held for {seconds} s")
        report.check(f"the lock held for {seconds} s is respected", held.respected())
    for age in (20,) if short else (20, 0):
        dead_lock(inbox, age)
        send(f"a message behind a lock left behind {age} s ago")

    held = LiveLock(env.config, 1, env.config.read_bytes)
    done = env.try_brigade("team", "activity", "carol", "active")
    report.check("config lock held for 1 s: brigade team activity succeeds", done.returncode == 0, done.stderr)
    report.check("config lock held for 1 s: brigade team activity respects it", held.respected())
    held = LiveLock(env.tasks / ".lock", 1, lambda: sorted(env.tasks.glob("*.json")))
    done = env.try_brigade("task", "add", "behind a lock", by="carol")
    report.check("task lock held for 1 s: brigade task add succeeds", done.returncode == 0, done.stderr)
    report.check("task lock held for 1 s: brigade task add respects it", held.respected())

    sent = lead.call(*env.message("carol", "no lock is held"))
    arrived = any(entry["text"] == "no lock is held" for entry in read_json(inbox))
    report.check("while brigade holds no lock, the lead's send works", sent.is_success() and arrived, sent)


def newest_task(env):
    return max(env.tasks.glob("[0-9]*.json"), key=lambda path: int(path.stem))


def add_task(env, *arguments):
    env.brigade("task", "add", *arguments, by="carol")
    return newest_task(env)


def lead_changes_our_task(env, report, lead):
    path = add_task(env, "made by brigade", "--description", "as it was")
    edit(path, lambda task: task.setdefault("metadata", {}).update(e2e={"keep": [1, "two"]}))
    before = read_json(path)
    update = {"taskId": path.stem, "description": "as the lead wants it", "status": "in_progress"}
    result = lead.call("TaskUpdate", update)
    after = read_json(path)
    changed = update.items() <= (after | {"taskId": after["id"]}).items()
    report.check("the lead's TaskUpdate changes a task made by brigade", changed, result.text)
    kept = after.get("metadata") == before["metadata"]
    report.check("the lead's TaskUpdate keeps the task's metadata", kept, after)


def we_change_the_leads_task(env, report, lead):
    task = {"subject": "made by the lead", "description": "d", "activeForm": "Making"}
    lead.call("TaskCreate", task | {"metadata": {"theirs": [1]}})
    path = newest_task(env)
    edit(path, lambda task: task.update(x_task={"keep": True}))
    before = read_json(path)
    change = ["--status", "in_progress", "--owner", "carol"]
    env.brigade("task", "update", path.stem, *change, by="carol")
    after = read_json(path)
    changed = {"status": "in_progress", "owner": "carol"}.items() <= after.items()
    report.check("brigade task update changes a task made by the lead", changed, after)
    kept = without(before, "status", "owner") == without(after, "status", "owner")
    report.check("brigade task update keeps every other field", kept, after)
    line = lead.task_line(path.stem)
    shown = "[in_progress]" in line and "(carol)" in line
    report.check("the lead's TaskList shows status and owner", shown, line)


def dependencies(env, report, lead):
    blocker = add_task(env, "to be done first").stem
    blocked = add_task(env, "to be done then", "--blocked-by", blocker).stem
    line = lead.task_line(blocked)
    is_blocked = f"blocked by #{blocker}" in line
    report.check("the lead's TaskList shows brigade's task as blocked", is_blocked, line)
    env.brigade("task", "claim", blocker, by="carol")
    env.brigade("task", "done", blocker, by="carol")
    line = lead.task_line(blocked)
    ready = line.startswith(f"#{blocked} [pending]") and "blocked" not in line
    report.check("once brigade has completed the blocker, the task is no longer blocked", ready, line)
    line = lead.task_line(blocker)
    report.check("the lead's TaskList shows the blocker as completed", "[completed]" in line, line)


if __name__ == "__main__":
    run_scenario(scenario, teammate_mode="in-process")
