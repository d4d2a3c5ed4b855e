"""The commands that are killed, each with the home in which it starts."""

import json
import os
import time
from typing import Callable, NamedTuple

from kill_env import FAKE_AGENT, TEAM
from kill_points import run_traced, was_killed

from lib.processes import kill_home
from lib.util import eventually

AGENT = f"acp:{FAKE_AGENT}"
TEAM_FILE = f"""team = "{TEAM}"
[defaults]
agent = {json.dumps(AGENT)}
[members.alice]
dir = "a"
prompt = "hello alice"
[members.bob]
worktree = true
[tasks.one]
subject = "First"
owner = "alice"
[tasks.two]
subject = "Second"
after = ["one"]
"""


def run_command(env, case, options):
    """Runs the command of a case under strace; returns whether strace killed it."""
    done = run_traced([env.program, *case.command], env.log, *options, env=env.environ, cwd=env.project)
    if done.returncode and not was_killed(done):
        raise RuntimeError(f"brigade {' '.join(case.command)}: {done.returncode}: {done.stderr}")
    return was_killed(done)


class Case(NamedTuple):
    name: str
    # The command that is killed. The same command is run again afterwards, unless there is a `next_command`.
    command: tuple
    # Creates the home in which the command starts. No process runs in it.
    prepare: Callable
    # Text that a repeated command may print instead of succeeding, if the killed command had done everything.
    already_done: tuple = ()
    # Starts the processes that the command needs.
    start: Callable = lambda env: None
    # Whether processes run after the command, so that the state settles only after a while.
    has_processes: bool = False
    # Runs what is killed under strace with these options; returns whether strace killed it.
    attempt: Callable = run_command
    next_command: tuple = ()
    # Commands that a person runs later. A dead process may leave a lock that the next command which uses the same file
    # removes (docs/store.md).
    later: tuple = ()
    # How many system calls the short form tries.
    sample: int = 3


def empty(env):
    env.reset()


def deleted_before(env):
    """A team of the same name existed, had a task and was deleted."""
    plain_team(env)
    env.run_ok("team", "delete", TEAM, "--force")


def plain_team(env):
    """A team without processes, with members, tasks, mail and an answered request."""
    env.reset()
    env.run_ok("team", "create", TEAM)
    for name in ("ann", "ben"):
        env.run_ok("team", "join", name)
        env.run_ok("send", name, f"welcome, {name}")
    env.run_ok("task", "add", "First", "--owner", "ann")
    env.run_ok("task", "add", "Second", "--blocked-by", "1")


def without_index(env):
    """A team whose lead has a long mailbox with an open request, and no index."""
    plain_team(env)
    for number in range(20):
        env.run_ok("--as", "ann", "send", "team-lead", f"report {number} " + "." * 20_000)
    request = {"type": "permission_request", "request_id": "perm-1-abcdefg", "agent_id": "ann", "tool_name": "Bash", "tool_use_id": "t",
               "description": "to build", "input": {"command": "make"}, "permission_suggestions": []}
    inbox = env.claude_dir / "teams" / TEAM / "inboxes/team-lead.json"
    message = {"from": "ann", "text": json.dumps(request), "timestamp": "2026-01-01T00:00:00.000Z", "read": False}
    inbox.write_text(json.dumps([*json.loads(inbox.read_text()), message]))
    if env.approvals() != ["perm-1-abcdefg"]:
        raise RuntimeError(f"the request is not shown: {env.run('approvals')}")
    for file in env.state.glob(f"files/*/{TEAM}/index.db*"):
        file.unlink()


def long_history(env):
    """A team whose lead has read a long mailbox, with an open request at its end."""
    without_index(env)
    for name in ("team-lead", "ann", "ben"):
        env.run_ok("--as", name, "inbox", "--unread", "--mark-read")


def new_team(env):
    env.reset()
    env.run_ok("team", "create", TEAM)


def team_file(env):
    env.reset()
    (env.project / "a").mkdir()
    (env.project / "brigade.toml").write_text(TEAM_FILE)


def crashed(env):
    """A team of two members was up, and every process was killed."""
    team_file(env)
    env.run_ok("up")
    wait_until_idle(env)


def crashed_and_deleted(env):
    """Like `crashed`, but the team's folder is gone."""
    crashed(env)
    kill_home(env.home)
    env.run_ok("send", "alice", "message one")
    env.run_ok("team", "delete", TEAM, "--force")


def resumed(env):
    env.run_ok("resume", TEAM)
    wait_until_idle(env)


def wait_until_idle(env):
    def is_idle():
        teams = env.read("status", "--team", TEAM)
        return teams and all(member["liveness"] == "idle" for team in teams for member in team["members"])

    if not eventually(is_idle, 20):
        raise RuntimeError(f"the members are not idle: {env.run('status').stdout}")


def faulty(env):
    """A team with one of each kind of fault that `doctor --fix` repairs."""
    plain_team(env)
    team, state = env.claude_dir / "teams" / TEAM, next(env.state.glob(f"files/*/{TEAM}"))
    long_ago = time.time() - 7200
    (team / "inboxes/ann.json.lock").mkdir()
    os.utime(team / "inboxes/ann.json.lock", (long_ago, long_ago))
    for path in (team / "config.json.tmp.brigade-99999999-1", state / "created.tmp.brigade-99999999-1"):
        path.write_text("{}")
        os.utime(path, (long_ago, long_ago))
    (team / "inboxes/ben.json").write_text('[{"from": "team-lead", "te')
    (team / "inboxes/nobody.json").write_text("[]")
    for name in ("ben.json", "nobody.json"):
        os.utime(team / "inboxes" / name, (long_ago, long_ago))
    state.chmod(0o755)
    gone = env.claude_dir / "tasks/gone"
    gone.mkdir()


SPAWN = ("spawn", "carl", "--agent", AGENT, "--prompt", "hello carl", "--team", TEAM)

CASES = (
    Case("create", ("team", "create", TEAM), empty, (f'a team named "{TEAM}" already exists',), sample=8),
    Case("create-again", ("team", "create", TEAM), deleted_before, (f'a team named "{TEAM}" already exists',), sample=4),
    Case("delete", ("team", "delete", TEAM, "--force"), plain_team, (f'no team named "{TEAM}"',), sample=6),
    Case("index", ("approvals", "--team", TEAM), without_index, sample=8),
    Case("compact", ("history", "compact", "--keep", "100kB", "--team", TEAM), long_history, ("nothing was deleted",), sample=8),
    Case("spawn", SPAWN, new_team, has_processes=True),
    Case("stop-now", ("stop", "bob", "--now", "--team", TEAM), crashed, ("was stopped",), resumed, True),
    Case("stop", ("stop", "bob", "--limit", "1", "--team", TEAM), crashed, ("was stopped",), resumed, True, sample=2),
    Case("down-now", ("down", "--now"), crashed, ("no team is up",), resumed, True, sample=2),
    Case("down", ("down", "--limit", "1"), crashed, ("no team is up",), resumed, True, sample=1),
    Case("up", ("up",), team_file, has_processes=True, sample=6),
    Case("resume", ("resume",), crashed, has_processes=True),
    Case("resume-deleted", ("resume", TEAM), crashed_and_deleted, has_processes=True),
    Case("doctor", ("doctor", "--fix"), faulty, later=(("inbox", "ann"), ("inbox", "ben")), sample=5),
)
