"""One host of a team that spans several hosts. Every command runs in the namespaces of the host's machine."""

import json
import os
import signal
import subprocess

from lib.env import TestEnv
from lib.processes import in_home
from lib.util import capture


class LinkedHost(TestEnv):
    """The home directory on one machine. `brigade link` connects the team's files in it to the NATS store."""

    def __init__(self, version, machine, store, team):
        super().__init__(version, "tmux")
        self.machine, self.store, self.team = machine, store, team
        self._link = None

    def __exit__(self, *failure):
        self.kill_all()
        super().__exit__(*failure)

    def stop_lead(self):
        """Does nothing, because no Claude Code leads on this host."""

    def _command(self, arguments, store, by=None):
        scope = ["--claude-dir", str(self.claude_dir), *(["--store", self.store] if store else [])]
        scope += ["--team", self.team, *(["--as", by] if by else [])]
        return [*self.machine.enter(self.project), self.program, *scope, *arguments]

    def run(self, *arguments, store, by=None, timeout=120):
        """Runs brigade with the NATS store if `store` is true, otherwise with this host's files."""
        return capture(self._command(arguments, store, by), env=self.environ, timeout=timeout)

    def run_ok(self, *arguments, store):
        """Like `run`, but raises an error if brigade fails; returns brigade's output."""
        done = self.run(*arguments, store=store)
        if done.returncode != 0:
            command = f"{self.machine.name}: brigade {' '.join(arguments)}"
            raise RuntimeError(f"{command}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def run_json(self, *arguments, store):
        """Like `run_ok`, with `--json`; returns the parsed output, None if there is none."""
        out = self.run_ok("--json", *arguments, store=store)
        return json.loads(out) if out.strip() else None

    def _start(self, *arguments, store, **files):
        """Starts brigade without waiting until it ends."""
        command = self._command(arguments, store)
        return subprocess.Popen(command, env=self.environ, stdin=subprocess.DEVNULL, **files)

    def start_link(self):
        with (self.root / "link.log").open("ab") as log:
            self._link = self._start("link", "--foreground", "--host", self.machine.name, store=True, stdout=log, stderr=log)

    def end_link(self, signal_number=signal.SIGTERM):
        # Our child process is nsenter. Send the signal to the `brigade link` process itself.
        for process in in_home(self.home):
            if "link" in process.argv and process.argv[:1] == (self.program,):
                os.kill(process.pid, signal_number)
        if self._link:
            self._link.wait(15)

    def left(self, timeout=0):
        return super().left(timeout)
