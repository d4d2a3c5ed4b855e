"""Checks which files stay behind after a team is down."""

import fnmatch
import subprocess

# Files that stay in brigade's state folder and in Claude Code's folder, and why. Any other file is an error.
EXPECTED = {
    "state/files/*/*/team.jsonl": "the team's journal",
    "state/files/*/*/mail/*.jsonl": "the journals of the team's mailboxes",
    "state/files/*/*/work/*.jsonl": "the journals of the members' work",
    "state/files/*/*/mail/*.state": "how far each journal is written; a later team with the same name continues there",
    "state/files/*/*/index.db*": "the positions of records in long journals",
    "state/files/*/*/search.db*": "the words of the texts in the journals, after a search",
    "state/files/*/*/deleted.json": "which old records were deleted from the journals",
    "state/files/*/*/board.seen": "the last known state of the board",
    "state/files/*/*/scanner": "locked by the process that scans all native files of the team",
    "state/files/*/*/departures": "written when a member has left",
    "state/files/*/*/intent": "the change that a process is about to make, empty",
    "state/files/*/*/created": "when brigade created the team, to distinguish teams with the same name",
    "state/files/*/*/shared": "an empty file; it exists because Claude Code also wrote the roster",
    "state/files/*/*/*.lock": "spare lock files, empty: brigade takes a lock by renaming one of them",
    "state/files/*/*/aside*": "copies of files that a kill left half-written",
    "state/files/*/*/kept": "folder for the members' saved state, empty",
    "state/files/*/*/pulse": "folder for the members' pulses, empty",
    "state/files/*/*/creating": "when brigade began to create the team; it stays if the process is killed meanwhile",
    "state/link/*/*.json": "the state of a link, with which the next link of the team continues",
    "state/link/*/*.lock": "the lock file of a link",
    "state/trust/*": "the team files that the user trusts",
    "state/use/*.json": "the person's default team",
    "state/commands": "the commands that were started on this host as members",
    "state/host": "folder for running teams, empty",
    "claude/teams": "Claude Code's folder for teams, empty",
    "claude/tasks": "Claude Code's folder for tasks, empty",
    "claude/projects/*": "Claude Code's own session records",
}
# Files that Claude Code writes for itself wherever it runs.
CLAUDE_OWN = (
    "claude/.last-cleanup", "claude/backups/*", "claude/cache/*", "claude/debug/*", "claude/history.jsonl",
    "claude/plugins/*", "claude/policy-limits.json", "claude/session-env/*", "claude/sessions", "claude/sessions/*",
    "claude/shell-snapshots/*", "claude/stats-cache.json", "claude/statsig/*", "claude/tasks/session-*",
    "claude/telemetry/*", "claude/todos", "claude/todos/*",
)  # fmt: skip


def tmux_server_runs(socket):
    """Returns whether a tmux server answers at this socket. The socket exists even after the server has ended."""
    return subprocess.run(["tmux", "-S", socket, "list-sessions"], capture_output=True).returncode == 0


def files_of(env):
    """Returns the paths of all files and folders in brigade's state folder and in Claude Code's folder."""
    roots = {"state": env.state, "claude": env.claude_dir}
    return {f"{name}/{path.relative_to(root)}" for name, root in roots.items() for path in root.rglob("*")}


def check_leftovers(env, report, before):
    """Checks that all files which are new since `before` are expected, and that no tmux server is left."""
    new = sorted(files_of(env) - before)
    known = (*EXPECTED, *CLAUDE_OWN)
    # Check only files and empty folders. A folder with contents is checked through its contents.
    leaves = [path for path in new if not any(other.startswith(path + "/") for other in new)]
    staying = {pattern: [path for path in leaves if fnmatch.fnmatch(path, pattern)] for pattern in EXPECTED}
    for pattern, why in EXPECTED.items():
        report.figure(f"left: {pattern}", f"{len(staying[pattern])}, {why}")
    own = [path for path in leaves if any(fnmatch.fnmatch(path, pattern) for pattern in CLAUDE_OWN)]
    report.figure("files that Claude Code writes for itself", len(own))
    unexpected = [path for path in leaves if not any(fnmatch.fnmatch(path, pattern) for pattern in known)]
    report.check("no other file is left", not unexpected, unexpected)
    servers = [path.name for path in (env.root / "tmp").glob("tmux-*/*") if tmux_server_runs(path)]
    report.check("no tmux server is left", not servers, servers)
