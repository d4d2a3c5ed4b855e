"""Checks of the recipes in the group Mail."""

import subprocess

from recipes import check


def model_saw(homes, text):
    return any(text in turn["heard"] for turn in homes.model.turns())


@check("Send a message")
def send(run, homes):
    run.all(homes.live())
    run.eventually("the model sees the message", lambda: model_saw(homes, "The tests are green again"))


@check("Send a file or the output of a command")
def send_output(run, homes):
    home = homes.live()
    (home.project / "README.md").write_text("# A better parser\n")
    run.all(home)
    run.eventually("the model sees the change", lambda: model_saw(homes, "+# A better parser"))
    subprocess.run(["git", "checkout", "--quiet", "README.md"], cwd=home.project, env=home.environ, check=True)


@check("Send a message to all members")
def broadcast(run, homes):
    run.all(homes.live())
    mark = "main is frozen until six"
    both = lambda: len([1 for turn in homes.model.turns() if mark in turn["heard"]]) >= 2  # noqa: E731
    run.eventually("both models see the message", both)


@check("Ask a member and wait for the answer")
def ask(run, homes):
    output = run.all(homes.live())
    run.holds("the answer is printed", output == "The test empty_input: the loop reads too far.", output)


@check("Read your mail")
def inbox(run, homes):
    home = homes.board()
    home.brigade("--as", "bob", "send", "team-lead", "The lexer is ready")
    run.contains(run.all(home), "bob", "The lexer is ready", "unread")


@check("Read only new mail, and mark it as read")
def mark_read(run, homes):
    home = homes.board()
    home.brigade("--as", "bob", "send", "team-lead", "The lexer is ready")
    run.contains(run.all(home), "The lexer is ready")
    run.holds("the message is read", all(entry["read"] for entry in home.inbox()), home.inbox())


@check("Follow your mail")
def follow(run, homes):
    home = homes.board()
    home.brigade("--as", "bob", "send", "team-lead", "The lexer is ready")
    later = lambda: home.brigade("--as", "ann", "send", "team-lead", "The parser is ready")  # noqa: E731
    run.in_terminal(home, "The lexer is ready", meanwhile=later, after=["The parser is ready"])


@check("Read the mail of a member")
def inbox_of(run, homes):
    home = homes.board()
    home.brigade("send", "bob", "Please review it")
    run.contains(run.all(home), "Please review it")
