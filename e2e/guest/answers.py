"""Tests answers from two sides: the lead's dialog, and a person who runs brigade in another terminal.

Nothing closes the lead's dialog from outside, so each case also answers the dialog.
"""

import random
import subprocess
import time

from permissions import RUN_COMMAND

from lib.scripted_model import say
from lib.util import eventually

KEYS = {True: "Enter", False: "Escape"}
DENY = ["deny", "--reason", "not now"]


class Request:
    """A command for which a member asks for permission. It creates a file."""

    def __init__(self, env, mate, word):
        self.env, self.mate = env, mate
        self.file = env.root / f"{word}-by-{mate.name}"
        eventually(lambda: not env.busy(), 30)
        time.sleep(1)
        command = RUN_COMMAND[mate.vendor](f"touch {self.file}", f"for {word}")
        env.order(mate.name, "Make a file.", command, say("{result}"))
        self.shown = eventually(lambda: env.shows(self.file.name), 20)
        # Claude Code's dialog ignores keys in its first moments.
        time.sleep(1)

    def dialog(self, yes):
        self.env.press(KEYS[yes])

    def brigade(self, word, number=None):
        """Answers as the person: `approve` or `deny`."""
        number = number or str(self.waiting()[0]["number"])
        return self.env.run("--team", self.env.team, *(DENY if word == "deny" else [word]), number)

    def waiting(self):
        """Returns the requests of this member that brigade shows as waiting."""
        shown = self.env.brigade("approvals", ok=(0, 4)) or []
        return [one for one in shown if one["from"] == self.mate.name]

    def ran(self, expected):
        """Waits until the member's turn is over. Returns whether it ran the command if and only if that is expected."""
        if expected:
            return eventually(self.file.exists, 20)
        self.env.becomes_idle(self.mate.name)
        return not self.file.exists()

    def late_report(self):
        """Waits until the member has reported a late answer."""
        log = lambda: self.env.run("--team", self.env.team, "log", "--work").stdout
        return eventually(lambda: log().count("came late and had no effect"), 15)


def answers(env, report, mate):
    late = 0
    for word, yes in (("approve", True), ("deny", False)):
        request = Request(env, mate, f"{word}-first")
        done = request.brigade(word)
        report.check(f"{mate.name}: a person's {word} counts before the dialog's answer", done.returncode == 0, done)
        request.dialog(not yes)
        report.check(f"{mate.name}: and only that answer takes effect", request.ran(yes), env.pane(mate.name)[-400:])
        late += 1
        report.check(f"{mate.name}: the late answer of the dialog is reported", request.late_report() >= late)
        report.check(f"{mate.name}: no request is left", not request.waiting(), request.waiting())
    request = Request(env, mate, "dialog-first")
    number = str(request.waiting()[0]["number"])
    request.dialog(True)
    ran = request.ran(True)
    denied = request.brigade("deny", number)
    report.check(f"{mate.name}: the dialog's answer counts before a person's", ran and denied.returncode == 1, denied)
    at_once(env, report, mate)
    killed(env, report, mate)


def at_once(env, report, mate):
    """Denies a request with brigade at the moment in which the dialog allows it."""
    won = {"dialog": 0, "person": 0}
    for turn in range(3):
        request = Request(env, mate, f"at-once-{turn}")
        number = str(request.waiting()[0]["number"])
        command = [env.program, "--team", env.team, *DENY, number]
        options = {"env": env.environ, "cwd": env.project, "stdin": subprocess.DEVNULL}
        # The dialog takes a moment to react to a key.
        request.dialog(True)
        time.sleep(random.uniform(0, 0.3))
        person = subprocess.Popen(command, **options, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = person.communicate(timeout=30)
        denied = person.returncode == 0
        won["person" if denied else "dialog"] += 1
        report.check(f"{mate.name}: two answers at once, one takes effect", request.ran(not denied), said)
        report.check(f"{mate.name}: no request is left", not request.waiting(), request.waiting())
    report.figure(f"{mate.name}: answers that were first", won)


def killed(env, report, mate):
    """Kills the person's command, which is then run again."""
    for turn in range(3):
        request = Request(env, mate, f"killed-{turn}")
        number = str(request.waiting()[0]["number"])
        command = [env.program, "--team", env.team, "approve", number]
        person = subprocess.Popen(command, env=env.environ, cwd=env.project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, 0.03))
        person.kill()
        person.wait()
        again = env.run("--team", env.team, "approve", number)
        # If the killed command had already answered, the second one is refused.
        report.check(f"{mate.name}: an answer takes effect after a kill", request.ran(True), again)
        request.dialog(False)
        env.becomes_idle(mate.name)


def native(env, report, alice):
    """Checks that brigade refuses to answer a request that only Claude Code can answer. Claude Code takes a request from the
    inbox of the lead within moments, so that on a busy machine brigade may not see it. Then the next request counts."""
    for turn in range(3):
        if native_request(env, report, alice, env.root / f"made-by-alice-{turn}"):
            report.figure("requests of alice that brigade did not see", turn)
            return
    report.check("alice: brigade sees one of three requests of a native teammate", False, env.log()[-5:])


def native_request(env, report, alice, file):
    """Makes a native teammate ask for permission. Returns whether brigade has seen the request."""
    alice.call_without_result("Bash", {"command": f"touch {file}", "description": "to see"})
    shown = eventually(lambda: env.shows(file.name), 20)
    # The lead's screen shows the command before the request is in the lead's inbox.
    requests = eventually(lambda: env.brigade("approvals", ok=(0, 4)), 10) or []
    if requests:
        refused = env.run("--team", env.team, "approve", requests[0]["request_id"])
        where = "Claude Code's dialog" in refused.stderr
        report.check("alice: brigade says where to answer a native teammate's request", shown and where, refused)
    time.sleep(1)
    env.press("Enter")
    report.check("alice: the lead's dialog answers it", eventually(file.exists, 20), env.screen()[-600:])
    return bool(requests)
