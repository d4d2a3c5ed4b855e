"""`brigade down` beside somebody's own tmux, Claude Code, processes and team: theirs is untouched, ours is gone,
and of what was written only what is on a list stays."""

import os
import subprocess

import board
from crew import CREW, Member, crew, prove_team, script
from house import eventually
from stays import answers, house_files, litter
from teammate import at_home


def scenario(house, report, short):
    theirs = Theirs(house)
    report.check("their Claude Code runs", theirs.claude_is_ready(), theirs.screen())
    names = crew()
    members = {name: (as_seen(CREW[name]), {}) for name in names}
    house.write_file(members, board.graph())
    before, files = theirs.look(), house_files(house)
    house.do("up")
    foreman = board.Foreman(house, names)
    eventually(lambda: foreman.look() or foreman.done >= len(names), 120)
    ours = [process for process in at_home(house.home) if process not in theirs.processes]
    report.figure("processes of ours", len(ours))
    # In the middle of their work, and not asked.
    house.do("down", "--now")
    gone = eventually(lambda: not [process for process in ours if process.is_alive()], 15)
    left = [process for process in at_home(house.home) if process not in theirs.processes]
    report.check("every process of ours is gone", gone and not left, left)
    after = theirs.look()
    for what in before:
        report.check(f"theirs are as they were: {what}", before[what] == after[what], (before[what], after[what]))
    report.check("their Claude Code still answers", theirs.claude_answers(), theirs.screen())
    theirs.end()
    litter(house, report, files)
    answering = [path.name for path in (house.root / "tmp").glob("tmux-*/*") if answers(path)]
    report.check("no server of tmux is left", not answering, answering)
    status = house.run("status")
    report.check("no team is up", status.returncode == 4, status)
    log = house.log()
    report.check("the journal still tells of the tasks", any("task" in record["event"] for record in log), len(log))


def as_seen(member):
    """Everybody where it can be seen: Claude Code itself, and brigade's view of the others."""
    return member if member.place == "native" else Member(member.agent, "tmux", member.model)


class Theirs:
    """What somebody has running in the same home: tmux with a shell, a program and a real Claude Code, a process
    without a terminal, and a team made by hand."""

    def __init__(self, house):
        self._house = house
        existing = set(at_home(house.home))
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", "160", "-y", "48", "--", "sh")
        self._tmux("new-window", "-d", "--", "sleep", "1000")
        self._tmux("new-window", "-d", "--", os.environ["CLAUDE_NEW"], "--model", CREW["nat"].model)
        self._sleeps = subprocess.Popen(["sleep", "1000"], env=house.plain_env, cwd=house.project)
        for command in ("team create theirs", "team join ann", "send ann hello", "task add something"):
            house.do("--team", "theirs", *command.split())
        self.claude_is_ready()
        self.processes = [process for process in at_home(house.home) if process not in existing]

    def _tmux(self, *arguments):
        """Their own server, at its usual place."""
        env = self._house.plain_env
        return subprocess.run(["tmux", *arguments], env=env, cwd=self._house.project, capture_output=True, text=True)

    def screen(self):
        return self._tmux("capture-pane", "-p", "-t", ":2").stdout

    def claude_is_ready(self):
        return eventually(lambda: "❯" in self.screen() or "> " in self.screen(), 30)

    def claude_answers(self):
        self._tmux("send-keys", "-t", ":2", "-l", script({"say": "still here, says theirs"}))
        # It takes what comes at once for something pasted.
        eventually(lambda: "still here" in self.screen(), 5)
        self._tmux("send-keys", "-t", ":2", "Enter")
        return eventually(lambda: self.screen().count("still here") > 1, 30)

    def look(self):
        """All that must not change."""
        folder = self._house.claude_dir
        files = [path for place in ("teams", "tasks") for path in (folder / place / "theirs").rglob("*") if path.is_file()]
        return {
            "panes": self._tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{window_name} #{pane_dead}").stdout,
            "processes": sorted(process.pid for process in self.processes if process.is_alive() and lasts(process)),
            "files of their team": {str(path): path.read_bytes() for path in files},
        }

    def end(self):
        self._tmux("kill-server")
        self._sleeps.kill()
        self._sleeps.wait()


def lasts(process):
    """Whether it is one that stays: Claude Code runs small programs for a moment."""
    return process.words[:1] in (("sleep",), ("sh",), ("tmux",)) or "claude" in " ".join(process.words[:2])


prove_team(scenario)
