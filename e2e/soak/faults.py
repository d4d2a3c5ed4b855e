"""Kills processes with SIGKILL: one process of a member, the supervisor, or all processes of the team."""

import random
import time

from soak_team import PLAIN, REAL

from lib.processes import in_home, members_in_home, tree
from lib.util import eventually

# The kinds of kills in a storm and in the calm phase. They are repeated in this order. Every storm has at least the
# first three kills, however long the restarts take.
STORM = ("all", "supervisor", "link", "agent", "member", "guard", "agent", "member")
STORM_MINIMUM = 3
CALM = ("agent", "member", "agent", "guard")
# Seconds after which the test runs `brigade resume` for a member that is not running.
MAX_ABSENCE = 60
# How many seconds `brigade resume` waits until the members are ready.
RESUME_TIMEOUT = 120


class Faults:
    def __init__(self, env):
        self._env = env
        self._rng = random.Random(13)
        # When each member was last killed. The next kill hits the member whose last kill is longest ago.
        self._last_kill = {name: self._rng.random() for name in (*REAL, *PLAIN)}
        self._missing_since = {}
        # For each kill: the time on the monotonic clock, the kind, and the number of killed processes.
        self.kills = []
        self.restarted = []
        self.resume_seconds = []
        self.resume_errors = []
        # Errors of `brigade resume` when the members were not ready within its timeout.
        self.resume_timeouts = []

    def kill(self, kind, spare=()):
        if kind == "all":
            self._kill_all()
            return
        if kind == "supervisor":
            found = [process for process in in_home(self._env.home) if "supervise" in process.argv]
        else:
            found = self._processes_of_a_member(kind, spare)
        for process in found:
            process.kill()
        if found:
            self.kills.append((time.monotonic(), kind, len(found)))
        if kind == "supervisor" and found:
            eventually(lambda: not any(process.is_alive() for process in found), 5)
            time.sleep(self._rng.choice([0, self._rng.uniform(0, 2)]))
            self.resume()

    def _processes_of_a_member(self, kind, spare):
        running = members_in_home(self._env.home)
        names = [name for name in sorted(running, key=self._last_kill.get) if name not in spare]
        if not names:
            return []
        name = names[0]
        self._last_kill[name] = time.monotonic()
        processes = tree(running[name].pid)
        if kind == "member":
            return processes[:1]
        guards = [process for process in processes if process.is_brigade("guard")]
        if kind == "guard":
            # A native Claude Code in a tmux window has no guard process.
            return guards or processes[:1]
        vendor = [process for process in processes[1:] if process not in guards and not process.is_brigade("mcp")]
        return self._rng.choice([vendor[:1], vendor[-1:], vendor])

    def _kill_all(self):
        self._env.may_run.clear()
        try:
            killed = 0
            while left := in_home(self._env.home):
                killed += len(left)
                for process in self._rng.sample(left, len(left)):
                    process.kill()
            self.kills.append((time.monotonic(), "all", killed))
            time.sleep(self._rng.choice([0, self._rng.uniform(0, 2)]))
        finally:
            self._env.may_run.set()
        self.resume()

    def resume(self):
        started = time.monotonic()
        done = self._env.run("resume", timeout=300)
        self.resume_seconds.append(time.monotonic() - started)
        if done.returncode != 0 and self.resume_seconds[-1] >= RESUME_TIMEOUT:
            # Not a failure yet: the member may be ready a little later, and if it is not, a later check fails.
            self.resume_timeouts.append(done.stderr.strip()[-200:])
        elif done.returncode != 0:
            self.resume_errors.append(f"resume: {done.returncode}: {done.stderr.strip()[-600:]}")

    def restart_failed_members(self):
        """Runs `brigade resume`, as a person would, for members that brigade marked as failed after too many
        kills."""
        running, now = members_in_home(self._env.home), time.monotonic()
        for name in (*REAL, *PLAIN):
            if name in running:
                self._missing_since.pop(name, None)
            elif now - self._missing_since.setdefault(name, now) > MAX_ABSENCE:
                self.restarted.append(name)
                self._missing_since.clear()
                self.resume()
                return

    def all_running(self):
        return len(members_in_home(self._env.home)) == len(REAL) + len(PLAIN)
