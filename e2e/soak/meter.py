"""Samples the number of processes and their use of memory, file descriptors, disk and CPU every few seconds, and
checks that the resource usage of long-lived processes does not grow."""

import json
import os
import resource
import time
from collections import Counter
from pathlib import Path
from statistics import median

from lib.processes import in_home, stat_fields

MB = 1 << 20
# The maximum growth of a long-lived process: its memory in bytes, and its open file descriptors.
MEMORY_GROWTH = lambda early: max(early * 0.25, 2 * MB)  # noqa: E731
DESCRIPTOR_GROWTH = 3
# The supervisor keeps one more file descriptor open for each of the ten members that it restarted.
SUPERVISOR_DESCRIPTOR_GROWTH = 10
# The CPU time per message may double, or increase by this many milliseconds.
CPU_GROWTH = 3
# The maximum growth of the folders: the number of files, and the bytes in them. Journals are not counted.
FILE_GROWTH, BYTE_GROWTH = 25, 0.25 * MB
# brigade truncates a log that is longer than a megabyte.
MAX_LOG = 1.1 * MB


class Meter:
    def __init__(self, homes, out, counters):
        # The home folders to measure, by name.
        self._homes = homes
        self._counters = counters
        self._out = out.open("w")
        self._started = time.monotonic()
        self._cpu = {}
        self._last_total = None
        self.samples = []

    def now(self):
        return time.monotonic() - self._started

    def second_of(self, moment):
        """Converts a time on the monotonic clock to seconds since the start of this test."""
        return round(moment - self._started, 2)

    def sample(self, disk):
        long_lived, count, brigades, memory, descriptors = {}, 0, 0, 0, 0
        zombies_of, zombies = zombie_children(), 0
        for home, folder in self._homes.items():
            for process in in_home(folder):
                count += 1
                try:
                    self._cpu[process.pid, process.started] = process.cpu_seconds()
                    if process.argv[:1] != (os.environ["BRIGADE"],):
                        continue
                    own = process.resident()[0]
                    opened = len(os.listdir(f"/proc/{process.pid}/fd"))
                except (OSError, StopIteration, IndexError):
                    continue
                brigades += 1
                zombies += zombies_of[process.pid]
                memory += own
                descriptors += opened
                if role := role_of(process):
                    cpu = self._cpu[process.pid, process.started]
                    long_lived[f"{home} {role}"] = [process.pid, process.started, own, opened, round(cpu, 2)]
        sample = {"t": round(self.now(), 2), "processes": count, "brigades": brigades, "memory": memory}
        sample |= {"zombies": zombies, "descriptors": descriptors, "long_lived": long_lived}
        sample |= {"cpu": self._cpu_share()} | self._counters()
        if disk:
            sample["disk"] = {home: disk_usage(folder) for home, folder in self._homes.items()}
        self.samples.append(sample)
        self._out.write(json.dumps(sample) + "\n")
        self._out.flush()

    def _cpu_share(self):
        """Returns the share of all cores that this test used since the last sample. Programs that ended between
        two samples count only if this program waited for them."""
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        total = sum(self._cpu.values()) + usage.ru_utime + usage.ru_stime, time.monotonic()
        before, self._last_total = self._last_total, total
        if before is None or total[1] <= before[1]:
            return 0.0
        return round((total[0] - before[0]) / (total[1] - before[1]) / (os.cpu_count() or 1), 4)

    def windows(self, first, last):
        """Returns the samples in the first fifth and in the last fifth of the time between `first` and `last`."""
        length = (last - first) / 5
        early = [sample for sample in self.samples if first <= sample["t"] <= first + length]
        late = [sample for sample in self.samples if last - length <= sample["t"] <= last]
        return early, late

    def check_processes(self, report, first, last, names):
        """Checks that the resource usage of the long-lived processes with these names, which were never killed,
        did not grow."""
        early, late = self.windows(first, last)
        for name in names:
            one, other = (
                [sample["long_lived"][name] for sample in window if name in sample["long_lived"]] for window in (early, late)
            )
            identities = {tuple(row[:2]) for row in one + other}
            if not one or not other or len(identities) != 1:
                details = (len(one), len(other), identities)
                report.check(f"{name}: the same process runs from the first window to the last", False, details)
                continue
            memory, descriptors = ([median(row[index] for row in rows) for rows in (one, other)] for index in (2, 3))
            grown, more = memory[1] - memory[0], descriptors[1] - descriptors[0]
            values = f"{memory[0] / MB:.1f} MB, then {memory[1] / MB:.1f} MB"
            values += f"; {descriptors[0]:.0f} descriptors, then {descriptors[1]:.0f}"
            allowed = DESCRIPTOR_GROWTH + (SUPERVISOR_DESCRIPTOR_GROWTH if name.endswith("supervisor") else 0)
            flat = grown <= MEMORY_GROWTH(memory[0]) and more <= allowed
            report.check(f"{name} does not grow: {values}", flat)
            cpu = [cpu_per_message(window, name) for window in (early, late)]
            values = f"{cpu[0]:.2f} ms, then {cpu[1]:.2f} ms"
            report.check(f"{name}: CPU time per received message: {values}", cpu[1] <= max(2 * cpu[0], cpu[0] + CPU_GROWTH))
        # Allow more memory if the journals have grown: a restarted process reads the journal of its mailbox, and the
        # allocator does not return all memory that was used for that.
        journals = [sum(home["journals"] for home in window[-1]["disk"].values()) for window in with_disk(early, late)]
        memory_allowed = max(12 * MB, 2 * (journals[-1] - journals[0]))
        for key, title, allowed in (
            ("brigades", "brigade processes", 6),
            ("zombies", "their zombie children", 6),
            ("descriptors", "their file descriptors", 60),
            ("memory", "their memory", memory_allowed),
        ):
            one, other = (median(sample[key] for sample in window) for window in (early, late))
            scale = MB if key == "memory" else 1
            values = f"{one / scale:.1f}, then {other / scale:.1f}{' MB' if scale > 1 else ''}"
            report.check(f"{title}, in total: {values}", other - one <= max(allowed, one * 0.15), (one, other))

    def check_disk(self, report, first, last):
        early, late = self.windows(first, last)
        for home in self._homes:
            one, other = ([sample["disk"][home] for sample in window if "disk" in sample] for window in (early, late))
            if not one or not other:
                report.check(f"{home}: there are samples of the disk", False, (len(one), len(other)))
                continue
            for key, title, allowed in (
                ("files", "files other than journals and logs", FILE_GROWTH),
                ("bytes", "bytes in them", BYTE_GROWTH),
                ("inboxes", "bytes in inboxes", BYTE_GROWTH),
            ):
                before, after = (median(sample[key] for sample in window) for window in (one, other))
                values = f"{before:.0f}, then {after:.0f}"
                report.check(f"{home}: {title}: {values}", after - before <= max(allowed, before * 0.15))
            longest = max(sample["log"] for sample in one + other)
            report.check(f"{home}: no log is over a megabyte; the longest has {longest / MB:.2f} MB", longest <= MAX_LOG)


