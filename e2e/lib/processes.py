"""What runs, as the kernel tells it."""

import os
from pathlib import Path


def below(root):
    """Every process that descends from one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has ended meanwhile
    found, new = set(), {root}
    while new := {pid for pid, parent in parents.items() if parent in new} - found:
        found |= new
    return found


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def variables(pid):
    """What a process was started with in its environment."""
    pairs = Path(f"/proc/{pid}/environ").read_text().rstrip("\0").split("\0")
    return dict(pair.split("=", 1) for pair in pairs)


def words(pid):
    """The program and the arguments of a process."""
    return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")


def program(pid):
    """The file that a process runs."""
    return os.readlink(f"/proc/{pid}/exe")


def input_of(pid):
    """What the standard input of a process is."""
    return os.readlink(f"/proc/{pid}/fd/0")


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def has_terminal(pid, terminal):
    """Whether a process has this terminal open, or could open it as its own."""
    place = Path(f"/proc/{pid}")
    try:
        controlling = int((place / "stat").read_text().rpartition(")")[2].split()[4])
        opened = {os.readlink(file) for file in (place / "fd").iterdir()}
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended meanwhile
    return controlling != 0 or terminal in opened
