"""What all of it takes while it runs: processes, memory, descriptors, disk, processor, a sample every few seconds;
and whether what lasts stays as it was."""

import json
import os
import resource
import time
from collections import Counter
from pathlib import Path
from statistics import median

from teammate import at_home, stat

MB = 1 << 20
# What lasts may hold so much more at the end than at the beginning, in bytes, and so many descriptors more.
MORE_MEMORY = lambda early: max(early * 0.25, 2 * MB)  # noqa: E731
MORE_DESCRIPTORS = 3
# The supervising process has one for each member that it had to start again, of ten.
MORE_OF_ITS_CHILDREN = 10
# And it may use so many milliseconds of a core more for each message, where that is more than twice as much.
MORE_WORK = 3
# What is not a journal may grow by so many files and bytes.
MORE_FILES, MORE_BYTES = 25, 0.25 * MB
# A log is cut when it is longer than a megabyte.
LONGEST_LOG = 1.1 * MB


class Meter:
    def __init__(self, homes, out, tell):
        # By name: a home, and brigade's own folder and Claude Code's in it.
        self._homes = homes
        self._tell = tell
        self._out = out.open("w")
        self._begun = time.monotonic()
        self._used = {}
        self._processor = None
        self.samples = []

    def now(self):
        return time.monotonic() - self._begun

    def since(self, moment):
        """A moment of the clock that only goes forward, as seconds of this run."""
        return round(moment - self._begun, 2)

    def sample(self, disk):
        lasting, count, brigades, memory, descriptors = {}, 0, 0, 0, 0
        ended, unburied = ended_children(), 0
        for home, folder in self._homes.items():
            for process in at_home(folder):
                count += 1
                try:
                    self._used[process.pid, process.begun] = process.used()
                    if process.words[:1] != (os.environ["BRIGADE"],):
                        continue
                    own = process.resident()[0]
                    opened = len(os.listdir(f"/proc/{process.pid}/fd"))
                except (OSError, StopIteration, IndexError):
                    continue
                brigades += 1
                unburied += ended[process.pid]
                memory += own
                descriptors += opened
                if role := role_of(process):
                    used = self._used[process.pid, process.begun]
                    lasting[f"{home} {role}"] = [process.pid, process.begun, own, opened, round(used, 2)]
        it = {"t": round(self.now(), 2), "processes": count, "brigades": brigades, "memory": memory}
        it |= {"unburied": unburied, "descriptors": descriptors, "lasting": lasting, "processor": self._share()} | self._tell()
        if disk:
            it["disk"] = {home: disk_of(folder) for home, folder in self._homes.items()}
        self.samples.append(it)
        self._out.write(json.dumps(it) + "\n")
        self._out.flush()

    def _share(self):
        """Of all cores since the last sample: what this run used. Programs that ended between two samples count
        if this program waited for them."""
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        whole = sum(self._used.values()) + usage.ru_utime + usage.ru_stime, time.monotonic()
        before, self._processor = self._processor, whole
        if before is None or whole[1] <= before[1]:
            return 0.0
        return round((whole[0] - before[0]) / (whole[1] - before[1]) / (os.cpu_count() or 1), 4)

    def windows(self, first, last):
        """The samples of the first fifth and of the last fifth between two moments."""
        part = (last - first) / 5
        early = [one for one in self.samples if first <= one["t"] <= first + part]
        late = [one for one in self.samples if last - part <= one["t"] <= last]
        return early, late

    def check(self, report, first, last, lasting):
        """Whether processes that last hold what they held. `lasting` are those that were not killed."""
        early, late = self.windows(first, last)
        for name in lasting:
            one, other = ([sample["lasting"][name] for sample in part if name in sample["lasting"]] for part in (early, late))
            same = {tuple(row[:2]) for row in one + other}
            if not one or not other or len(same) != 1:
                report.check(f"{name}: one process from the first window to the last", False, (len(one), len(other), same))
                continue
            memory, descriptors = ([median(row[place] for row in part) for part in (one, other)] for place in (2, 3))
            grew, more = memory[1] - memory[0], descriptors[1] - descriptors[0]
            words = f"{memory[0] / MB:.1f} MB, then {memory[1] / MB:.1f} MB; {descriptors[0]:.0f} descriptors, then {descriptors[1]:.0f}"
            room = MORE_DESCRIPTORS + (MORE_OF_ITS_CHILDREN if name.endswith("supervisor") else 0)
            flat = grew <= MORE_MEMORY(memory[0]) and more <= room
            report.check(f"{name} holds what it held: {words}", flat)
            work = [per_message(part, name) for part in (early, late)]
            words = f"{work[0]:.2f} ms for each message told to anybody, then {work[1]:.2f} ms"
            report.check(f"{name} works as much as it did: {words}", work[1] <= max(2 * work[0], work[0] + MORE_WORK))
        # Whoever is started anew reads the journal of its mailbox, and the system does not get back all of that.
        journals = [sum(home["journals"] for home in part[-1]["disk"].values()) for part in with_disk(early, late)]
        room = max(12 * MB, 2 * (journals[-1] - journals[0]))
        for what, allowed in (("brigades", 6), ("unburied", 6), ("descriptors", 60), ("memory", room)):
            one, other = (median(sample[what] for sample in part) for part in (early, late))
            scale = MB if what == "memory" else 1
            words = f"{one / scale:.1f}, then {other / scale:.1f}{' MB' if scale > 1 else ''}"
            named = {
                "brigades": "processes of brigade",
                "unburied": "children of theirs that have ended and were not waited for",
                "memory": "their memory",
                "descriptors": "their descriptors",
            }[what]
            report.check(f"{named}, all together: {words}", other - one <= max(allowed, one * 0.15), (one, other))

    def check_disk(self, report, first, last):
        early, late = self.windows(first, last)
        for home in self._homes:
            one, other = ([sample["disk"][home] for sample in part if "disk" in sample] for part in (early, late))
            if not one or not other:
                report.check(f"{home}: the disk was looked at", False, (len(one), len(other)))
                continue
            for what, allowed in (("files", MORE_FILES), ("bytes", MORE_BYTES), ("inboxes", MORE_BYTES)):
                before, after = (median(sample[what] for sample in part) for part in (one, other))
                words = f"{before:.0f}, then {after:.0f}"
                named = {"files": "files beside journals and logs", "bytes": "bytes in them", "inboxes": "bytes in inboxes"}[what]
                report.check(f"{home}: {named}: {words}", after - before <= max(allowed, before * 0.15))
            longest = max(sample["log"] for sample in one + other)
            report.check(f"{home}: no log is longer than a megabyte; the longest {longest / MB:.2f} MB", longest <= LONGEST_LOG)


def ended_children():
    """By process: how many have ended that it has only to wait for."""
    found = Counter()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent, *_ = stat(int(name))
        except OSError:
            continue
        found[int(parent)] += state == "Z"
    return found


def with_disk(*parts):
    """Of each part the samples for which the disk was looked at."""
    return [[sample for sample in part if "disk" in sample] for part in parts]


def per_message(samples, name):
    """Milliseconds of a core that a process used for each message that anybody was told, between these samples."""
    rows = [(sample["lasting"][name][4], sample["told"]) for sample in samples if name in sample["lasting"]]
    (used, told), (used_then, told_then) = rows[0], rows[-1]
    return 1000 * (used_then - used) / max(told_then - told, 1)


def role_of(process):
    """What a process of brigade that lasts is called; None if it is one of the others."""
    words = process.words
    if "supervise" in words:
        return "supervisor"
    if "link" in words[1:]:
        return "link"
    if "play" in words and "--as" in words:
        return f"player {words[words.index('--as') + 1]}"
    return None


def disk_of(home):
    """Bytes of journals, and of the longest log; number and bytes of all other files of brigade's; bytes of inboxes."""
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
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in names)


def size_of(path):
    try:
        return path.stat().st_size
    except OSError:
        return 0
