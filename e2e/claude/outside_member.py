"""Tests that brigade can act for carol, a teammate that is not Claude Code, on a team led by a real Claude Code.

Messages and tasks reach her, her messages reach the models of the lead and of a native teammate, and she can leave.
"""

import json
import time

from lib.env import run_scenario
from lib.util import eventually, read_json


def scenario(env, report, short):
    lead = env.start_lead("outside")
    # Start a teammate: the new Claude Code reads its inbox only while a teammate that it started is running.
    alice = env.spawn("alice")
    env.brigade("team", "join", "carol", "--agent-type", "codex", "--model", "gpt-5")
    views(env, report)
    mail_in(env, report, lead, alice)
    work_in(env, report, lead)
    mail_out(env, report, lead, alice)
    leaving(env, report)
    coming_and_going(env, report, 5 if short else 40)


def views(env, report):
    # Compare repeatedly, because alice may write her isActive between the two reads.
    same = eventually(lambda: env.brigade("team", "show") == read_json(env.config), 3)
    report.check("brigade team show prints config.json", same, env.brigade("team", "show"))
    listed = env.brigade("team", "list")
    report.check("brigade team list has the team", env.team in json.dumps(listed), listed)
    report.check("a new member's inbox is empty", env.mail("carol") == [], env.mail("carol"))


def unread(env):
    return env.mail("carol", "--unread")


def mail_in(env, report, lead, alice):
    sent = lead.call(*env.message("carol", "hello from the lead"))
    got = unread(env)
    arrived = [(entry["from"], entry["text"]) for entry in got] == [("team-lead", "hello from the lead")]
    report.check("the lead's SendMessage arrives", sent.is_success() and arrived, (sent, got))
    sent = alice.call(*env.message("carol", "hello from alice"))
    got = unread(env)
    arrived = any((entry["from"], entry["text"]) == ("alice", "hello from alice") for entry in got)
    report.check("a native teammate's SendMessage arrives", sent.is_success() and arrived, (sent, got))
    if env.version == "old":
        arguments = {"type": "broadcast", "content": "to everybody", "summary": "a summary"}
        sent = lead.call("SendMessage", arguments)
        got = unread(env)
        arrived = any(entry["text"] == "to everybody" for entry in got)
        report.check("the lead's broadcast arrives", arrived, (sent, got))
    else:
        sent = lead.call("SendMessage", {"to": "*", "message": "to everybody", "summary": "a summary"})
        report.figure("the new version has no broadcast; its tool answers", sent.text.splitlines()[0][:120])
    marked = env.mail("carol", "--unread", "--mark-read")
    same = [entry["text"] for entry in marked] == [entry["text"] for entry in got]
    report.check("reading with --mark-read prints the messages once more", same, marked)
    report.check("after --mark-read, no message is unread", unread(env) == [], unread(env))


def work_in(env, report, lead):
    lead.call("TaskCreate", {"subject": "review", "description": "look it over"})
    task = env.task_id("review")
    lead.call("TaskUpdate", {"taskId": task, "owner": "carol"})
    bodies = [json.loads(entry["text"]) for entry in unread(env) if entry["text"].startswith("{")]
    work = [(body["type"], body["taskId"], body["assignedBy"]) for body in bodies]
    arrived = work == [("task_assignment", task, "team-lead")]
    report.check("an assignment arrives as a message", arrived, bodies)
    env.brigade("task", "done", task, by="carol")
    line = lead.task_line(task)
    report.check("the lead sees the task completed", line.startswith(f"#{task} [completed]"), line)


def mail_out(env, report, lead, alice):
    lead.only_listen()
    alice.only_listen()
    started = time.monotonic()
    text = "carol reports <done> & waits"
    env.brigade("send", "team-lead", text, "--summary", "a report", by="carol")
    received = lead.receives(text)
    report.figure("time from brigade send to the lead's model", f"{time.monotonic() - started:.2f} s")
    turn = lead.message_with(text)
    is_turn = received and 'teammate_id="carol"' in turn
    report.check("the lead's model gets carol's reply as a turn", is_turn, turn)
    report.check("the lead's model gets the summary of carol's reply", 'summary="a report"' in turn, turn)
    env.brigade("send", "alice", "carol asks alice", by="carol")
    received = alice.receives("carol asks alice")
    report.check("a native teammate's model gets carol's message as a turn", received, alice.input()[-500:])
    env.brigade("broadcast", "carol tells everybody", by="carol")
    both = lead.receives("carol tells everybody") and alice.receives("carol tells everybody")
    report.check("carol's broadcast reaches both models", both)
    own = [entry["text"] for entry in env.mail("carol")]
    report.check("carol's broadcast does not reach her own inbox", "carol tells everybody" not in own, own)


def leaving(env, report):
    before = [member for member in read_json(env.config)["members"] if member["name"] != "carol"]
    env.brigade("team", "leave", "carol")
    after = read_json(env.config)["members"]
    remaining = [[member | {"isActive": None} for member in members] for members in (before, after)]
    report.check("brigade team leave removes carol and no other member", remaining[0] == remaining[1], after)


def coming_and_going(env, report, times):
    """Lets members leave while a native teammate writes its isActive, and checks that this write does not restore them.

    The old Claude Code reads and writes config.json without a lock, so its result is a figure and not a check.
    """
    env.brigade("team", "join", "dora", "--agent-type", "codex")
    for number in range(times):
        env.brigade("team", "join", f"guest{number}", "--agent-type", "codex")
        env.brigade("send", "alice", f"poke {number}", by="dora")
        # Alice's turn starts when she next polls her inbox. She writes isActive at the start and end of the turn.
        env.agent("alice").receives(f"poke {number}", 5)
        env.brigade("team", "leave", f"guest{number}")
    time.sleep(2)
    back = [name for name in env.members() if name.startswith("guest")]
    if env.version == "new":
        report.check(f"alice's late isActive writes restore none of {times} members that left", not back, back)
    else:
        report.figure("members restored by alice's late isActive writes", f"{len(back)} of {times}")
    members = env.members()
    stayed = {"team-lead", "alice", "dora"} <= set(members)
    report.check("lead, alice and dora are still members", stayed, members)
    env.check_locks(report)


if __name__ == "__main__":
    run_scenario(scenario)
