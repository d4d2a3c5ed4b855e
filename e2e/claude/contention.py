"""Lets many brigade processes and a real Claude Code write the same files at the same time.

Every message, member and task that brigade acknowledged must exist exactly once afterwards. Figures report how many
of its own writes Claude Code loses.
"""

import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from lib.env import run_scenario
from lib.util import eventually, read_json

WRITERS = [f"w{number}" for number in range(8)]
MAILS, TASKS = 25, 10
ALL_MAIL = {f"mail {writer}/{number:02}" for writer in WRITERS for number in range(MAILS)}
MAIL = re.compile(r"mail w\d/\d\d")


def scenario(env, report, short):
    lead = env.start_lead("contention")
    for name in WRITERS:
        env.brigade("team", "join", name, "--agent-type", "codex")
    for reader in ("carol",) if short else ("carol", "cora", "cleo"):
        env.brigade("team", "join", reader, "--agent-type", "codex")
        shared_inbox(env, report, lead, reader)
    env.spawn("alice").only_listen()
    for start in (0,) if short else (0, 100, 200):
        joins(env, report, [f"m{start + number}" for number in range(20 if short else 60)])
    task_board(env, report, lead)
    # Test the lead's inbox last, because the lead reads its inbox only when it has nothing else to do.
    leads_inbox(env, report, lead)
    env.check_locks(report)


class Writers:
    """Runs eight loops at once. Each loop runs one brigade process after the other."""

    def __init__(self, pause, count, command):
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(len(WRITERS))
        self._loops = [self._pool.submit(self._loop, w, pause, count, command) for w in WRITERS]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Stop the loops even after an error, because they must not write into an environment that no longer exists.
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

    def are_running(self):
        return not all(loop.done() for loop in self._loops)

    def refused(self):
        """Waits for the loops; returns the errors of the writes that brigade did not acknowledge."""
        return [line for loop in self._loops for line in loop.result()]


def send_to(env, to, pause):
    def send(writer, number):
        return env.try_brigade("send", to, f"mail {writer}/{number:02}", by=writer)

    return Writers(pause, MAILS, send)


def shared_inbox(env, report, lead, reader):
    inbox = env.inbox(reader)
    claimed, failed, number = set(), 0, 0
    with send_to(env, reader, 0.02) as writers:
        while writers.are_running() or number < 15:
            texts = [f"lead {number + extra}" for extra in range(5)]
            results = lead.calls(*[env.message(reader, text) for text in texts])
            done = {text for text, result in zip(texts, results) if result.is_success()}
            claimed |= done
            failed += len(texts) - len(done)
            number += len(texts)
        refused = writers.refused()
    file = f"{reader}'s inbox"
    report.check(f"{file}: every brigade send is acknowledged", not refused, refused)

    def found():
        return [entry["text"] for entry in read_json(inbox) if entry["text"] in ALL_MAIL]

    eventually(lambda: len(found()) >= len(ALL_MAIL), 10)
    ours, expected = found(), sorted(ALL_MAIL)
    report.check(f"{file}: has brigade's {len(expected)} messages once each", sorted(ours) == expected, missing(ours))
    orders = {writer: [text for text in ours if f" {writer}/" in text] for writer in WRITERS}
    sorted_ = all(order == sorted(order) for order in orders.values())
    report.check(f"{file}: the messages of each sender are in order", sorted_, orders)
    entries = read_json(inbox)
    bad = [entry for entry in entries if not well_formed(entry)]
    report.check(f"{file}: every entry is well-formed", not bad, bad[:3])
    lost = claimed - {entry["text"] for entry in entries}
    report.figure("the lead's own sends that reported success but are missing", f"{len(lost)} of {len(claimed)}")
    report.figure("the lead's own sends that reported failure", failed)


def well_formed(entry):
    strings = all(isinstance(entry.get(key), str) for key in ("from", "text", "timestamp"))
    ours = not MAIL.match(str(entry.get("text"))) or isinstance(entry.get("msg_id"), str)
    return strings and isinstance(entry.get("read"), bool) and ours


def missing(texts):
    counts = Counter(texts)
    return f"{len(ALL_MAIL - counts.keys())} missing, {sum(counts.values()) - len(counts)} too many"


