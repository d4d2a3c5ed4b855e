"""Checks of the recipes in the group Clean up."""

import json
import os
import time

from recipes import check
from start import SETTINGS

from lib.processes import in_home


def left(home):
    """Returns the processes of brigade and of agents. The shell of the recipe is not one of them."""
    return [process for process in in_home(home.home) if process.argv[0] != "bash"]


@check("End a team")
def down(run, homes):
    home = homes.team("bob", "ann")
    for name in ("bob", "ann"):
        home.wait_for(name, "idle")
    run.all(home)
    run.holds("no team is left", not home.json("team", "list"))
    run.eventually("no process is left", lambda: not left(home), 10)
    run.contains(home.brigade("logs", "--team", "parser"), "team deleted")


@check("End a team at once")
def down_now(run, homes):
    home = homes.team("bob")
    homes.slow_turn(home)
    run.all(home)
    run.holds("no team is left", not home.json("team", "list"))
    run.eventually("no process is left", lambda: not left(home), 10)


@check("Delete a task")
def delete(run, homes):
    home = homes.board("first", "second")
    run.all(home)
    run.holds("only the second task is left", list(home.tasks()) == ["2"], home.tasks())


@check("Back up a team, or copy it")
def backup(run, homes):
    home = homes.board("Write the lexer")
    run.all(home)
    run.contains(home.brigade("task", "list", "--team", "parser-2"), "Write the lexer")


@check("See how much space the history uses")
def size(run, homes):
    run.contains(run.all(homes.board("first")), "parser", "kB")


@check("Delete old history now")
def compact(run, homes):
    home = homes.board()
    for _ in range(30):
        home.brigade("send", "bob", "x" * 100_000)
    home.brigade("--as", "bob", "inbox", "--mark-read")
    before = home.json("history", "size")[0]["mail_bytes"]
    run.all(home)
    after = home.json("history", "size")[0]["mail_bytes"]
    run.holds("the history is smaller", after < before / 2, (before, after))


@check("Limit the history")
def limit(run, homes):
    home = homes.board("first")
    run.all(home)
    run.holds("the limit is stored", home.json("history", "keep")["keep"] == "90d", home.json("history", "keep"))


@check("Repair what a crash left behind")
def repair(run, homes):
    home = homes.board()
    home.brigade("send", "bob", "hello")
    lock = home.home / ".claude/teams/parser/inboxes/bob.json.lock"
    lock.mkdir()
    os.utime(lock, (time.time() - 3600,) * 2)
    run.all(home)
    run.holds("the old lock is gone", not lock.exists())


@check("Remove brigade from the settings of Claude Code")
def undo(run, homes):
    home = homes.empty("codex", "claude")
    path = home.home / SETTINGS
    path.write_text(json.dumps({"model": "opus"}))
    before = path.read_bytes()
    home.brigade("init", "--yes")
    run.holds("init changes the settings", path.read_bytes() != before)
    run.all(home)
    run.holds("the settings are as before", path.read_bytes() == before, path.read_text())
