"""What one side does not know of the other's files survives the other side's writes.

Unknown fields and backends, locks held or left behind by somebody else, and tasks that both sides
change in turn.
"""

import json
import os
import threading
import time
from contextlib import contextmanager

from house import eventually, prove, read_json


def scenario(house, report, short):
    lead = house.start_lead("tolerance")
    house.brigade("team", "join", "carol", "--agent-type", "codex", "--model", "gpt-5")
    config(house, report, lead)
    entries(house, report, lead)
    held_locks(house, report, lead, short)
    lead_changes_our_task(house, report, lead)
    we_change_the_leads_task(house, report, lead)
    dependencies(house, report, lead)
    house.check_locks(report)


@contextmanager
def lock(path):
    """The mkdir lock that everybody here takes, held as an outside program holds it."""
    directory = path.with_name(path.name + ".lock")
    if not eventually(lambda: not directory.exists(), 15):
        raise TimeoutError(f"{directory} is held for ever")
    directory.mkdir()
    try:
        yield
    finally:
        directory.rmdir()


def edit(path, change):
    """An outside program's change to a shared file: under the lock, whole or not at all."""
    with lock(path):
        value = read_json(path)
        change(value)
        fresh = path.with_name(path.name + ".tmp.proof")
        fresh.write_text(json.dumps(value, indent=2))
        fresh.rename(path)


def without(value, *keys):
    """The rest of an object, in its order, so that moved fields count as changed."""
    return [(key, kept) for key, kept in value.items() if key not in keys]


def config(house, report, lead):
    def add_strangers(team):
        team["x_team"] = {"keep": [1, 2.50, None]}
        team["members"][-1]["x_member"] = "keep me"
        stranger = {"agentId": f"dora@{house.team}", "name": "dora", "agentType": "other", "joinedAt": 1}
        stranger |= {"tmuxPaneId": "", "cwd": str(house.project), "subscriptions": []}
        stranger |= {"backendType": "teleprinter", "isActive": False, "x_member": {"deep": True}}
        team["members"].append(stranger)

    edit(house.config, add_strangers)
    before = read_json(house.config)
    house.spawn("alice").rest()
    if not eventually(lambda: "alice" in house.members(), 5):
        raise RuntimeError("the lead has not written its new teammate down")
    after = read_json(house.config)
    kept = [member for member in after["members"] if member["name"] != "alice"]
    same = kept == before["members"]
    report.check("the lead's rewrite keeps our member, unknown backends, unknown fields", same, kept)
    same = after.get("x_team") == before["x_team"]
    report.check("the lead's rewrite keeps an unknown field of the team", same, after.keys())

    for word, active in (("active", True), ("idle", False)):
        before = read_json(house.config)
        house.brigade("team", "activity", "carol", word)
        after = read_json(house.config)
        carol = next(member for member in after["members"] if member["name"] == "carol")
        what = f"brigade team activity carol {word}"
        report.check(f"{what}: isActive is {active}", carol.get("isActive") is active, carol)
        rest = [[without(member, "isActive") for member in team["members"]] for team in (before, after)]
        same = rest[0] == rest[1] and without(before, "members") == without(after, "members")
        report.check(f"{what}: nothing else changes", same, after)


def entries(house, report, lead):
    inbox = house.inbox("carol")
    first = house.brigade("send", "carol", "first from dora", "--summary", "one", by="dora")
    foreign = {"from": "stranger", "text": "foreign", "timestamp": "2026-01-01T00:00:00.000Z"}
    foreign |= {"read": False, "id": "u-1", "x_entry": {"keep": [1, None, "ä"]}}
    edit(inbox, lambda box: box.append(foreign))
    before = read_json(inbox)
    sent = lead.call(*house.message("carol", "from the lead"))
    after = read_json(inbox)
    # The new version adds its own `type` to entries that have none; it takes nothing away.
    kept = sent.says_success() and all(old.items() <= new.items() for old, new in zip(before, after))
    report.check("the lead's rewrite keeps our msg_id and unknown fields of entries", kept, after)
    same = after[0].get("msg_id") == first["message_id"]
    report.check("the message_id that send told is the entry's msg_id", same, after[0])

    before = after
    house.brigade("send", "carol", "second from dora", by="dora")
    after = read_json(inbox)
    kept = list(map(without, after[:-1])) == list(map(without, before))
    added = after[-1]["text"] == "second from dora"
    report.check("brigade send keeps every entry as it was", kept and added, after)

    before = after
    house.mail("carol", "--unread", "--mark-read")
    unread = house.mail("carol", "--unread")
    report.check("brigade inbox --mark-read leaves nothing unread", unread == [], unread)
    # Where a read message stands, file or history, is brigade's business; that it is whole is ours.
    after = house.mail("carol")
    kept = [without(entry, "read") for entry in before] == [without(entry, "read") for entry in after]
    report.check("brigade inbox --mark-read keeps every other field", kept, after)
    stood = [without(entry, "read") for entry in before]
    changed = [entry for entry in read_json(inbox) if without(entry, "read") not in stood]
    report.check("what stays in the file is unchanged but for read", not changed, changed)


