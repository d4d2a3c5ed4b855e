"""A throw-away home in which a real Claude Code leads a team, with `brigade` as the guest.

The lead runs in a private tmux server, with an environment of its own and the scripted model for a
model. `run` has already cut the network down to loopback.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
from pathlib import Path

from model import Model
from report import Report

# A model whose tool set has the task tools in both versions; the default of the new one has not.
MODEL = "claude-opus-4-6"
KEY = "brigade-proof-this-is-no-key"
NOTHING_THERE = 4


def prove(scenario, teammate_mode, kind=None):
    """Runs one scenario as a program: `SCENARIO.py old|new [--short]`; exits 1 if a check failed.
    `kind` is the kind of house it takes place in."""
    version, short = sys.argv[1], "--short" in sys.argv[2:]
    # Being ended must still close the house: a SystemExit unwinds, a bare signal would not.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report(f"{Path(sys.argv[0]).stem}, {version}")
    with (kind or House)(version, teammate_mode) as house:
        try:
            scenario(house, report, short)
        except Exception:
            traceback.print_exc()
            report.check("the scenario runs to its end", False)
            print("the lead's screen:\n" + house.screen(), flush=True)
    report.end()
    sys.exit(1 if report.failures else 0)


# How many times longer than on a machine of one's own things may take.
SLACK = float(os.environ.get("BENCH_SLACK", "1"))


def eventually(condition, patience):
    """Polls a condition; gives its last value, so a late truth still counts."""
    end = time.monotonic() + patience * SLACK
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def read_json(path):
    """Reads a file that others may be writing in place: an unparseable one is a moment, not a fact."""
    end = time.monotonic() + 5
    while True:
        try:
            return json.loads(path.read_text())
        except (json.JSONDecodeError, UnicodeDecodeError):
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


class House:
    # What the lead may do without asking, and its terminal.
    lead_arguments = ["--dangerously-skip-permissions"]
    columns, rows = 200, 50

    def __init__(self, version, teammate_mode):
        self.version = version
        self._claude, self._brigade = os.environ["CLAUDE"], os.environ["BRIGADE"]
        self.root = Path(tempfile.mkdtemp(prefix="claude-proof-"))
        self.home, self.project = self.root / "home", self.root / "project"
        self.claude_dir = self.home / ".claude"
        self.claude_dir.mkdir(parents=True)
        self.project.mkdir()
        (self.root / "tmp").mkdir()
        self._model = Model()
        self.team = None
        self._settle_in(teammate_mode)
        self.plain_env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"}
        self._lead_env = self.plain_env | {
            "TERM": "xterm-256color",
            "SHELL": "/bin/sh",
            # Its sockets and scratch files go away with the house.
            "TMPDIR": str(self.root / "tmp"),
            "CLAUDE_CODE_TMPDIR": str(self.root / "tmp"),
            "ANTHROPIC_BASE_URL": self._model.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # All tools at once: a tool behind a search could not be called by script.
            "ENABLE_TOOL_SEARCH": "false",
            # Lets it skip permission questions when the proof runs as root in a container.
            "IS_SANDBOX": "1",
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()
        self._model.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def _settle_in(self, teammate_mode):
        """Answers beforehand everything a first start would ask."""
        known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        answers = {
            "hasCompletedOnboarding": True,
            "lastOnboardingVersion": "9.9.9",
            "lastReleaseNotesSeen": "9.9.9",
            "autoUpdates": False,
            "theme": "dark",
            "bypassPermissionsModeAccepted": True,
            # Old asks this after its first turn, and its model gets no mail while a question stands.
            "effortCalloutDismissed": True,
            "officialMarketplaceAutoInstallAttempted": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.project): known},
        }
        (self.home / ".claude.json").write_text(json.dumps(answers))
        settings = {"teammateMode": teammate_mode, "skipDangerousModePermissionPrompt": True}
        (self.claude_dir / "settings.json").write_text(json.dumps(settings))

    # The real program.

    def agent(self, name):
        return self._model.agent(name)

    def start_lead(self, team):
        """Starts the lead and gives it a team: one of that name (old), or the session's own (new)."""
        arguments = [*self.lead_arguments, "--model", MODEL, "[agent:lead] Lead the team."]
        place = ["-x", str(self.columns), "-y", str(self.rows), "-c", str(self.project)]
        self._tmux("-f", os.devnull, "new-session", "-d", *place, "--", self._claude, *arguments)
        # The screen of a lead that falls over is what explains it.
        self._tmux("set-option", "-p", "remain-on-exit", "on")
        lead = self.agent("lead")
        lead.open_turn()
        if self.version == "old":
            lead.call("TeamCreate", {"team_name": team, "description": "a proof"})
        found = eventually(lambda: list(self.claude_dir.glob("teams/*/config.json")), 5)
        if not found:
            raise RuntimeError("the lead has made no team")
        self.team = found[0].parent.name
        return lead

    def spawn(self, name):
        """Has the lead start a native teammate, and waits for its first turn."""
        arguments = {
            "name": name,
            "description": "a teammate",
            "prompt": f"[agent:{name}] Wait for messages.",
            "subagent_type": "general-purpose",
        }
        if self.version == "old":
            arguments["team_name"] = self.team
        self.agent("lead").call("Task" if self.version == "old" else "Agent", arguments)
        teammate = self.agent(name)
        teammate.open_turn()
        return teammate

    def sit_down(self, name):
        """Starts a native teammate on a team it did not make, as a lead would, and waits for its first turn."""
        self.brigade("team", "join", name, "--agent-type", "general-purpose")
        self.brigade("send", name, f"[agent:{name}] Wait for messages.")
        who = ["--agent-id", f"{name}@{self.team}", "--agent-name", name, "--team-name", self.team]
        more = ["--agent-color", "blue", "--parent-session-id", str(uuid.uuid4())]
        more += ["--agent-type", "general-purpose", "--model", MODEL, "--dangerously-skip-permissions"]
        place = ["-x", "200", "-y", "50", "-c", str(self.project)]
        self._tmux("-f", os.devnull, "new-session", "-d", *place, "--", self._claude, *who, *more)
        teammate = self.agent(name)
        teammate.open_turn()
        return teammate

    def message(self, to, text):
        """The SendMessage call for a plain message, in the form this version wants."""
        if self.version == "old":
            form = {"type": "message", "recipient": to, "content": text, "summary": "a summary"}
        else:
            form = {"to": to, "message": text, "summary": "a summary"}
        return ("SendMessage", form)

    # The guest.

    def brigade(self, *arguments, by=None, well=(0,)):
        """Runs the guest's program once; gives what it printed as JSON, None if it printed nothing."""
        done = self.try_brigade(*arguments, by=by)
        if done.returncode not in well:
            told = done.stderr.strip()
            raise RuntimeError(f"brigade {' '.join(arguments)}: {done.returncode}: {told}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def mail(self, name, *flags):
        """The messages of a member; that there are none may show in the exit code, and is no failure."""
        return self.brigade("inbox", name, *flags, by=name, well=(0, NOTHING_THERE)) or []

    def try_brigade(self, *arguments, by=None):
        where = ["--claude-dir", str(self.claude_dir), "--team", self.team, "--json"]
        who = ["--as", by] if by else []
        return subprocess.run(
            [self._brigade, *where, *who, *arguments],
            env=self.plain_env,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    # The files they share.

    @property
    def config(self):
        return self.claude_dir / "teams" / self.team / "config.json"

    def inbox(self, name):
        return self.claude_dir / "teams" / self.team / "inboxes" / f"{name}.json"

    @property
    def tasks(self):
        return self.claude_dir / "tasks" / self.team

    def members(self):
        return [member["name"] for member in read_json(self.config)["members"]]

    def locks(self):
        """The lock directories that stand at this moment."""
        shared = [*self.claude_dir.glob("teams/**/*.lock"), *self.claude_dir.glob("tasks/**/*.lock")]
        return [path for path in shared if path.is_dir()]

    def check_locks(self, report):
        """The last check of a scenario; the lead may hold a lock for the moment of a write."""
        free = eventually(lambda: not self.locks(), 5)
        report.check("no lock is left behind", free, self.locks())

    # Coming and going.

    def screen(self):
        return self._tmux("capture-pane", "-p", "-t", "{top-left}").stdout.strip()

    def _tmux(self, *arguments):
        return subprocess.run(
            ["tmux", "-S", str(self.root / "tmux"), *arguments],
            env=self._lead_env,
            capture_output=True,
            text=True,
        )

    def leave(self):
        """Ends the real program, and what it started."""
        panes = self._tmux("list-panes", "-a", "-F", "#{pane_pid}").stdout.split()
        self._tmux("kill-server")
        for pid in map(int, panes):
            # Each pane leads a session of its own, so its group holds what it started.
            if not eventually(lambda: not os.path.exists(f"/proc/{pid}"), 5):
                os.killpg(pid, signal.SIGKILL)
