"""README.md, typed from its first block to its last in an empty home. It fails when the page and the program
disagree, and when the page has a block that nobody knows how to type."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from house import KEY, MODEL, SLACK, eventually
from page import blocks, differs
from prompter import Prompter
from report import Report
from scripted import ScriptedModel
from shell import Shell, Terminal
from teammate import at_home
from vendors import SETTLE_IN

PAGE = Path(os.environ["PAGE"])
# What only looks is asked again until it shows what the page shows: people look twice, too.
LOOKS = ("brigade status", "brigade inbox", "brigade log", "brigade approvals")
# What is not typed here, and why.
NOT_HERE = {
    "cargo install --locked --path crates/brigade": "it compiles for minutes, and this proof is given the program",
    "cargo uninstall brigade": "cargo did not install it here",
}
LEAD_STARTS = "brigade init"
# A new lead judges by itself what it may do, which needs its vendor's servers.
MAY_ALL = "alias claude='claude --dangerously-skip-permissions'"


def team(name, **args):
    return {"tool": f"team/{name}", "args": args}


# What a model would do, by the words of the page that it is told.
SCRIPTS = {
    "Tell me in one sentence what is in this folder": [
        team("task_claim", taskId="1"),
        team("send_message", to="team-lead", message="It holds a parser, its tests and a README."),
        team("task_update", taskId="1", status="completed"),
        {"say": "I have told the lead."},
    ],
    "Publish the parser": [
        {
            "tool": "exec_command",
            "args": {
                "cmd": "rsync -r doc/ server:parser/",
                "sandbox_permissions": "require_escalated",
                "justification": "it has to be on the server",
            },
        },
        {"say": "It was not to be."},
    ],
    "Answer with the tool answer_shutdown.": [
        team("answer_shutdown", request_id="{heard:request_id}", approve=True),
        {"say": "Goodbye."},
    ],
}


def hires(request):
    """The steps by which a lead starts a Codex teammate, of either generation: old has a tool that makes a team."""
    wanted = {"name": "rev", "description": "reviews", "prompt": "Review it.", "subagent_type": "codex"}
    if b'"TeamCreate"' not in request:
        return [{"tool": "Agent", "args": wanted}, {"say": "rev is on it."}]
    create = {"tool": "TeamCreate", "args": {"team_name": "review", "description": "a review"}}
    return [create, {"tool": "Task", "args": wanted | {"team_name": "review"}}, {"say": "rev is on it."}]


class Home:
    """An empty home, with a folder to work in and the programs that the page speaks of."""

    def __init__(self, root):
        # What brigade and its agents make stands below it; tmux takes no long path.
        self.root, self.home = root, root / "home"
        self.project = self.home / "parser"
        self.bin = root / "bin"
        self.bin.mkdir()
        for name, variable in (("brigade", "BRIGADE"), ("codex", "CODEX"), ("nats-server", "NATS_SERVER")):
            (self.bin / name).symlink_to(os.environ[variable])
        self.project.mkdir(parents=True)
        (root / "tmp").mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "TMPDIR": str(root / "tmp"),
            "TMUX_TMPDIR": str(root / "tmp"),
            "PS1": "$ ",
            # A model that Codex does not know is offered its plain tools.
            "BRIGADE_CODEX_ARGS": '-c model="scripted"',
            "ANTHROPIC_MODEL": MODEL,
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "IS_SANDBOX": "1",
        }
        # The shells of new panes begin with the system's path, and read this.
        (self.home / ".profile").write_text(f'PATH="{self.bin}:$PATH"\n')
        (self.project / "README").write_text("A parser.\n")
        words = ["-c", "user.name=me", "-c", "user.email=me@example.com", "commit", "--quiet", "-m", "begin"]
        for arguments in (["init", "--quiet"], ["add", "."], words):
            subprocess.run(["git", *arguments], cwd=self.project, env=self.env, check=True)

    def settle_in(self, url):
        """Each vendor's program is set up, and everything that a first start would ask is answered."""
        (self.home / ".claude").mkdir()
        known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        answers = {
            "hasCompletedOnboarding": True,
            "lastOnboardingVersion": "9.9.9",
            "lastReleaseNotesSeen": "9.9.9",
            "theme": "dark",
            "bypassPermissionsModeAccepted": True,
            "effortCalloutDismissed": True,
            "officialMarketplaceAutoInstallAttempted": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.project): known},
        }
        (self.home / ".claude.json").write_text(json.dumps(answers))
        quiet = {"skipDangerousModePermissionPrompt": True}
        (self.home / ".claude/settings.json").write_text(json.dumps(quiet, indent=2))
        for vendor in ("codex", "claude"):
            self.env |= SETTLE_IN[vendor](self, url)

    def generation(self, version):
        """Makes `claude` the Claude Code of this generation."""
        link = self.bin / "claude"
        link.unlink(missing_ok=True)
        link.symlink_to(os.environ[f"CLAUDE_{version.upper()}"])

    def settings(self):
        """The files that `brigade init` says it changes."""
        folders = (".claude/settings.json", ".claude/agents", ".codex/config.toml")
        places = [self.home / name for name in folders]
        files = [file for place in places for file in ([place] if place.is_file() else place.glob("*"))]
        return {str(file): file.read_bytes() for file in files}

    def shell(self):
        return Shell(self.env, self.project)

    def run(self, *words):
        return subprocess.run(
            ["brigade", *words], env=self.env, cwd=self.project, capture_output=True, text=True, stdin=subprocess.DEVNULL
        ).stdout


