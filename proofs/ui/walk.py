"""A person leads a real Codex from `brigade ui`, in a real tmux: looks at everything, writes to it and reads the
answer, lets it run one command and not another, hands out a task, leaves."""

import json

from desk import TEAM, prove_at_desk, script
from house import eventually
from shell import Shell

# Each view: its key, and words that only it has.
VIEWS = {
    "team": ("1", ["WORKS ON"]),
    "mail": ("2", ["All mail"]),
    "board": ("3", ["No tasks yet"]),
    "approvals": ("4", ["No requests are waiting"]),
    "timeline": ("5", ["per column"]),
    "member": ("6", ["· team-lead  ○ cody"]),
}
PATIENCE = 30


def scenario(desk, report, short):
    desk.with_codex()
    file = [f'team = "{TEAM}"', "", "[members.cody]", 'agent = "codex"', 'place = "headless"', 'access = "ask"']
    (desk.project / "brigade.toml").write_text("\n".join(file) + "\n")
    desk.do("up")
    try:
        tmux = desk.tmux()
        shell = Shell(desk, tmux)
        tmux.run(" ".join(desk.ui()))
        opens = tmux.shows(TEAM, "2 members", "cody", patience=PATIENCE)
        report.check("it opens, with the team and its members", opens, tmux.screen())
        views(report, tmux)
        talk(desk, report, tmux)
        approve(desk, report, tmux)
        deny(desk, report, tmux)
        board(desk, report, tmux)
        palette(report, tmux)
        tmux.press("q")
        shell.check(report, "after a morning's work and q", 0)
    finally:
        desk.run("down", "--now")


def views(report, tmux):
    """Each by its key; its words are there, and those of the others are not."""
    for name, (key, words) in VIEWS.items():
        tmux.press(key)
        there = tmux.shows(*words)
        others = [word for other, (_, those) in VIEWS.items() if other != name for word in those]
        strange = [word for word in others if word not in words and word in tmux.screen()]
        report.check(f"{key} shows the view {name}", there and not strange, (strange, tmux.screen()))
    tmux.press("1")


def send(tmux, text):
    """Writes to the member that is chosen, by the form."""
    tmux.press("1")
    tmux.press("s")
    if not tmux.shows("text", "cody"):
        raise RuntimeError(f"no form to write in: {tmux.screen()}")
    tmux.type(text)
    tmux.press("Enter")


def talk(desk, report, tmux):
    question, answer = "How far are you?", "cody has read the whole plan"
    steps = [
        {"tool": "team/send_message", "args": {"to": "team-lead", "message": answer, "summary": "how far"}},
        {"say": "I have answered."},
    ]
    send(tmux, f"{question} {script(*steps)}")
    report.check("what was sent is said", tmux.shows("sent to cody"), tmux.screen())
    told = eventually(lambda: any(question in turn["heard"] for turn in desk.model.turns()), PATIENCE)
    report.check("the message is with Codex's model", told)
    tmux.press("2")
    shown = tmux.shows(question, answer, patience=PATIENCE)
    report.check("the mail shows the question and the real Codex's answer", shown, tmux.screen())
    # The question came before its model; the answer lies in the lead's inbox until it is read.
    states = tmux.shows("shown", patience=PATIENCE) and tmux.shows("○ sent")
    report.check("and how far each has come", states, tmux.screen())
    tmux.press("1")
    idle = tmux.shows("idle", patience=PATIENCE)
    report.check("the team says that it is idle afterwards", idle, tmux.screen())


def ask(command, why):
    arguments = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": why}
    return [{"tool": "exec_command", "args": arguments}, {"say": "{result}"}]


def asked(desk, report, tmux, made, what, times):
    """Has Codex ask leave to make a file, for the so manieth time, and looks at how that is shown."""
    send(tmux, f"Make a file. {script(*ask(f'touch {made}', f'to see {what}'))}")
    waits = tmux.shows("1 for you", patience=PATIENCE)
    report.check(f"{what}: the title says that somebody waits for you", waits, tmux.screen())
    rung = tmux.raw().count(b"\x07\x1b]9;cody asks")
    report.check(f"{what}: a bell was rung, once", rung == times, rung)
    tmux.press("4")
    tmux.lacks("WORKS ON")
    screen = tmux.screen()
    shown = made.name in screen and "cody" in screen and desk.project.name in screen
    report.check(f"{what}: the approvals show who, the command and the directory", shown, screen)
    report.check(f"{what}: nothing has happened before the answer", not made.exists())


