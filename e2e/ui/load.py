"""Opens `brigade ui` on a million records, as a replay and as a running team, and then adds a thousand records per
second. Checks times, memory and CPU use."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import journal
from ui_env import TEAM, run_ui_scenario

from lib.processes import find
from lib.util import SLACK

LONG, SHORT = 1_000_000, 200_000
# Limits for a million records: seconds to load them, seconds to start the program, bytes of memory.
MAX_READ, MAX_START, MAX_MEMORY = 1.0, 0.05, 150_000_000
TIMES = 3
# Limit for the time from a key press to the next frame, in seconds.
MAX_KEY = 0.050
# New records per second, and the share of a core that the UI may use for them.
RATE, MAX_CPU = 1000, 0.25
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


def scenario(env, report, short):
    count = SHORT if short else LONG
    replay(env, report, count)
    running_team(env, report, count, 10 if short else 20)


def replay(env, report, count):
    path = env.root / "long.jsonl"
    made = journal.write_replay(path, count)
    report.figure("size of the replayed journal", f"{count:,} records, {path.stat().st_size / 1e6:.0f} MB")
    argv = [*env.ui(), "--replay", str(path), "--speed", "0"]
    pty = open_ui(env, report, "replay", argv, lambda grid: "replay over" in grid.lines()[0], count)
    check_counts(report, "replay", pty, made)
    measure_keys(report, "replay", pty)
    quit_ui(report, "replay", pty)
    path.unlink()


def running_team(env, report, count, seconds):
    env.run_ok("team", "create", TEAM)
    [own] = env.state.glob(f"files/*/{TEAM}")
    # Records are 40 ms apart, so a million records cover half a day.
    made = journal.write_team(own, count, 40)

    def is_read(grid):
        return "loading" not in grid.lines()[0] and "10 members" in grid.lines()[0]

    pty = open_ui(env, report, "team", env.ui(), is_read, count)
    check_counts(report, "team", pty, made)
    measure_keys(report, "team", pty)
    new_records(report, pty, own, made, seconds)
    quit_ui(report, "team", pty)


def open_ui(env, report, case, argv, is_read, count):
    """Opens the UI three times and checks the best time, because other programs share the machine. Returns the
    terminal of the last UI, which stays open."""
    times, pty = [], None
    for _ in range(TIMES):
        if pty:
            pty.end()
        pty = env.pty(argv)
        arrived = pty.read_until(is_read, 60)
        if arrived is None:
            raise TimeoutError(f"{case}: the UI did not load all records in 60 s: {pty.grid.lines()[0]}")
        times.append(arrived - pty.started)
    took, bar = min(times), (MAX_READ * count / LONG + MAX_START) * SLACK
    report.check(f"{case}: the UI loads all records within {bar:.2f} s", took <= bar, f"{took:.2f} s")
    line = ", ".join(f"{seconds:.2f} s" for seconds in times)
    report.figure(f"{case}: time from the start until {count:,} records are loaded", line)
    pty.read_until_quiet()
    report.figure(f"{case}: peak memory", f"{peak_memory(pty.pid) / 1e6:.0f} MB")
    return pty


def peak_memory(pid):
    """Returns the peak resident memory of a process, in bytes."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def measure_keys(report, case, pty):
    """Presses keys in every view, and checks the time from each key to the next frame."""
    took = []
    for key in KEYS:
        took.append((pty.press(key), key))
    took.sort()
    slow = [f"{key!r} {seconds * 1e3:.0f} ms" for seconds, key in took if seconds > MAX_KEY * SLACK]
    median = took[len(took) // 2][0]
    most, slowest = took[-1]
    line = f"p50 {median * 1e3:.1f} ms, max {most * 1e3:.1f} ms ({slowest!r})"
    report.figure(f"{case}: time from key to frame, for {len(took)} keys", line)
    report.check(f"{case}: a frame follows every key within {MAX_KEY * SLACK * 1e3:.0f} ms", not slow, slow)
    check_memory(report, f"{case}: peak memory after the keys", pty)


def check_memory(report, name, pty):
    memory = peak_memory(pty.pid)
    report.figure(name, f"{memory / 1e6:.0f} MB")
    report.check(f"{name} is at most {MAX_MEMORY / 1e6:.0f} MB", memory <= MAX_MEMORY, f"{memory / 1e6:.0f} MB")


def check_counts(report, case, pty, made):
    """Checks the counts on the screen, which are right only if no record was missed. The mail view and the timeline
    count messages, the team view counts unread messages, the timeline counts turns, and the title counts tasks."""
    pty.press("1")
    wrong = eventually_none(pty, lambda: wrong_in_team_view(pty.grid, made))
    pty.press("2")
    messages = f"{sum(made.received.values())} messages"
    wrong += eventually_none(pty, lambda: [] if messages in pty.grid.text() else [messages, *pty.grid.lines()[2:3]])
    pty.press("1")
    pty.press(HOME)
    pty.press("5")
    pty.press("0")
    for name in journal.MEMBERS:
        pty.press(DOWN)
        turns, wrote, got = made.turns[name] + made.open_turns(name), made.wrote[name], made.received[name]
        # If a member has many messages, the timeline shows only the sum of its sent and received messages.
        forms = [f"{turns} turns, sent {counts} messages" for counts in (f"{wrote} and received {got}", f"or received {wrote + got}")]
        wrong += eventually_none(pty, lambda: wrong_in_timeline(name, pty.grid, forms))
    pty.press("1")
    report.check(f"{case}: the counts on the screen include every record", not wrong, wrong)


def wrong_in_timeline(name, grid, forms):
    """Returns the timeline's text about a member, if it contains none of the expected `forms`."""
    if any(text in grid.text() for text in forms):
        return []
    return [name, forms[0], *(line for line in grid.lines() if "turns, sent" in line)]


def eventually_none(pty, wrong, timeout=3):
    end = time.monotonic() + timeout
    while (found := wrong()) and time.monotonic() < end:
        pty.read_for(0.1)
    return found


def wrong_in_team_view(grid, made):
    """Returns the wrong counts in the team view, with the lines that show them."""
    title = grid.lines()[0]
    expected = f"{len(made.done)}/{len(made.tasks)} done"
    wrong = [] if expected in title else [(expected, title)]
    for name in journal.MEMBERS:
        line = next((line for line in grid.lines()[1:] if re.match(rf"\W*{name}\b", line)), "")
        if made.unread[name] and str(made.unread[name]) not in line.split():
            wrong.append((f"{name}: {made.unread[name]} unread", line))
    return wrong


def new_records(report, pty, own, made, seconds):
    """Lets another process append a thousand records per second, and checks the UI's CPU use and counts."""
    batch = list(made.more(RATE * seconds))
    writer = RecordWriter(own, batch, seconds)
    process = find(pty.pid)
    before, started = process.cpu_seconds(), time.monotonic()
    writer.start()
    pty.read_for(seconds)
    took = time.monotonic() - started
    share = (process.cpu_seconds() - before) / took
    wrote = writer.end()
    line = f"{share * 100:.1f} % of a core; the records were written in {wrote:.1f} s"
    report.figure(f"CPU use of the UI at {RATE:,} new records per second for {seconds} s", line)
    bar = MAX_CPU * SLACK
    report.check(f"new records: the UI uses at most {bar * 100:.0f} % of a core", share <= bar, f"{share * 100:.1f} %")
    check_counts(report, "new records", pty, made)
    pty.press("2")
    check_memory(report, "new records: peak memory at the end", pty)


class RecordWriter:
    """A process that appends records to journals at a constant rate, with one write for each record."""

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
            raise RuntimeError("the process that appends records failed")
        return float(out)


def append(plan, seconds):
    files, started = {}, time.monotonic()
    lines = Path(plan).read_text().splitlines(keepends=True)
    for number, line in enumerate(lines):
        path, _, record = line.partition("\t")
        if path not in files:
            files[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        early = started + number * seconds / len(lines) - time.monotonic()
        # Sleep only before every tenth record, because a sleep before every record would take too long.
        if number % 10 == 0 and early > 0:
            time.sleep(early)
        os.write(files[path], record.encode())
    print(time.monotonic() - started)


def quit_ui(report, case, pty):
    pty.write("q")
    report.check(f"{case}: q quits", pty.wait(5) == 0, pty.code)


if sys.argv[1] == "append":
    append(sys.argv[2], float(sys.argv[3]))
else:
    run_ui_scenario(scenario)
