"""Checks of the recipes in the group Members."""

import re
import subprocess

from homes import RUN_COMMAND
from recipes import check

from lib.scripted_model import say, script, tool


def team_without_members(homes):
    home = homes.empty()
    home.brigade("team", "create", "parser")
    return home


@check("Add an agent to a running team")
def spawn(run, homes):
    home = team_without_members(homes)
    run.all(home)
    home.wait_for("bob", "idle")
    said = lambda: any("Take a task from the board" in turn["heard"] for turn in homes.model.turns())  # noqa: E731
    run.eventually("the agent gets the prompt", said)


@check("Choose the model of an agent")
def model(run, homes):
    home = team_without_members(homes)
    run.all(home)
    home.wait_for("bob", "idle")
    homes.say(home, "bob", "Which model are you?")
    turn = homes.model.turns()[-1]
    run.contains(homes.model.body(turn["number"]) + turn["path"], "gpt-5.2-codex")


@check("Let an agent plan before it changes anything")
def plan(run, homes):
    home = team_without_members(homes)
    # The plan mode of Gemini CLI does not offer the tool that submits a plan.
    run.keep_agents()
    run.all(home)
    run.eventually("the plan waits for an answer", lambda: [one for one in home.approvals() if one["kind"] == "plan"])
    run.contains(home.brigade("status"), "wants its plan approved")


@check("Give an agent its own worktree")
def worktree(run, homes):
    home = team_without_members(homes)
    run.all(home)
    branch = ["git", "branch", "--show-current"]
    shown = subprocess.run(branch, cwd=home.worktree("bob"), env=home.environ, check=True, capture_output=True, text=True)
    run.holds("the branch is the member's", shown.stdout.strip() == "brigade/parser/bob", shown)


@check("Let an agent work in another folder")
def folder(run, homes):
    home = team_without_members(homes)
    (home.project / "core").mkdir()
    run.all(home)
    home.wait_for("bob", "idle")
    home.brigade("approve", str(homes.request(home, "touch here")))
    run.eventually("the agent works in the folder", (home.project / "core/here").exists)


@check("Let an agent run some commands without asking")
def allow(run, homes):
    home = team_without_members(homes)
    run.all(home)
    decisions = [home.json("policy", "test", line, "--member", "bob")[0]["decision"] for line in ("cargo test -q", "git push")]
    run.holds("the rules decide", decisions == ["allow", "deny"], decisions)


@check("Let an agent do everything without asking")
def access(run, homes):
    home = team_without_members(homes)
    run.all(home)
    # Codex rejects the request for more permissions if it has all of them.
    step = tool("exec_command", cmd="touch made") if homes.bob == "codex" else RUN_COMMAND[homes.bob]("touch made")
    home.brigade("ask", "bob", f"Make a file. {script(step, say('Made.'))}")
    run.holds("the command has run without a request", (home.project / "made").exists(), home.approvals())


@check("Start a second agent with the same settings")
def like(run, homes):
    home = team_without_members(homes)
    home.brigade("spawn", "bob", "--agent", homes.bob, "--allow", "cargo test *")
    run.all(home)
    tested = home.json("policy", "test", "cargo test -q", "--member", "bob2")
    run.holds("the second has the same rule", tested[0]["decision"] == "allow", tested)
    run.holds("the second has the same agent", home.members()["bob2"]["agent"] == homes.bob, home.members())


@check("Apply changes of the team file to a running team")
def recreate(run, homes):
    home = homes.team("bob", "ann")
    path = home.project / "brigade.toml"
    path.write_text(path.read_text().split("[members.ann]")[0] + 'deny = ["git push*"]\n')
    home.brigade("trust", "--yes")
    run.contains(run.one(home), "ann", "bob")
    run.all(home)
    run.holds("ann is gone", "ann" not in home.members(), home.members())
    tested = home.json("policy", "test", "git push", "--member", "bob")
    run.holds("bob has the new rule", tested[0]["decision"] == "deny", tested)


@check("List the members of a team")
def show(run, homes):
    run.contains(run.all(homes.board()), "team-lead", "bob", "ann")


@check("List all teams")
def teams(run, homes):
    home = homes.board()
    home.brigade("team", "create", "docs")
    run.contains(run.all(home), "parser", "docs")


def change_in_worktree(homes):
    """Returns a home in which bob has a worktree with a new file."""
    home = homes.team("bob", worktree="true")
    (home.worktree("bob") / "lexer.rs").write_text("fn lex() {}\n")
    return home


@check("Show what a member changed in its worktree")
def diff(run, homes):
    run.contains(run.all(change_in_worktree(homes)), "lexer.rs", "+fn lex() {}")


@check("Merge the work of a member")
def merge(run, homes):
    home = change_in_worktree(homes)
    for arguments in (["add", "."], ["commit", "-qm", "Add the lexer"]):
        subprocess.run(["git", *arguments], cwd=home.worktree("bob"), env=home.environ, check=True)
    run.all(home)
    run.holds("the file is in the checkout", (home.project / "lexer.rs").exists())


@check("Run a member in a tmux window")
def tmux_window(run, homes):
    home = team_without_members(homes)
    run.one(home)
    home.wait_for("bob", "idle")
    shown = re.search(r"windows: tmux -L (\S+) attach -t parser", run.one(home))
    run.holds("the status shows the command", shown)
    run.replace(**{"brigade-1a2b3c4d": shown[1]})
    run.in_terminal(home, "bob of team parser")


@check("Stop one member")
def stop(run, homes):
    home = homes.team("bob")
    home.wait_for("bob", "idle")
    run.all(home)
    run.holds("bob is gone", "bob" not in home.members(), home.members())


@check("Stop several members")
def stop_several(run, homes):
    home = homes.team("bob", "ann", "carol")
    for name in ("bob", "ann", "carol"):
        home.wait_for(name, "idle")
    run.all(home)
    run.holds("the team has no members", not home.members(), home.members())
    run.contains(home.brigade("team", "list"), "parser")
