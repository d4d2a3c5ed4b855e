"""Who leads the team: the real Claude Code, or a person with `brigade` alone."""


class ClaudeLead:
    """A real Claude Code, with a turn that is open to the script except while it listens."""

    def __init__(self, house):
        self._house = house
        self._lead = house.start_lead("agents")
        # A new lead reads its inbox only while a teammate lives that it started itself. Hers is one
        # long turn, so that she never tells the lead that she is idle.
        house.spawn("alice")
        # The lead throws all tasks away once all are completed; with this one they never are.
        self.add_task("stay")

    def write(self, name, text):
        self._lead.call(*self._house.message(name, text))

    def add_task(self, subject):
        self._lead.call("TaskCreate", {"subject": subject, "description": "do it"})

    def check(self, report, name, task_id, words):
        """What Claude Code makes of the files: its model hears the words, its tool sees the work."""
        if self._house.version == "old":
            # The new one takes what it has read out of its inbox at once, even in the middle of a turn.
            check_inbox(self._house, report, name, words)
        self._lead.end_turn()
        heard = self._lead.hears(words)
        turn = next((part for part in self._lead.heard().split("<teammate-message") if words in part), "")
        is_turn = heard and f'teammate_id="{name}"' in turn and 'summary="a report"' in turn
        report.check(f"{name}: its message is a turn of the lead's model", is_turn, turn)
        listed = self._lead.call("TaskList", {}).text
        line = next((line for line in listed.splitlines() if line.startswith(f"#{task_id} ")), "")
        done = "[completed]" in line and f"({name})" in line
        report.check(f"{name}: the lead's TaskList shows the work done, and by whom", done, listed)


class BrigadeLead:
    """A team that brigade made; its lead uses the command line."""

    def __init__(self, house):
        self._house = house
        house.team = "agents"
        house.brigade("team", "create", house.team)

    def write(self, name, text):
        self._house.brigade("send", name, text)

    def add_task(self, subject):
        self._house.brigade("task", "add", subject)

    def check(self, report, name, task_id, words):
        check_inbox(self._house, report, name, words)


def check_inbox(house, report, name, words):
    arrived = [entry["text"] for entry in house.mail("team-lead") if entry["from"] == name]
    report.check(f"{name}: the lead's inbox has its message, once", arrived == [words], arrived)

