"""Checks of the recipes in the group Tasks."""

import csv

from homes import write
from recipes import check

CHECKLIST = """- [ ] Publish version 0.4 @ann !high
  - [ ] Write the changelog #docs
"""


def status(home, *ids):
    return [home.tasks()[one]["status"] for one in ids]


@check("Add a task and assign it")
def add(run, homes):
    home = homes.live()
    run.all(home)
    task = home.tasks()["1"]
    run.holds("bob owns the task", (task["subject"], task["owner"]) == ("Write the lexer", "bob"), task)
    done = lambda: home.tasks()["1"]["status"] == "completed"  # noqa: E731
    run.eventually("bob's agent does the task", done)


@check("Add the tasks of a Markdown checklist")
def checklist(run, homes):
    home = homes.board()
    write(home.project / "plan.md", CHECKLIST)
    run.all(home)
    tasks = {task["subject"]: task for task in home.tasks().values()}
    first, last = tasks["Write the changelog"], tasks["Publish version 0.4"]
    run.holds("publishing waits for the changelog", last["blockedBy"] == [first["id"]], tasks)
    run.holds("ann publishes", last["owner"] == "ann", last)


@check("Let a task wait for another")
def dependencies(run, homes):
    home = homes.board("one")
    run.one(home)
    home.brigade("task", "add", "three")
    run.all(home)
    waits = {one: home.tasks()[one]["blockedBy"] for one in "23"}
    run.holds("2 waits for 1, and 3 for 2", waits == {"2": ["1"], "3": ["2"]}, waits)


@check("List the tasks")
def list_tasks(run, homes):
    run.contains(run.all(homes.board("Write the lexer", "Write the parser")), "Write the lexer", "Write the parser")


@check("List the open tasks of one member")
def list_of_owner(run, homes):
    home = homes.board("first", "second", "third")
    home.brigade("task", "assign", "1", "2", "bob")
    home.brigade("task", "done", "2")
    output = run.all(home)
    run.contains(output, "first")
    run.holds("other tasks are left out", "second" not in output and "third" not in output, output)


@check("See what can be started now")
def ready(run, homes):
    home = homes.board("first")
    home.brigade("task", "add", "second", "--blocked-by", "1")
    output = run.all(home)
    run.holds("only the first task is listed", "first" in output and "second" not in output, output)


@check("Do a task yourself")
def claim(run, homes):
    home = homes.board("first")
    run.one(home)
    run.holds("the task is in progress", status(home, "1") == ["in_progress"], home.tasks())
    run.all(home)
    run.holds("the task is done", status(home, "1") == ["completed"], home.tasks())


@check("Close several tasks")
def close(run, homes):
    home = homes.board(*"abcde")
    run.all(home)
    run.holds("all are completed", status(home, *"12345") == ["completed"] * 5, home.tasks())


@check("Change the subject, priority or labels of a task")
def edit(run, homes):
    home = homes.board("Write the lexer")
    run.all(home)
    task = home.tasks()["1"]
    changed = (task["subject"], task["metadata"]["priority"], task["metadata"]["labels"])
    run.holds("all three are changed", changed == ("Write the new lexer", "high", ["lexer"]), task)


@check("Give a task to another member")
def assign(run, homes):
    home = homes.board("Write the lexer")
    home.brigade("task", "assign", "1", "bob")
    run.all(home)
    run.holds("ann owns the task", home.tasks()["1"]["owner"] == "ann", home.tasks())
    run.contains(str(home.inbox("ann")), "task_assignment")


@check("Take all tasks from a member")
def release(run, homes):
    home = homes.board("one", "two", "three")
    home.brigade("task", "assign", "1", "2", "bob")
    home.brigade("--as", "ann", "task", "claim", "3")
    run.all(home)
    owners = [home.tasks()[one].get("owner") for one in "123"]
    run.holds("only ann has a task", owners == [None, None, "ann"], owners)


@check("Reopen a task")
def reopen(run, homes):
    home = homes.board("one")
    home.brigade("task", "done", "1")
    run.all(home)
    run.holds("the task is pending", status(home, "1") == ["pending"], home.tasks())


@check("Cancel a task")
def cancel(run, homes):
    home = homes.board("one")
    home.brigade("task", "assign", "1", "bob")
    run.all(home)
    run.contains(home.brigade("task", "list", "--status", "cancelled"), "one")
    run.contains(str(home.inbox("bob")), "not needed any more")


@check("See the whole story of a task")
def story(run, homes):
    home = homes.board("Write the lexer")
    home.brigade("--as", "bob", "task", "claim", "1")
    home.brigade("--as", "bob", "send", "team-lead", "I am at task 1")
    home.brigade("--as", "bob", "task", "done", "1")
    run.contains(run.all(home), "Write the lexer", "claimed by bob", "I am at task 1", "completed")


@check("Draw the board")
def graph(run, homes):
    home = homes.board("first")
    home.brigade("task", "add", "second", "--blocked-by", "1")
    run.contains(run.all(home), "└─")
    run.contains((home.project / "board.svg").read_text(), "<svg", "second")


@check("Move tasks to a spreadsheet and back")
def spreadsheet(run, homes):
    home = homes.board("first", "second")
    run.one(home)
    with (home.project / "tasks.csv").open() as file:
        rows = list(csv.DictReader(file))
    run.holds("the file has both tasks", [row["subject"] for row in rows] == ["first", "second"], rows)
    with (home.project / "tasks.csv").open("a") as file:
        file.write("".join("third" if name == "subject" else "," for name in rows[0]) + "\n")
    run.all(home)
    subjects = [task["subject"] for task in home.tasks().values()]
    run.holds("the new line is a task, and no task is there twice", sorted(subjects) == ["first", "second", "third"], subjects)