def joins(env, report, names):
    """Lets members join while a native teammate writes its own isActive into the same file.

    The old Claude Code writes config.json in place and without a lock. Shortly after a join, it can therefore write
    the file without the new member. `brigade team join` has to notice and repair that.
    """

    def join_all():
        for name in names:
            env.brigade("team", "join", name, "--agent-type", "codex")
            time.sleep(0.1)

    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(join_all)
        while not joining.done():
            # Every message starts a turn of alice, and she writes isActive at the start and end of each turn.
            env.brigade("send", "alice", "poke", by="carol")
            time.sleep(0.3)
        joining.result()
    time.sleep(2)  # wait, because alice's last turn may still write config.json
    members = env.members()
    gone = [name for name in names if name not in members]
    report.check(f"config.json: all {len(names)} members that joined are listed", not gone, f"without {gone}")
    twice = [name for name, count in Counter(members).items() if count > 1]
    report.check("config.json: no member is listed twice", not twice, twice)
    stayed = {"team-lead", "alice", "carol"} <= set(members)
    report.check("config.json: lead, alice and carol are still members", stayed, members)


def task_board(env, report, lead):
    lead.call("TaskCreate", {"subject": "the lead's first", "description": "d"})

    def add(writer, number):
        return env.try_brigade("task", "add", f"task {writer}/{number:02}", by=writer)

    made = failed = 0
    create = ("TaskCreate", {"subject": "the lead's", "description": "d"})
    with Writers(0.03, TASKS, add) as writers:
        while writers.are_running():
            results = lead.calls(create, create, create)
            done = sum("created successfully" in result.text for result in results)
            made += done
            failed += len(results) - done
        refused = writers.refused()
    report.check("tasks: every brigade task is acknowledged", not refused, refused)
    tasks = {path.stem: read_json(path) for path in env.tasks.glob("*.json")}
    subjects = Counter(task["subject"] for task in tasks.values())
    expected = [f"task {writer}/{number:02}" for writer in WRITERS for number in range(TASKS)]
    once = all(subjects[subject] == 1 for subject in expected)
    report.check(f"tasks: all {len(expected)} of brigade's tasks are there, each once", once, subjects)
    own_ids = all(task["id"] == stem for stem, task in tasks.items())
    report.check("tasks: the id in each file matches the file name", own_ids)
    listed = set(re.findall(r"^#\d+ \[pending\] (task w\d/\d\d)", lead.call("TaskList", {}).text, re.M))
    unseen = set(expected) - listed
    report.check("tasks: the lead's TaskList shows every task of brigade", not unseen, f"not {unseen}")
    seen = sum(task["subject"] == "the lead's" for task in env.brigade("task", "list"))
    report.check(f"tasks: brigade lists the {made} tasks that the lead created", seen >= made, seen)
    report.figure("the lead's own TaskCreate calls that succeeded, failed", f"{made}, {failed}")


def leads_inbox(env, report, lead):
    with send_to(env, "team-lead", 0.05) as writers:
        lead.only_listen()
        refused = writers.refused()
    file, number = "the lead's inbox", len(ALL_MAIL)
    report.check(f"{file}: every brigade send is acknowledged", not refused, refused)

    def deliveries():
        return Counter(MAIL.findall(lead.input()))

    eventually(lambda: len(deliveries()) == number, 10)
    delivered = deliveries()
    repeats = delivered.total() - len(delivered)
    report.figure(f"{file}: received by the model", f"{len(delivered)} of {number}, {repeats} repeats")
    entries = [entry for entry in read_json(env.inbox("team-lead")) if entry["text"] in ALL_MAIL]
    report.figure(f"{file}: left unread in the file", sum(not entry["read"] for entry in entries))
    if env.version == "new":
        # Once the new Claude Code has read a message, it removes the message from the inbox file. Only its model's
        # input shows that the message arrived.
        report.check(f"{file}: all {number} messages reach the model", delivered.keys() == ALL_MAIL, len(delivered))
    else:
        # brigade moves read messages from the inbox file to its journal.
        texts = [entry["text"] for entry in entries]
        texts += [text for text in read_before(env) if text in ALL_MAIL - set(texts)]
        once = sorted(texts) == sorted(ALL_MAIL)
        report.check(f"{file}: all {number} messages are in the file or the journal, each once", once, missing(texts))
        unseen = len(ALL_MAIL - delivered.keys() - {e["text"] for e in entries if not e["read"]})
        report.figure(f"{file}: messages marked as read that the model did not receive", f"{unseen} of {number}")


def read_before(env):
    """Returns the texts of those messages to the lead that the journal records as read."""
    events = [record["event"] for record in env.log()]
    to_lead = [event for event in events if next(iter(event.values())).get("to") == "team-lead"]
    read = {event["read"]["key"] for event in to_lead if "read" in event}
    sent = [event["sent"] for event in to_lead if "sent" in event]
    return [one["message"]["text"] for one in sent if one["key"] in read]


if __name__ == "__main__":
    run_scenario(scenario)