def approve(desk, report, tmux):
    made = desk.project / "made-when-approved"
    asked(desk, report, tmux, made, "what is approved", 1)
    tmux.press("a")
    question = tmux.shows("Approve cody")
    report.check("a asks before it answers", question and not made.exists(), tmux.screen())
    tmux.press("n")
    tmux.lacks("Approve cody")
    report.check("n leaves it open", not made.exists() and "1 for you" in tmux.screen(), tmux.screen())
    tmux.press("a")
    tmux.shows("Approve cody")
    tmux.press("y")
    done = eventually(made.exists, PATIENCE)
    report.check("y approves: the real Codex has run the command", done, tmux.screen())
    gone = tmux.lacks("for you", patience=PATIENCE)
    report.check("nobody waits for you any more", gone, tmux.screen())
    hands = [event for event in answers(desk) if event["yes"]]
    report.check("the journal says that a person did", [event["hand"] for event in hands] == ["person"], hands)


def deny(desk, report, tmux):
    made = desk.project / "made-when-denied"
    asked(desk, report, tmux, made, "what is denied", 2)
    tmux.press("d")
    tmux.shows("reason")
    reason = "not before lunch"
    tmux.type(reason)
    tmux.press("Enter")
    gone = tmux.lacks("for you", patience=PATIENCE)
    report.check("d and a reason: nobody waits for you any more", gone, tmux.screen())
    # Codex takes a no without a reason; that stands in the journal.
    told = eventually(lambda: "rejected by user" in desk.model.last_input(), PATIENCE)
    report.check("the real Codex's model is told no", told, desk.model.last_input()[-600:])
    reasons = [event.get("reason") for event in answers(desk) if not event["yes"]]
    report.check("the journal has the reason", reasons == [reason], reasons)
    report.check("the command was not run", not made.exists())


def answers(desk):
    return [record["event"]["answered"] for record in desk.log() if "answered" in record["event"]]


def board(desk, report, tmux):
    subject = "sharpen the knives"
    tmux.press("3", "a")
    tmux.shows("Add a task")
    tmux.type(subject)
    tmux.press("Enter", "Enter", "Enter", "Enter")
    added = tmux.lacks("Add a task") and tmux.shows("Ready 1", subject)
    report.check("a task is added, and on the board", added, tmux.screen())
    tmux.press("Home")
    tmux.press("o")
    report.check("it can be given to somebody", tmux.shows("Assign task 1 to"), tmux.screen())
    tmux.type("cody")
    tmux.press("Enter")
    owned = eventually(lambda: task(desk).get("owner") == "cody", 10)
    report.check("and is cody's on disk", owned, task(desk))
    seen = tmux.lacks("Assign task 1 to") and tmux.shows(subject, "cody")
    report.check("and on the board", seen, tmux.screen())
    tmux.press("d")
    tmux.shows("Mark task 1 as done?")
    tmux.press("y")
    done = eventually(lambda: task(desk)["status"] == "completed", 10)
    report.check("d and y: it is done", done and tmux.shows("1/1 done"), task(desk))


def task(desk):
    path = desk.tasks / "1.json"
    return json.loads(path.read_text()) if path.exists() else {}


def palette(report, tmux):
    tmux.press("1")
    tmux.press(":")
    tmux.shows("Commands")
    tmux.type("work over time")
    tmux.press("Enter")
    there = tmux.shows(*VIEWS["timeline"][1]) and tmux.lacks("WORKS ON")
    report.check("the palette finds a command by its words", there, tmux.screen())
    tmux.press("?")
    report.check("? shows the keys", tmux.shows("Keys in"), tmux.screen())
    tmux.press("Escape")
    tmux.lacks("Keys in")


prove_at_desk(scenario)
