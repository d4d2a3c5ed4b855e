"""Runs `brigade down` next to a user's own tmux, Claude Code, processes and team. Checks that the user's programs
and files are untouched, that everything brigade started has ended, and that brigade leaves only the files of a
fixed list."""

import os
import subprocess

from lib.env import MODEL
from lib.leftovers import check_leftovers, files_of
from lib.processes import in_home
from lib.scripted_model import say, script
from lib.task_graph import Dispatcher, build_graph
from lib.team_env import MEMBERS, Member, run_team_scenario, selected_members
from lib.util import capture, eventually


def scenario(env, report, short):
    user = UserSession(env)
    report.check("the user's Claude Code runs", user.claude_is_ready(), user.screen())
    names = selected_members()
    members = {name: (in_tmux(MEMBERS[name]), {}) for name in names}
    env.write_team_file(members, build_graph())
    before, files = user.snapshot(), files_of(env)
    env.run_ok("up")
    dispatcher = Dispatcher(env, names)
    eventually(lambda: dispatcher.poll() or dispatcher.done >= len(names), 120)
    ours = [process for process in in_home(env.home) if process not in user.processes]
    report.figure("processes that brigade started", len(ours))
    # `--now` stops the members in the middle of their work, without asking them.
    env.run_ok("down", "--now")
    gone = eventually(lambda: not [process for process in ours if process.is_alive()], 15)
    left = [process for process in in_home(env.home) if process not in user.processes]
    report.check("every process that brigade started is gone", gone and not left, left)
    after = user.snapshot()
    for part in before:
        report.check(f"the user's {part} are unchanged", before[part] == after[part], (before[part], after[part]))
    report.check("the user's Claude Code still answers", user.claude_answers(), user.screen())
    user.end()
    check_leftovers(env, report, files)
    status = env.run("status")
    report.check("no team is up", status.returncode == 4, status)
    log = env.log()
    report.check("the journal still has the tasks", any("task" in record["event"] for record in log), len(log))


def in_tmux(member):
    """Returns the same member, but with a tmux window to run in. A native member already runs in one."""
    return member if member.native else Member(member.agent, "tmux", member.model)


class UserSession:
    """The user's own programs in the same home: tmux with a shell, a program and a real Claude Code, a process without
    a terminal, and a team created by hand."""

    def __init__(self, env):
        self._env = env
        existing = set(in_home(env.home))
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", "160", "-y", "48", "--", "sh")
        self._tmux("new-window", "-d", "--", "sleep", "1000")
        self._tmux("new-window", "-d", "--", os.environ["CLAUDE_NEW"], "--model", MODEL)
        self._sleep = subprocess.Popen(["sleep", "1000"], env=env.environ, cwd=env.project)
        for command in ("team create theirs", "team join ann", "send ann hello", "task add something"):
            env.run_ok("--team", "theirs", *command.split())
        self.claude_is_ready()
        self.processes = [process for process in in_home(env.home) if process not in existing]

    def _tmux(self, *arguments):
        """Runs a tmux command on the user's own tmux server, which uses the default socket."""
        return capture(["tmux", *arguments], env=self._env.environ, cwd=self._env.project)

    def screen(self):
        return self._tmux("capture-pane", "-p", "-t", ":2").stdout

    def claude_is_ready(self):
        return eventually(lambda: "❯" in self.screen() or "> " in self.screen(), 30)

    def claude_answers(self):
        self._tmux("send-keys", "-t", ":2", "-l", script(say("still here, says theirs")))
        # Wait before pressing Enter: Claude Code treats an Enter immediately after text as part of a paste.
        eventually(lambda: "still here" in self.screen(), 5)
        self._tmux("send-keys", "-t", ":2", "Enter")
        return eventually(lambda: self.screen().count("still here") > 1, 30)

    def snapshot(self):
        """Returns the state of the user's panes, processes and team files, which `brigade down` must not
        change."""
        folder = self._env.claude_dir
        files = [path for kind in ("teams", "tasks") for path in (folder / kind / "theirs").rglob("*") if path.is_file()]
        return {
            "panes": self._tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{window_name} #{pane_dead}").stdout,
            "processes": sorted(process.pid for process in self.processes if process.is_alive() and lasts(process)),
            "team files": {str(path): path.read_bytes() for path in files},
        }

    def end(self):
        self._tmux("kill-server")
        self._sleep.kill()
        self._sleep.wait()


def lasts(process):
    """Returns whether a process is long-lived. Claude Code also runs short-lived programs, which are ignored."""
    return process.argv[:1] in (("sleep",), ("sh",), ("tmux",)) or "claude" in " ".join(process.argv[:2])


run_team_scenario(scenario)
