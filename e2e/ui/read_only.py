"""Checks that viewing a team in `brigade ui` writes no file and uses no network. Inspects the system calls with
strace and compares every file in the home before and after: for a replay, for a team, and while another program
writes to the team."""

import fnmatch
import hashlib
import json
import re
import shutil
from pathlib import Path

from ui_env import TEAM, run_ui_scenario

from lib.util import eventually

DEMO = Path(__file__).parents[2] / "fixtures/ui/demo.jsonl"
# Keys for every view: movement, display options, help and palette, but no key that changes the team.
VIEW_KEYS = [key for view in "123456" for key in (view, "Down", "Up", "PageDown", "Home", "End", "Enter", "Escape")]
VIEW_KEYS += ["2", "p", "p", "f", "Escape", "3", "v", "v", "5", "+", "-", "0"]
VIEW_KEYS += ["?", "Escape", ":", "Escape", "t", "Escape", "1"]
CALLS = "%file,%network,ftruncate,fchmod,fchown,memfd_create,execve"
# A successful system call, as strace prints it.
CALL = re.compile(r"^(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+|0x[0-9a-f]+)(?P<opened><[^>]*>)?")
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
READING_CALLS = {
    "access", "execve", "faccessat", "faccessat2", "getcwd", "inotify_add_watch", "lstat", "newfstatat", "open",
    "openat", "openat2", "readlink", "readlinkat", "stat", "statfs", "statx", "chdir", "name_to_handle_at", "listxattr",
    "getxattr", "lgetxattr",
}  # fmt: skip
SOCKET_CALLS = {
    "socket", "socketpair", "connect", "bind", "listen", "sendto", "recvfrom", "sendmsg", "recvmsg", "shutdown",
    "getsockopt", "setsockopt", "getsockname", "getpeername",
}  # fmt: skip
# The files that `brigade ui` opens for writing in brigade's folder for the team, each with the reason.
OPENED_FOR_WRITING = {
    "mail/*.state": "locked while brigade compares the inbox with the journal",
    "mail/*.jsonl": "any brigade process records changes that another program made to an inbox",
    "team.jsonl": "any brigade process records changes that another program made to the roster or the board",
    "work/*.jsonl": "only read, but journals are always opened for writing",
    "*.lock": "excludes other brigade processes while changes are recorded",
    "index.db*": "the positions of records in long journals",
    "search.db*": "the words of the texts in the journals",
    "board.seen": "the last known state of the board",
    "roster.json*": "the last known state of the roster",
    "folder*": "the team folder in which the roster was last seen",
    "intent": "who made a change that is not recorded yet",
    "scanner": "locked while this process records the changes of other programs",
    "departures": "wakes the members when a member has left",
}


def scenario(env, report, short):
    env.small_team()
    before = files(env)
    changed = view(env, report, "replay", ["--replay", str(DEMO), "--speed", "0"], before, own=False)
    report.check("replay: no file is changed, created or deleted", not changed, changed)
    changed = view(env, report, "team", [], before, own=True)
    # The first process that watches a team creates the lock file of the process that scans its files.
    changed = [path for path in changed if not path.endswith(f"/{TEAM}/scanner")]
    report.check("team: no file is changed, created or deleted except a lock file", not changed, changed)
    changed = view(env, report, "changing team", [], before, own=True, meanwhile=native_message)
    [inbox] = [path for path in changed if path.endswith("inboxes/ann.json")]
    ours = sorted(set(changed) - {inbox})
    report.figure("changing team: files of brigade that changed", ours)
    known = all(
        any(fnmatch.fnmatch(path, f"*/files/*/{TEAM}/{pattern}") for pattern in OPENED_FOR_WRITING) for path in ours
    )
    report.check("changing team: brigade changes only files that record the new message", ours and known, ours)