def type_block(home, report, block, typed):
    with home.shell() as shell:
        for step in block.steps:
            if step.typed in NOT_HERE:
                typed.append(step.typed)
                continue
            printed, code = shell.type(step.typed)
            wrong = step.shown is not None and differs(step.shown, printed)
            end = time.monotonic() + 40 * SLACK
            while (wrong or code) and step.typed.startswith(LOOKS) and time.monotonic() < end:
                time.sleep(0.3)
                printed, code = shell.type(step.typed)
                wrong = differs(step.shown, printed)
            report.check(f"line {block.line}: {step.typed}", not wrong and code == 0, f"{code}, {wrong or ''}: {printed}")


def lead(home, report, block, version):
    """Claude Code leads: `brigade init` is asked and answered at a terminal, and then the lead is told what
    the page says."""
    before = home.settings()
    with Terminal(home.env, home.project, home.root / "tmux") as terminal:
        init, claude = (step.typed for step in block.steps)
        terminal.type(init)
        report.check(f"{version}: {init} asks", terminal.shows("apply? [y/N]", 20), terminal.screens())
        terminal.type("y")
        switched = terminal.shows("brigade is switched on", 20)
        report.check(f"{version}: and switches brigade on", switched and home.settings() != before, terminal.screens())
        terminal.type(f"{MAY_ALL}; clear")
        terminal.type(claude)
        # Its box is there before it listens.
        ready = terminal.shows("❯", 60) and terminal.shows("bypass permissions on", 20)
        time.sleep(1)
        sat = ready and terminal.say(block.said, "rev of team", 60 * SLACK)
        report.check(f"{version}: told «{block.said}», rev sits down in a pane", sat, terminal.screens())
        heard = lambda: any("→ rev" in line and "shown" in line for line in home.run("log").splitlines())
        report.check(f"{version}: the real Codex is shown its mail", eventually(heard, 60), home.run("log"))
        shows = terminal.shows("No script. You said:", 20)
        report.check(f"{version}: and its answer stands in the pane", shows, terminal.screens())
    gone = eventually(lambda: not ours(home), 20)
    report.check(f"{version}: with the terminal gone nobody of brigade's is left", gone, ours(home))
    # A lead whose terminal is gone may leave its team behind.
    for left in json.loads(home.run("team", "list", "--json") or "[]"):
        home.run("--as", "team-lead", "team", "delete", left["name"], "--force")


def ours(home):
    return [process for process in at_home(home.home) if os.environ["BRIGADE"] in process.words]


def removed(home, report, before):
    """Nothing of brigade's is left in the home but the file that is the user's."""
    report.check("every setting is as it was", home.settings() == before, set(home.settings()) ^ set(before))
    left = [str(path) for path in home.home.rglob("*") if "brigade" in path.name]
    expected = [str(home.project / "brigade.toml")]
    report.check("nothing of brigade's is left but brigade.toml", left == expected, left)
    teams = [*(home.home / ".claude/teams").glob("*"), *(home.home / ".claude/tasks").glob("*")]
    # Claude Code leaves the empty board of a session behind.
    teams = [team for team in teams if not team.name.startswith("session-")]
    report.check("and no team", not teams, teams)


def whole(home, report, leads):
    typed = []
    before = None
    for block in blocks(PAGE):
        if block.steps[0].typed == LEAD_STARTS and block.said:
            before = before or home.settings()
            for version in leads:
                home.generation(version)
                lead(home, report, block, version)
                if version != leads[-1]:
                    home.run("init", "--undo")
            home.generation("new")
            continue
        type_block(home, report, block, typed)
    report.check("what is not typed is on the page", sorted(typed) == sorted(NOT_HERE), typed)
    report.check("the page says how to let Claude Code lead", before is not None)
    removed(home, report, before)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report(PAGE.name)
    root = Path(tempfile.mkdtemp(prefix="readme-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        home = Home(root)
        stack.callback(end, home)
        model = stack.enter_context(ScriptedModel(root / "model", bodies=False))
        said = {block.said: hires for block in blocks(PAGE) if block.said}
        prompter = stack.enter_context(Prompter(model.url, SCRIPTS | said))
        home.settle_in(prompter.url)
        home.generation("new")
        whole(home, report, sys.argv[1:])
    report.end()
    sys.exit(1 if report.failures else 0)


def end(home):
    home.run("down", "--now")
    for process in at_home(home.home):
        process.kill()


main()
