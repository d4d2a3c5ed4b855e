"""brigade plays carol, a teammate that is no Claude, on a team led by a real Claude Code.

Mail and work reach her, her words reach the lead's model and a native teammate's, and she can go.
"""

import json
import time

from house import eventually, prove, read_json


def scenario(house, report, short):
    lead = house.start_lead("outside")
    # A new lead reads its inbox only while a teammate lives that it started itself.
    alice = house.spawn("alice")
    house.brigade("team", "join", "carol", "--agent-type", "codex", "--model", "gpt-5")
    views(house, report)
    mail_in(house, report, lead, alice)
    work_in(house, report, lead)
    mail_out(house, report, lead, alice)
    leaving(house, report)
    coming_and_going(house, report, 5 if short else 40)


def views(house, report):
    # More than once, because alice may write her isActive between the two looks.
    same = eventually(lambda: house.brigade("team", "show") == read_json(house.config), 3)
    report.check("brigade team show is config.json", same, house.brigade("team", "show"))
    listed = house.brigade("team", "list")
    report.check("brigade team list names the team", house.team in json.dumps(listed), listed)
    report.check("a new member's inbox is empty", house.mail("carol") == [], house.mail("carol"))


def unread(house):
    return house.mail("carol", "--unread")


def mail_in(house, report, lead, alice):
    sent = lead.call(*house.message("carol", "hello from the lead"))
    got = unread(house)
    arrived = [(entry["from"], entry["text"]) for entry in got] == [("team-lead", "hello from the lead")]
    report.check("the lead's SendMessage arrives", sent.says_success() and arrived, (sent, got))
    sent = alice.call(*house.message("carol", "hello from alice"))
    got = unread(house)
    arrived = any((entry["from"], entry["text"]) == ("alice", "hello from alice") for entry in got)
    report.check("a native teammate's SendMessage arrives", sent.says_success() and arrived, (sent, got))
    if house.version == "old":
        form = {"type": "broadcast", "content": "to everybody", "summary": "a summary"}
        sent = lead.call("SendMessage", form)
        got = unread(house)
        arrived = any(entry["text"] == "to everybody" for entry in got)
        report.check("the lead's broadcast arrives", arrived, (sent, got))
    else:
        sent = lead.call("SendMessage", {"to": "*", "message": "to everybody", "summary": "a summary"})
        report.figure("the new lead has no broadcast; it is told", sent.text.splitlines()[0][:120])
    marked = house.mail("carol", "--unread", "--mark-read")
    same = [entry["text"] for entry in marked] == [entry["text"] for entry in got]
    report.check("reading with --mark-read shows the mail once more", same, marked)
    report.check("and then nothing is unread", unread(house) == [], unread(house))


def work_in(house, report, lead):
    lead.call("TaskCreate", {"subject": "review", "description": "look it over"})
    task = next(task for task in house.brigade("task", "list") if task["subject"] == "review")
    lead.call("TaskUpdate", {"taskId": task["id"], "owner": "carol"})
    bodies = [json.loads(entry["text"]) for entry in unread(house) if entry["text"].startswith("{")]
    work = [(body["type"], body["taskId"], body["assignedBy"]) for body in bodies]
    arrived = work == [("task_assignment", task["id"], "team-lead")]
    report.check("an assignment arrives as mail", arrived, bodies)
    house.brigade("task", "done", task["id"], by="carol")
    listed = lead.call("TaskList", {}).text
    report.check("the lead sees the work done", f"#{task['id']} [completed]" in listed, listed)


def mail_out(house, report, lead, alice):
    lead.rest()
    alice.rest()
    begun = time.monotonic()
    words = "carol reports <done> & waits"
    house.brigade("send", "team-lead", words, "--summary", "a report", by="carol")
    heard = lead.hears(words)
    report.figure("from brigade send to the lead's model", f"{time.monotonic() - begun:.2f} s")
    turn = next((part for part in lead.heard().split("<teammate-message") if words in part), "")
    is_turn = heard and 'teammate_id="carol"' in turn
    report.check("carol's reply is a turn of the lead's model", is_turn, turn)
    report.check("with its summary", 'summary="a report"' in turn, turn)
    house.brigade("send", "alice", "carol asks alice", by="carol")
    heard = alice.hears("carol asks alice")
    report.check("carol's message is a turn of a native teammate's model", heard, alice.heard()[-500:])
    house.brigade("broadcast", "carol tells everybody", by="carol")
    both = lead.hears("carol tells everybody") and alice.hears("carol tells everybody")
    report.check("carol's broadcast reaches both models", both)
    own = [entry["text"] for entry in house.mail("carol")]
    report.check("and not herself", "carol tells everybody" not in own, own)


def leaving(house, report):
    before = [member for member in read_json(house.config)["members"] if member["name"] != "carol"]
    house.brigade("team", "leave", "carol")
    after = read_json(house.config)["members"]
    still = [[member | {"isActive": None} for member in members] for members in (before, after)]
    report.check("brigade team leave removes carol and nobody else", still[0] == still[1], after)


def coming_and_going(house, report, times):
    """Guests leave while a native teammate writes isActive: does its late write bring them back?

    The old version reads and writes config.json without a lock, so there it is only told.
    """
    house.brigade("team", "join", "dora", "--agent-type", "codex")
    for number in range(times):
        house.brigade("team", "join", f"guest{number}", "--agent-type", "codex")
        house.brigade("send", "alice", f"poke {number}", by="dora")
        # Her turn begins at her next look into the inbox and writes isActive at both ends.
        house.agent("alice").hears(f"poke {number}", 5)
        house.brigade("team", "leave", f"guest{number}")
    time.sleep(2)
    back = [name for name in house.members() if name.startswith("guest")]
    if house.version == "new":
        report.check(f"no late isActive write brings back one of {times} who left", not back, back)
    else:
        report.figure("brought back by a late isActive write", f"{len(back)} of {times}")
    members = house.members()
    stayed = {"team-lead", "alice", "dora"} <= set(members)
    report.check("those who stayed are still members", stayed, members)
    house.check_locks(report)


if __name__ == "__main__":
    prove(scenario, "tmux")
