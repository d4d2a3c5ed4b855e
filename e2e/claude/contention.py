"""Many brigade processes and a real Claude Code write the same files at the same time.

A message, member or task that brigade acknowledged must be there afterwards, once, whatever the
real program did meanwhile. What the real program loses of its own is told as a figure.
"""

import json
import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from house import eventually, prove, read_json

WRITERS = [f"w{number}" for number in range(8)]
MAILS, TASKS = 25, 10
ALL_MAIL = {f"mail {writer}/{number:02}" for writer in WRITERS for number in range(MAILS)}
MAIL = re.compile(r"mail w\d/\d\d")


def scenario(house, report, short):
    lead = house.start_lead("contention")
    for name in WRITERS:
        house.brigade("team", "join", name, "--agent-type", "codex")
    for reader in ("carol",) if short else ("carol", "cora", "cleo"):
        house.brigade("team", "join", reader, "--agent-type", "codex")
        shared_inbox(house, report, lead, reader)
    house.spawn("alice").rest()
    for start in (0,) if short else (0, 100, 200):
        joins(house, report, [f"m{start + number}" for number in range(20 if short else 60)])
    task_board(house, report, lead)
    # Last, because the lead reads its inbox at leisure only when it has nothing else to do.
    leads_inbox(house, report, lead)
    house.check_locks(report)


class Writers:
    """Eight loops at once, each running one brigade process after the other."""

    def __init__(self, pause, count, command):
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(len(WRITERS))
        self._loops = [self._pool.submit(self._loop, w, pause, count, command) for w in WRITERS]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A scenario that breaks off must not leave loops writing into a house that is gone.
        self._stop.set()
        self._pool.shutdown()

    def _loop(self, writer, pause, count, command):
        refused = []
        for number in range(count):
            done = command(writer, number)
            if done.returncode != 0:
                refused.append(f"{writer}/{number}: {done.stderr.strip()}")
            if self._stop.wait(pause):
                break
        return refused

    def at_work(self):
        return not all(loop.done() for loop in self._loops)

    def refused(self):
        """Waits for the loops; what brigade did not acknowledge."""
        return [line for loop in self._loops for line in loop.result()]


def send_to(house, to, pause):
    def send(writer, number):
        return house.try_brigade("send", to, f"mail {writer}/{number:02}", by=writer)

    return Writers(pause, MAILS, send)


def shared_inbox(house, report, lead, reader):
    inbox = house.inbox(reader)
    claimed, failed, number = set(), 0, 0
    with send_to(house, reader, 0.02) as writers:
        while writers.at_work() or number < 15:
            texts = [f"lead {number + extra}" for extra in range(5)]
            outcomes = lead.calls(*[house.message(reader, text) for text in texts])
            done = {text for text, outcome in zip(texts, outcomes) if outcome.says_success()}
            claimed |= done
            failed += len(texts) - len(done)
            number += len(texts)
        refused = writers.refused()
    what = f"{reader}'s inbox"
    report.check(f"{what}: every brigade send is acknowledged", not refused, refused)

    def found():
        return [entry["text"] for entry in read_json(inbox) if entry["text"] in ALL_MAIL]

    eventually(lambda: len(found()) >= len(ALL_MAIL), 10)
    ours, whole = found(), sorted(ALL_MAIL)
    report.check(f"{what}: all {len(whole)} of ours, each once", sorted(ours) == whole, missing(ours))
    orders = {writer: [text for text in ours if f" {writer}/" in text] for writer in WRITERS}
    kept = all(order == sorted(order) for order in orders.values())
    report.check(f"{what}: each sender's mail is in its order", kept, orders)
    entries = read_json(inbox)
    bad = [entry for entry in entries if not well_formed(entry)]
    report.check(f"{what}: every entry is well-formed", not bad, bad[:3])
    lost = claimed - {entry["text"] for entry in entries}
    report.figure("the lead's own sends told as done but missing", f"{len(lost)} of {len(claimed)}")
    report.figure("the lead's own sends told as failed", failed)


def well_formed(entry):
    strings = all(isinstance(entry.get(key), str) for key in ("from", "text", "timestamp"))
    ours = not MAIL.match(str(entry.get("text"))) or isinstance(entry.get("msg_id"), str)
    return strings and isinstance(entry.get("read"), bool) and ours


def missing(texts):
    counts = Counter(texts)
    return f"{len(ALL_MAIL - counts.keys())} missing, {sum(counts.values()) - len(counts)} too many"


