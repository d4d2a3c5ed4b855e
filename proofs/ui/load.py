"""A journal of a million records, replayed and of a team that is there; then a thousand more each second."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import journal
from desk import TEAM, prove_at_desk
from house import SLACK
from teammate import look_at

LONG, SHORT = 1_000_000, 200_000
# A million records are there in a second, beside the start itself, in so much memory.
OPEN, START, MEMORY = 1.0, 0.05, 150_000_000
TIMES = 3
KEY = 0.050
# So many records in each of so many seconds take so much of a core.
RATE, CPU = 1000, 0.25
UP, DOWN, RIGHT, LEFT, HOME, END, PAGE_UP, PAGE_DOWN = (
    "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~",
)  # fmt: skip
ESCAPE = "\x1b"
MOVES = (DOWN, DOWN, UP, PAGE_DOWN, PAGE_UP, HOME, PAGE_DOWN, END)
KEYS = (
    *("1", *MOVES),
    *("2", *MOVES, "p", "p", "f", DOWN, "\r", UP, HOME, END, ESCAPE),
    *("3", *MOVES, RIGHT, LEFT, "v", *MOVES, RIGHT, LEFT, "v"),
    *("4", *MOVES),
    *("5", *MOVES, "+", "+", LEFT, LEFT, RIGHT, "-", "-", "-", "0"),
    *("6", *MOVES),
    *("?", ESCAPE, ":", "b", "o", ESCAPE, "\t", "\x1b[Z"),
)


def scenario(desk, report, short):
    count = SHORT if short else LONG
    replayed(desk, report, count)
    alive(desk, report, count, 10 if short else 20)


def replayed(desk, report, count):
    path = desk.root / "long.jsonl"
    made = journal.write_replay(path, count)
    report.figure("a journal to replay", f"{count:,} records, {path.stat().st_size / 1e6:.0f} MB")
    words = [*desk.ui(), "--replay", str(path), "--speed", "0"]
    bare = opened(desk, report, "the replay", words, lambda grid: "replay over" in grid.lines()[0], count)
    tells(report, "the replay", bare, made)
    keys(report, "the replay", bare)
    leave(report, "the replay", bare)
    path.unlink()


def alive(desk, report, count, seconds):
    desk.do("team", "create", TEAM)
    [own] = desk.state.glob(f"files/*/{TEAM}")
    # Forty milliseconds apart a million take half a day.
    made = journal.write_team(own, count, 40)

    def is_read(grid):
        return "loading" not in grid.lines()[0] and "11 members" in grid.lines()[0]

    bare = opened(desk, report, "the team", desk.ui(), is_read, count)
    tells(report, "the team", bare, made)
    keys(report, "the team", bare)
    arriving(desk, report, bare, own, made, seconds)
    leave(report, "the team", bare)


def opened(desk, report, what, words, is_there, count):
    """Opens it three times, for others use the machine too; the last stays open."""
    times = []
    for _ in range(TIMES):
        if times:
            bare.end()
        bare = desk.bare(words)
        came = bare.until(is_there, 60)
        if came is None:
            raise TimeoutError(f"{what} is not read to its end: {bare.grid.lines()[0]}")
        times.append(came - bare.begun)
    took, bar = min(times), (OPEN * count / LONG + START) * SLACK
    report.check(f"{what}: all is there in time (bar {bar:.2f} s)", took <= bar, f"{took:.2f} s")
    told = ", ".join(f"{seconds:.2f} s" for seconds in times)
    report.figure(f"{what}: from the start to the end of {count:,} records", told)
    bare.settle()
    report.figure(f"{what}: memory at most", f"{most_memory(bare.pid) / 1e6:.0f} MB")
    return bare


def most_memory(pid):
    """The most that the process ever held at once, in bytes."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def keys(report, what, bare):
    """Every key is answered by a drawing, soon."""
    took = []
    for key in KEYS:
        took.append((bare.press(key), key))
    took.sort()
    slow = [f"{key!r} {seconds * 1e3:.0f} ms" for seconds, key in took if seconds > KEY * SLACK]
    half = took[len(took) // 2][0]
    most, slowest = took[-1]
    told = f"p50 {half * 1e3:.1f} ms, most {most * 1e3:.1f} ms ({slowest!r})"
    report.figure(f"{what}: {len(took)} keys answered in", told)
    report.check(f"{what}: every key is answered in time (bar {KEY * SLACK * 1e3:.0f} ms)", not slow, slow)
    memory = most_memory(bare.pid)
    report.figure(f"{what}: memory at most, after the keys", f"{memory / 1e6:.0f} MB")
    report.check(f"{what}: memory (bar {MEMORY / 1e6:.0f} MB)", memory <= MEMORY, f"{memory / 1e6:.0f} MB")


def tells(report, what, bare, made):
    """What the screen says of the whole: it can only be so if nothing was missed. Messages are counted by the mail
    and the timeline, those that were read by the team, turns by the timeline, changes of tasks by the title."""
    bare.press("1")
    wrong = eventually_none(bare, lambda: untold(bare.grid, made))
    bare.press("2")
    letters = f"{sum(made.letters.values())} messages"
    wrong += eventually_none(bare, lambda: [] if letters in bare.grid.text() else [letters, *bare.grid.lines()[2:3]])
    bare.press("1")
    bare.press(HOME)
    bare.press("5")
    bare.press("0")
    for name in journal.MEMBERS:
        bare.press(DOWN)
        turns, wrote, got = made.turns[name] + made.begun_by(name), made.wrote[name], made.letters[name]
        # Of very many messages it is only told how many there are.
        ways = [f"{turns} turns, sent {how} messages" for how in (f"{wrote} and received {got}", f"or received {wrote + got}")]
        wrong += eventually_none(bare, lambda: untold_of(name, bare.grid, ways))
    bare.press("1")
    report.check(f"{what}: the screen tells of every record", not wrong, wrong)


def untold_of(name, grid, ways):
    """What the timeline says of a member, if it is in none of these ways."""
    if any(words in grid.text() for words in ways):
        return []
    return [name, ways[0], *(line for line in grid.lines() if "turns, sent" in line)]


def eventually_none(bare, wrong, patience=3):
    end = time.monotonic() + patience
    while (found := wrong()) and time.monotonic() < end:
        bare.skip(0.1)
    return found


def untold(grid, made):
    """What the view of the team does not say as it should."""
    title = grid.lines()[0]
    wanted = f"{len(made.done)}/{len(made.tasks)} done"
    wrong = [] if wanted in title else [(wanted, title)]
    for name in journal.MEMBERS:
        line = next((line for line in grid.lines()[1:] if re.match(rf"\W*{name}\b", line)), "")
        if made.unread[name] and str(made.unread[name]) not in line.split():
            wrong.append((f"{name}: {made.unread[name]} unread", line))
    return wrong


def arriving(desk, report, bare, own, made, seconds):
    """More comes, a thousand records in a second."""
    batch = list(made.more(RATE * seconds))
    writer = Writer(own, batch, seconds)
    process = look_at(bare.pid)
    used, begun = process.used(), time.monotonic()
    writer.start()
    bare.skip(seconds)
    took = time.monotonic() - begun
    share = (process.used() - used) / took
    wrote = writer.end()
    told = f"{share * 100:.1f} % of a core, written in {wrote:.1f} s"
    report.figure(f"{RATE:,} records a second for {seconds} s", told)
    bar = CPU * SLACK
    report.check(f"what that takes of a core (bar {bar * 100:.0f} %)", share <= bar, f"{share * 100:.1f} %")
    tells(report, "what came meanwhile", bare, made)
    bare.press("2")
    memory = most_memory(bare.pid)
    report.check(f"memory in the end (bar {MEMORY / 1e6:.0f} MB)", memory <= MEMORY, f"{memory / 1e6:.0f} MB")


class Writer:
    """A process of its own that appends records to journals, each by one write, at an even pace."""

    def __init__(self, own, batch, seconds):
        self._plan = own.parent.parent / "plan"
        with self._plan.open("w") as plan:
            plan.writelines(f"{own / name}.jsonl\t{line}" for name, line in batch)
        self._seconds = seconds

    def start(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__, "append", self._plan, str(self._seconds)], stdout=subprocess.PIPE, text=True
        )

    def end(self):
        out, _ = self._process.communicate(timeout=60)
        if self._process.returncode != 0:
            raise RuntimeError("the records were not appended")
        return float(out)


def append(plan, seconds):
    files, begun = {}, time.monotonic()
    lines = Path(plan).read_text().splitlines(keepends=True)
    for number, line in enumerate(lines):
        path, _, record = line.partition("\t")
        if path not in files:
            files[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        early = begun + number * seconds / len(lines) - time.monotonic()
        # Ten at a time: a sleep of less than a millisecond takes more than a write.
        if number % 10 == 0 and early > 0:
            time.sleep(early)
        os.write(files[path], record.encode())
    print(time.monotonic() - begun)


def leave(report, what, bare):
    bare.write("q")
    report.check(f"{what}: left by q", bare.wait(5) == 0, bare.code)


if sys.argv[1] == "append":
    append(sys.argv[2], float(sys.argv[3]))
else:
    prove_at_desk(scenario)
