"""A temporary home directory in which a real Claude Code leads a team and `brigade` acts for other members.

The lead runs in a private tmux server, with an environment of its own and a model that the scenario scripts.
The `run` scripts have already limited the network to loopback.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from lib.claude_model import ClaudeModel
from lib.processes import kill_home, left_in_home
from lib.report import Report
from lib.util import capture, eventually, json_lines, read_json

# Both versions of Claude Code offer the task tools to this model. The new version does not offer them to its
# default model.
MODEL = "claude-opus-4-6"
API_KEY = "brigade-e2e-this-is-not-a-key"
# Settings with which Claude Code asks no questions at its first start.
ONBOARDING_DONE = {
    "hasCompletedOnboarding": True,
    "lastOnboardingVersion": "9.9.9",
    "lastReleaseNotesSeen": "9.9.9",
    "theme": "dark",
    "bypassPermissionsModeAccepted": True,
    # Without this setting, the old version asks a question after its first turn. Until a person answers, its model
    # gets no mail.
    "effortCalloutDismissed": True,
    "officialMarketplaceAutoInstallAttempted": True,
    "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
}
# The exit code of brigade when there is nothing to show.
NOTHING_FOUND = 4


def run_scenario(scenario, env_type=None, teammate_mode="tmux"):
    """Runs one scenario as a program, `SCENARIO.py VERSION [--short]`; exits with 1 if a check failed.

    `env_type` is the scenario's subclass of TestEnv. Files that help to explain a failure are copied to $KEEP.
    """
    version, short = sys.argv[1], "--short" in sys.argv[2:]
    exit_on_sigterm()
    report = Report(f"{Path(sys.argv[0]).stem}, {version}")
    with (env_type or TestEnv)(version, teammate_mode) as env:
        with report.scenario(lambda: env.keep_files(f"{Path(sys.argv[0]).stem}-{version}", report)):
            scenario(env, report, short)
    sys.exit(report.end())


def exit_on_sigterm():
    """Turns SIGTERM into SystemExit, so that context managers still clean up."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def mark_trusted(home, project, **more):
    """Writes settings with which Claude Code asks no questions at its first start in this project."""
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    settings = ONBOARDING_DONE | {"projects": {str(project): trusted}} | more
    (home / ".claude.json").write_text(json.dumps(settings))