def joins(house, report, names):
    """Members join while a native teammate writes its own isActive into the same file.

    The old version takes no lock on config.json and writes it in place, so it can write a member
    away some tenths of a second after the join; a join has to notice and mend that.
    """

    def join_all():
        for name in names:
            house.brigade("team", "join", name, "--agent-type", "codex")
            time.sleep(0.1)

    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(join_all)
        while not joining.done():
            # Every message is a turn for alice, and a turn writes her isActive twice.
            house.brigade("send", "alice", "poke", by="carol")
            time.sleep(0.3)
        joining.result()
    time.sleep(2)  # alice's last turn still has to write
    members = house.members()
    gone = [name for name in names if name not in members]
    report.check(f"config.json: all {len(names)} who joined are members", not gone, f"without {gone}")
    twice = [name for name, count in Counter(members).items() if count > 1]
    report.check("config.json: no member stands twice", not twice, twice)
    stayed = {"team-lead", "alice", "carol"} <= set(members)
    report.check("config.json: lead, alice and carol are still members", stayed, members)


def task_board(house, report, lead):
    lead.call("TaskCreate", {"subject": "the lead's first", "description": "d"})

    def add(writer, number):
        return house.try_brigade("task", "add", f"task {writer}/{number:02}", by=writer)

    made = failed = 0
    create = ("TaskCreate", {"subject": "the lead's", "description": "d"})
    with Writers(0.03, TASKS, add) as writers:
        while writers.at_work():
            outcomes = lead.calls(create, create, create)
            done = sum("created successfully" in outcome.text for outcome in outcomes)
            made += done
            failed += len(outcomes) - done
        refused = writers.refused()
    report.check("tasks: every brigade task is acknowledged", not refused, refused)
    tasks = {path.stem: read_json(path) for path in house.tasks.glob("*.json")}
    subjects = Counter(task["subject"] for task in tasks.values())
    wanted = [f"task {writer}/{number:02}" for writer in WRITERS for number in range(TASKS)]
    kept = all(subjects[subject] == 1 for subject in wanted)
    report.check(f"tasks: all {len(wanted)} of ours, each once", kept, subjects)
    own_ids = all(task["id"] == stem for stem, task in tasks.items())
    report.check("tasks: each file holds the task of its name", own_ids)
    listed = set(re.findall(r"^#\d+ \[pending\] (task w\d/\d\d)", lead.call("TaskList", {}).text, re.M))
    unseen = set(wanted) - listed
    report.check("tasks: the lead's TaskList shows every one of ours", not unseen, f"not {unseen}")
    seen = sum(task["subject"] == "the lead's" for task in house.brigade("task", "list"))
    report.check(f"tasks: brigade lists the {made} the lead was told it made", seen >= made, seen)
    report.figure("the lead's own TaskCreate calls done, failed", f"{made}, {failed}")


def leads_inbox(house, report, lead):
    with send_to(house, "team-lead", 0.05) as writers:
        lead.rest()
        refused = writers.refused()
    what, number = "the lead's inbox", len(ALL_MAIL)
    report.check(f"{what}: every brigade send is acknowledged", not refused, refused)

    def deliveries():
        return Counter(MAIL.findall(lead.heard()))

    eventually(lambda: len(deliveries()) == number, 10)
    told = deliveries()
    repeats = told.total() - len(told)
    report.figure(f"{what}: brought before the model", f"{len(told)} of {number}, {repeats} repeats")
    entries = [entry for entry in read_json(house.inbox("team-lead")) if entry["text"] in ALL_MAIL]
    report.figure(f"{what}: left unread in the file", sum(not entry["read"] for entry in entries))
    if house.version == "new":
        # It throws away what it has read, so only the model's turns can tell.
        report.check(f"{what}: all {number} reach the model", told.keys() == ALL_MAIL, len(told))
    else:
        # What all of it is read, brigade takes out of the file and keeps in its history.
        texts = [entry["text"] for entry in entries]
        texts += [text for text in read_before(house) if text in ALL_MAIL - set(texts)]
        once = sorted(texts) == sorted(ALL_MAIL)
        whole = f"{what}: all {number} of ours in the file or read before, each once"
        report.check(whole, once, missing(texts))
        unseen = len(ALL_MAIL - told.keys() - {e["text"] for e in entries if not e["read"]})
        report.figure(f"{what}: old marks unread mail read", f"{unseen} of {number}")


def read_before(house):
    """The texts that the history says were sent to the lead once, and read."""
    events = [json.loads(line)["event"] for line in house.try_brigade("log").stdout.splitlines()]
    to_lead = [event for event in events if next(iter(event.values())).get("to") == "team-lead"]
    read = {event["read"]["key"] for event in to_lead if "read" in event}
    sent = [event["sent"] for event in to_lead if "sent" in event]
    return [one["message"]["text"] for one in sent if one["key"] in read]


if __name__ == "__main__":
    prove(scenario, "tmux")
