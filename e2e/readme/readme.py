"""Runs every code block of README.md, in order, in an empty home. Fails if the output differs from the page, or if a
block cannot be run."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from terminal import Terminal

from lib.env import MODEL, exit_on_sigterm, mark_trusted
from lib.pages import Shell, blocks, matches
from lib.processes import in_home, kill_home
from lib.report import Report
from lib.script_proxy import ScriptProxy
from lib.scripted_model import ScriptedModel, say, shutdown_steps, team_tool, tool
from lib.util import SLACK, capture, eventually
from lib.vendors import CODEX_PLAIN_TOOLS, CONFIGURE

PAGE = Path(os.environ["PAGE"])
# Additional patterns for output that differs from run to run, each with a replacement.
MASKS = (
    (r"\bprocess \d+, .* for \d+ \w+", "PROCESS"),
    (r"^(\w+): (starting|idle|working) \(.*\)", r"\1: \2"),
    (r"\b\d+/\d+\b", "TOKENS"),
)
# Commands that are repeated until their output matches the page. They change nothing.
READ_ONLY = ("brigade status", "brigade inbox", "brigade log", "brigade approvals")
# Commands on the page that this test does not run, and why.
NOT_RUN = {
    "cargo install --locked --path crates/brigade": "it compiles for minutes, and this test gets a built program",
    "cargo uninstall brigade": "cargo did not install it here",
}
LEAD_STARTS = "brigade init"
# The new Claude Code checks permissions with its vendor's servers, which this test cannot reach.
SKIP_PERMISSIONS = "alias claude='claude --dangerously-skip-permissions'"
# Maps a text on the page to the steps that the scripted model takes when it receives that text.
SCRIPTS = {
    "Tell me in one sentence what is in this folder": [
        team_tool("task_claim", taskId="1"),
        team_tool("send_message", to="team-lead", message="It holds a parser, its tests and a README."),
        team_tool("task_update", taskId="1", status="completed"),
        say("I have told the lead."),
    ],
    "Publish the parser": [
        tool(
            "exec_command",
            cmd="rsync -r doc/ server:parser/",
            sandbox_permissions="require_escalated",
            justification="it has to be on the server",
        ),
        say("It was not to be."),
    ],
    "Answer with the tool answer_shutdown.": shutdown_steps(native=False),
}


def spawn_steps(request):
    """Returns the steps by which a lead starts a Codex teammate. Only the old Claude Code has the tool TeamCreate."""
    teammate = {"name": "rev", "description": "reviews", "prompt": "Review it.", "subagent_type": "codex"}
    if b'"TeamCreate"' not in request:
        return [tool("Agent", **teammate), say("rev is on it.")]
    create = tool("TeamCreate", team_name="review", description="a review")
    return [create, tool("Task", **teammate, team_name="review"), say("rev is on it.")]


class ReadmeHome:
    """An empty home, with a project and the programs that the page needs."""

    def __init__(self, root):
        self.root, self.home = root, root / "home"
        self.project = self.home / "parser"
        self.bin = root / "bin"
        self.bin.mkdir()
        for name, variable in (("brigade", "BRIGADE"), ("codex", "CODEX"), ("nats-server", "NATS_SERVER")):
            (self.bin / name).symlink_to(os.environ[variable])
        self.project.mkdir(parents=True)
        (root / "tmp").mkdir()
        self.environ = {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "TMPDIR": str(root / "tmp"),
            "TMUX_TMPDIR": str(root / "tmp"),
            "PS1": "$ ",
            **CODEX_PLAIN_TOOLS,
            "ANTHROPIC_MODEL": MODEL,
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "IS_SANDBOX": "1",
        }
        # The login shell in a new pane resets the path and then reads this file.
        (self.home / ".profile").write_text(f'PATH="{self.bin}:$PATH"\n')
        (self.project / "README").write_text("A parser.\n")
        commit = ["-c", "user.name=me", "-c", "user.email=me@example.com", "commit", "--quiet", "-m", "begin"]
        for arguments in (["init", "--quiet"], ["add", "."], commit):
            subprocess.run(["git", *arguments], cwd=self.project, env=self.environ, check=True)

    def configure_agents(self, url):
        """Configures each vendor's program to use the model, and to ask nothing at its first start."""
        (self.home / ".claude").mkdir()
        mark_trusted(self.home, self.project)
        settings = {"skipDangerousModePermissionPrompt": True}
        (self.home / ".claude/settings.json").write_text(json.dumps(settings, indent=2))
        for vendor in ("codex", "claude"):
            self.environ |= CONFIGURE[vendor](self, url)

    def install_claude(self, version):
        """Makes the command `claude` run the old or the new Claude Code."""
        link = self.bin / "claude"
        link.unlink(missing_ok=True)
        link.symlink_to(os.environ[f"CLAUDE_{version.upper()}"])

    def settings(self):
        """Returns the settings files that `brigade init` changes, with their contents."""
        names = (".claude/settings.json", ".claude/agents", ".codex/config.toml")
        paths = [self.home / name for name in names]
        files = [file for path in paths for file in ([path] if path.is_file() else path.glob("*"))]
        return {str(file): file.read_bytes() for file in files}

    def run(self, *arguments):
        return capture(["brigade", *arguments], env=self.environ, cwd=self.project).stdout

    def stop(self):
        self.run("down", "--now")
        kill_home(self.home)


