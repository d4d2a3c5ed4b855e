"""The benchmarks that the table calls. Each function runs one benchmark and returns its rows.

The benchmarks compare brigade and the others in turn, so that other work on the machine affects both. The table does not
measure again; it reads their figures.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from floors import Floors, process_memory_mb
from row import Row, ms

BENCH = Path(__file__).resolve().parents[1]
BRIGADE = Path(os.environ.get("BRIGADE", BENCH / "../target/release/brigade")).resolve()
# The processes of a running member: the member, its guard and its agent.
PROCESSES = 3


def run(floors, *command):
    """Runs a benchmark and shows its output. Returns the output, also if a check failed: the table shows what was missed."""
    floors.measure()
    print(f"== {' '.join(map(str, command))}", flush=True)
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env=os.environ | {"BRIGADE": str(BRIGADE)})
    output = []
    for line in child.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        output.append(line)
    child.wait()
    floors.measure()
    return "".join(output)


def find(pattern, output):
    """Returns the groups of the last match."""
    found = re.findall(pattern, output)
    if not found:
        raise LookupError(f"the output has no line such as {pattern}")
    return found[-1]


def figures(floors, option, *command):
    """Runs a benchmark that writes its figures to the file that this option names. Returns the figures."""
    with tempfile.TemporaryDirectory(prefix="brigade-table-") as folder:
        file = Path(folder, "figures.json")
        run(floors, *command, option, file)
        return json.loads(file.read_text())


def team(short):
    floors = Floors()
    size = ["--members", 10, "--messages", 20, "--tasks", 200, "--idle", 5] if short else []
    found = figures(floors, "--json", BENCH / "team/run", *size)
    many, small, large = found["members"], found["small"], found["large"]
    per_message, idle = "processor time, ms for each message", "idle, % of a core"
    starts = f"{many * PROCESSES} processes: {ms(many * PROCESSES * floors.process_ms)}"
    return [
        Row("message", f"processor time of a message, {many} members against 2", ms(large[per_message]), ms(small[per_message]),
            f"process: {ms(floors.process_processor_ms)}", large[per_message] / small[per_message], 1.3),
        Row("idle", f"{many} members without a message", f"{large[idle]:.2f} %", "", "0 %", large[idle], 0.5, "% of a core"),
        Row("up", f"`up` of {many} members", f"{large['up, s']:.2f} s", "", starts, large["up, s"], 10, "s"),
        Row("down", f"`down --now` of {many} members", f"{large['down --now, s']:.2f} s", "", starts, large["down --now, s"], 5,
            "s"),
        Row("memory", "memory of an idle member", f"{large['memory, MB for each member']:.1f} MB", "",
            f"2 processes: {2 * process_memory_mb():.1f} MB", large["memory, MB for each member"], 6, "MB"),
        Row("tasks", f"2 idle members, {found['tasks']} finished tasks", f"{found['idle with tasks']:.2f} %",
            f"no tasks: {small[idle]:.2f} %", "0 %", found["idle with tasks"], 0.3, "% of a core"),
    ]


def history(short):
    floors = Floors()
    output = run(floors, BRIGADE.with_name("brigade-bench-store"), "history", *(["--short"] if short else []))
    floor = f"process: {ms(floors.process_ms)}"
    many, took, bar = find(r"first command after (\d+) messages: (\d+) ms \(bar (\d+) ms", output)
    rows = [Row("first-command", f"first command after others sent {int(many):,} messages", f"{took} ms", "", floor, float(took),
                float(bar), "ms")]
    pattern = r"brigade (.+) after \d+ against (\d+) messages: \S+ x \(bar (\S+) x; (\d+) against (\d+) us\)"
    for command, few, bar, after, before in re.findall(pattern, output):
        rows.append(Row("history", f"`{command}` after {int(many):,} messages against {int(few):,}", ms(int(after) / 1e3),
                        ms(int(before) / 1e3), floor, int(after) / int(before), float(bar)))
    return rows


def peers(_short):
    floors = Floors()
    names = ("brigade mcp", "team-mcp 0.11.0 (teamctl)", "brigade", "agent-mail 0.2.3", "brigade-core", "claude-anyteam 0.8.4")
    chosen = [word for name in names for word in ("--peers", name)]
    found = figures(floors, "--results", BENCH / "peers/run", "--only", "costs", "--only", "claims", *chosen)
    rows = []
    for key, name, ours, other, floor in (
        ("send-tool", "send by MCP tool, against teamctl", "brigade mcp", "team-mcp 0.11.0 (teamctl)",
         f"rename: {ms(floors.rename_ms)}"),
        ("send-command", "send by command, against agent-mail", "brigade", "agent-mail 0.2.3",
         f"process, rename: {ms(floors.process_ms + floors.rename_ms)}"),
    ):
        size = max(found["costs"][ours]["send"], key=int)
        took, theirs = (found["costs"][peer]["send"][size]["p50"] / 1e3 for peer in (ours, other))
        rows.append(Row(key, f"{name}, {int(size):,} read before", ms(took), ms(theirs), floor, took / theirs, 1))
    rate, theirs = (sorted(row["rate"] for row in found["claims"][peer]) for peer in ("brigade-core", "claude-anyteam 0.8.4"))
    rate, theirs = rate[len(rate) // 2], theirs[len(theirs) // 2]
    rows.append(Row("claims", "claims by library, against claude-anyteam", f"{rate:.0f} /s", f"{theirs:.0f} /s",
                    f"rename: {1000 / floors.rename_ms:.0f} /s", rate / theirs, 1, is_minimum=True))
    return rows


def nats(short):
    output = run(Floors(), BRIGADE.with_name("brigade-bench-nats"), "bench", *(["--short"] if short else []))
    # The benchmark measures one node first, and then three.
    output = output[output.index("three nodes"):]
    rows = []
    for key, what in (("nats-send", "sends, 64 concurrent"), ("nats-receive", "receives, 8 teams with a reader each"),
                      ("nats-claim", "claims, 8 boards with a claimer each")):
        ours, bare = map(float, find(rf"{what} +(\d+) +(\d+)\n", output))
        share, bar = find(rf"3 nodes, throughput, {what}: (\S+) x \(bar (\S+) x", output)
        rows.append(Row(key, f"NATS, three nodes: {what}", f"{ours:.0f} /s", f"bare client: {bare:.0f} /s", f"{bare:.0f} /s",
                        float(share), float(bar), is_minimum=True))
    return rows


def scale(short):
    size = ["--short"] if short else ["--mailboxes", 1_000_000]
    output = run(Floors(), BRIGADE.with_name("brigade-bench-nats"), "scale", *size)
    bare = find(r"bare: previous sequence in each message +(\d+) +\d+ +(\d+)", output)
    # The first reads come after sends, which have filled the server's caches. After a start, the caches are empty.
    after_start = output[output.rindex("reads after a start of the server"):]
    cold = find(r"first read of a mailbox, among \d+ +(\d+) +\d+ +(\d+)", after_start)
    rows = []
    for quantile, least, after in zip(("p50", "p99"), bare, cold):
        among, took, bar = find(rf"first read among (\d+), {quantile}: (\d+) us \(bar (\d+)\)", output)
        name, floor = f"NATS, first read among {int(among):,} mailboxes", f"bare: {ms(int(least) / 1e3)}"
        for text, us in ((f"{name}, {quantile}", took), (f"{name}, after a start of the server, {quantile}", after)):
            rows.append(Row("first-read", text, ms(int(us) / 1e3), "", floor, int(us) / 1e3, int(bar) / 1e3, "ms"))
    pattern = r"after the first reads of (\d+) mailboxes: \S+ x \(bar (\S+) x; (\d+) MB, then (\d+) MB\)"
    reads, bar, *warm = find(pattern, output)
    cold = find(r"memory: (\d+) MB, then (\d+) MB", after_start)
    name = f"memory of the NATS server after {int(reads):,} first reads"
    for text, (before, after) in ((name, warm), (f"{name}, after its start", cold)):
        rows.append(Row("server-memory", text, f"{after} MB", f"before: {before} MB", f"{before} MB", int(after) / int(before),
                        float(bar)))
    return rows


# The keys of the rows of each benchmark, and whether the short form has them without --only. The others need other programs or
# servers, and minutes.
SOURCES = [
    (team, ("message", "idle", "up", "down", "memory", "tasks"), True),
    (history, ("history", "first-command"), True),
    (peers, ("send-tool", "send-command", "claims"), False),
    (nats, ("nats-send", "nats-receive", "nats-claim"), False),
    (scale, ("first-read", "server-memory"), False),
]
