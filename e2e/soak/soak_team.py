"""The ten members of the team in files: five real agents of four vendors, each with a scripted model of its own,
and five that have no model."""

import json
import os
import subprocess
import threading
from collections import Counter

from crew import CREW, HostHouse, Member, script
from house import MODEL
from post import LEAD, Ear, LeadsDesk, Notebook, Post
from scripted import ScriptedModel
from vendors import SETTLE_IN

REAL = {
    "cody": CREW["cody"],
    "gemma": CREW["gemma"],
    "clara": Member("claude", model=MODEL),
    "nat": Member("claude", "native", MODEL),
    "opal": Member("opencode"),
}
PLAIN = ("fay", "finn", "flo", "fred", "fern")
# Never killed in the middle of the run, so that their processes get old.
STEADY = ("cody", "gemma", "fay", "finn")
# Gemini CLI writes all of its history to the file of its session once more whenever it is resumed, and reads all of
# that the next time: at the pace of the others it takes minutes to come back after two hours. It gets a third.
SLOW = {"gemma": 3}


class Crowd(HostHouse):
    """The home of the ten, and the commands that its lead and members without a model give."""

    def __init__(self):
        super().__init__("host", "tmux")
        self.team = "soak"
        self.post = Post()
        self.desk = LeadsDesk(self.post)
        # Closed while everything is killed, so that nothing new is begun.
        self.gate = threading.Event()
        self.gate.set()
        # Commands that failed, by what they said, without those that were killed.
        self.failures = Counter()
        self.killed_commands = 0
        self.models = {"cody": self.model}
        for name in REAL:
            if name not in self.models:
                self.models[name] = self._stack.enter_context(ScriptedModel(self.root / f"model-{name}"))
        self.plain_env |= {"GOOGLE_GEMINI_BASE_URL": self.models["gemma"].url}
        self.plain_env |= SETTLE_IN["opencode"](self, self.models["opal"].url)
        self.plain_env["BRIGADE_OPENCODE"] = os.environ["PROGRAM_OPENCODE"]
        folders = {name: self.root / ("model" if name == "cody" else f"model-{name}") for name in REAL}
        self.ears = {name: Ear(name, folder, self.post) for name, folder in folders.items()}
        self.notebooks = [Notebook(name, self.project / name, self.post) for name in PLAIN]
        self._write_team_file()

    def _write_team_file(self):
        bin_dir = self.root / "bin"
        bin_dir.mkdir(exist_ok=True)
        members = {}
        for name, member in REAL.items():
            # From the first word on there is a script; without one the model repeats what it was told.
            more = {"prompt": f"Be there. {script({'say': 'I am there.'})}"}
            if member.agent == "claude":
                # Two of one vendor, each with a model of its own.
                url = self.models[name].url
                more["program"] = wrapper(bin_dir / name, f"ANTHROPIC_BASE_URL={url}", os.environ["CLAUDE_NEW"])
            members[name] = (member, more)
        agent = plain_agent(bin_dir)
        for name in PLAIN:
            (self.project / name).mkdir()
            members[name] = (Member(f"acp:{agent}"), {"dir": name})
        self.write_file(members, {})

    def listen(self):
        for ear in (*self.ears.values(), *self.notebooks):
            ear.listen()

    # The commands of lead and members.

    def command(self, *arguments, by=None):
        """Runs brigade once; gives what it printed as JSON, or None if it failed or was killed."""
        self.gate.wait()
        try:
            done = self.try_brigade(*arguments, by=by)
        except subprocess.TimeoutExpired:
            self.failures[f"{arguments[0]}: not done after 60 s"] += 1
            return None
        if done.returncode == -9:
            self.killed_commands += 1
            return None
        # 4 says that there is nothing to show.
        if done.returncode not in (0, 4):
            self.failures[f"{' '.join(arguments[:2])}: {done.returncode}: {done.stderr.strip()[:160]}"] += 1
            return None
        return json.loads(done.stdout) if done.stdout.strip() else []

    def write(self, by, to, words="", mark=None):
        """Somebody writes to somebody by command; whether that was acknowledged."""
        mark = mark or self.post.letter(by, to)
        well = self.command("send", to, f"{mark} {words or f'A word from {by}.'}", by=by) is not None
        if well:
            self.post.acknowledge(mark)
        return well

    def read_lead(self):
        """The lead reads its mail: once to see it, once more to mark it. Whoever is killed in between has seen it."""
        for flags in (["--unread"], ["--unread", "--mark-read"]):
            self.desk.read(self.command("inbox", LEAD, *flags, by=LEAD) or [])

    # What the models are told to do.

    def job(self, name, task, readers, wait):
        """The mark of a message that tells a member to do a task and to write to these, and what it says. A call that
        is cut off by a kill counts as answered in a resumed session; the second changes nothing."""
        mark = self.post.letter(LEAD, name)
        *claim, complete = self.finish(name, task)
        letters = [self._letter(name, to) for to in readers]
        return mark, [*claim, *claim, *letters, complete | {"wait": wait}, complete]

    def _letter(self, name, to):
        text = f"{self.post.letter(name, to)} A word from {name}."
        tool = "SendMessage" if is_native(name) else "team/send_message"
        return {"tool": tool, "args": {"to": to, "message": text, "summary": "a word"}}

    def finish(self, name, task):
        """The steps by which the model of a member does a task. To Claude Code's own it was given by the lead."""
        done = {"taskId": task, "status": "completed"}
        if is_native(name):
            return [{"tool": "TaskUpdate", "args": done}]
        return [{"tool": "team/task_claim", "args": {"taskId": task}}, {"tool": "team/task_update", "args": done}]

    def instruct(self, name, what, steps, mark=None):
        """The lead tells a member what to do."""
        return self.write(LEAD, name, f"{what} {script(*steps)}", mark)


def is_native(name):
    return name in REAL and REAL[name].place == "native"


def plain_agent(bin_dir):
    """The program of a member without a model."""
    here = os.path.dirname(os.path.abspath(__file__))
    bin_dir.mkdir(exist_ok=True)
    return wrapper(bin_dir / "plain-agent", "PYTHONDONTWRITEBYTECODE=1", os.environ["PYTHON"], f"{here}/agent.py")


def wrapper(path, variable, *command):
    words = " ".join(f"'{word}'" for word in command)
    path.write_text(f'#!/bin/sh\n{variable} exec {words} "$@"\n')
    path.chmod(0o755)
    return str(path)
