"""The files that may stay behind when a team is down."""

import fnmatch
import subprocess

# Files that stay in brigade's state folder and in Claude Code's folder, and why. Any other file is an error.
EXPECTED = {
    "state/files/*/*/team.jsonl": "the journal of the team",
    "state/files/*/*/mail/*.jsonl": "the journals of its mailboxes",
    "state/files/*/*/work/*.jsonl": "the journals of its members' work",
    "state/files/*/*/mail/*.state": "how far each is written; a team of the same name continues there",
    "state/files/*/*/board.seen": "the last known state of the board",
    "state/files/*/*/created": "which team of this name brigade created",
    "state/files/*/*/shared": "marks that Claude Code wrote to it, too",
    "state/files/*/*/*.lock": "spare locks, empty: brigade takes a lock by renaming one",
    "state/files/*/*/aside*": "copies of torn files, if a kill tore one",
    "state/files/*/*/kept": "folder of the members' saved state, empty",
    "state/files/*/*/pulse": "folder of the members' liveness, empty",
    "state/host": "folder of running teams, empty",
    "claude/teams": "Claude Code's folder for teams, empty",
    "claude/tasks": "Claude Code's folder for tasks, empty",
    "claude/projects/*": "Claude Code's own records of its sessions",
}
# Files that Claude Code writes for itself wherever it runs.
CLAUDE_OWN = (
    "claude/.last-cleanup", "claude/backups/*", "claude/cache/*", "claude/debug/*", "claude/history.jsonl",
    "claude/plugins/*", "claude/policy-limits.json", "claude/session-env/*", "claude/sessions", "claude/sessions/*",
    "claude/shell-snapshots/*", "claude/stats-cache.json", "claude/statsig/*", "claude/tasks/session-*",
    "claude/telemetry/*", "claude/todos", "claude/todos/*",
)  # fmt: skip


def tmux_server_runs(socket):
    """Whether a tmux server answers at this socket; tmux leaves the socket itself behind."""
    return subprocess.run(["tmux", "-S", socket, "list-sessions"], capture_output=True).returncode == 0


def files_of(env):
    """Every file and folder in brigade's state folder and in Claude Code's folder."""
    roots = {"state": env.state, "claude": env.claude_dir}
    return {f"{name}/{path.relative_to(root)}" for name, root in roots.items() for path in root.rglob("*")}


def check_leftovers(env, report, before):
    """Checks the files that are new since `before`, and that no tmux server is left."""
    new = sorted(files_of(env) - before)
    known = (*EXPECTED, *CLAUDE_OWN)
    # A folder that is not empty is judged by its contents.
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
