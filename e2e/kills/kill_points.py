"""The system calls of a program that change something, found with strace. Kills a program before one of them."""

import re
import subprocess
from collections import Counter
from typing import NamedTuple

# System calls that change files, or start and stop processes. The second list exists only for some architectures, and
# strace ignores a call after `?` that it does not know.
CALLS = (
    "openat mkdirat renameat renameat2 unlinkat linkat symlinkat write pwrite64 writev ftruncate fallocate fchmod"
    " fchmodat fchown fchownat setsid kill tgkill pidfd_send_signal clone3"
    " ?clone ?vfork ?fork ?open ?creat ?mkdir ?rename ?unlink ?rmdir ?link ?symlink ?chmod ?chown"
).split()
LINE = re.compile(r"^(?P<thread>\d+) +(?P<name>\w+)\((?P<arguments>.*?)(?:\) += (?P<result>-?\d+).*| <unfinished \.\.\.>)$")
# Writes to these change no state: they wake another thread of the same process, or print.
SKIPPED_WRITES = re.compile(r"^\d+<(?:anon_inode|socket|UNIX|/dev/)")


class KillPoint(NamedTuple):
    """The moment before a thread makes a system call for the `number`th time."""

    call: str
    number: int
    # The arguments that the call had in an undisturbed run.
    arguments: str

    def __str__(self):
        return f"{self.call} {self.number}: {self.arguments}"


def strace(log, *options):
    """Returns the start of a command line that runs a program under strace. Programs that it starts are not traced."""
    trace = ",".join(CALLS)
    return ["strace", "-f", "--detach-on=execve", "-qq", "-y", "-s", "60", "-o", str(log), "-e", f"trace={trace}", *options]


def kill_options(point):
    """Returns the options of strace that send SIGKILL at the start of a system call, before it takes effect."""
    return ["-e", f"inject={point.call}:signal=KILL:when={point.number}"]


def read_points(log):
    """Returns the kill points in a log of strace, in the order of their first occurrence. strace counts the calls of
    each thread and each name separately."""
    counts, points = Counter(), {}
    for line in log.read_text(errors="replace").splitlines():
        found = LINE.match(line)
        if not found:
            continue
        counts[found["thread"], found["name"]] += 1
        key = (found["name"], counts[found["thread"], found["name"]])
        if changes(found["name"], found["arguments"], found["result"]):
            points.setdefault(key, KillPoint(*key, found["arguments"]))
    return list(points.values())


def changes(name, arguments, result):
    """Returns whether a system call changed something."""
    if result is not None and result.startswith("-"):
        return False
    if name in ("openat", "open"):
        return "O_CREAT" in arguments or "O_TRUNC" in arguments
    if name in ("write", "writev"):
        return not SKIPPED_WRITES.match(arguments)
    return True


def was_killed(process):
    """Returns whether strace ended as its program did, by SIGKILL."""
    return process.returncode in (-9, 137)


def run_traced(command, log, *options, **more):
    """Runs a program under strace; returns the finished process."""
    return subprocess.run([*strace(log, *options), *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
