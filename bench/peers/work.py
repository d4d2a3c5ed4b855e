"""The work, the same for every peer: one operation, races, kills, waking, starting."""

import contextlib
import json
import os
import random
import shutil
import subprocess
import threading
import time
from pathlib import Path

from doors import DOORS, READER, WRITERS, AnyteamTools, Node, Ours, program
from members import Refused, Server

# How many rounds there are (short, full), and after how many seconds no further one is begun.
ROUNDS = {"costs": (1, 12, 70), "share": (1, 5, 40), "writers": (1, 5, 60), "claims": (1, 5, 60),
          "kill": (1, 20, 120), "wake": (3, 25, 60), "start": (1, 7, 60)}


SIZES = (10, 1_000, 10_000)


def spread(values):
    """Median, tenth, ninetieth and ninety-ninth of a hundred, and how many there were."""
    values = sorted(values)
    last = len(values) - 1
    at = {name: values[round(last * part)] for name, part in (("p10", .1), ("p50", .5), ("p90", .9), ("p99", .99))}
    return at | {"n": len(values)}


class Bench:
    def __init__(self, root, short, only):
        self.root, self.short, self.number = Path(root), short, 0
        self.doors = [door for door in DOORS if not (short and door.slow)
                      and (not only or any(part in door.name for part in only))]
        self.start, self.failed = time.monotonic(), {}

    @contextlib.contextmanager
    def careful(self, part, door):
        """A peer that fails is out of this part of the work, with what it said; brigade may not."""
        try:
            yield
        except (Refused, OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError) as error:
            if isinstance(door, Ours):
                raise
            self.say(f"{part}: {door.name} failed: {error!r}")
            self.failed.setdefault(part, {})[door.name] = repr(error)[:300]

    def elapsed(self):
        return time.monotonic() - self.start

    def say(self, line):
        print(f"{self.elapsed():6.0f} s  {line}", flush=True)

    def place(self, door, **having):
        self.number += 1
        root = self.root / str(self.number)
        door.place(root, **having)
        return root

    def gone(self, door, root):
        door.close(root)
        shutil.rmtree(root, ignore_errors=True)

    def in_turns(self, what, doors=None):
        """Every round, every door: whoever is compared is measured in turns. Each round begins with
        another, since the file system is slower for who comes later."""
        doors = list(self.doors if doors is None else doors)
        short, full, seconds = ROUNDS[what]
        until = time.monotonic() + seconds
        for number in range(short if self.short else full):
            if time.monotonic() > until:
                self.say(f"{what}: time is up after {number} rounds")
                return
            for door in doors:
                if door.name in self.failed.get(what, {}):
                    continue
                if not door.slow or number % (20 if what == "kill" else 4) == 0 or what == "wake":
                    yield number, door
            doors = doors[1:] + doors[:1]

    def costs(self):
        """One message sent, looked for and marked, with so many behind it that were read."""
        rows = {}
        for size in SIZES[:1] if self.short else SIZES:
            open_doors = {}
            for door in self.doors:
                with self.careful("costs", door):
                    if size in door.sizes and door.name not in self.failed.get("costs", {}):
                        root = self.place(door, history=size)
                        open_doors[door] = root, door.member(root, WRITERS[0]), door.member(root, READER)
            self.say(f"a history of {size} is made")
            times = {door: {"send": [], "read": [], "mark": []} for door in open_doors}
            for number, door in self.in_turns("costs", open_doors):
                with self.careful("costs", door):
                    _, writer, reader = open_doors[door]
                    until = time.monotonic() + 0.5
                    for turn in range(10):
                        times[door]["send"].append(writer.send(number * 10 + turn))
                        times[door]["read"].append(reader.read())
                        if "mark" not in door.why:
                            times[door]["mark"].append(reader.mark())
                        if time.monotonic() > until:
                            break
            for door, (root, writer, reader) in open_doors.items():
                writer.close()
                reader.close()
                self.gone(door, root)
                for what, taken in times[door].items():
                    if taken:
                        rows.setdefault(door.name, {}).setdefault(what, {})[str(size)] = spread(taken)
        return rows

    def share(self):
        """Two on one inbox, the native protocol in Node and the peer, 300 messages each."""
        count, rows = 30 if self.short else 300, {}
        for _, door in self.in_turns("share", [door for door in self.doors if door.native and door.kind == "library"]):
            with self.careful("share", door):
                root = self.place(door)
                inbox = door.inbox(root)
                inbox.write_text(json.dumps([{
                    "from": "w15", "text": "first", "timestamp": "2026-01-01T00:00:00.000Z", "read": False,
                    "color": "blue", "msgV": 1, "msg_id": "5d0f8f0e-0000-4000-8000-000000000000", "type": "message",
                    "theirs": {"kept": [1, 2]}}], indent=2))
                node, peer = Node().member(root, WRITERS[0]), door.member(root, WRITERS[1])
                for member in (node, peer):
                    member.burst(0, count)
                for member in (node, peer):
                    member.over()
                texts = door.texts(root)
                row = rows.setdefault(door.name, [])
                there = set(texts or ())
                row.append({
                    "json": texts is not None,
                    "native acked": len(node.acked), "native there": sum(f"w0/{n}" in there for n in node.acked),
                    "peer acked": len(peer.acked), "peer there": sum(f"w1/{n}" in there for n in peer.acked),
                    "refused": len(node.refused) + len(peer.refused),
                    "whole": whole(inbox, "w0/"), "unknown kept": kept(inbox),
                })
                node.close()
                peer.close()
                self.gone(door, root)
        return rows

    def writers(self):
        """Four and sixteen of its own kind, all into one inbox."""
        rows = {}
        for many in (4, 16):
            # Sixteen that take seconds of the processor each to start are left out.
            doors = [door for door in self.doors if many == 4 or not door.slow]
            for _, door in self.in_turns("writers", doors):
                with self.careful("writers", door):
                    each = {"library": 100, "tools": 40, "command": 40}[door.kind] * 4 // many
                    each = max(1, each // (10 if self.short else 20 if door.slow else 1))
                    root = self.place(door)
                    members = [door.member(root, name) for name in WRITERS[:many]]
                    start = time.monotonic()
                    for member in members:
                        member.burst(0, each)
                    over = all([member.over() for member in members])
                    took = max([member.end or start for member in members]) - start
                    acked = {f"{name}/{n}" for name, member in zip(WRITERS, members) for n in member.acked}
                    for member in members:
                        member.close()
                    texts = door.texts(root)
                    rows.setdefault(door.name, {}).setdefault(str(many), []).append({
                        "rate": len(acked) / took if took else 0, "acked": len(acked), "asked": many * each,
                        "lost": len(acked - set(texts or ())), "twice": len(texts or ()) - len(set(texts or ())),
                        "refused": sum(len(member.refused) for member in members), "json": texts is not None, "over": over,
                        "why": next((member.refused[0][:200] for member in members if member.refused), ""),
                    })
                    self.gone(door, root)
            self.say(f"{many} writers are done")
        return rows

    def claims(self):
        """Four after the same tasks, in the same order."""
        tasks, rows = 20 if self.short else 100, {}
        for _, door in self.in_turns("claims", [door for door in self.doors if door.board]):
            with self.careful("claims", door):
                root = self.place(door, tasks=tasks)
                members = [door.member(root, name) for name in WRITERS[:4]]
                start = time.monotonic()
                for member in members:
                    member.claims(tasks)
                over = all([member.over() for member in members])
                took = max([member.end or start for member in members]) - start
                got = [task for member in members for task in member.got]
                for member in members:
                    member.close()
                rows.setdefault(door.name, []).append({
                    "rate": len(set(got)) / took if took else 0, "twice": len(got) - len(set(got)),
                    "lost": tasks - len(set(got)), "failed": sum(len(member.refused) for member in members),
                    "over": over, "why": next((member.refused[0] for member in members if member.refused), ""),
                })
                self.gone(door, root)
        return rows

    def kill(self):
        """Four writers killed with SIGKILL in the middle of their sends, again and again in one place."""
        rows, places, dice = {}, {}, random.Random(9)
        for number, door in self.in_turns("kill"):
            with self.careful("kill", door):
                if door not in places:
                    places[door] = self.place(door), set()
                root, acked = places[door]
                members = [door.member(root, name) for name in WRITERS[:4]]
                for member in members:
                    member.burst(number * 100_000, 100_000)
                until = time.monotonic() + 30
                while time.monotonic() < until and not any(member.acked for member in members):
                    time.sleep(0.002)
                time.sleep(dice.uniform(0.01, 0.15))
                for member in members:
                    member.kill()
                for name, member in zip(WRITERS, members):
                    member.over()
                    acked.update(f"{name}/{n}" for n in member.acked)
                row = rows.setdefault(door.name, {"rounds": 0, "torn": 0, "stuck": 0})
                texts = door.texts(root)
                row["rounds"] += 1
                row["torn"] += texts is None
                # Does it go on? A lock that a dead process left may have to be waited for.
                start, late = time.monotonic(), door.member(root, WRITERS[4])
                try:
                    late.send(number)
                    acked.add(f"{WRITERS[4]}/{number}")
                except Refused:
                    row["stuck"] += 1
                row["slowest next send"] = max(row.get("slowest next send", 0), time.monotonic() - start)
                late.close()
                if texts is None and door.native:
                    # Torn for good: the next rounds begin anew, what was in it counts as lost.
                    if door.texts(root) is None:
                        door.inbox(root).write_text("[]")
        for door, (root, acked) in places.items():
            texts = door.texts(root)
            if door.name not in rows:
                continue
            rows[door.name] |= {"acked": len(acked), "lost": len(acked - set(texts or ())),
                                "twice": len(texts or ()) - len(set(texts or ()))}
            self.gone(door, root)
        return rows

    def wake(self):
        """From a send that returned to a reader that was told."""
        rows, open_doors, dice = {}, {}, random.Random(9)
        for door in self.doors:
            if "wake" in door.why or door.kind == "command" or door.name.endswith("`power`"):
                continue
            root = self.place(door)
            writer, reader, heard = door.member(root, WRITERS[0]), door.member(root, READER), {}
            if door.kind == "library":
                reader.watch(heard.__setitem__)
            else:
                threading.Thread(target=waiting, args=(reader, heard), daemon=True).start()
            open_doors[door] = root, writer, reader, heard
        time.sleep(1)
        sent = {}
        for number, door in self.in_turns("wake", open_doors):
            with self.careful("wake", door):
                open_doors[door][1].send(number)
                sent[door, number] = time.time_ns()
                time.sleep(dice.uniform(0.05, 0.25))
        time.sleep(3)
        for door, (root, writer, reader, heard) in open_doors.items():
            times = [max(0, heard[f"w0/{n}"] - at) / 1000 for (d, n), at in sent.items()
                     if d is door and f"w0/{n}" in heard]
            rows[door.name] = (spread(times) if times else {}) | {"sent": sum(d is door for d, _ in sent)}
            writer.close()
            reader.kill()
            self.gone(door, root)
        return rows

    def servers(self):
        """Start to the first list of tools, memory at rest, size of the list."""
        rows = {}
        others = [door for door in self.doors if door.kind == "tools"]
        others += [] if self.short else [Wrapper(), Cao()]
        places = {}
        for _, door in self.in_turns("start", others):
            with self.careful("start", door):
                if door not in places:
                    places[door] = self.place(door)
                root = places[door]
                start = time.monotonic()
                if hasattr(door, "start"):
                    door.close(root)
                    start = time.monotonic()
                    member = door.start(root)
                else:
                    member = door.member(root, WRITERS[0])
                listed = member.tools()
                took = time.monotonic() - start
                time.sleep(0.5)
                row = rows.setdefault(door.name, {"start": [], "memory": []})
                row["start"].append(took * 1e3)
                row["memory"].append(member.memory() / 1e6)
                row["tools"] = len(listed["tools"])
                row["tokens"] = len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False)) // 4
                member.close()
        for door, root in places.items():
            self.gone(door, root)
        for row in rows.values():
            row["start"], row["memory"] = spread(row["start"]), spread(row["memory"])
        return rows


