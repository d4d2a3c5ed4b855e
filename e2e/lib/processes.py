"""Finds, inspects and kills processes through /proc."""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from lib.util import eventually


class Process(NamedTuple):
    """A process, identified by its id and start time, because process ids are reused."""

    pid: int
    parent: int
    started: int
    argv: tuple

    @property
    def command_line(self):
        return " ".join(self.argv)

    def is_alive(self):
        now = find(self.pid)
        return now is not None and now.started == self.started

    def is_brigade(self, command):
        """Returns whether this process is brigade with this first argument, such as `guard`, `mcp` or `--agent-id`."""
        return self.argv[:1] == (os.environ["BRIGADE"],) and self.argv[1:2] == (command,)

    def kill(self):
        """Sends SIGKILL, unless the process has ended: its id may belong to another process by now."""
        if self.is_alive():
            os.kill(self.pid, signal.SIGKILL)

    def cpu_seconds(self):
        fields = stat_fields(self.pid)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self):
        """Returns resident memory in bytes: the process's own memory, and that of mapped files such as its program."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()

        def field(name):
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

        return field("RssAnon:") + field("RssShmem:"), field("RssFile:")

    def environ(self):
        pairs = Path(f"/proc/{self.pid}/environ").read_text().rstrip("\0").split("\0")
        return dict(pair.split("=", 1) for pair in pairs)

    def executable(self):
        return os.readlink(f"/proc/{self.pid}/exe")

    def stdin(self):
        """Returns the file or pipe behind the process's standard input."""
        return os.readlink(f"/proc/{self.pid}/fd/0")

    def has_terminal(self, terminal):
        """Returns whether the process has any controlling terminal, or has this terminal open."""
        try:
            controlling = int(stat_fields(self.pid)[4])
            opened = {os.readlink(file) for file in Path(f"/proc/{self.pid}/fd").iterdir()}
        except OSError:
            return False  # the process has ended meanwhile
        return controlling != 0 or terminal in opened


def stat_fields(pid):
    """Returns the fields of /proc/PID/stat after the command name, which may contain spaces and parentheses."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def find(pid):
    """Returns the process with this id; None if there is none, or if it is a zombie."""
    try:
        fields = stat_fields(pid)
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    return Process(pid, int(fields[1]), int(fields[19]), tuple(argv))


def all_processes():
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in map(find, pids) if process]


def tree(pid):
    """Returns a process and its descendants, parents first; an empty list if the process has ended."""
    found = [find(pid)]
    if found == [None]:
        return []
    running = all_processes()
    for process in found:
        found += [child for child in running if child.parent == process.pid]
    return found


def in_home(home):
    """Returns every process whose variable HOME is this folder or a folder in it. Child processes inherit HOME."""
    variable = f"HOME={home}/".encode()

    def has_home(process):
        try:
            variables = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            return any((one + b"/").startswith(variable) for one in variables)
        except OSError:
            return False

    return [process for process in all_processes() if has_home(process)]


def members_in_home(home):
    """Returns the brigade process that runs each member, by member name."""
    found = [process for process in in_home(home) if "play" in process.argv and "--as" in process.argv]
    return {process.argv[process.argv.index("--as") + 1]: process for process in found}


def left_in_home(home, timeout=10):
    """Waits until no process has this HOME; returns the processes that still have it at the timeout."""
    eventually(lambda: not in_home(home), timeout)
    return in_home(home)


def kill_home(home):
    """Kills every process that has this HOME. Repeats until there is none left."""
    while left := in_home(home):
        for process in left:
            process.kill()
        time.sleep(0.05)
