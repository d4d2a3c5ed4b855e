"""Calls the Python functions of claude-anyteam 0.8.4, which bundles claude-code-teams-mcp as `claude_teams`.

    python anyteam.py <root> <team> <name> <reader>

The commands on standard input are documented at the top of src/main.rs. The team is in $HOME.
"""

import sys
import time

from claude_anyteam import protocol_io
from claude_anyteam.watch_inbox import WatchInbox
from claude_teams import messaging, tasks

_, team, name, reader = sys.argv[1:]


def say(line):
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


def text(of, number):
    return f"{of}/{number} ".ljust(500, ".")


def send(number):
    messaging.send_plain_message(team, name, reader, text(name, number), summary="a message")


def unread():
    return messaging.read_inbox(team, name, unread_only=True, mark_as_read=False)


def take():
    return messaging.read_inbox(team, name, unread_only=True, mark_as_read=True)


def claim(task):
    """Claims a task. claude-anyteam raises ValueError for every error."""
    try:
        protocol_io.claim_task(team, task, name, "working")
        return "claimed"
    except ValueError as error:
        return "taken" if "cannot claim" in str(error) else f"failed {error}"


def watch():
    inbox = WatchInbox.for_team(team, name)
    # The thread of WatchInbox has to run before the first message is sent.
    time.sleep(0.5)
    say("ready")
    while True:
        inbox.wait_for_change(2.0)
        for message in take():
            say(f"heard {message.text.split(' ')[0]} {time.time_ns()}")


def run(what, *words):
    start = time.perf_counter_ns()
    if what == "burst":
        for number in range(int(words[0]), int(words[0]) + int(words[1])):
            try:
                send(number)
                say(f"acked {number}")
            except Exception as error:
                say(f"refused {number} {error!r}")
        line = "end"
    elif what == "claims":
        for task in range(1, int(words[0]) + 1):
            try:
                became = claim(str(task))
            except Exception as error:
                became = f"failed {error!r}"
            if became != "taken":
                first, _, why = became.partition(" ")
                say(f"{first} {task} {why}")
        line = "end"
    elif what == "send":
        send(int(words[0]))
        line = f"sent {words[0]}"
    elif what == "read":
        line = f"read {len(unread())}"
    elif what == "mark":
        line = f"marked {len(take())}"
    elif what == "add":
        line = f"added {tasks.create_task(team, f'task {words[0]}', text('task', words[0])).id}"
    elif what == "claim":
        line = f"{claim(words[0])} {words[0]}"
    elif what == "watch":
        watch()
    say(f"{line} {(time.perf_counter_ns() - start) // 1000}")


say("ready")
for line in sys.stdin:
    run(*line.split())
