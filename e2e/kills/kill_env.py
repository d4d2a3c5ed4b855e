"""A home that is restored from a copy before each try, and a comparable description of everything in it."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from lib.processes import in_home, kill_home
from lib.util import capture, json_lines

TEAM = "demo"
FAKE_AGENT = Path(__file__).parents[2] / "crates/brigade/tests/it/fake-agent.sh"
# Ids, times and process ids, which differ between two runs.
VOLATILE = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\d{4}-?\d\d-?\d\dT[\d:.-]+Z?"), "TIME"),
    (re.compile(r"\b1[0-9]{12}\b"), "0"),
    (re.compile(r"-[0-9]{19}\.json"), "-NANOSECONDS.json"),
)
# Files whose presence depends on the moment, not on the result: logs, and spare locks in brigade's own folder.
IGNORED_FILES = re.compile(r"\.git/(?!worktrees/[^/]*/?$|refs/heads)|/supervisor\.log$|/log$|heard$|/brigade/files/.*\.lock/$")
# The events of a log that a command causes exactly once. Others depend on the moment, but all have an author.
COUNTED_EVENTS = ("team_created", "team_deleted", "member_left")
# Texts that a model must see once.
ONCE = ("hello alice", "hello carl", "message one", "message two", "message three")


class KillEnv:
    def __init__(self):
        self.program = os.environ["BRIGADE"]
        self.root = Path(tempfile.mkdtemp(prefix="brigade-kills-"))
        self.live, self.copies = self.root / "live", self.root / "copies"
        self.home, self.project = self.live / "home", self.live / "project"
        self.log = self.root / "calls"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "BRIGADE_TRUST": "all",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        for who in ("AUTHOR", "COMMITTER"):
            self.environ |= {f"GIT_{who}_NAME": "test", f"GIT_{who}_EMAIL": "test@example.org"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        kill_home(self.home)
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def claude_dir(self):
        return self.home / ".claude"

    @property
    def state(self):
        return self.home / ".local/state/brigade"

    def reset(self):
        """Kills every process and starts with an empty home and an empty repository."""
        kill_home(self.home)
        shutil.rmtree(self.live, ignore_errors=True)
        self.home.mkdir(parents=True)
        self.project.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        (self.project / "file").write_text("one\n")
        self.git("add", "file")
        self.git("commit", "--quiet", "-m", "first")

    def save(self, name):
        """Kills every process and saves the home as a copy."""
        kill_home(self.home)
        shutil.rmtree(self.copies / name, ignore_errors=True)
        self.copies.mkdir(exist_ok=True)
        subprocess.run(["cp", "-a", self.live, self.copies / name], check=True)

    def restore(self, name):
        """Kills every process and restores a copy."""
        kill_home(self.home)
        shutil.rmtree(self.live)
        subprocess.run(["cp", "-a", self.copies / name, self.live], check=True)

    def git(self, *arguments):
        done = capture(["git", *arguments], env=self.environ, cwd=self.project)
        if done.returncode:
            raise RuntimeError(f"git {arguments}: {done.stderr}")
        return done.stdout

    def run(self, *arguments, timeout=90):
        return capture([self.program, *arguments], env=self.environ, cwd=self.project, timeout=timeout)

    def run_ok(self, *arguments):
        done = self.run(*arguments)
        if done.returncode:
            raise RuntimeError(f"brigade {' '.join(arguments)}: {done.returncode}: {done.stderr.strip()}")
        return done

    def read(self, *arguments):
        """Runs a command that prints JSON; returns the value, or None if the command fails."""
        done = self.run(*arguments, "--json")
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else None

    # The description of the home.

    def describe(self):
        """Returns the state of the home, without ids and times, so that two runs can be compared."""
        return {
            "files": self.files(),
            "roster": self.roster(),
            "tasks": self.tasks(),
            "mail": self.mail(),
            "approvals": self.approvals(),
            "log": self.events(),
            "git": self.worktrees(),
            "processes": self.processes(),
            "heard": self.heard(),
        }

    def files(self):
        """Returns the paths of all files and folders, except those whose presence depends on the moment."""
        found = set()
        for folder, folders, files in os.walk(self.live):
            names = [f"{name}/" for name in folders] + files
            found |= {f"{folder.removeprefix(str(self.live))}/{name}" for name in names}
        return sorted({normalise(path) for path in found if not IGNORED_FILES.search(path)})

    def roster(self):
        rosters = {}
        for path in sorted(self.claude_dir.glob("teams/*/config.json")):
            config = json.loads(path.read_text())
            for member in config["members"]:
                member.pop("isActive", None)
            rosters[path.parent.name] = json.loads(normalise(json.dumps(config)))
        return rosters

    def tasks(self):
        boards = self.claude_dir.glob("tasks/*/*.json")
        return {str(path.relative_to(self.claude_dir)): json.loads(normalise(path.read_text())) for path in sorted(boards)}

    def mail(self):
        """Returns the messages in each inbox as a sorted list of sender and text. A repeated request to shut down
        counts once, because a repeated `brigade stop` asks again."""
        mail = {}
        for path in sorted(self.claude_dir.glob("teams/*/inboxes/*.json")):
            entries = [(entry["from"], message_text(entry["text"])) for entry in json.loads(path.read_text())]
            entries = [entry for entry in entries if entry[1] is not None]
            mail[str(path.relative_to(self.claude_dir))] = sorted(entries)
        return mail

    def approvals(self):
        """Returns the ids of the requests that wait for an answer."""
        return [request["request_id"] for request in self.read("--team", TEAM, "approvals") or []]

    def events(self):
        """Returns how often each kind of event occurred that a command causes once."""
        done = self.run("--team", TEAM, "log", "--json")
        records = json_lines(done.stdout) if done.returncode == 0 else []
        return dict(sorted(Counter(event_key(record) for record in records if event_key(record)).items()))

    def worktrees(self):
        listed = self.git("worktree", "list", "--porcelain"), self.git("branch", "--list", "--format=%(refname)")
        return "\n".join(listed)

    def heard(self):
        """Returns how often each member's model saw each text that it must see once."""
        heard = {}
        for path in sorted(self.live.rglob("heard")):
            text = path.read_text(errors="replace")
            heard[normalise(str(path.relative_to(self.live)))] = {mark: text.count(mark) for mark in ONCE if mark in text}
        return heard

    def processes(self):
        """Returns how many processes of each kind run in this home."""
        return dict(sorted(Counter(filter(None, map(kind, in_home(self.home)))).items()))

    def doctor(self):
        """Returns what `brigade doctor` finds, except about the machine."""
        found = json.loads(self.run("doctor", "--json").stdout)["findings"]
        return [f"{one['check']} {one['place']}: {one['what']}" for one in found]


def normalise(text):
    for pattern, word in VOLATILE:
        text = pattern.sub(word, text)
    return text


def message_text(text):
    """Returns the text of a message without volatile parts; None for a message that depends on the moment."""
    if text.startswith("{"):
        body = json.loads(text)
        if body.get("type") in ("idle_notification", "shutdown_request"):
            return None
    return normalise(text)


def event_key(record):
    """Returns the kind of an event and whether it has an author, or None for an event that depends on the moment."""
    kind = next(iter(record["event"]))
    is_unexplained = record.get("by") is None and kind in ("member", "task", *COUNTED_EVENTS)
    if is_unexplained:
        return f"{kind} without an author"
    return kind if kind in COUNTED_EVENTS else None


def kind(process):
    """Returns the kind of a process: supervisor, member, guard, agent, or its program."""
    argv = process.argv
    if not argv:
        return None
    if "play" in argv and "--as" in argv:
        return f"member {argv[argv.index('--as') + 1]}"
    if "supervise" in argv:
        return "supervisor"
    if len(argv) > 1 and argv[1] == "guard":
        return "guard"
    if any(part.endswith(("fake-agent.sh", "acp_agent.py")) for part in argv):
        return "agent"
    return Path(argv[0]).name
