"""The parts of the benchmark: single operations, races, kills, wake-ups, startup. All peers run the same parts."""

import contextlib
import json
import os
import random
import shutil
import subprocess
import threading
import time
from pathlib import Path

from peers import PEERS, READER, WRITERS, AnyteamTools, Node, Ours, program
from clients import Refused, Server

# For each part: the rounds in a short and in a full run, and the seconds after which no further round starts.
ROUNDS = {"costs": (1, 12, 70), "share": (1, 5, 40), "writers": (1, 5, 60), "claims": (1, 5, 60),
          "kill": (1, 20, 120), "wake": (3, 25, 60), "start": (1, 7, 60)}


SIZES = (10, 1_000, 10_000)


def spread(values):
    """Returns the median, the 10th, 90th and 99th percentile, and the number of measurements."""
    values = sorted(values)
    last = len(values) - 1
    at = {name: values[round(last * part)] for name, part in (("p10", .1), ("p50", .5), ("p90", .9), ("p99", .99))}
    return at | {"n": len(values)}


class Bench:
    def __init__(self, root, short, only):
        self.root, self.short, self.number = Path(root), short, 0
        names = {peer.name for peer in PEERS}
        # A whole name means one peer, and any other text all peers whose name contains it.
        self.peers = [peer for peer in PEERS if not (short and peer.slow) and
                      (not only or any(part == peer.name if part in names else part in peer.name for part in only))]
        self.are_chosen = bool(only)
        self.start, self.failed = time.monotonic(), {}

    @contextlib.contextmanager
    def careful(self, part, peer):
        """Excludes a failing peer from this part and records the error. Errors of brigade end the run."""
        try:
            yield
        except (Refused, OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError) as error:
            if isinstance(peer, Ours):
                raise
            self.say(f"{part}: {peer.name} failed: {error!r}")
            self.failed.setdefault(part, {})[peer.name] = repr(error)[:300]

    def elapsed(self):
        return time.monotonic() - self.start

    def say(self, line):
        print(f"{self.elapsed():6.0f} s  {line}", flush=True)

    def prepare(self, peer, **contents):
        self.number += 1
        root = self.root / str(self.number)
        peer.prepare(root, **contents)
        return root

    def close(self, peer, root):
        peer.close(root)
        shutil.rmtree(root, ignore_errors=True)

    def in_turns(self, what, peers=None):
        """Yields every peer once per round, so that all peers are measured over the same period. Each round starts
        with a different peer, because the file system is slower for the later peers of a round."""
        peers = list(self.peers if peers is None else peers)
        short, full, seconds = ROUNDS[what]
        until = time.monotonic() + seconds
        for number in range(short if self.short else full):
            if time.monotonic() > until:
                self.say(f"{what}: stopped at the time limit, after {number} rounds")
                return
            for peer in peers:
                if peer.name in self.failed.get(what, {}):
                    continue
                if not peer.slow or self.are_chosen or number % (20 if what == "kill" else 4) == 0 or what == "wake":
                    yield number, peer
            peers = peers[1:] + peers[:1]

    def costs(self):
        """Measures how long it takes to send, read and mark one message, for histories of several lengths."""
        rows = {}
        for size in SIZES[:1] if self.short else SIZES:
            opened = {}
            for peer in self.peers:
                with self.careful("costs", peer):
                    if size in peer.sizes and peer.name not in self.failed.get("costs", {}):
                        root = self.prepare(peer, history=size)
                        opened[peer] = root, peer.member(root, WRITERS[0]), peer.member(root, READER)
            self.say(f"created a history of {size} messages for each peer")
            times = {peer: {"send": [], "read": [], "mark": []} for peer in opened}
            for number, peer in self.in_turns("costs", opened):
                with self.careful("costs", peer):
                    _, writer, reader = opened[peer]
                    until = time.monotonic() + 0.5
                    for turn in range(10):
                        times[peer]["send"].append(writer.send(number * 10 + turn))
                        times[peer]["read"].append(reader.read())
                        if "mark" not in peer.why:
                            times[peer]["mark"].append(reader.mark())
                        if time.monotonic() > until:
                            break
            for peer, (root, writer, reader) in opened.items():
                writer.close()
                reader.close()
                self.close(peer, root)
                for what, taken in times[peer].items():
                    if taken:
                        rows.setdefault(peer.name, {}).setdefault(what, {})[str(size)] = spread(taken)
        return rows

    def share(self):
        """Lets the native protocol in Node and the peer write 300 messages each into one inbox at the same time."""
        count, rows = 30 if self.short else 300, {}
        for _, peer in self.in_turns("share", [peer for peer in self.peers if peer.native and peer.kind == "library"]):
            with self.careful("share", peer):
                root = self.prepare(peer)
                inbox = peer.inbox(root)
                inbox.write_text(json.dumps([{
                    "from": "w15", "text": "first", "timestamp": "2026-01-01T00:00:00.000Z", "read": False,
                    "color": "blue", "msgV": 1, "msg_id": "5d0f8f0e-0000-4000-8000-000000000000", "type": "message",
                    "theirs": {"kept": [1, 2]}}], indent=2))
                node, other = Node().member(root, WRITERS[0]), peer.member(root, WRITERS[1])
                for member in (node, other):
                    member.burst(0, count)
                finish((node, other), 0)
                texts = peer.texts(root)
                row = rows.setdefault(peer.name, [])
                there = set(texts or ())
                whole, kept = inspect(inbox, "w0/")
                row.append({
                    "json": texts is not None,
                    "native acked": len(node.acked), "native there": sum(f"w0/{n}" in there for n in node.acked),
                    "peer acked": len(other.acked), "peer there": sum(f"w1/{n}" in there for n in other.acked),
                    "refused": len(node.refused) + len(other.refused),
                    "whole": whole, "unknown kept": kept,
                })
                self.close(peer, root)
        return rows

    def writers(self):
        """Lets four and then sixteen members of the same peer write into one inbox at the same time."""
        rows = {}
        for many in (4, 16):
            # With sixteen writers, skip the peers whose start needs seconds of CPU time.
            peers = [peer for peer in self.peers if many == 4 or not peer.slow]
            for _, peer in self.in_turns("writers", peers):
                with self.careful("writers", peer):
                    each = {"library": 100, "tools": 40, "command": 40}[peer.kind] * 4 // many
                    each = max(1, each // (10 if self.short else 20 if peer.slow else 1))
                    root = self.prepare(peer)
                    members = [peer.member(root, name) for name in WRITERS[:many]]
                    start = time.monotonic()
                    for member in members:
                        member.burst(0, each)
                    over, took = finish(members, start)
                    acked = {f"{name}/{n}" for name, member in zip(WRITERS, members) for n in member.acked}
                    texts = peer.texts(root)
                    rows.setdefault(peer.name, {}).setdefault(str(many), []).append({
                        "rate": len(acked) / took if took else 0, "acked": len(acked), "asked": many * each,
                        "lost": len(acked - set(texts or ())), "twice": len(texts or ()) - len(set(texts or ())),
                        "refused": sum(len(member.refused) for member in members), "json": texts is not None, "over": over,
                        "why": next((member.refused[0][:200] for member in members if member.refused), ""),
                    })
                    self.close(peer, root)
            self.say(f"measured {many} writers")
        return rows

    def claims(self):
        """Lets four members claim the same tasks in the same order, at the same time."""
        tasks, rows = 20 if self.short else 100, {}
        for _, peer in self.in_turns("claims", [peer for peer in self.peers if peer.board]):
            with self.careful("claims", peer):
                root = self.prepare(peer, tasks=tasks)
                members = [peer.member(root, name) for name in WRITERS[:4]]
                start = time.monotonic()
                for member in members:
                    member.claims(tasks)
                over, took = finish(members, start)
                got = [task for member in members for task in member.got]
                rows.setdefault(peer.name, []).append({
                    "rate": len(set(got)) / took if took else 0, "twice": len(got) - len(set(got)),
                    "lost": tasks - len(set(got)), "failed": sum(len(member.refused) for member in members),
                    "over": over, "why": next((member.refused[0] for member in members if member.refused), ""),
                })
                self.close(peer, root)
        return rows

    def kill(self):
        """Kills four writers while they send. All rounds use the same team."""
        rows, folders, rng = {}, {}, random.Random(9)
        for number, peer in self.in_turns("kill"):
            with self.careful("kill", peer):
                if peer not in folders:
                    folders[peer] = self.prepare(peer), set()
                root, acked = folders[peer]
                members = [peer.member(root, name) for name in WRITERS[:4]]
                for member in members:
                    member.burst(number * 100_000, 100_000)
                until = time.monotonic() + 30
                while time.monotonic() < until and not any(member.acked for member in members):
                    time.sleep(0.002)
                time.sleep(rng.uniform(0.01, 0.15))
                for member in members:
                    member.kill()
                for name, member in zip(WRITERS, members):
                    member.over()
                    acked.update(f"{name}/{n}" for n in member.acked)
                row = rows.setdefault(peer.name, {"rounds": 0, "torn": 0, "stuck": 0})
                texts = peer.texts(root)
                row["rounds"] += 1
                row["torn"] += texts is None
                # Check that another member can still send. It may have to wait for the lock of a killed process.
                start, late = time.monotonic(), peer.member(root, WRITERS[4])
                try:
                    late.send(number)
                    acked.add(f"{WRITERS[4]}/{number}")
                except Refused:
                    row["stuck"] += 1
                row["slowest next send"] = max(row.get("slowest next send", 0), time.monotonic() - start)
                late.close()
                if texts is None and peer.native and peer.texts(root) is None:
                    # The inbox is corrupt: replace it with an empty inbox. The old messages then count as lost.
                    peer.inbox(root).write_text("[]")
        for peer, (root, acked) in folders.items():
            texts = peer.texts(root)
            if peer.name not in rows:
                continue
            rows[peer.name] |= {"acked": len(acked), "lost": len(acked - set(texts or ())),
                                "twice": len(texts or ()) - len(set(texts or ()))}
            self.close(peer, root)
        return rows

    def wake(self):
        """Measures the time from the end of a send until the waiting reader has the message."""
        rows, opened, rng = {}, {}, random.Random(9)
        for peer in self.peers:
            if "wake" in peer.why or peer.kind == "command" or peer.name.endswith("`power`"):
                continue
            root = self.prepare(peer)
            writer, reader, heard = peer.member(root, WRITERS[0]), peer.member(root, READER), {}
            if peer.kind == "library":
                reader.watch(heard.__setitem__)
            else:
                threading.Thread(target=wait_for_messages, args=(reader, heard), daemon=True).start()
            opened[peer] = root, writer, reader, heard
        time.sleep(1)
        sent = {}
        for number, peer in self.in_turns("wake", opened):
            with self.careful("wake", peer):
                opened[peer][1].send(number)
                sent[peer, number] = time.time_ns()
                time.sleep(rng.uniform(0.05, 0.25))
        time.sleep(3)
        for peer, (root, writer, reader, heard) in opened.items():
            times = [max(0, heard[f"w0/{n}"] - at) / 1000 for (d, n), at in sent.items()
                     if d is peer and f"w0/{n}" in heard]
            rows[peer.name] = (spread(times) if times else {}) | {"sent": sum(d is peer for d, _ in sent)}
            writer.close()
            reader.kill()
            self.close(peer, root)
        return rows

    def servers(self):
        """Measures an MCP server: the time from its start to its list of tools, its idle memory, the list's size."""
        rows = {}
        others = [peer for peer in self.peers if peer.kind == "tools"]
        others += [] if self.short else [Wrapper(), Cao()]
        folders = {}
        for _, peer in self.in_turns("start", others):
            with self.careful("start", peer):
                if peer not in folders:
                    folders[peer] = self.prepare(peer)
                root = folders[peer]
                start = time.monotonic()
                if hasattr(peer, "start"):
                    peer.close(root)
                    start = time.monotonic()
                    member = peer.start(root)
                else:
                    member = peer.member(root, WRITERS[0])
                listed = member.tools()
                took = time.monotonic() - start
                time.sleep(0.5)
                row = rows.setdefault(peer.name, {"start": [], "memory": []})
                row["start"].append(took * 1e3)
                row["memory"].append(member.memory() / 1e6)
                row["tools"] = len(listed["tools"])
                row["tokens"] = len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False)) // 4
                member.close()
        for peer, root in folders.items():
            self.close(peer, root)
        for row in rows.values():
            row["start"], row["memory"] = spread(row["start"]), spread(row["memory"])
        return rows


