"""Tests permission requests, which the lead's user answers in the lead's own dialog, and plans, which the lead's
model approves or rejects."""

import re
import time

import forged_mail
from guest_env import instruction
from teamwork import Mate

from lib.scripted_model import say, team_tool, tool
from lib.util import eventually

# The tool call by which each vendor's agent runs a command that needs permission.
RUN_COMMAND = {
    "codex": lambda command, reason: tool(
        "exec_command", cmd=command, sandbox_permissions="require_escalated", justification=reason
    ),
    "gemini": lambda command, reason: tool("run_shell_command", command=command, description=reason),
    "opencode": lambda command, reason: tool("bash", command=command, description=reason),
    "copilot": lambda command, reason: tool("bash", command=command, description=reason),
    "qwen": lambda command, reason: tool("run_shell_command", command=command, description=reason),
}


def permissions(env, report, mate):
    """Lets the lead's user allow one command of a member and deny another."""
    name, vendor = mate
    for word, allowed in (("allowed", True), ("denied", False)):
        # The old Claude Code can lose a message that arrives while it marks others as read (e2e/claude measures
        # how often), and a lost request would stay unanswered. So wait until no other member sends messages.
        eventually(lambda: not env.busy(), 30)
        time.sleep(2)
        file = env.root / f"made-by-{name}-when-{word}"
        command = RUN_COMMAND[vendor](f"touch {file}", f"to see what is {word}")
        env.order(name, "Make a file.", command, say("{result}"))
        asked = eventually(lambda: env.shows(file.name), 20)
        report.check(f"{name}: its permission request is in the lead's dialog", asked, env.screen()[-800:])
        report.check(f"{name}: does not run the command before the answer", not file.exists())
        # Claude Code's dialog ignores keys in its first moments.
        time.sleep(1)
        env.press("Enter" if allowed else "Escape")
        if allowed:
            done = eventually(file.exists, 20)
            report.check(f"{name}: runs an allowed command", done, env.calls(vendor, name)[-1:])
        else:
            answered = eventually(lambda: "! denied" in env.pane(name), 20)
            idle = env.becomes_idle(name)
            report.check(f"{name}: does not run a denied command", answered and idle and not file.exists(), answered)
        env.becomes_idle(name)


def plans(env, report):
    """Checks that a member can write only after its plan is approved. The old Claude Code approves every plan by
    itself."""
    pia = name, vendor = Mate("pia", "codex")
    file = env.project / "planned"
    touch = tool("exec_command", cmd=f"touch {file} && echo made")
    plan = instruction("Plan first.", touch, team_tool("submit_plan", plan="the first plan"), say("I wait."))
    env.spawn_in_plan_mode(name, vendor, plan)
    received = env.lead_receives("the first plan")
    report.check(f"{name}: the lead's model receives the plan", received, env.pane(name)[-600:])
    check_cannot_write(env, report, name, file)
    request = request_id(env.lead.message_with("the first plan"))
    if env.version == "old":
        approved = env.receives(vendor, name, "approves your plan")
        report.check(f"{name}: learns that its plan is approved", approved, env.pane(name)[-600:])
        env.answer_plan(name, request, feedback="no, not so")
    else:
        env.becomes_idle(name)
        forged_mail.plan_approvals(env, report, pia, file, request)
        again = instruction("More detail.", touch, team_tool("submit_plan", plan="the second plan"), say("I wait."))
        env.answer_plan(name, request, feedback=again)
        received = env.lead_receives("the second plan")
        rejected = received and env.receives(vendor, name, "rejects your plan: More detail.")
        report.check(f"{name}: submits another plan after a rejection", rejected, env.pane(name)[-600:])
        check_cannot_write(env, report, name, file)
        request = request_id(env.lead.message_with("the second plan"))
        env.becomes_idle(name)
        forged_mail.altered_rejection(env, report, pia, file, request)
        env.answer_plan(name, request)
        approved = env.receives(vendor, name, "approves your plan")
        report.check(f"{name}: learns that its plan is approved", approved, env.pane(name)[-600:])
    env.becomes_idle(name)
    env.order(name, "Go.", touch, say("Made."))
    wrote = eventually(file.exists, 20)
    report.check(f"{name}: may write from then on, even after a later rejection", wrote, env.calls(vendor, name)[-1:])
    env.becomes_idle(name)


def request_id(turn):
    found = re.search(r"plan_approval-[^\"]+", turn)
    return found.group() if found else "none"


def check_cannot_write(env, report, name, file):
    results = [text for wanted, text in env.calls("codex", name) if wanted == "exec_command"]
    refused = results and "Read-only file system" in results[-1] and not file.exists()
    report.check(f"{name}: cannot write before its plan is approved", refused, results)
