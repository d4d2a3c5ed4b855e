"""Runs `brigade spawn`, outside of the lead's terminal, to add a member to the running team of a real Claude Code
lead."""

import signal
import subprocess
import time

from guest_env import instruction

from lib.scripted_model import say, team_tool
from lib.util import eventually

# If the lead does not read its inbox, `brigade spawn` prints WARNING, and the send_message tool returns TOOL_WARNING.
WARNING = "reads its mail only while a teammate that it started itself is running"
TOOL_WARNING = "reads it only while a teammate"


class Outsider:
    """A member that `brigade spawn` runs outside of the lead's panes."""

    def __init__(self, env, name, vendor):
        self.name, self.vendor = name, vendor
        self._stdout, self._stderr = env.root / "panes" / name, env.root / "panes" / f"{name}-stderr"
        self._stdout.parent.mkdir(exist_ok=True)
        hello = team_tool("send_message", to="team-lead", message=f"hello from {name}")
        prompt = instruction("Say hello to the lead.", hello, say("I did."))
        self._process = env.start_outside(
            ["--team", env.team, "spawn", name, "--agent", vendor, "--place", "here", "--prompt", prompt],
            stdout=self._stdout.open("w"),
            stderr=self._stderr.open("w"),
        )

    def stderr(self):
        return self._stderr.read_text()

    def tool_result(self, env):
        """Returns the result that the member's model got when it sent a message to the lead."""

        def found():
            calls = env.calls(self.vendor, self.name)
            return next((text for wanted, text in calls if wanted == "team/send_message" and text), "")

        return eventually(found, 30)

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)

    def exit_code(self, timeout=15):
        """Waits until the member's process ends. Returns its exit code, or None if the process is still
        running."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None


def without_teammates(env, report):
    """Lets a member join while the lead has no teammate of its own. In that situation, only the old Claude Code
    reads its inbox."""
    name, vendor = "lena", next(iter(env.models))
    lena = Outsider(env, name, vendor)
    joined = eventually(lambda: name in env.members(), 10)
    report.check(f"{name}: joins a running team from outside", joined, lena.stderr())
    result = lena.tool_result(env)
    if env.version == "old":
        report.check(f"{name}: there is no warning about the lead", WARNING not in lena.stderr() + result, result)
        report.check(f"{name}: the lead's model receives its message", env.lead_receives(f"hello from {name}"), result)
    else:
        report.check(f"{name}: its user is warned that the lead does not read mail", WARNING in lena.stderr(), lena.stderr())
        report.check(f"{name}: its model is warned, too", TOOL_WARNING in result, result)
        env.lead.end_turn()
        time.sleep(5)
        waits = any("hello from lena" in mail["text"] and not mail["read"] for mail in env.mail("team-lead"))
        unread = waits and f"hello from {name}" not in env.lead.input()
        report.check(f"{name}: its message waits unread in the lead's inbox", unread, env.mail("team-lead"))
        env.type_to_lead("go on")
        env.lead.open_turn()
    env.becomes_idle(name)
    receives_from_lead(env, report, lena)
    return lena


def receives_from_lead(env, report, outsider):
    name, vendor = outsider.name, outsider.vendor
    text = f"The lead greets {name}."
    result = env.order(name, text, say("Hello."))
    received = not result.failed and env.receives(vendor, name, text)
    if env.dropped_by_lead(name, text):
        report.figure(f"{name}: not checked, because Claude Code itself dropped the lead's message", "old")
    else:
        report.check(f"{name}: its model receives the lead's message", received, result)
    env.becomes_idle(name)


def with_teammates(env, report, lena):
    """Lets a second member join after the lead has started its own teammates. Then both members leave."""
    if env.version == "new":
        received = env.lead_receives(f"hello from {lena.name}")
        name = f"{lena.name}: now that the lead has a teammate, it receives the waiting message"
        report.check(name, received, env.lead.input()[-600:])
    luke = Outsider(env, "luke", lena.vendor)
    received = env.lead_receives("hello from luke", 30)
    result = luke.tool_result(env)
    env.check_lead_receives(report, "luke: the lead's model receives its message", "hello from luke", received, result)
    silent = WARNING not in luke.stderr() and TOOL_WARNING not in result
    report.check("luke: there is no warning about the lead", silent, luke.stderr() + result)
    env.becomes_idle("luke")
    receives_from_lead(env, report, luke)
    luke.interrupt()
    code = luke.exit_code()
    report.check("luke: leaves the team when interrupted", code == 0 and "luke" not in env.members(), code)
    env.ask_to_stop_and_agree(lena.name, "Thank you.")
    code = lena.exit_code(30)
    report.check(f"{lena.name}: leaves the team at the lead's request", code == 0 and lena.name not in env.members(), code)