class Wrapper(AnyteamTools):
    """The MCP server that claude-anyteam starts for a teammate; `AnyteamTools` is the one for a lead."""

    name = "claude-anyteam-wrapper 0.8.4"

    def member(self, root, name):
        env = self.env(root) | {"CLAUDE_ANYTEAM_TEAM": "bench", "CLAUDE_ANYTEAM_NAME": name}
        return Server([program("ANYTEAM") + "/bin/claude-anyteam-wrapper"], env, None, root)


class Cao(Ours):
    """cli-agent-orchestrator. Its mail needs an agent in a terminal, so only its MCP server is measured."""

    name, slow = "cli-agent-orchestrator 2.5.4", False

    def member(self, root, name):
        return Server([program("CAO") + "/bin/cao-mcp-server"], self.env(root) | {"CAO_TERMINAL_ID": "0"}, None, root)


def finish(members, start):
    """Waits for the members' threads and closes the members. Returns whether all threads ended in time, and the
    seconds until the last successful operation."""
    over = all([member.over() for member in members])
    for member in members:
        member.close()
    return over, max(member.end or start for member in members) - start


def wait_for_messages(reader, heard):
    """Waits for messages with the server's own tool, and stores their times of arrival in `heard`."""
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


def inspect(inbox, prefix):
    """Returns whether the native messages, whose text starts with `prefix`, still have all their fields, and
    whether the inbox still has the unknown field."""
    try:
        entries = json.loads(inbox.read_text())
    except ValueError:
        return False, False
    whole = all({"from", "text", "timestamp", "read", "msg_id"} <= set(entry) for entry in entries
                if str(entry.get("text") or entry.get("content")).startswith(prefix))
    return whole, any(entry.get("theirs") == {"kept": [1, 2]} for entry in entries)


def size(path):
    """Returns the disk usage of an installation, without its interpreter."""
    path = os.path.realpath(path)
    return int(subprocess.run(["du", "-sbL" if os.path.isfile(path) else "-sb", path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.split()[0])