def copy_kept(report, folders, name="", ignore=lambda path: False):
    """Copies folders that help to explain a failure to the folder `name` in $KEEP. Leaves out special files such
    as sockets, and paths for which `ignore` returns true."""

    def ignored(folder, names):
        paths = [Path(folder) / name for name in names]
        return [path.name for path in paths if not (path.is_dir() or path.is_file()) or ignore(path)]

    kept = Path(os.environ["KEEP"]) / name
    shutil.rmtree(kept, ignore_errors=True)
    for target, source in folders.items():
        shutil.copytree(source, kept / target, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    report.figure("files of the failed run are in", kept)
    return kept


class TestEnv:
    # The arguments that set the lead's permission mode, and the size of the lead's terminal.
    lead_arguments = ["--dangerously-skip-permissions"]
    columns, rows = 200, 50

    def __init__(self, version, teammate_mode):
        self.version = version
        self.claude, self.program = os.environ["CLAUDE"], os.environ["BRIGADE"]
        self.root = Path(tempfile.mkdtemp(prefix="brigade-e2e-"))
        self.home, self.project = self.root / "home", self.root / "project"
        self.claude_dir = self.home / ".claude"
        self.claude_dir.mkdir(parents=True)
        self.project.mkdir()
        (self.root / "tmp").mkdir()
        self._model = ClaudeModel()
        self.team = None
        mark_trusted(self.home, self.project, autoUpdates=False)
        settings = {"teammateMode": teammate_mode, "skipDangerousModePermissionPrompt": True}
        (self.claude_dir / "settings.json").write_text(json.dumps(settings))
        # The environment variables for brigade (`environ`) and for the lead (`lead_environ`).
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"}
        # The scenarios write brigade.toml themselves, so brigade need not ask whether to trust it.
        self.environ["BRIGADE_TRUST"] = "all"
        self.lead_environ = self.environ | {
            "TERM": "xterm-256color",
            "SHELL": "/bin/sh",
            "TMPDIR": str(self.root / "tmp"),
            "CLAUDE_CODE_TMPDIR": str(self.root / "tmp"),
            "ANTHROPIC_BASE_URL": self._model.url,
            "ANTHROPIC_API_KEY": API_KEY,
            "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Offer all tools directly: a scenario cannot call a tool that the model has to search for.
            "ENABLE_TOOL_SEARCH": "false",
            # Allows Claude Code to skip permission prompts when it runs as root in a container.
            "IS_SANDBOX": "1",
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop_lead()
        self._model.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def git_init(self):
        subprocess.run(["git", "init", "--quiet", self.project], env=self.environ, check=True)

    def keep_files(self, name, report):
        """Prints the lead's screen, and copies files that help to explain a failure; returns the copies' folder."""
        print("screen:\n" + self.screen(), flush=True)
        found = (*self.root.glob("pane*"), *self.root.glob("model*"), self.home)
        kept = copy_kept(report, {path.name: path for path in found if path.is_dir()}, name)
        for path in found:
            if path.is_file():
                shutil.copy(path, kept)
        return kept

    # Methods that run Claude Code.

    def agent(self, name):
        return self._model.agent(name)

    def start_lead(self, team):
        """Starts a lead with a team. The old version gives the team this name; the new one chooses a name itself."""
        self._start_claude(self.columns, self.rows, *self.lead_arguments, "--model", MODEL, "[agent:lead] Lead the team.")
        # Keep the pane open if the lead crashes, so that its screen can be printed.
        self._tmux("set-option", "-p", "remain-on-exit", "on")
        lead = self.agent("lead")
        lead.open_turn()
        if self.version == "old":
            lead.call("TeamCreate", {"team_name": team, "description": "a test"})
        found = eventually(lambda: list(self.claude_dir.glob("teams/*/config.json")), 5)
        if not found:
            raise RuntimeError("the lead has created no team")
        self.team = found[0].parent.name
        return lead

    def _start_claude(self, columns, rows, *arguments):
        window = ["-x", str(columns), "-y", str(rows), "-c", str(self.project)]
        self._tmux("-f", os.devnull, "new-session", "-d", *window, "--", self.claude, *arguments)

    def spawn(self, name):
        """Makes the lead start a native teammate, and waits for its first turn."""
        self.call_spawn_tool(name, "general-purpose", f"[agent:{name}] Wait for messages.")
        teammate = self.agent(name)
        teammate.open_turn()
        return teammate

    def call_spawn_tool(self, name, agent_type, prompt, **more):
        """Makes the lead call its tool for starting teammates; returns the tool's result."""
        arguments = {"name": name, "description": "a teammate", "prompt": prompt, "subagent_type": agent_type} | more
        if self.version == "old":
            arguments["team_name"] = self.team
        return self.agent("lead").call("Task" if self.version == "old" else "Agent", arguments)

    def start_native_teammate(self, name):
        """Starts a native teammate on a team that brigade leads, and waits for its first turn."""
        self.brigade("team", "join", name, "--agent-type", "general-purpose")
        self.brigade("send", name, f"[agent:{name}] Wait for messages.")
        identity = ["--agent-id", f"{name}@{self.team}", "--agent-name", name, "--team-name", self.team]
        more = ["--agent-color", "blue", "--parent-session-id", str(uuid.uuid4())]
        more += ["--agent-type", "general-purpose", "--model", MODEL, "--dangerously-skip-permissions"]
        self._start_claude(200, 50, *identity, *more)
        teammate = self.agent(name)
        teammate.open_turn()
        return teammate

    def message(self, to, text):
        """Returns tool name and arguments of a SendMessage call with a plain message, as this version needs them."""
        if self.version == "old":
            arguments = {"type": "message", "recipient": to, "content": text, "summary": "a summary"}
        else:
            arguments = {"to": to, "message": text, "summary": "a summary"}
        return ("SendMessage", arguments)

    # Methods that run brigade.

    def brigade(self, *arguments, by=None, ok=(0,)):
        """Runs brigade as the member `by`, or as the lead; returns the parsed JSON output, None if it is empty."""
        done = self.try_brigade(*arguments, by=by)
        if done.returncode not in ok:
            raise RuntimeError(f"brigade {' '.join(arguments)}: {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def try_brigade(self, *arguments, by=None):
        scope = ["--claude-dir", str(self.claude_dir), "--team", self.team, "--json"]
        return self.run(*scope, *(["--as", by] if by else []), *arguments, timeout=60)

    def run(self, *arguments, environ=None, timeout=180):
        """Runs brigade with exactly these arguments."""
        command = [self.program, *arguments]
        return capture(command, env=environ or self.environ, cwd=self.project, timeout=timeout)

    def run_ok(self, *arguments, **more):
        """Like `run`, but raises an error if brigade fails."""
        done = self.run(*arguments, **more)
        if done.returncode != 0:
            raise RuntimeError(f"brigade {' '.join(arguments)}: {done.returncode}: {done.stderr.strip()}")
        return done

    def mail(self, name, *flags):
        """Returns the messages in a member's inbox; an empty list if there are none."""
        return self.brigade("inbox", name, *flags, by=name, ok=(0, NOTHING_FOUND)) or []

    def task_id(self, subject):
        return next(task["id"] for task in self.brigade("task", "list") if task["subject"] == subject)

    def log(self):
        """Returns the records of the team's journal."""
        return json_lines(self.try_brigade("log").stdout)

    @property
    def state(self):
        """brigade's own state folder."""
        return self.home / ".local/state/brigade"

    # The team's files, which Claude Code and brigade share.

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

    def put_mail(self, name, entry):
        """Adds an entry to a member's inbox file, as a program other than brigade would."""
        edit(self.inbox(name), lambda entries: entries.append(entry))

    def locks(self):
        """Returns the lock directories that exist at this moment."""
        shared = [*self.claude_dir.glob("teams/**/*.lock"), *self.claude_dir.glob("tasks/**/*.lock")]
        return [path for path in shared if path.is_dir()]

    def check_locks(self, report):
        """Checks at the end of a scenario that no lock is left. Waits, because the lead may still hold one."""
        free = eventually(lambda: not self.locks(), 5)
        report.check("no lock is left behind", free, self.locks())

    # Methods for processes.

    def left(self, timeout=10):
        """Waits until no process of this environment is left; returns those that are left at the timeout."""
        return left_in_home(self.home, timeout)

    def check_no_process_left(self, report, name="no process is left", timeout=10):
        left = self.left(timeout)
        report.check(name, not left, left)

    def kill_all(self):
        kill_home(self.home)

    def screen(self):
        return self._tmux("capture-pane", "-p", "-t", "{top-left}").stdout.strip()

    def _tmux(self, *arguments):
        return capture(["tmux", "-S", str(self.root / "tmux"), *arguments], env=self.lead_environ)

    def stop_lead(self):
        """Stops Claude Code and everything it started."""
        panes = self._tmux("list-panes", "-a", "-F", "#{pane_pid}").stdout.split()
        self._tmux("kill-server")
        for pid in map(int, panes):
            # Each pane is the leader of a process group.
            if not eventually(lambda: not os.path.exists(f"/proc/{pid}"), 5):
                os.killpg(pid, signal.SIGKILL)


def edit(path, change):
    """Changes a shared file as another program would: atomically, and while it holds Claude Code's lock. A file
    that does not exist counts as an empty inbox."""
    lock, draft = (path.with_name(path.name + end) for end in (".lock", ".tmp.e2e"))

    def try_lock():
        try:
            lock.mkdir()
            return True
        except FileExistsError:
            return False

    if not eventually(try_lock, 15):
        raise TimeoutError(f"the lock {lock} is not released")
    value = read_json(path) if path.exists() else []
    change(value)
    draft.write_text(json.dumps(value, indent=2, ensure_ascii=False))
    draft.rename(path)
    lock.rmdir()
