"""What stays of a team that is down, and what must not."""

import fnmatch
import subprocess

# What stays under brigade's own folder and Claude Code's, and why. Everything else is litter.
STAYS = {
    "state/files/*/*/team.jsonl": "the journal of the team",
    "state/files/*/*/mail/*.jsonl": "the journals of its mailboxes",
    "state/files/*/*/work/*.jsonl": "the journals of what its members did",
    "state/files/*/*/mail/*.state": "how far each is written; a team of the same name goes on from there",
    "state/files/*/*/board.seen": "what was last seen of the board",
    "state/files/*/*/created": "which team of that name was brigade's",
    "state/files/*/*/shared": "that Claude Code wrote to it, too",
    "state/files/*/*/*.lock": "spare locks, empty: a lock is moved into its place whole",
    "state/files/*/*/aside*": "for copies of torn files: none, unless a kill has torn one",
    "state/files/*/*/kept": "for what members have to know after a crash, empty",
    "state/files/*/*/pulse": "for how members are, empty",
    "state/host": "for what runs here, empty",
    "claude/teams": "Claude Code's folder for teams, empty",
    "claude/tasks": "and for their tasks, empty",
    "claude/projects/*": "Claude Code's own records of its sessions",
}
# What Claude Code writes for itself wherever it runs, whoever starts it.
ITS_OWN = (
    "claude/.last-cleanup", "claude/backups/*", "claude/cache/*", "claude/debug/*", "claude/history.jsonl",
    "claude/plugins/*", "claude/policy-limits.json", "claude/session-env/*", "claude/sessions", "claude/sessions/*",
    "claude/shell-snapshots/*", "claude/stats-cache.json", "claude/statsig/*", "claude/tasks/session-*",
    "claude/telemetry/*", "claude/todos", "claude/todos/*",
)  # fmt: skip


def answers(socket):
    """Whether a server of tmux is behind its socket: tmux itself leaves the socket, for the next server."""
    return subprocess.run(["tmux", "-S", socket, "list-sessions"], capture_output=True).returncode == 0


def house_files(house):
    """Every file and folder under brigade's own folder and Claude Code's."""
    roots = {"state": house.state, "claude": house.claude_dir}
    return {f"{name}/{path.relative_to(root)}" for name, root in roots.items() for path in root.rglob("*")}


def litter(house, report, before):
    new = sorted(house_files(house) - before)
    known = (*STAYS, *ITS_OWN)
    # A folder that something stands in is judged by what stands in it.
    ends = [path for path in new if not any(other.startswith(path + "/") for other in new)]
    stays = {pattern: [path for path in ends if fnmatch.fnmatch(path, pattern)] for pattern in STAYS}
    for pattern, why in STAYS.items():
        report.figure(f"stays: {pattern}", f"{len(stays[pattern])}, {why}")
    own = [path for path in ends if any(fnmatch.fnmatch(path, pattern) for pattern in ITS_OWN)]
    report.figure("what Claude Code writes for itself", len(own))
    odd = [path for path in ends if not any(fnmatch.fnmatch(path, pattern) for pattern in known)]
    report.check("nothing else stays", not odd, odd)
