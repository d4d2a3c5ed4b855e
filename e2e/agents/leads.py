"""The two kinds of leads: a real Claude Code, and a person who uses the `brigade` command line."""


class ClaudeLead:
    """A real Claude Code. Its turn stays open, so that the scenario can make it call tools."""

    def __init__(self, env):
        self._env = env
        self._lead = env.start_lead("agents")
        # Start a teammate: the new Claude Code reads its inbox only while a teammate that it started is running.
        # Alice's turn never ends, so that she sends no idle notification.
        env.spawn("alice")
        # The lead deletes all tasks once all are completed. To prevent that, this task is left open.
        self.add_task("stay")

    def write(self, name, text):
        self._lead.call(*self._env.message(name, text))

    def add_task(self, subject):
        self._lead.call("TaskCreate", {"subject": subject, "description": "do it"})

    def check(self, report, name, task_id, text):
        """Checks that the lead's model receives the message, and that the lead's TaskList shows the completed task."""
        if self._env.version == "old":
            # The new Claude Code removes a message from its inbox as soon as it has read the message.
            check_inbox(self._env, report, name, text)
        self._lead.end_turn()
        received = self._lead.receives(text)
        turn = self._lead.message_with(text)
        is_turn = received and f'teammate_id="{name}"' in turn and 'summary="a report"' in turn
        report.check(f"{name}: the lead's model gets the agent's message as a turn", is_turn, turn)
        line = self._lead.task_line(task_id)
        done = line.startswith(f"#{task_id} [completed]") and f"({name})" in line
        report.check(f"{name}: the lead's TaskList shows the completed task and its owner", done, line)


class BrigadeLead:
    """A team that brigade created; its lead uses the command line."""

    def __init__(self, env):
        self._env = env
        env.team = "agents"
        env.brigade("team", "create", env.team)

    def write(self, name, text):
        self._env.brigade("send", name, text)

    def add_task(self, subject):
        self._env.brigade("task", "add", subject)

    def check(self, report, name, task_id, text):
        check_inbox(self._env, report, name, text)


def check_inbox(env, report, name, text):
    arrived = [entry["text"] for entry in env.mail("team-lead") if entry["from"] == name]
    report.check(f"{name}: the lead's inbox has the agent's message once", arrived == [text], arrived)
