"""Asking leave: the lead's user answers in the lead's own dialog, the lead's model decides on plans."""

import re
import time

import forged
from guest import say, script, team, tool
from house import eventually
from work import Mate


# How each vendor's agent runs a command that it has to ask for.
ASKS = {
    "codex": lambda run, why: tool(
        "exec_command", cmd=run, sandbox_permissions="require_escalated", justification=why
    ),
    "gemini": lambda run, why: tool("run_shell_command", command=run, description=why),
    "opencode": lambda run, why: tool("bash", command=run, description=why),
    "copilot": lambda run, why: tool("bash", command=run, description=why),
    "qwen": lambda run, why: tool("run_shell_command", command=run, description=why),
}


def permissions(house, report, mate):
    """One command is allowed, one is not."""
    name, vendor = mate
    for word, allowed in (("allowed", True), ("denied", False)):
        # Old marks as read what comes while it marks others, and never looks at it (e2e/claude measures that):
        # a request that it lost would wait for ever. So nobody else writes to it just now.
        eventually(lambda: not house.busy(), 30)
        time.sleep(2)
        made = house.root / f"made-by-{name}-when-{word}"
        ask = ASKS[vendor](f"touch {made}", f"to see what is {word}")
        house.order(name, "Make a file.", ask, say("{result}"))
        asked = eventually(lambda: house.shows(made.name), 20)
        report.check(f"{name}: asks leave in the lead's dialog", asked, house.screen()[-800:])
        report.check(f"{name}: and waits for it", not made.exists())
        # A dialog does not heed a key in its first moment.
        time.sleep(1)
        house.press("Enter" if allowed else "Escape")
        if allowed:
            done = eventually(made.exists, 20)
            report.check(f"{name}: does what it is allowed", done, house.calls(vendor, name)[-1:])
        else:
            answered = eventually(lambda: "! no" in house.pane(name), 20)
            quiet = house.idle(name)
            report.check(f"{name}: does not do what it is not", answered and quiet and not made.exists(), answered)
        house.idle(name)


def plans(house, report):
    """Nothing may be changed before a plan is approved. Old approves every plan by itself."""
    pia = name, vendor = Mate("pia", "codex")
    made = house.project / "planned"
    touch = tool("exec_command", cmd=f"touch {made} && echo made")
    plan = script("Plan first.", touch, team("submit_plan", plan="the first plan"), say("I wait."))
    house.hire_to_plan(name, vendor, plan)
    heard = house.listens("the first plan")
    report.check(f"{name}: the lead's model is shown the plan", heard, house.pane(name)[-600:])
    cannot_write(house, report, name, made)
    request = request_id(house.turn_with("the first plan"))
    if house.version == "old":
        approved = house.told(vendor, name, "approves your plan")
        report.check(f"{name}: hears that its plan is approved", approved, house.pane(name)[-600:])
        house.answer_plan(name, request, feedback="no, not so")
    else:
        house.idle(name)
        forged.approvals(house, report, pia, made, request)
        again = script("More detail.", touch, team("submit_plan", plan="the second plan"), say("I wait."))
        house.answer_plan(name, request, feedback=again)
        heard = house.listens("the second plan")
        rejected = heard and house.told(vendor, name, "rejects your plan: More detail.")
        report.check(f"{name}: a rejected plan comes back changed", rejected, house.pane(name)[-600:])
        cannot_write(house, report, name, made)
        request = request_id(house.turn_with("the second plan"))
        house.idle(name)
        forged.repeated(house, report, pia, made, request)
        house.answer_plan(name, request)
        approved = house.told(vendor, name, "approves your plan")
        report.check(f"{name}: hears that its plan is approved", approved, house.pane(name)[-600:])
    house.idle(name)
    house.order(name, "Go.", touch, say("Made."))
    wrote = eventually(made.exists, 20)
    report.check(f"{name}: may write from then on, whatever is said later", wrote, house.calls(vendor, name)[-1:])
    house.idle(name)


def request_id(turn):
    found = re.search(r"plan_approval-[^\"]+", turn)
    return found.group() if found else "none"


def cannot_write(house, report, name, made):
    tried = [gave for wanted, gave in house.calls("codex", name) if wanted == "exec_command"]
    refused = tried and "Read-only file system" in tried[-1] and not made.exists()
    report.check(f"{name}: cannot write before its plan is approved", refused, tried)