def zombie_children():
    """Returns the number of zombie children of each process, by process id."""
    found = Counter()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent, *_ = stat_fields(int(name))
        except OSError:
            continue
        found[int(parent)] += state == "Z"
    return found


def with_disk(*windows):
    """Returns, for each window, the samples that include the disk usage."""
    return [[sample for sample in window if "disk" in sample] for window in windows]


def cpu_per_message(samples, name):
    """Returns how many milliseconds of CPU time a process used per message that any member received, in these
    samples."""
    rows = [(sample["long_lived"][name][4], sample["received"]) for sample in samples if name in sample["long_lived"]]
    (cpu, received), (cpu_later, received_later) = rows[0], rows[-1]
    return 1000 * (cpu_later - cpu) / max(received_later - received, 1)


def role_of(process):
    """Returns the role of a long-lived brigade process, or None for any other process."""
    argv = process.argv
    if "supervise" in argv:
        return "supervisor"
    if "link" in argv[1:]:
        return "link"
    if "play" in argv and "--as" in argv:
        return f"member {argv[argv.index('--as') + 1]}"
    return None


def disk_usage(home):
    """Returns the bytes in journals, in the longest log and in inboxes, and the number and bytes of brigade's
    other files."""
    found = {"journals": 0, "work": 0, "log": 0, "files": 0, "bytes": 0, "inboxes": 0}
    for path in files(Path(home) / ".local/state/brigade"):
        size = size_of(path)
        if path.suffix == ".jsonl":
            found["work" if path.parent.name == "work" else "journals"] += size
        elif path.suffix == ".log" or path.name == "log":
            found["log"] = max(found["log"], size)
        else:
            found["files"] += 1
            found["bytes"] += size
    for path in (Path(home) / ".claude/teams").glob("*/inboxes/*.json"):
        found["inboxes"] += size_of(path)
    return found


def files(folder):
    for directory, _, names in os.walk(folder):
        yield from (Path(directory) / name for name in names)


def size_of(path):
    try:
        return path.stat().st_size
    except OSError:
        return 0
