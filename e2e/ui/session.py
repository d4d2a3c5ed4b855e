"""A person uses `brigade ui` in a real tmux to lead a real Codex: opens every view, sends a message and reads the
answer, approves one command and denies another, assigns a task, and quits."""

import json

from shell_state import ShellState
from ui_env import TEAM, run_ui_scenario

from lib.scripted_model import say, script, team_tool, tool
from lib.util import eventually

# For each view: its key, and texts that only this view shows.
VIEWS = {
    "team": ("1", ["WORKS ON"]),
    "mail": ("2", ["All mail"]),
    "board": ("3", ["No tasks yet"]),
    "approvals": ("4", ["No requests are waiting"]),
    "timeline": ("5", ["per column"]),
    "member": ("6", ["· team-lead  ○ cody"]),
}
TIMEOUT = 30


def scenario(env, report, short):
    env.with_codex()
    file = [f'team = "{TEAM}"', "", "[members.cody]", 'agent = "codex"', 'place = "headless"', 'access = "ask"']
    (env.project / "brigade.toml").write_text("\n".join(file) + "\n")
    env.run_ok("up")
    try:
        tmux = env.tmux()
        shell = ShellState(env, tmux)
        tmux.run(" ".join(env.ui()))
        opens = tmux.shows(TEAM, "1 member", "cody", timeout=TIMEOUT)
        report.check("brigade ui opens and shows the team and its members", opens, tmux.screen())
        views(report, tmux)
        talk(env, report, tmux)
        approve(env, report, tmux)
        deny(env, report, tmux)
        board(env, report, tmux)
        palette(report, tmux)
        tmux.press("q")
        shell.check(report, "after the session and q", 0)
    finally:
        env.run("down", "--now")


def views(report, tmux):
    """Checks that each view shows its own texts, and no text of another view."""
    for name, (key, texts) in VIEWS.items():
        tmux.press(key)
        shown = tmux.shows(*texts)
        others = [text for other, (_, those) in VIEWS.items() if other != name for text in those]
        wrong = [text for text in others if text not in texts and text in tmux.screen()]
        report.check(f"{key} shows the view {name}", shown and not wrong, (wrong, tmux.screen()))
    tmux.press("1")


def send(tmux, text):
    """Sends a message to the selected member through the message form."""
    tmux.press("1")
    tmux.press("s")
    if not tmux.shows("text", "cody"):
        raise RuntimeError(f"the message form does not open: {tmux.screen()}")
    tmux.type(text)
    tmux.press("Enter")


def talk(env, report, tmux):
    question, answer = "How far are you?", "cody has read the whole plan"
    message = team_tool("send_message", to="team-lead", message=answer, summary="how far")
    send(tmux, f"{question} {script(message, say('I have answered.'))}")
    report.check("the UI confirms that the message was sent", tmux.shows("sent to cody"), tmux.screen())
    received = eventually(lambda: any(question in turn["heard"] for turn in env.model.turns()), TIMEOUT)
    report.check("Codex's model receives the message", received)
    tmux.press("2")
    shown = tmux.shows(question, answer, timeout=TIMEOUT)
    report.check("the mail view shows the question and the real Codex's answer", shown, tmux.screen())
    # The question was shown to Codex's model. The answer stays unread until the lead reads the inbox.
    states = tmux.shows("shown", timeout=TIMEOUT) and tmux.shows("○ sent")
    report.check("the mail view shows the delivery status of both messages", states, tmux.screen())
    tmux.press("1")
    idle = tmux.shows("idle", timeout=TIMEOUT)
    report.check("the team view shows that Codex is idle after its answer", idle, tmux.screen())


def request_permission(env, report, tmux, file, case, bells):
    """Makes Codex request permission to create a file, and checks what the UI shows. `bells` is the expected number of
    bells so far."""
    command = tool(
        "exec_command", cmd=f"touch {file}", sandbox_permissions="require_escalated", justification=f"to see {case}"
    )
    send(tmux, f"Make a file. {script(command, say('{result}'))}")
    waits = tmux.shows("1 for you", timeout=TIMEOUT)
    report.check(f"{case}: the title line shows that a request waits for you", waits, tmux.screen())
    rung = tmux.raw().count(b"\x07\x1b]9;cody asks")
    report.check(f"{case}: the bell rings once", rung == bells, rung)
    tmux.press("4")
    tmux.lacks("WORKS ON")
    screen = tmux.screen()
    shown = file.name in screen and "cody" in screen and env.project.name in screen
    report.check(f"{case}: the approvals view shows the member, the command and the directory", shown, screen)
    report.check(f"{case}: the command does not run before the answer", not file.exists())