def run_block(home, report, block, skipped):
    with Shell(home.environ, home.project) as shell:
        for command, expected in block.steps():
            if command in NOT_RUN:
                skipped.append(command)
                continue
            end = time.monotonic() + 40 * SLACK
            while True:
                code, output = shell.run(command)
                passed = code == 0 and (expected is None or matches(printed(expected), printed(output), MASKS))
                if passed or not command.startswith(READ_ONLY) or time.monotonic() > end:
                    break
                time.sleep(0.3)
            report.check(f"line {block.line}: {command}", passed, (code, output))


def printed(lines):
    return [line.strip() for line in lines if line.strip()]


def run_lead_block(home, report, block, version):
    """Runs `brigade init` and Claude Code in a terminal, and types the prompt from the page."""
    before = home.settings()
    with Terminal(home.environ, home.project, home.root / "tmux") as terminal:
        init, claude = (step.command for step in block.steps())
        terminal.type(init)
        report.check(f"{version}: {init} asks first", terminal.shows("apply? [y/N]", 20), terminal.screens())
        terminal.type("y")
        applied = terminal.shows("now use brigade", 20)
        report.check(f"{version}: y changes the settings", applied and home.settings() != before, terminal.screens())
        terminal.type(f"{SKIP_PERMISSIONS}; clear")
        terminal.type(claude)
        # Claude Code shows its input box before it accepts input.
        ready = terminal.shows("❯", 60) and terminal.shows("bypass permissions on", 20)
        time.sleep(1)
        started = ready and terminal.prompt(block.prompt, "rev of team", 60 * SLACK)
        report.check(f"{version}: the prompt «{block.prompt}» starts rev in a pane", started, terminal.screens())
        shown = lambda: any("→ rev" in line and "shown" in line for line in home.run("log").splitlines())  # noqa: E731
        report.check(f"{version}: the real Codex receives its message", eventually(shown, 60), home.run("log"))
        answered = terminal.shows("No script. You said:", 20)
        report.check(f"{version}: the answer of Codex is in the pane", answered, terminal.screens())
    gone = eventually(lambda: not brigade_processes(home), 20)
    report.check(f"{version}: no brigade process is left after the terminal is closed", gone, brigade_processes(home))
    # Delete the team, because a lead whose terminal was closed may leave its team behind.
    for left in json.loads(home.run("team", "list", "--json") or "[]"):
        home.run("--as", "team-lead", "team", "delete", left["name"], "--force")


def brigade_processes(home):
    return [process for process in in_home(home.home) if os.environ["BRIGADE"] in process.argv]


def check_removed(home, report, before):
    """Checks that nothing of brigade is left in the home except the user's own brigade.toml."""
    report.check("every setting is as before", home.settings() == before, set(home.settings()) ^ set(before))
    left = [str(path) for path in home.home.rglob("*") if "brigade" in path.name]
    expected = [str(home.project / "brigade.toml")]
    report.check("only brigade.toml is left", left == expected, left)
    teams = [*(home.home / ".claude/teams").glob("*"), *(home.home / ".claude/tasks").glob("*")]
    # Ignore the empty board of a session, which Claude Code leaves behind.
    teams = [team for team in teams if not team.name.startswith("session-")]
    report.check("no team is left", not teams, teams)


def run_page(home, report, leads):
    skipped = []
    before = None
    for block in blocks(PAGE):
        if block.steps()[0].command == LEAD_STARTS and block.prompt:
            before = before or home.settings()
            for version in leads:
                home.install_claude(version)
                run_lead_block(home, report, block, version)
                if version != leads[-1]:
                    home.run("init", "--undo")
            home.install_claude("new")
            continue
        run_block(home, report, block, skipped)
    report.check("every command in NOT_RUN is on the page", sorted(skipped) == sorted(NOT_RUN), skipped)
    report.check("the page has the block with a Claude Code lead", before is not None)
    check_removed(home, report, before)


def main():
    exit_on_sigterm()
    report = Report(PAGE.name)
    root = Path(tempfile.mkdtemp(prefix="readme-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        home = ReadmeHome(root)
        stack.callback(home.stop)
        model = stack.enter_context(ScriptedModel(root / "model", bodies=False))
        prompts = {block.prompt: spawn_steps for block in blocks(PAGE) if block.prompt}
        proxy = stack.enter_context(ScriptProxy(model.url, SCRIPTS | prompts))
        home.configure_agents(proxy.url)
        home.install_claude("new")
        run_page(home, report, sys.argv[1:])
    sys.exit(report.end())


main()
