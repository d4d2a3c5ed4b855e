"""Checks of the recipes in the group Scripts, and what the model does with texts of the page."""

import subprocess

from homes import write
from recipes import check

from lib.scripted_model import say, team_tool

# Maps texts of the page to the steps that the scripted model takes. Without a script, the model repeats its last steps.
TEXTS = {
    "The tests are green again": [say("Good.")],
    "main is frozen until six": [say("I wait.")],
    "Make a branch first": [say("I have made a branch.")],
    "Use the old lexer instead": [say("I use the old lexer.")],
    "+# A better parser": [say("I have seen the change.")],
    "Which test fails, and why?": [say("The test empty_input: the loop reads too far.")],
    "Commit your work": [say("Committed.")],
    "Fix the failing test": [say("Fixed.") | {"wait": 2}],
    "Write the lexer": [
        team_tool("task_claim", taskId="1"),
        team_tool("task_update", taskId="1", status="completed"),
        say("The lexer is written."),
    ],
    "Plan how to split the parser": [team_tool("submit_plan", plan="# Plan\n1. Split the lexer"), say("I wait.")],
    "+# A shorter parser": [say("The change is fine.")],
    "Say hello": [
        team_tool("task_claim", taskId="1"),
        team_tool("task_update", taskId="1", status="completed"),
        say("Hello."),
    ],
}


@check("Give work to a member and wait until it is done")
def wait_idle(run, homes):
    home = homes.live()
    run.all(home)
    run.holds("bob is idle", home.liveness("bob") == "idle", home.members())
    run.contains(str(home.inbox()[-1]), "Fixed.")


@check("Wait for a task")
def wait_task(run, homes):
    home = homes.board("first")
    later = lambda: home.brigade("task", "done", "1")  # noqa: E731
    run.in_terminal(home, meanwhile=later, after=["task 1 is done"])


@check("Wait until a member needs you")
def wait_any(run, homes):
    home = homes.live()
    home.brigade("inbox", "--mark-read", ok=(0, 4))
    homes.slow_turn(home)
    ask = lambda: home.brigade("interrupt", "bob")  # noqa: E731
    run.in_terminal(home, meanwhile=ask, after=["bob is idle"])


@check("Run a team in CI")
def ci(run, homes):
    home = homes.empty()
    member = f'[members.bob]\nagent = "{homes.bob}"\n'
    task = '[tasks.hello]\nsubject = "Say hello"\nowner = "bob"\n'
    write(home.project / "brigade.toml", f'team = "parser"\n{member}{task}')
    home.brigade("trust", "--yes")
    run.all(home)
    run.holds("the team is gone", not home.json("team", "list"))


@check("List members that have failed")
def failed(run, homes):
    home = homes.empty()
    home.brigade("team", "create", "parser")
    home.try_brigade("spawn", "bob", "--agent", "acp:false")
    home.wait_for("bob", "dead")
    output = run.all(home)
    run.holds("bob is listed", output == "bob", output)


@check("Save the answer of an agent to a file")
def save_answer(run, homes):
    home = homes.live()
    (home.project / "README.md").write_text("# A shorter parser\n")
    subprocess.run(["git", "commit", "-qam", "Shorten it"], cwd=home.project, env=home.environ, check=True)
    run.all(home)
    run.contains((home.project / "review.md").read_text(), "The change is fine.")
