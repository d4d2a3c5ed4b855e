"""Who only looks changes nothing and calls nobody: every call to the kernel that could, by strace, and every file
of the home before and after. Once for a replay, once for a team, once while another program writes to the team."""

import fnmatch
import hashlib
import json
import re
import shutil
from pathlib import Path

from desk import TEAM, prove_at_desk
from house import eventually

DEMO = Path(__file__).parents[2] / "fixtures/ui/demo.jsonl"
# Every view, up and down in it, what a view can be made to show, help, the palette, and nothing that does
# something.
LOOKING = [key for view in "123456" for key in (view, "Down", "Up", "PageDown", "Home", "End", "Enter", "Escape")]
LOOKING += ["2", "p", "p", "f", "Escape", "3", "v", "v", "5", "+", "-", "0"]
LOOKING += ["?", "Escape", ":", "Escape", "t", "Escape", "1"]
CALLS = "%file,%network,ftruncate,fchmod,fchown,memfd_create,execve"
# A successful call, as strace prints it: who, what, with what.
CALL = re.compile(r"^(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+|0x[0-9a-f]+)(?P<opened><[^>]*>)?")
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
LOOKS = {
    "access", "execve", "faccessat", "faccessat2", "getcwd", "inotify_add_watch", "lstat", "newfstatat", "open",
    "openat", "openat2", "readlink", "readlinkat", "stat", "statfs", "statx", "chdir", "name_to_handle_at", "listxattr",
    "getxattr", "lgetxattr",
}  # fmt: skip
SOCKETS = {
    "socket", "socketpair", "connect", "bind", "listen", "sendto", "recvfrom", "sendmsg", "recvmsg", "shutdown",
    "getsockopt", "setsockopt", "getsockname", "getpeername",
}  # fmt: skip
# What a look at a team opens for writing in brigade's own folder of the team, and why.
OWN = {
    "mail/*.state": "locked while the inbox is compared with the journal",
    "mail/*.jsonl": "what another program did to an inbox is written down by whoever sees it",
    "team.jsonl": "the same for the roster and the board",
    "work/*.jsonl": "opened to be read, in the one way that journals are opened",
    "*.lock": "keeps other brigade processes out during that",
    "board.seen": "what was last seen of the board",
    "roster.json*": "what was last seen of the roster",
}


def scenario(desk, report, short):
    desk.small_team()
    before = files(desk)
    changed = look(desk, report, "a replay", ["--replay", str(DEMO), "--speed", "0"], before, own=False)
    report.check("a replay: no file is changed, made or gone", not changed, changed)
    changed = look(desk, report, "a team", [], before, own=True)
    report.check("a team: no file is changed, made or gone", not changed, changed)
    changed = look(desk, report, "a team that is written to", [], before, own=True, meanwhile=native_message)
    [inbox] = [path for path in changed if path.endswith("inboxes/ann.json")]
    ours = sorted(set(changed) - {inbox})
    report.figure("a team that is written to: files of brigade's that were changed", ours)
    known = all(any(fnmatch.fnmatch(path, f"*/files/*/{TEAM}/{pattern}") for pattern in OWN) for path in ours)
    report.check("a team that is written to: only what writes down that it was", ours and known, ours)


def look(desk, report, what, arguments, before, own, meanwhile=None):
    """Looks at everything under strace; gives the files that are not as before."""
    log = desk.root / "calls"
    log.mkdir()
    tmux = desk.tmux()
    words = " ".join(desk.ui(*arguments))
    tmux.run(f"strace -ff -y -s 300 -o {log}/of -e trace={CALLS} {words}; echo left with $?")
    opened = tmux.shows("1 Team", "6 Member", patience=20)
    report.check(f"{what}: it opens", opened, tmux.screen())
    for key in LOOKING:
        tmux.press(key)
    if meanwhile:
        meanwhile(desk, report, tmux)
    eventually(lambda: False, 2.5)
    tmux.press("q")
    report.check(f"{what}: left by q", tmux.shows("left with 0"), tmux.screen())
    tmux.close()
    # A file for each thread: in one file a call could stand in two pieces.
    judge(desk, report, what, "".join(path.read_text(errors="replace") for path in log.iterdir()), own)
    shutil.rmtree(log)
    after = files(desk)
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def native_message(desk, report, tmux):
    """What another program on the team would do: one more message in an inbox."""
    inbox = desk.inbox("ann")
    entries = json.loads(inbox.read_text())
    entries.append(entries[-1] | {"from": "bob", "text": "from elsewhere", "read": False, "msg_id": "elsewhere"})
    inbox.write_text(json.dumps(entries))
    tmux.press("2")
    report.check("a team that is written to: it is seen", tmux.shows("from elsewhere"), tmux.screen())


def judge(desk, report, what, log, own):
    """Goes through every call that was not refused."""
    calls = [found for found in map(CALL.match, log.splitlines()) if found and not found["result"].startswith("-")]
    report.figure(f"{what}: calls looked at", len(calls))
    report.check(f"{what}: it was looked at at all", len(calls) > 50, log[-500:])
    network = [call[0] for call in calls if is_network(call)]
    report.check(f"{what}: no network", not network, network)
    started = [call[0] for call in calls if call["name"] == "execve" and f'"{desk.program}"' not in call["arguments"]]
    report.check(f"{what}: no other program", not started, started)
    [folder] = desk.state.glob(f"files/*/{TEAM}")
    touched, odd = {}, []
    for call in calls:
        path = changes(call)
        if path is None or path.startswith("/dev/") or path.startswith("/proc/self/"):
            continue
        name = path.removeprefix(f"{folder}/") if own and path.startswith(f"{folder}/") else None
        pattern = next((pattern for pattern in OWN if name and fnmatch.fnmatch(name, pattern)), None)
        if pattern:
            touched[pattern] = touched.get(pattern, 0) + 1
        else:
            odd.append(call[0])
    for pattern, times in sorted(touched.items()):
        report.figure(f"{what}: opened so that it could be written, {pattern}", f"{times} times; {OWN[pattern]}")
    report.check(f"{what}: nothing else is opened to be written", not odd, odd)


def is_network(call):
    """Whether it reaches for somebody: a connection of any kind, or a socket that could be one."""
    if call["name"] == "socket":
        return not call["arguments"].startswith("AF_UNIX")
    return call["name"] in ("connect", "bind", "listen", "sendto")


def changes(call):
    """The path that a call may change; None if it only looks."""
    name, arguments = call["name"], call["arguments"]
    if name in ("open", "openat", "openat2", "creat"):
        if name != "creat" and not WRITES.search(arguments):
            return None
        return (call["opened"] or "<?>")[1:-1]
    if name in LOOKS or name in SOCKETS:
        return None
    folder = re.search(r"<([^>]*)>", arguments)
    path = re.search(r'"([^"]*)"', arguments)
    base = folder[1] if folder else ""
    return str(Path(base) / path[1]) if path else base or "?"


def files(desk):
    """Every file and folder of the home, with what stands in it."""
    found = {}
    for path in desk.home.rglob("*"):
        name = str(path.relative_to(desk.home))
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


prove_at_desk(scenario)
