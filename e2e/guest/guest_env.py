"""A house whose lead starts its teammates with brigade in the place of Claude Code.

Each vendor's program has a scripted model of its own; what its members are told and do is found in
what that model was asked.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from house import SLACK, House, eventually, read_json
from processes import below, command, program, variables, words
from scripted import ScriptedModel, as_json_lines
from vendors import SETTLE_IN

ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][0-9A-B]|.)")


class GuestHouse(House):
    # It asks its user, and so do its teammates; and there are many panes.
    lead_arguments = ["--permission-mode", "default"]
    columns, rows = 220, 120

    def __init__(self, version, teammate_mode):
        super().__init__(version, teammate_mode)
        self._stack = ExitStack()
        self.models, self._asked = {}, {}
        self.keep = Path(os.environ["KEEP"]) / version
        subprocess.run(["git", "init", "--quiet", self.project], env=self.plain_env, check=True)
        programs = dict(pair.split("=", 1) for pair in os.environ["AGENTS"].split(":"))
        folder = self.root / "bin"
        folder.mkdir()
        for name, program in {**programs, "claude": self._claude, "brigade": self._brigade}.items():
            (folder / name).symlink_to(program)
        self.plain_env["PATH"] = f"{folder}:{self.plain_env['PATH']}"
        # The shells of panes begin anew with the system's path.
        (self.home / ".profile").write_text(f"PATH={self.plain_env['PATH']}\n")
        self._lead_env |= {
            "PATH": self.plain_env["PATH"],
            "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
            # A model that Codex does not know is offered its plain tools.
            "BRIGADE_CODEX_ARGS": '-c model="scripted"',
        }
        for vendor in programs:
            self.models[vendor] = self._stack.enter_context(ScriptedModel(self.root / "models" / vendor))
            self._lead_env |= SETTLE_IN[vendor](self, self.models[vendor].url)
        # Whatever switches brigade on is its own work.
        switch = [folder / "brigade", "init", "--yes"]
        subprocess.run(switch, env=self.plain_env, cwd=self.project, check=True, capture_output=True, text=True)

    def __exit__(self, *failure):
        self._stack.close()
        super().__exit__(*failure)

    # The lead, whose turn is open to the script except while it listens.

    @property
    def lead(self):
        return self.agent("lead")

    def hire(self, name, kind, prompt, **more):
        """Has the lead start a teammate of this agent type; gives what its tool said."""
        arguments = {"name": name, "description": "a teammate", "prompt": prompt, "subagent_type": kind} | more
        if self.version == "old":
            arguments["team_name"] = self.team
        outcome = self.lead.call("Task" if self.version == "old" else "Agent", arguments)
        pane = eventually(lambda: self.member(name).get("tmuxPaneId"), 10)
        (self.root / "panes").mkdir(exist_ok=True)
        # Its screen is gone with it; what was on it is kept.
        self._tmux("pipe-pane", "-t", pane, f"cat >> {self.root}/panes/{name}")
        return outcome

    def write(self, name, text):
        return self.lead.call(*self.message(name, text))

    def order(self, name, words, *steps):
        """The lead writes to a member what to do, for its model to follow."""
        return self.write(name, script(words, *steps))

    def listens(self, sought, patience=20):
        """Whether the lead's model is told this; ends its turns until it is. Leaves a turn open."""
        end = time.monotonic() + patience * SLACK
        while sought not in self.lead.heard():
            self.lead.end_turn()
            try:
                self.lead.open_turn(max(end - time.monotonic(), 0.1))
            except TimeoutError:
                return self.is_told_when_asked_on(sought)
        return True

    def is_told_when_asked_on(self, sought):
        """The same of a lead that rests. What new has taken out of its inbox while it was ending a turn it can
        keep for the turn after the next."""
        for turn in range(3):
            if turn:
                self.lead.end_turn()
            self.type_to_lead("go on")
            self.lead.open_turn()
            if sought in self.lead.heard():
                return True
        return False

    def lost_by_lead(self, sought):
        """Whether old marked a message read that came while it was marking others, and never showed it
        to its model: its own loss, which e2e/claude measures."""
        if self.version == "new" or sought in self.lead.heard():
            return False
        events = [record["event"] for record in self.log()]
        sent = (event["sent"] for event in events if "sent" in event)
        keys = [its["key"] for its in sent if its["to"] == "team-lead" and sought in its["message"]["text"]]
        return any(event["read"]["key"] in keys for event in events if "read" in event)

    def dropped_by_lead(self, name, sought):
        """Whether old said that it had written this to a member, and never did: it drops what it cannot
        write at once."""
        seen = (record["event"]["seen"] for record in self.log() if "seen" in record["event"])
        arrived = any(its["to"] == name and sought in its["message"]["text"] for its in seen)
        return self.version == "old" and not arrived

    def turn_with(self, sought):
        """The teammate's message in which the lead's model was told this."""
        parts = self.lead.heard().split("<teammate-message")
        return next((part for part in parts if sought in part), "")

    def type_to_lead(self, text):
        """What its user types, with Enter."""
        self._tmux("send-keys", "-t", "{top-left}", "-l", text)
        time.sleep(0.3)
        self._tmux("send-keys", "-t", "{top-left}", "Enter")

    def press(self, *keys):
        self._tmux("send-keys", "-t", "{top-left}", *keys)

    def shows(self, text):
        """Whether the lead's screen shows this, on however many lines."""
        return text in re.sub(r"[\s│]", "", self.screen())

    def ask_to_stop(self, name, reason):
        """The lead asks a member to shut down."""
        if self.version == "old":
            form = {"type": "shutdown_request", "recipient": name, "content": reason}
        else:
            form = {"to": name, "message": {"type": "shutdown_request", "reason": reason}}
        return self.lead.call("SendMessage", form)

    def answer_plan(self, name, request, feedback=None):
        """The lead's model approves a plan, or says what to do better."""
        answer = {"type": "plan_approval_response", "request_id": request, "approve": feedback is None}
        if self.version == "old":
            form = answer | {"recipient": name} | ({"content": feedback} if feedback else {})
        else:
            form = {"to": name, "message": answer | ({"feedback": feedback} if feedback else {})}
        return self.lead.call("SendMessage", form)

    # The members.

    def hire_to_plan(self, name, kind, prompt):
        """Has the lead start a teammate that has to plan first. New cannot: its teammate is killed and
        started again in its pane, with the arguments it had and the one that old would add."""
        if self.version == "old":
            return self.hire(name, kind, prompt, mode="plan")
        outcome = self.hire(name, kind, "Wait.")
        self.idle(name)
        member = self.player(name)
        given = [f"{key}={value}" for key, value in variables(member).items()]
        again = shlex.join(["env", "-i", *given, *words(member), "--plan-mode-required"])
        started = {pid: command(pid) for pid in below(member)}
        pane = self.member(name)["tmuxPaneId"]
        self._tmux("set-option", "-p", "-t", pane, "remain-on-exit", "on")
        os.kill(member, signal.SIGKILL)
        # Its guard ends the rest.
        eventually(lambda: not any(self.runs(pid, run) for pid, run in started.items()), 10)
        self._tmux("respawn-pane", "-k", "-t", pane, again)
        self._tmux("set-option", "-p", "-t", pane, "remain-on-exit", "off")
        self.write(name, prompt)
        return outcome

    def start_outside(self, arguments, **files):
        """Starts brigade where its user might, outside of the lead's terminal. It ends with the house."""
        place = {"env": self._lead_env, "cwd": self.project, "stdin": subprocess.DEVNULL}
        process = subprocess.Popen([self._brigade, *arguments], **place, **files)
        self._stack.callback(process.terminate)
        return process

    def member(self, name):
        members = read_json(self.config)["members"]
        return next((member for member in members if member["name"] == name), {})

    def idle(self, name, patience=30):
        """Whether the member says that it is idle."""
        return eventually(lambda: self.member(name).get("isActive") is False, patience)

    def busy(self):
        """The members that say they are at work."""
        return [member["name"] for member in read_json(self.config)["members"] if member.get("isActive")]

    def panes(self):
        """The panes there are, and the process of each."""
        lines = self._tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_pid}").stdout.splitlines()
        return {pane: int(pid) for pane, pid in (line.split() for line in lines)}

    def pane(self, name):
        """What a member's pane has shown, without colours."""
        path = self.root / "panes" / name
        return ESCAPES.sub("", path.read_text(errors="replace")) if path.exists() else ""

    def processes(self, name):
        """A member's pane and everything that was started in it, as pid and what it runs."""
        root = self.panes().get(self.member(name).get("tmuxPaneId"))
        return {} if root is None else {pid: command(pid) for pid in below(root) | {root}}

    def player(self, name):
        """The process of brigade's that plays a member."""
        ours = (pid for pid in sorted(self.processes(name)) if program(pid) == self._brigade)
        return next(pid for pid in ours if "--agent-name" in words(pid))

    def terminal(self, name):
        """The terminal of a member's pane."""
        return self._tmux("display-message", "-p", "-t", self.member(name)["tmuxPaneId"], "#{pane_tty}").stdout.strip()

    def put_mail(self, name, entry):
        """Puts an entry into a member's inbox as a program of somebody else's would."""
        inbox = self.inbox(name)
        lock = inbox.with_name(f"{inbox.name}.lock")
        if not eventually(lambda: take(lock), 5):
            raise RuntimeError(f"{lock} is held")
        entries = read_json(inbox) if inbox.exists() else []
        draft = inbox.with_name(f"{inbox.name}.draft")
        draft.write_text(json.dumps([*entries, entry], indent=2, ensure_ascii=False))
        draft.rename(inbox)
        lock.rmdir()

    def runs(self, pid, what):
        """Whether this process still runs what it did."""
        return command(pid) == what and what != ""

    # Their models.

    def requests(self, vendor, name):
        """What the model was asked for one member, in order: the log's record and the whole request."""
        model = self.models[vendor]
        known = self._asked.setdefault(vendor, {})
        found = []
        for record in as_json_lines(model.log()):
            if not record.get("tools"):
                continue
            number = record["number"]
            if number not in known:
                known[number] = model.body(number)
            if f"You are {name} in the agent team {self.team}." in known[number]:
                found.append((record, known[number]))
        return found

    def times_told(self, vendor, name, sought):
        """How often a text stands in what the member's model was asked last."""
        requests = self.requests(vendor, name)
        return requests[-1][1].count(sought) if requests else 0

    def told(self, vendor, name, sought, patience=30):
        """Whether a member's model is told something."""
        return eventually(lambda: self.times_told(vendor, name, sought), patience)

    def calls(self, vendor, name):
        """The tools a member's model has called, and what each gave back."""
        requests = [record for record, _ in self.requests(vendor, name)]
        calls = []
        for record, after in zip(requests, requests[1:] + [None]):
            if call := record["answer"].get("call"):
                gave = after and after["results"] == record["results"] + 1 and after["returned"]
                calls.append((call["wanted"], gave["text"] if gave else None))
        return calls

    # What is told of it all.

    def log(self):
        return as_json_lines(self.try_brigade("log").stdout)

    def story(self):
        """The same for people."""
        where = ["--claude-dir", str(self.claude_dir), "--team", self.team]
        told = subprocess.run(
            [self._brigade, *where, "log"], env=self.plain_env, capture_output=True, text=True, timeout=60
        )
        return told.stdout

    def keep_traces(self, report):
        """What explains a failure; the house will be gone."""
        shutil.rmtree(self.keep, ignore_errors=True)
        self.keep.mkdir(parents=True)
        for name in ("models", "panes"):
            if (self.root / name).exists():
                shutil.copytree(self.root / name, self.keep / name)
        (self.keep / "lead").write_text(self.screen())
        (self.keep / "lead-heard").write_text(self.lead.heard())
        (self.keep / "log").write_text(self.try_brigade("log").stdout)
        for kind in ("teams", "tasks"):
            shutil.copytree(self.claude_dir / kind, self.keep / kind, dirs_exist_ok=True)
        report.figure("screens, requests, log and files are kept in", self.keep)


def script(words, *steps):
    """A text that tells a scripted model what to do."""
    return f"{words} [script]{json.dumps(steps)}[/script]"


def say(text):
    return {"say": text}


def tool(name, **args):
    return {"tool": name, "args": args}


def team(name, **args):
    return tool(f"team/{name}", **args)


def take(lock):
    try:
        lock.mkdir()
        return True
    except FileExistsError:
        return False
