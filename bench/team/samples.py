"""Samples of the processor time and the memory of brigade's processes, and what they say about growth."""

import os
import statistics
import time
from typing import NamedTuple

from team import memory_mb

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
# For this many seconds after a kill, the restart affects the samples.
RECOVERY_SECONDS = 6


class Sample(NamedTuple):
    second: float
    # For each process, by process id and start time.
    processor_ms: dict
    memory_mb: dict
    send_command_ms: float
    acknowledged: int


def take(team, log, start):
    """Samples all long-lived processes of brigade: supervisor, members, guards and MCP servers."""
    processor, memory = {}, {}
    for folder in team.processes():
        try:
            if kind(folder) is None:
                continue
            name = (folder.name, stat(folder)[19])
            processor[name] = sum(map(int, stat(folder)[11:13])) * TICK_MS
            memory[name] = memory_mb(folder)
        except (OSError, IndexError):
            continue
    return Sample(time.monotonic() - start, processor, memory, log.send_command_ms, len(log.acknowledged))


def kind(folder):
    """Returns which of brigade's processes this is, or None for a command."""
    words = (folder / "cmdline").read_bytes().decode().split("\0")
    return next((word for word in ("supervise", "play", "guard", "mcp") if word in words), None)


def stat(folder):
    """Returns the fields of /proc/PID/stat after the name of the program."""
    return (folder / "stat").read_text().rpartition(") ")[2].split()


class Interval(NamedTuple):
    """The time between two samples."""

    start: float
    end: float
    # Processes that started or ended in between are left out.
    processor_ms: float
    messages: int
    memory_mb: float

    @property
    def core_percent(self):
        return self.processor_ms / (self.end - self.start) / 10

    @property
    def rate(self):
        return self.messages / (self.end - self.start)

    def is_disturbed(self, kills):
        return any(self.start - RECOVERY_SECONDS <= second <= self.end for second, _ in kills)


def intervals(samples):
    """Returns the interval between each sample and the next."""
    found = []
    for first, then in zip(samples, samples[1:]):
        used = sum(ms - first.processor_ms[name] for name, ms in then.processor_ms.items() if name in first.processor_ms)
        used += then.send_command_ms - first.send_command_ms
        messages = then.acknowledged - first.acknowledged
        found.append(Interval(first.second, then.second, used, messages, sum(then.memory_mb.values())))
    return found


def growth(samples, kills, seconds):
    """Compares the last third of the run with the second third, without the time around kills. Returns pairs of a name and
    (second third, last third), or nothing if a third has no time without kills."""
    parts = [[], []]
    for interval in intervals(samples):
        third = int(interval.start * 3 / seconds)
        if third in (1, 2) and not interval.is_disturbed(kills):
            parts[third - 1].append(interval)
    if not all(parts):
        return []
    late = [sample for sample in samples if seconds / 3 <= sample.second <= seconds]
    steady = set.intersection(*(set(sample.memory_mb) for sample in late))
    thirds = [[sample for sample in late if int(min(sample.second / seconds, 0.999) * 3) == third] for third in (1, 2)]
    per_message = [sum(one.processor_ms for one in part) / max(1, sum(one.messages for one in part)) for part in parts]
    memory = [statistics.median(one.memory_mb for one in part) for part in parts]
    of_steady = [[sum(sample.memory_mb[name] for name in steady) / len(steady) for sample in part] for part in thirds]
    unkilled = [statistics.median(part) for part in of_steady]
    return [
        ("processor time for each message, ms", per_message),
        ("memory of all processes, MB", memory),
        (f"memory of each of {len(steady)} processes that were not restarted, MB", unkilled),
    ]
