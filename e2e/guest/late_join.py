"""Joining late and from outside: `brigade spawn` into a team that a real lead runs already."""

import signal
import subprocess
import time

from guest import say, script, team
from house import eventually

# The beginning of what brigade says when a lead does not read its inbox.
DEAF = "reads its mail only while a teammate that it started itself is there"


class Outsider:
    """A member that nobody but its own user started, in no pane of the lead's."""

    def __init__(self, house, name, vendor, *steps):
        self.name, self.vendor = name, vendor
        self._shown, self._notes = house.root / "panes" / name, house.root / "panes" / f"{name}-notes"
        self._shown.parent.mkdir(exist_ok=True)
        prompt = script("Say hello to the lead.", *steps)
        self._process = house.start_outside(
            ["--team", house.team, "spawn", name, "--agent", vendor, "--place", "here", "--prompt", prompt],
            stdout=self._shown.open("w"),
            stderr=self._notes.open("w"),
        )

    def notes(self):
        """What brigade told its user aside."""
        return self._notes.read_text()

    def answer(self, house):
        """What its model was told when it wrote to the lead."""
        return eventually(lambda: next(filter(None, answers(house, self)), ""), 30)

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)

    def ends(self, patience=15):
        """The exit code, None if it does not end."""
        try:
            return self._process.wait(patience)
        except subprocess.TimeoutExpired:
            return None


def answers(house, outsider):
    calls = house.calls(outsider.vendor, outsider.name)
    return [gave for wanted, gave in calls if wanted == "team/send_message"]


def hello(name):
    return team("send_message", to="team-lead", message=f"hello from {name}")


def alone(house, report):
    """The first to join, when the lead has no teammate of its own. Old listens all the same."""
    name, vendor = "lena", next(iter(house.models))
    lena = Outsider(house, name, vendor, hello(name), say("I did."))
    joined = eventually(lambda: name in house.members(), 10)
    report.check(f"{name}: joins a running team from outside", joined, lena.notes())
    told = lena.answer(house)
    if house.version == "old":
        report.check(f"{name}: nothing is said of a lead that does not listen", DEAF not in lena.notes() + told, told)
        report.check(f"{name}: the lead's model is told what it writes", house.listens(f"hello from {name}"), told)
    else:
        report.check(f"{name}: its user is told that the lead does not listen", DEAF in lena.notes(), lena.notes())
        report.check(f"{name}: and so is its model", "it reads only while a teammate" in told, told)
        house.lead.end_turn()
        time.sleep(5)
        waits = any("hello from lena" in mail["text"] and not mail["read"] for mail in house.mail("team-lead"))
        unheard = waits and f"hello from {name}" not in house.lead.heard()
        report.check(f"{name}: and indeed, its message waits in the lead's inbox", unheard, house.mail("team-lead"))
        house.type_to_lead("go on")
        house.lead.open_turn()
    house.idle(name)
    hears_lead(house, report, lena)
    return lena


def hears_lead(house, report, outsider):
    name, vendor = outsider.name, outsider.vendor
    outcome = house.order(name, f"The lead greets {name}.", say("Hello."))
    told = not outcome.failed and house.told(vendor, name, f"The lead greets {name}.")
    if house.dropped_by_lead(name, f"The lead greets {name}."):
        report.figure(f"{name}: what the lead wrote to it was dropped by the lead itself", "old")
    else:
        report.check(f"{name}: what the lead writes to it is told its model", told, outcome)
    house.idle(name)


def together(house, report, lena):
    """Now that the lead has started teammates itself."""
    if house.version == "new":
        heard = house.listens(f"hello from {lena.name}")
        report.check(f"{lena.name}: the lead has a teammate now, and hears what was waiting", heard, house.lead.heard()[-600:])
    luke = Outsider(house, "luke", lena.vendor, hello("luke"), say("I did."))
    heard = house.listens("hello from luke", 30)
    told = luke.answer(house)
    if house.lost_by_lead("hello from luke"):
        report.figure("luke: its message was lost by the lead itself", "old")
    else:
        report.check("luke: the lead's model is told what it writes", heard, told)
    silent = DEAF not in luke.notes() and "it reads only while a teammate" not in told
    report.check("luke: nothing is said of a lead that does not listen", silent, luke.notes() + told)
    house.idle("luke")
    hears_lead(house, report, luke)
    luke.interrupt()
    code = luke.ends()
    report.check("luke: interrupted, it leaves the team", code == 0 and "luke" not in house.members(), code)
    yes = team("answer_shutdown", request_id="{heard:request_id}", approve=True)
    house.ask_to_stop(lena.name, script("Thank you.", yes, say("Goodbye.")))
    code = lena.ends(30)
    report.check(f"{lena.name}: asked to stop by the lead, it leaves the team", code == 0 and lena.name not in house.members(), code)
