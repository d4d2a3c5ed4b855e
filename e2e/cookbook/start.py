"""Checks of the recipes in the group Start."""

import json

from homes import write
from recipes import check

SETTINGS = ".claude/settings.json"


@check("See which agents are installed")
def installed(run, homes):
    output = run.all(homes.empty(homes.bob))
    lines = {line.split()[0]: line for line in output.splitlines()}
    run.contains(lines[homes.bob], "0.")
    run.contains(lines[homes.ann], "not installed", "npm install")


@check("Check that you are logged in")
def logged_in(run, homes):
    home = homes.empty()
    (home.home / ".codex/config.toml").unlink()
    output = run.all(home)
    run.holds("only Codex is listed", output.split() == ["codex"], output)


@check("Watch a team before you install an agent")
def demo(run, homes):
    home = homes.empty("none")
    terminal = run.in_terminal(home, "1 Team", keys=["q"])
    run.holds("the dashboard closes", terminal.lacks("1 Team"), terminal.screen())
    run.eventually("nothing is left", lambda: not [*home.root.joinpath("tmp").glob("*brigade*")])


@check("Write a first team file")
def new(run, homes):
    home = homes.empty()
    run.all(home)
    checked = home.json("up", "--check")
    run.holds("the file is valid", checked["valid"] and len(checked["team"]["members"]) == 2, checked)


@check("Start from a template")
def template(run, homes):
    home = homes.empty()
    run.all(home)
    checked = home.json("up", "--check")
    run.holds("the file has tasks", checked["valid"] and len(checked["team"]["tasks"]) == 3, checked)


@check("Check a team file before you start it")
def check_file(run, homes):
    home = homes.empty()
    home.brigade("new")
    run.contains(run.all(home), "is valid", "builder", "reviewer")
    run.holds("no team was created", not home.json("team", "list"))


@check("Start the team of a file")
def up(run, homes):
    home = homes.empty()
    home.brigade("new")
    run.all(home)
    for name in ("builder", "reviewer"):
        home.wait_for(name, "idle")


@check("Start a team file that came with a repository")
def trust(run, homes):
    home = homes.empty()
    write(home.project / "brigade.toml", f'team = "parser"\n[members.bob]\nagent = "{homes.bob}"\n')
    refused = home.try_brigade("up")
    run.holds("the file is not trusted at first", refused.returncode != 0 and "trust" in refused.stderr, refused)
    run.in_terminal(home, "trust this file? [y/N]", keys=["y", "Enter"], after=["trusted"])
    run.all(home)
    home.wait_for("bob", "idle")


@check("Start a team without a file")
def without_file(run, homes):
    home = homes.empty()
    run.all(home)
    home.wait_for("bob", "idle")


@check("Add other vendors' agents to Claude Code")
def init(run, homes):
    home = homes.empty("codex", "gemini", "claude")
    run.in_terminal(home, "apply? [y/N]", keys=["y", "Enter"], after=["now use brigade"])
    settings = json.loads((home.home / SETTINGS).read_text())
    run.contains(json.dumps(settings), "CLAUDE_CODE_TEAMMATE_COMMAND")


# Presses Tab after `brigade send b` in bash.
TAB = """
source ~/.bashrc
COMP_WORDS=(brigade send b) COMP_CWORD=2 COMP_LINE="brigade send b" COMP_POINT=14 COMP_TYPE=9
"$(complete -p brigade | sed 's/.* -F \\([^ ]*\\).*/\\1/')" brigade b send
echo "${COMPREPLY[@]}"
"""


@check("Complete commands and names with Tab")
def completions(run, homes):
    home = homes.board()
    run.all(home)
    code, output = home.shell().run(TAB)
    run.holds("Tab completes the name of a member", code == 0 and output[-1:] == ["bob"], output)


@check("Choose the default team")
def use(run, homes):
    home = homes.empty("none")
    for team in ("parser", "other"):
        home.brigade("team", "create", team)
    run.all(home)
    home.brigade("task", "add", "first")
    run.holds("the task is added to parser", (home.home / ".claude/tasks/parser/1.json").exists())


@check("Choose the team for all commands of a shell")
def choose_team(run, homes):
    home = homes.empty("none")
    for team in ("parser", "other"):
        home.brigade("team", "create", team)
    shell = home.shell()
    run.all(home, shell)
    code, output = shell.run("brigade task add first")
    run.holds("the task is added to parser", code == 0 and (home.home / ".claude/tasks/parser/1.json").exists(), output)
