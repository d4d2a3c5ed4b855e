"""A team in a throw-away home folder, whose agent is a shell script without a model."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
BRIGADE = Path(os.environ.get("BRIGADE", HERE / "../../target/release/brigade")).resolve()


class Team:
    def __init__(self, members):
        self.members = members
        self.home = Path(tempfile.mkdtemp(prefix="team-cost-"))
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"], "BRIGADE_TRUST": "all"}
        lines = ['team = "cost"']
        for number in range(members):
            (self.home / f"d{number}").mkdir()
            lines.append(f'[members.m{number}]\nagent = "acp:{HERE / "agent.sh"}"\ndir = "d{number}"')
        (self.home / "brigade.toml").write_text("\n".join(lines) + "\n")

    def run(self, *arguments):
        """Runs a brigade command. Returns the seconds that it took."""
        began = time.monotonic()
        done = subprocess.run([BRIGADE, *arguments], env=self.environ, cwd=self.home, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"brigade {' '.join(arguments)} failed: {done.stderr}")
        return time.monotonic() - began

    def processes(self):
        """Returns the folders in /proc of brigade's processes of this team."""
        return [folder for folder in self.all_processes() if is_brigade(folder)]

    def all_processes(self):
        """Returns the folders in /proc of the processes of this team, including the agents."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"HOME={self.home}\0".encode() in (folder / "environ").read_bytes() + b"\0":
                    found.append(folder)
            except OSError:
                continue
        return found

    def processor_ms(self):
        """Returns the processor time of each process so far, in milliseconds."""
        used = {}
        for folder in self.processes():
            try:
                threads = [thread.read_text().split()[0] for thread in folder.glob("task/*/schedstat")]
                used[folder.name] = sum(map(int, threads)) / 1e6
            except OSError:
                continue
        return used

    def memory_mb(self):
        """Returns the proportional memory of all processes, in megabytes."""
        return sum(memory_mb(folder) for folder in self.processes())

    def kill(self):
        """Kills the processes that are left."""
        while left := self.all_processes():
            for folder in left:
                try:
                    os.kill(int(folder.name), 9)
                except ProcessLookupError:
                    continue
            time.sleep(0.1)

    def remove(self):
        """Kills the processes that are left, and deletes the home folder."""
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)


def is_brigade(folder):
    try:
        return os.readlink(folder / "exe") == str(BRIGADE)
    except OSError:
        return False


def memory_mb(folder):
    """Returns the proportional memory of a process, in megabytes."""
    rollup = (folder / "smaps_rollup").read_text()
    return int(rollup.split("Pss:")[1].split()[0]) / 1024