class Wrapper(AnyteamTools):
    """What claude-anyteam gives a teammate; the other server is for a lead."""

    name = "claude-anyteam-wrapper 0.8.4"

    def member(self, root, name):
        env = self.env(root) | {"CLAUDE_ANYTEAM_TEAM": "bench", "CLAUDE_ANYTEAM_NAME": name}
        return Server([program("ANYTEAM") + "/bin/claude-anyteam-wrapper"], env, None, name, root)


class Cao(Ours):
    """Its mail needs a terminal with an agent in it; its server can be looked at."""

    name, slow = "cli-agent-orchestrator 2.5.4", False

    def member(self, root, name):
        return Server([program("CAO") + "/bin/cao-mcp-server"], self.env(root) | {"CAO_TERMINAL_ID": "0"}, None, name,
                      root)


def waiting(reader, heard):
    """Waits for mail by the server's own tool, over and over."""
    while True:
        try:
            given, _ = reader.call("wait")
            at = time.time_ns()
            for message in given.get("messages", []):
                heard.setdefault(message["text"].split(" ")[0], at)
            if hasattr(reader, "ids") or "success" not in given:
                reader.call("ack", [message["id"] for message in given.get("messages", [])])
        except (Refused, OSError, ValueError):
            return


def whole(inbox, prefix):
    """Whether messages of the native protocol are still what their writer made them."""
    try:
        entries = json.loads(inbox.read_text())
    except ValueError:
        return False
    return all({"from", "text", "timestamp", "read", "msg_id"} <= set(entry) for entry in entries
               if str(entry.get("text") or entry.get("content")).startswith(prefix))


def kept(inbox):
    """Whether the field that nobody knows is still there."""
    try:
        entries = json.loads(inbox.read_text())
    except ValueError:
        return False
    return any(entry.get("theirs") == {"kept": [1, 2]} for entry in entries)


def size(path):
    """What an install takes on the disk, without the interpreter it needs."""
    path = os.path.realpath(path)
    return int(subprocess.run(["du", "-sbL" if os.path.isfile(path) else "-sb", path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.split()[0])
