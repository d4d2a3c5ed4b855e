"""A host of a team on several hosts: a home in which every command runs in the namespaces of its machine."""

import json
import os
import signal
import subprocess

from lib.env import TestEnv
from lib.processes import in_home
from lib.util import capture


class LinkedHost(TestEnv):
    """The home of one machine. `brigade link` connects its files to the NATS store."""

    def __init__(self, version, machine, store, team):
        super().__init__(version, "tmux")
        self.machine, self.store, self.team = machine, store, team
        self._link = None

    def __exit__(self, *failure):
        self.kill_all()
        super().__exit__(*failure)

    def stop_lead(self):
        """There is none."""

    def _command(self, arguments, store, by=None):
        scope = ["--claude-dir", str(self.claude_dir), *(["--store", self.store] if store else [])]
        scope += ["--team", self.team, *(["--as", by] if by else [])]
        return [*self.machine.enter(self.project), self.program, *scope, *arguments]

    def run(self, *arguments, store, by=None, timeout=120):
        """Runs brigade on the NATS store (`store`) or on this host's files."""
        return capture(self._command(arguments, store, by), env=self.environ, timeout=timeout)

    def run_ok(self, *arguments, store):
        """The same; raises an error if it fails, returns its output."""
        done = self.run(*arguments, store=store)
        if done.returncode != 0:
            command = f"{self.machine.name}: brigade {' '.join(arguments)}"
            raise RuntimeError(f"{command}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def run_json(self, *arguments, store):
        """The same; returns its JSON output."""
        out = self.run_ok("--json", *arguments, store=store)
        return json.loads(out) if out.strip() else None

    def _start(self, *arguments, store, **files):
        """Starts brigade without waiting for it."""
        command = self._command(arguments, store)
        return subprocess.Popen(command, env=self.environ, stdin=subprocess.DEVNULL, **files)

    def start_link(self):
        with (self.root / "link.log").open("ab") as log:
            self._link = self._start("link", "--host", self.machine.name, store=True, stdout=log, stderr=log)

    def end_link(self, signal_number=signal.SIGTERM):
        # Our child is nsenter; the signal has to go to the process that runs on the host.
        for process in in_home(self.home):
            if "link" in process.argv and process.argv[:1] == (self.program,):
                os.kill(process.pid, signal_number)
        if self._link:
            self._link.wait(15)

    def left(self, timeout=0):
        return super().left(timeout)
