"""Checks of the recipes in the group Approvals."""

import json

from homes import RUN_COMMAND
from mail import model_saw
from recipes import check

from lib.scripted_model import say, script


def made(home, name):
    return (home.project / name).exists()


def policy(home):
    path = home.home / ".config/brigade/policy.toml"
    return path.read_text() if path.exists() else ""


def forget_rules(home):
    while policy(home).count("[[rules]]"):
        home.brigade("policy", "remove", "1")


@check("See what waits for your answer")
def waiting(run, homes):
    home = homes.live()
    number = homes.request(home, "touch asked")
    run.contains(run.all(home), f"{number}  bob  permission", "touch asked")
    home.brigade("deny", str(number))


@check("Approve a request")
def approve(run, homes):
    home = homes.live()
    run.replace(n1=homes.request(home, "touch approved"))
    run.all(home)
    run.eventually("the command has run", lambda: made(home, "approved"))


@check("Approve everything that waits")
def approve_all(run, homes):
    home = homes.live()
    homes.request(home, "touch one")
    homes.request(home, "touch two", "ann")
    run.in_terminal(home, "touch one", "touch two", "[y/N]", keys=["y", "Enter"])
    run.eventually("both commands have run", lambda: made(home, "one") and made(home, "two"))


@check("Allow a command until the turn ends")
def turn(run, homes):
    home = homes.live()
    step = RUN_COMMAND[homes.bob]("mkdir -p twice")
    home.brigade("send", "bob", f"Twice. {script(step, step, say('It ran twice.'))}")
    home.brigade("wait", "--approval", "--timeout", "60s")
    run.replace(n1=home.approvals()[0]["number"])
    run.all(home)
    ended = lambda: "It ran twice." in str(home.inbox()[-1:])  # noqa: E731
    run.eventually("the command runs twice with one request", ended, 20)


@check("Always allow a command")
def always(run, homes):
    home = homes.live()
    run.replace(n1=homes.request(home, "touch always"))
    run.in_terminal(home, 'command = "touch always"', "[y/N]", keys=["y", "Enter"], after=["added personal rule 1"])
    run.eventually("the command has run", lambda: made(home, "always"))
    (home.project / "always").unlink()
    send_again(homes, home, "touch always")
    run.eventually("the command runs again without a request", lambda: made(home, "always"))
    forget_rules(home)


def send_again(homes, home, command):
    home.wait_for("bob", "idle")
    home.brigade("send", "bob", f"Again. {script(RUN_COMMAND[homes.bob](command), say('It ran.'))}")


@check("Always allow a command with any arguments")
def always_pattern(run, homes):
    home = homes.live()
    run.replace(n1=homes.request(home, "touch first"))
    run.in_terminal(home, 'command = "touch *"', "[y/N]", keys=["y", "Enter"], after=["added personal rule 1"])
    send_again(homes, home, "touch second")
    run.eventually("another command runs without a request", lambda: made(home, "second"))
    forget_rules(home)


@check("Deny a request, with a reason")
def deny(run, homes):
    home = homes.live()
    run.replace(n1=homes.request(home, "touch denied"))
    run.all(home)
    home.wait_for("bob", "idle")
    run.holds("the command has not run", not made(home, "denied"))
    run.contains(home.brigade("logs", "--kind", "approval"), "not on main")
    run.eventually("the model sees the message", lambda: model_saw(homes, "Make a branch first"))


@check("Deny a request without a reason")
def deny_plainly(run, homes):
    home = homes.live()
    run.replace(n1=homes.request(home, "touch refused"))
    run.all(home)
    home.wait_for("bob", "idle")
    run.holds("the command has not run, and nothing waits", not made(home, "refused") and not home.approvals())


@check("Always deny a command")
def deny_always(run, homes):
    home = homes.live()
    run.replace(n1=homes.request(home, "git push origin"))
    run.in_terminal(home, 'ruling = "deny"', "[y/N]", keys=["y", "Enter"], after=["added personal rule 1"])
    tested = home.json("policy", "test", "git push elsewhere", "--member", "bob")
    run.holds("the rule denies other commands of this kind", tested[0]["decision"] == "deny", tested)
    forget_rules(home)


@check("Approve a plan")
def approve_plan(run, homes):
    home = homes.empty()
    home.brigade("team", "create", "parser")
    home.brigade("spawn", "ann", "--agent", "codex", "--plan")
    homes.plan(home, "ann")
    run.all(home)
    run.eventually("the model learns it", lambda: "approves your plan" in homes.model.last_input())


@check("Follow requests and answers")
def follow(run, homes):
    home = homes.live()
    later = lambda: home.brigade("deny", str(homes.request(home, "touch followed")))  # noqa: E731
    run.in_terminal(home, meanwhile=later, after=["touch followed", "denied"])


@check("Test what the rules say about a command")
def test_rules(run, homes):
    run.contains(run.all(homes.live()), "git log", "no rule allows it")


@check("Remove one of your rules")
def remove_rule(run, homes):
    home = homes.live()
    home.brigade("approve", str(homes.request(home, "touch ruled")), "--always", "--yes")
    run.contains(run.all(home), "touch ruled")
    run.holds("the rule is gone", "touch ruled" not in policy(home), json.dumps(policy(home)))