def approve(env, report, tmux):
    file = env.project / "made-when-approved"
    request_permission(env, report, tmux, file, "approved command", 1)
    tmux.press("a")
    question = tmux.shows("Approve cody")
    report.check("the key a asks for confirmation", question and not file.exists(), tmux.screen())
    tmux.press("n")
    tmux.lacks("Approve cody")
    report.check("the key n leaves the request open", not file.exists() and "1 for you" in tmux.screen(), tmux.screen())
    tmux.press("a")
    tmux.shows("Approve cody")
    tmux.press("y")
    done = eventually(file.exists, TIMEOUT)
    report.check("the key y approves the request, and the real Codex runs the command", done, tmux.screen())
    gone = tmux.lacks("for you", timeout=TIMEOUT)
    report.check("no request waits for you any more", gone, tmux.screen())
    approvals = [event for event in answers(env) if event["yes"]]
    report.check("the journal records that a person approved", [event["hand"] for event in approvals] == ["person"], approvals)


def deny(env, report, tmux):
    file = env.project / "made-when-denied"
    request_permission(env, report, tmux, file, "denied command", 2)
    tmux.press("d")
    tmux.shows("reason")
    reason = "not before lunch"
    tmux.type(reason)
    tmux.press("Enter")
    gone = tmux.lacks("for you", timeout=TIMEOUT)
    report.check("after d and a reason, no request waits for you any more", gone, tmux.screen())
    # Codex's protocol cannot carry the reason for a denial, so only the journal has it.
    denied = eventually(lambda: "rejected by user" in env.model.last_input(), TIMEOUT)
    report.check("the real Codex reports the denial to its model", denied, env.model.last_input()[-600:])
    reasons = [event.get("reason") for event in answers(env) if not event["yes"]]
    report.check("the journal records the reason for the denial", reasons == [reason], reasons)
    report.check("the denied command was not run", not file.exists())


def answers(env):
    return [record["event"]["answered"] for record in env.log() if "answered" in record["event"]]


def board(env, report, tmux):
    subject = "sharpen the knives"
    tmux.press("3", "a")
    tmux.shows("Add a task")
    tmux.type(subject)
    tmux.press("Enter", "Enter", "Enter", "Enter")
    added = tmux.lacks("Add a task") and tmux.shows("Ready 1", subject)
    report.check("the board shows the new task", added, tmux.screen())
    tmux.press("Home")
    tmux.press("o")
    report.check("the key o asks for the owner of the task", tmux.shows("Assign task 1 to"), tmux.screen())
    tmux.type("cody")
    tmux.press("Enter")
    owned = eventually(lambda: task(env).get("owner") == "cody", 10)
    report.check("the task file names cody as the owner", owned, task(env))
    seen = tmux.lacks("Assign task 1 to") and tmux.shows(subject, "cody")
    report.check("the board shows cody as the owner", seen, tmux.screen())
    tmux.press("d")
    tmux.shows("Mark task 1 as done?")
    tmux.press("y")
    done = eventually(lambda: task(env)["status"] == "completed", 10)
    report.check("after d and y, the task is done", done and tmux.shows("1/1 done"), task(env))


def task(env):
    path = env.tasks / "1.json"
    return json.loads(path.read_text()) if path.exists() else {}


def palette(report, tmux):
    tmux.press("1")
    tmux.press(":")
    tmux.shows("Commands")
    tmux.type("work over time")
    tmux.press("Enter")
    there = tmux.shows(*VIEWS["timeline"][1]) and tmux.lacks("WORKS ON")
    report.check("the palette finds a command by words of its description", there, tmux.screen())
    tmux.press("?")
    report.check("the key ? shows the key bindings", tmux.shows("Keys in"), tmux.screen())
    tmux.press("Escape")
    tmux.lacks("Keys in")


run_ui_scenario(scenario)