class LiveLock:
    """A lock that an outside program takes and keeps fresh for some seconds."""

    def __init__(self, path, seconds, look):
        self._directory = path.with_name(path.name + ".lock")
        self._directory.mkdir()
        self._look, self._respected = look, True
        self._holder = threading.Thread(target=self._hold, args=(seconds, look()))
        self._holder.start()

    def _hold(self, seconds, before):
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                time.sleep(0.1)
                os.utime(self._directory)
            self._respected = self._look() == before
            self._directory.rmdir()
        except FileNotFoundError:
            self._respected = False

    def respected(self):
        """Whether nobody took the lock away, or changed what it guards, before it was given back."""
        self._holder.join()
        return self._respected


def dead_lock(path, age):
    """A lock that somebody took so many seconds ago and did not live to give back."""
    directory = path.with_name(path.name + ".lock")
    directory.mkdir()
    then = time.time() - age
    os.utime(directory, (then, then))


def held_locks(house, report, lead, short):
    inbox = house.inbox("carol")

    def send(text):
        begun = time.monotonic()
        done = house.try_brigade("send", "carol", text, by="dora")
        acknowledged = time.monotonic() - begun
        there = eventually(lambda: text in inbox.read_text(), 15)
        arrived = time.monotonic() - begun
        well = done.returncode == 0 and there
        report.check(f"{text}: it is acknowledged and there", well, done.stderr)
        report.figure(f"{text}: acknowledged, there", f"{acknowledged:.2f} s, {arrived:.2f} s")

    for seconds in (1, 5):
        held = LiveLock(inbox, seconds, inbox.read_bytes)
        send(f"a message past a lock held for {seconds} s")
        report.check(f"the lock held for {seconds} s is respected", held.respected())
    for age in (20,) if short else (20, 0):
        dead_lock(inbox, age)
        send(f"a message past a lock left behind {age} s ago")

    held = LiveLock(house.config, 1, house.config.read_bytes)
    done = house.try_brigade("team", "activity", "carol", "active")
    what = "config lock held for 1 s"
    report.check(f"{what}: brigade team activity succeeds", done.returncode == 0, done.stderr)
    report.check(f"{what}: it is respected", held.respected())
    held = LiveLock(house.tasks / ".lock", 1, lambda: sorted(house.tasks.glob("*.json")))
    done = house.try_brigade("task", "add", "past a lock", by="carol")
    what = "task lock held for 1 s"
    report.check(f"{what}: brigade task add succeeds", done.returncode == 0, done.stderr)
    report.check(f"{what}: it is respected", held.respected())

    sent = lead.call(*house.message("carol", "the way is clear"))
    there = any(entry["text"] == "the way is clear" for entry in read_json(inbox))
    works = sent.says_success() and there
    report.check("while brigade holds nothing, the lead's send works", works, sent)


def newest_task(house):
    return max(house.tasks.glob("[0-9]*.json"), key=lambda path: int(path.stem))


def add_task(house, *arguments):
    house.brigade("task", "add", *arguments, by="carol")
    return newest_task(house)


def lead_changes_our_task(house, report, lead):
    path = add_task(house, "made by brigade", "--description", "as it was")
    edit(path, lambda task: task.setdefault("metadata", {}).update(proof={"keep": [1, "two"]}))
    before = read_json(path)
    update = {"taskId": path.stem, "description": "as the lead wants it", "status": "in_progress"}
    outcome = lead.call("TaskUpdate", update)
    after = read_json(path)
    changed = update.items() <= (after | {"taskId": after["id"]}).items()
    report.check("the lead's TaskUpdate changes a task made by brigade", changed, outcome.text)
    kept = after.get("metadata") == before["metadata"]
    report.check("the lead's TaskUpdate keeps its metadata", kept, after)


def we_change_the_leads_task(house, report, lead):
    wanted = {"subject": "made by the lead", "description": "d", "activeForm": "Making"}
    lead.call("TaskCreate", wanted | {"metadata": {"theirs": [1]}})
    path = newest_task(house)
    edit(path, lambda task: task.update(x_task={"keep": True}))
    before = read_json(path)
    change = ["--status", "in_progress", "--owner", "carol"]
    house.brigade("task", "update", path.stem, *change, by="carol")
    after = read_json(path)
    changed = {"status": "in_progress", "owner": "carol"}.items() <= after.items()
    report.check("brigade task update changes a task made by the lead", changed, after)
    kept = without(before, "status", "owner") == without(after, "status", "owner")
    report.check("brigade task update keeps every other field", kept, after)
    line = line_of(lead, path.stem)
    shown = "[in_progress]" in line and "(carol)" in line
    report.check("the lead's TaskList shows status and owner", shown, line)


def line_of(lead, task):
    listed = lead.call("TaskList", {}).text
    return next((line for line in listed.splitlines() if line.startswith(f"#{task} ")), listed)


def dependencies(house, report, lead):
    blocker = add_task(house, "to be done first").stem
    blocked = add_task(house, "to be done then", "--blocked-by", blocker).stem
    line = line_of(lead, blocked)
    waits = f"blocked by #{blocker}" in line
    report.check("the lead's TaskList shows brigade's task as blocked", waits, line)
    house.brigade("task", "claim", blocker, by="carol")
    house.brigade("task", "done", blocker, by="carol")
    line = line_of(lead, blocked)
    ready = line.startswith(f"#{blocked} [pending]") and "blocked" not in line
    report.check("once brigade has done the blocker, it is no longer blocked", ready, line)
    line = line_of(lead, blocker)
    report.check("the lead's TaskList shows the blocker as done", "[completed]" in line, line)


if __name__ == "__main__":
    prove(scenario, "in-process")
