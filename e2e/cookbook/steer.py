"""Checks of the recipes in the group Steer."""

import re
import subprocess
import time

from homes import write
from mail import model_saw
from recipes import check

from lib.processes import in_home, members_in_home
from lib.scripted_model import say, script


def agents_of(home, name):
    """Returns the process ids of the member's agent: the children of its process."""
    member = members_in_home(home.home)[name].pid
    return {process.pid for process in in_home(home.home) if process.parent == member}


@check("Interrupt a turn")
def interrupt(run, homes):
    home = homes.live()
    session = home.saved_session("bob")
    homes.slow_turn(home)
    run.all(home)
    run.holds("bob is idle", home.liveness("bob") == "idle", home.members()["bob"])
    run.holds("the session is the same", home.saved_session("bob") == session)


@check("Correct an agent in the middle of its turn")
def correct(run, homes):
    home = homes.live()
    homes.slow_turn(home)
    run.all(home)
    run.eventually("the model sees the message", lambda: model_saw(homes, "Use the old lexer instead"), 20)


@check("Pause a member")
def pause(run, homes):
    home = homes.live()
    run.one(home)
    home.brigade("send", "bob", f"While you pause. {script(say('fine'))}")
    time.sleep(1)
    run.holds("mail waits", not model_saw(homes, "While you pause."))
    run.all(home)
    run.eventually("the mail is delivered", lambda: model_saw(homes, "While you pause."))


@check("Restart an agent")
def restart(run, homes):
    home = homes.live()
    session, before = home.saved_session("bob"), agents_of(home, "bob")
    run.all(home)
    run.holds("there is a new process", not before & agents_of(home, "bob"), before)
    homes.say(home, "bob", "After the restart.")
    run.holds("the session is the same", home.saved_session("bob") == session, home.saved_session("bob"))


@check("Restart an agent with another model")
def restart_model(run, homes):
    home = homes.live()
    session = home.saved_session("bob")
    run.all(home)
    homes.say(home, "bob", "With another model.")
    turn = homes.model.turns()[-1]
    run.contains(homes.model.body(turn["number"]) + turn["path"], "gpt-5.2-codex")
    run.holds("the session is the same", home.saved_session("bob") == session, home.saved_session("bob"))


@check("Begin a new session")
def fresh(run, homes):
    home = homes.live()
    homes.say(home, "bob", "Before the new session.")
    session = home.saved_session("bob")
    run.all(home)
    homes.say(home, "bob", "In the new session.")
    run.holds("the session is new", home.saved_session("bob") != session, session)
    run.contains(homes.model.last_input(), "Before the new session.")


def kill_all(home):
    """Kills all processes of brigade and of agents."""
    for process in in_home(home.home):
        if process.argv[0] not in ("bash", "tmux"):
            process.kill()


@check("Recover after a crash or reboot")
def recover(run, homes):
    home = homes.live()
    session = home.saved_session("bob")
    kill_all(home)
    run.all(home)
    home.wait_for("bob", "idle")
    homes.say(home, "bob", "After the crash.")
    run.holds("the session is the same", home.saved_session("bob") == session, home.saved_session("bob"))


# Stands in for systemd, which the test does not have: it records its arguments.
SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$HOME/systemctl"
"""


@check("Start teams again at every login")
def service(run, homes):
    home = homes.team("bob")
    systemctl = home.root / "bin/systemctl"
    write(systemctl, SYSTEMCTL)
    systemctl.chmod(0o755)
    homes.say(home, "bob", "Before the reboot.")
    session = home.saved_session("bob")
    run.in_terminal(home, "[y/N]", keys=["y", "Enter"])
    unit = home.home / ".config/systemd/user/brigade.service"
    calls = home.home / "systemctl"
    run.eventually("the unit is enabled", lambda: calls.exists() and "enable" in calls.read_text(), 20)
    kill_all(home)
    command = re.search(r"^ExecStart=(.*)$", unit.read_text(), re.M)[1]
    subprocess.run(["sh", "-c", command], env=home.environ, cwd=home.home, check=True)
    home.wait_for("bob", "idle")
    run.holds("the session is the same", home.saved_session("bob") == session, home.saved_session("bob"))


@check("Find out why something does not work")
def doctor(run, homes):
    run.contains(run.all(homes.live()), "no problems found")