def view(env, report, case, arguments, before, own, meanwhile=None):
    """Opens all views of the UI under strace; returns the files in the home that changed."""
    log = env.root / "calls"
    log.mkdir()
    tmux = env.tmux()
    command = " ".join(env.ui(*arguments))
    tmux.run(f"strace -ff -y -s 300 -o {log}/of -e trace={CALLS} {command}; echo left with $?")
    opened = tmux.shows("1 Team", "6 Member", timeout=20)
    report.check(f"{case}: the UI opens", opened, tmux.screen())
    for key in VIEW_KEYS:
        tmux.press(key)
    if meanwhile:
        meanwhile(env, report, tmux)
    eventually(lambda: False, 2.5)
    tmux.press("q")
    report.check(f"{case}: q quits", tmux.shows("left with 0"), tmux.screen())
    tmux.close()
    # strace writes one file per thread. In a single file, the call of one thread could split the line of another.
    check_calls(env, report, case, "".join(path.read_text(errors="replace") for path in log.iterdir()), own)
    shutil.rmtree(log)
    after = files(env)
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def native_message(env, report, tmux):
    """Adds a message to an inbox file, as another program on the team would."""
    inbox = env.inbox("ann")
    entries = json.loads(inbox.read_text())
    entries.append(entries[-1] | {"from": "bob", "text": "from elsewhere", "read": False, "msg_id": "elsewhere"})
    inbox.write_text(json.dumps(entries))
    tmux.press("2")
    report.check("changing team: the UI shows the new message", tmux.shows("from elsewhere"), tmux.screen())


def check_calls(env, report, case, log, own):
    """Checks every successful system call in a log of strace."""
    calls = [found for found in map(CALL.match, log.splitlines()) if found and not found["result"].startswith("-")]
    report.figure(f"{case}: system calls", len(calls))
    report.check(f"{case}: strace recorded system calls", len(calls) > 50, log[-500:])
    network = [call[0] for call in calls if is_network(call)]
    report.check(f"{case}: no network", not network, network)
    started = [call[0] for call in calls if call["name"] == "execve" and f'"{env.program}"' not in call["arguments"]]
    report.check(f"{case}: the UI starts no other program", not started, started)
    [folder] = env.state.glob(f"files/*/{TEAM}")
    opened, wrong = {}, []
    for call in calls:
        path = written_path(call)
        if path is None or path.startswith("/dev/") or path.startswith("/proc/self/"):
            continue
        name = path.removeprefix(f"{folder}/") if own and path.startswith(f"{folder}/") else None
        pattern = next((pattern for pattern in OPENED_FOR_WRITING if name and fnmatch.fnmatch(name, pattern)), None)
        if pattern:
            opened[pattern] = opened.get(pattern, 0) + 1
        else:
            wrong.append(call[0])
    for pattern, times in sorted(opened.items()):
        report.figure(f"{case}: opened for writing, {pattern}", f"{times} times; {OPENED_FOR_WRITING[pattern]}")
    report.check(f"{case}: no other file is opened for writing", not wrong, wrong)


def is_network(call):
    """Returns whether a system call opens a connection, or creates a socket that could."""
    if call["name"] == "socket":
        return not call["arguments"].startswith("AF_UNIX")
    return call["name"] in ("connect", "bind", "listen", "sendto")


def written_path(call):
    """Returns the path that a system call may change, or None if the call only reads."""
    name, arguments = call["name"], call["arguments"]
    if name in ("open", "openat", "openat2", "creat"):
        if name != "creat" and not WRITES.search(arguments):
            return None
        return (call["opened"] or "<?>")[1:-1]
    if name in READING_CALLS or name in SOCKET_CALLS:
        return None
    folder = re.search(r"<([^>]*)>", arguments)
    path = re.search(r'"([^"]*)"', arguments)
    base = folder[1] if folder else ""
    return str(Path(base) / path[1]) if path else base or "?"


def files(env):
    """Returns every file and folder in the home, with a hash of its content."""
    found = {}
    for path in env.home.rglob("*"):
        name = str(path.relative_to(env.home))
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


run_ui_scenario(scenario)
