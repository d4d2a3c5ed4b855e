"""A test environment whose Claude Code lead starts its teammates through brigade.

Each vendor's agents have their own scripted model. The requests to that model show what these agents received and
did.
"""

import re
import shlex
import subprocess
import time
from contextlib import ExitStack

from lib import processes
from lib.env import TestEnv
from lib.scripted_model import ScriptedModel, script, shutdown_steps, tool_calls
from lib.util import SLACK, capture, eventually, read_json
from lib.vendors import CODEX_PLAIN_TOOLS, CONFIGURE, link_programs, selected_programs

ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][0-9A-B]|.)")


class GuestEnv(TestEnv):
    # The lead and its teammates ask for permission. The terminal is large enough for many panes.
    lead_arguments = ["--permission-mode", "default"]
    columns, rows = 220, 120

    def __init__(self, version, teammate_mode):
        super().__init__(version, teammate_mode)
        self._stack = ExitStack()
        self.models, self._bodies = {}, {}
        self.git_init()
        programs = selected_programs()
        own = {"claude": self.claude, "brigade": self.program}
        self.environ["PATH"] = link_programs(self, programs | own)
        # New panes run login shells, which reset PATH and then read this file.
        (self.home / ".profile").write_text(f"PATH={self.environ['PATH']}\n")
        self.lead_environ |= CODEX_PLAIN_TOOLS | {"PATH": self.environ["PATH"], "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"}
        for vendor in programs:
            self.models[vendor] = self._stack.enter_context(ScriptedModel(self.root / "models" / vendor))
            self.lead_environ |= CONFIGURE[vendor](self, self.models[vendor].url)
        capture([self.root / "bin/brigade", "init", "--yes"], env=self.environ, cwd=self.project, check=True)

    def __exit__(self, *failure):
        self._stack.close()
        super().__exit__(*failure)

    # The lead. The lead's turn stays open during the scenario, except while the lead waits for messages.

    @property
    def lead(self):
        return self.agent("lead")

    def spawn_agent(self, name, agent_type, prompt, **more):
        """Makes the lead start a teammate of this agent type. Returns the result of the lead's tool call."""
        result = self.call_spawn_tool(name, agent_type, prompt, **more)
        pane = eventually(lambda: self.member(name).get("tmuxPaneId"), 10)
        (self.root / "panes").mkdir(exist_ok=True)
        # Log the pane's output, because the pane closes when the teammate ends.
        self._tmux("pipe-pane", "-t", pane, f"cat >> {self.root}/panes/{name}")
        return result

    def send(self, name, text):
        return self.lead.call(*self.message(name, text))

    def order(self, name, text, *steps):
        """Sends a member a message from the lead, with a script that the member's model follows."""
        return self.send(name, instruction(text, *steps))

    def lead_receives(self, text, timeout=20):
        """Ends one turn of the lead after the other until the lead's model receives this text. Leaves the last turn
        open. Returns whether the model received the text."""
        end = time.monotonic() + timeout * SLACK
        while text not in self.lead.input():
            self.lead.end_turn()
            try:
                self.lead.open_turn(max(end - time.monotonic(), 0.1))
            except TimeoutError:
                return self._receives_when_prompted(text)
        return True

    def _receives_when_prompted(self, text):
        """Returns whether the model of an idle lead receives this text within three turns. If the new Claude Code
        reads a message at the end of a turn, its model may receive the message only two turns later."""
        for turn in range(3):
            if turn:
                self.lead.end_turn()
            self.type_to_lead("go on")
            self.lead.open_turn()
            if text in self.lead.input():
                return True
        return False

    def lost_by_lead(self, text):
        """Returns whether the old Claude Code lost a message to the lead. If a message arrives while Claude Code marks
        other messages as read, Claude Code also marks the new message, but never shows it to its model. e2e/claude
        measures how often this happens."""
        if self.version == "new" or text in self.lead.input():
            return False
        events = [record["event"] for record in self.log()]
        sent = (event["sent"] for event in events if "sent" in event)
        keys = [event["key"] for event in sent if event["to"] == "team-lead" and text in event["message"]["text"]]
        return any(event["read"]["key"] in keys for event in events if "read" in event)

    def check_lead_receives(self, report, claim, text, passed, details):
        """Checks a claim about a message to the lead, unless the old Claude Code lost the message."""
        if self.lost_by_lead(text):
            report.figure(f"{claim}: not checked, because Claude Code itself lost the message", "old")
        else:
            report.check(claim, passed, details)

    def dropped_by_lead(self, name, text):
        """Returns whether the old Claude Code dropped a message to a member. If it cannot write a message at once, it
        drops the message but reports success."""
        seen = (record["event"]["seen"] for record in self.log() if "seen" in record["event"])
        arrived = any(event["to"] == name and text in event["message"]["text"] for event in seen)
        return self.version == "old" and not arrived

    def type_to_lead(self, text):
        """Types a line into the lead's terminal."""
        self._tmux("send-keys", "-t", "{top-left}", "-l", text)
        time.sleep(0.3)
        self._tmux("send-keys", "-t", "{top-left}", "Enter")

    def press(self, *keys):
        self._tmux("send-keys", "-t", "{top-left}", *keys)

    def shows(self, text):
        """Returns whether the lead's screen shows this text. Ignores line wrapping."""
        return text in re.sub(r"[\s│]", "", self.screen())

    def ask_to_stop(self, name, reason):
        """Makes the lead send a member a shutdown request."""
        if self.version == "old":
            arguments = {"type": "shutdown_request", "recipient": name, "content": reason}
        else:
            arguments = {"to": name, "message": {"type": "shutdown_request", "reason": reason}}
        return self.lead.call("SendMessage", arguments)

    def ask_to_stop_and_agree(self, name, text):
        """Makes the lead send a member a shutdown request to which the member's model agrees."""
        return self.ask_to_stop(name, instruction(text, *shutdown_steps(native=False)))

    def answer_plan(self, name, request, feedback=None):
        """Makes the lead's model approve a plan, or reject it if there is feedback."""
        answer = {"type": "plan_approval_response", "request_id": request, "approve": feedback is None}
        if self.version == "old":
            arguments = answer | {"recipient": name} | ({"content": feedback} if feedback else {})
        else:
            arguments = {"to": name, "message": answer | ({"feedback": feedback} if feedback else {})}
        return self.lead.call("SendMessage", arguments)

    # The members.

    def spawn_in_plan_mode(self, name, agent_type, prompt):
        """Makes the lead start a teammate that needs an approved plan. The new Claude Code cannot do that, so its
        teammate is killed and restarted in the same pane with one more argument, which the old Claude Code would
        have added."""
        if self.version == "old":
            return self.spawn_agent(name, agent_type, prompt, mode="plan")
        result = self.spawn_agent(name, agent_type, "Wait.")
        self.becomes_idle(name)
        runner = self.runner(name)
        variables = [f"{key}={value}" for key, value in runner.environ().items()]
        restart = shlex.join(["env", "-i", *variables, *runner.argv, "--plan-mode-required"])
        descendants = processes.tree(runner.pid)[1:]
        pane = self.member(name)["tmuxPaneId"]
        self._tmux("set-option", "-p", "-t", pane, "remain-on-exit", "on")
        runner.kill()
        # The member's guard process ends the agent.
        eventually(lambda: not any(process.is_alive() for process in descendants), 10)
        self._tmux("respawn-pane", "-k", "-t", pane, restart)
        self._tmux("set-option", "-p", "-t", pane, "remain-on-exit", "off")
        self.send(name, prompt)
        return result

    def start_outside(self, arguments, **files):
        """Starts brigade outside of the lead's terminal. The process is terminated together with this test
        environment."""
        options = {"env": self.lead_environ, "cwd": self.project, "stdin": subprocess.DEVNULL}
        process = subprocess.Popen([self.program, *arguments], **options, **files)
        self._stack.callback(process.terminate)
        return process

    def member(self, name):
        members = read_json(self.config)["members"]
        return next((member for member in members if member["name"] == name), {})

    def becomes_idle(self, name, timeout=30):
        """Waits until the member reports that it is idle. Returns False if that takes longer than `timeout`."""
        return eventually(lambda: self.member(name).get("isActive") is False, timeout)

    def busy(self):
        """Returns the names of the members that report that they are working."""
        return [member["name"] for member in read_json(self.config)["members"] if member.get("isActive")]

    def panes(self):
        """Returns the process id of each tmux pane, by pane id."""
        lines = self._tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_pid}").stdout.splitlines()
        return {pane: int(pid) for pane, pid in (line.split() for line in lines)}

    def pane(self, name):
        """Returns the output of a member's pane, without escape sequences."""
        path = self.root / "panes" / name
        return ESCAPES.sub("", path.read_text(errors="replace")) if path.exists() else ""

    def processes(self, name):
        """Returns the processes in a member's pane."""
        pid = self.panes().get(self.member(name).get("tmuxPaneId"))
        return [] if pid is None else processes.tree(pid)

    def runner(self, name):
        """Returns the brigade process that runs a member."""
        ours = (process for process in self.processes(name) if process.executable() == self.program)
        return next(process for process in ours if "--agent-name" in process.argv)

    def terminal(self, name):
        """Returns the terminal device of a member's pane."""
        return self._tmux("display-message", "-p", "-t", self.member(name)["tmuxPaneId"], "#{pane_tty}").stdout.strip()

    # The members' models.

    def requests(self, vendor, name):
        """Returns the requests of one member's model, in order, each as a log record and a body."""
        model = self.models[vendor]
        bodies = self._bodies.setdefault(vendor, {})
        found = []
        for record in model.turns():
            number = record["number"]
            if number not in bodies:
                bodies[number] = model.body(number)
            if f"You are {name} in the agent team {self.team}." in bodies[number]:
                found.append((record, bodies[number]))
        return found

    def count_received(self, vendor, name, text):
        """Returns how often the latest request of a member's model contains a text."""
        requests = self.requests(vendor, name)
        return requests[-1][1].count(text) if requests else 0

    def receives(self, vendor, name, text, timeout=30):
        """Waits until a member's model receives this text. Returns a false value if that takes longer than
        `timeout`."""
        return eventually(lambda: self.count_received(vendor, name, text), timeout)

    def calls(self, vendor, name):
        """Returns the tools that a member's model called, each with the text of the result, or None if there is no
        result yet."""
        calls = tool_calls([record for record, _ in self.requests(vendor, name)])
        return [(wanted, result["text"] if result else None) for wanted, _, result in calls]

    def log_text(self):
        """Returns the output of `brigade log`."""
        return self.run("--claude-dir", str(self.claude_dir), "--team", self.team, "log").stdout

    def keep_files(self, name, report):
        folder = super().keep_files(name, report)
        (folder / "lead").write_text(self.screen())
        (folder / "lead-input").write_text(self.lead.input())
        (folder / "log").write_text(self.try_brigade("log").stdout)


def instruction(text, *steps):
    """Returns a message text that contains these steps as a script for a scripted model."""
    return f"{text} {script(*steps)}"
