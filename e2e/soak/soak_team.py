"""The team of ten members that is stored in files: five real agents from four vendors, each with its own scripted
model, and five agents without a model."""

import json
import os
import subprocess
import threading
from collections import Counter

from mail_log import LEAD, LeadInbox, MailLog, ModelReader, PromptFileReader

from lib.env import NOTHING_FOUND
from lib.scripted_model import ScriptedModel, claim_step, complete_step, say, script, tool
from lib.team_env import MEMBERS, Member, TeamEnv
from lib.vendors import CONFIGURE

REAL = {name: MEMBERS[name] for name in ("cody", "gemma", "clara", "nat")} | {"opal": Member("opencode")}
PLAIN = ("fay", "finn", "flo", "fred", "fern")
# Members that are not killed in the calm phase, so that their processes run for a long time.
LONG_LIVED = ("cody", "gemma", "fay", "finn")
# Slow members, and the number by which their share of the work is divided. Whenever Gemini CLI resumes, it appends
# its whole history to the session file and reads the whole file the next time. With a full share of the work,
# resuming would take minutes after two hours.
SLOW = {"gemma": 3}


class Commands:
    """Counts the commands that failed, by error message, and the commands that were killed."""

    def __init__(self):
        self.failures = Counter()
        self.killed = 0

    def run(self, title, command):
        """Runs a command. Returns its JSON output, or None if the command failed or was killed."""
        try:
            done = command()
        except subprocess.TimeoutExpired as error:
            self.failures[f"{title}: not done after {error.timeout} s"] += 1
            return None
        # nsenter exits with 137 if the program that it runs is killed.
        if done.returncode in (-9, 137):
            self.killed += 1
            return None
        if done.returncode not in (0, NOTHING_FOUND):
            self.failures[f"{title}: {done.returncode}: {done.stderr.strip()[:160]}"] += 1
            return None
        return json.loads(done.stdout) if done.stdout.strip() else []


class SoakTeamEnv(TeamEnv):
    """The home folder of the ten members. Also runs commands for the lead and for the members without a model."""

    def __init__(self):
        super().__init__("host", "tmux")
        self.team = "soak"
        self.mail_log = MailLog()
        self._lead_inbox = LeadInbox(self.mail_log)
        # This event is cleared while all processes are being killed, so that no new command starts.
        self.may_run = threading.Event()
        self.may_run.set()
        self.commands = Commands()
        folders = {name: self.root / ("model" if name == "cody" else f"model-{name}") for name in REAL}
        self.models = {"cody": self.model}
        for name in REAL:
            if name not in self.models:
                self.models[name] = self._stack.enter_context(ScriptedModel(folders[name]))
        self.environ |= {"GOOGLE_GEMINI_BASE_URL": self.models["gemma"].url}
        self.environ |= CONFIGURE["opencode"](self, self.models["opal"].url)
        self.environ["BRIGADE_OPENCODE"] = os.environ["PROGRAM_OPENCODE"]
        self.readers = {name: ModelReader(name, folder, self.mail_log) for name, folder in folders.items()}
        self._plain_readers = [PromptFileReader(name, self.project / name, self.mail_log) for name in PLAIN]
        self._write_team()

    def _write_team(self):
        bin_dir = self.root / "bin"
        bin_dir.mkdir(exist_ok=True)
        members = {}
        for name, member in REAL.items():
            # If a message has no script, the scripted model replies with the same text. So this message has a script.
            more = {"prompt": f"Be there. {script(say('I am there.'))}"}
            if member.agent == "claude":
                # Two members are Claude Code, so each needs a wrapper that selects its own model.
                url = self.models[name].url
                more["program"] = wrapper(bin_dir / name, f"ANTHROPIC_BASE_URL={url}", os.environ["CLAUDE_NEW"])
            members[name] = (member, more)
        agent = plain_agent(bin_dir)
        for name in PLAIN:
            (self.project / name).mkdir()
            members[name] = (Member(f"acp:{agent}"), {"dir": name})
        self.write_team_file(members, {})

    def poll_readers(self):
        for reader in (*self.readers.values(), *self._plain_readers):
            reader.poll()

    # Commands of the lead and of members.

    def command(self, *arguments, by=None):
        """Runs brigade. Returns its JSON output, or None if the command failed or was killed."""
        self.may_run.wait()
        return self.commands.run(" ".join(arguments[:2]), lambda: self.try_brigade(*arguments, by=by))

    def send(self, by, to, text="", mark=None):
        """Sends a message. Returns whether the message was acknowledged."""
        mark = mark or self.mail_log.new_mark(by, to)
        acknowledged = self.command("send", to, f"{mark} {text or f'A message from {by}.'}", by=by) is not None
        if acknowledged:
            self.mail_log.acknowledge(mark)
        return acknowledged

    def read_lead_inbox(self):
        self._lead_inbox.poll(lambda *flags: self.command("inbox", LEAD, *flags, by=LEAD))

    # Scripts for the models.

    def assignment(self, name, task, readers, wait):
        """Returns the mark and the steps of a message that makes a member do a task and send messages to
        `readers`. A session that is resumed after a kill treats the interrupted tool call as answered, so the
        steps repeat the calls. A repeated call changes nothing."""
        mark = self.mail_log.new_mark(LEAD, name)
        *claim, complete = self.finish_steps(name, task)
        messages = [self._message_step(name, to) for to in readers]
        return mark, [*claim, *claim, *messages, complete | {"wait": wait}, complete]

    def _message_step(self, name, to):
        text = f"{self.mail_log.new_mark(name, to)} A message from {name}."
        return tool("SendMessage" if is_native(name) else "team/send_message", to=to, message=text, summary="a message")

    def finish_steps(self, name, task):
        """Returns the steps with which a member's model does a task. A native member does not claim the task,
        because the lead has already assigned it."""
        claim = [] if is_native(name) else [claim_step(name, task, native=False)]
        return [*claim, complete_step(task, is_native(name))]

    def instruct(self, name, text, steps, mark=None):
        """Sends a member a message from the lead that contains these steps."""
        return self.send(LEAD, name, f"{text} {script(*steps)}", mark)


def is_native(name):
    return name in REAL and REAL[name].native


def plain_agent(bin_dir):
    """Creates the program for members without a model, and returns its path."""
    here = os.path.dirname(os.path.abspath(__file__))
    bin_dir.mkdir(exist_ok=True)
    return wrapper(bin_dir / "plain-agent", "PYTHONDONTWRITEBYTECODE=1", os.environ["PYTHON"], f"{here}/acp_agent.py")


def wrapper(path, variable, *command):
    """Writes a shell script that sets an environment variable and runs a command. Returns the path of the
    script."""
    words = " ".join(f"'{word}'" for word in command)
    path.write_text(f'#!/bin/sh\n{variable} exec {words} "$@"\n')
    path.chmod(0o755)
    return str(path)
