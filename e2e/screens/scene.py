"""The team on the screens: members in different states, a board, mail and requests. Their agents use the scripted model."""

import os
import stat

from lib.scripted_model import claim_step, complete_step, say, shutdown_steps, team_tool, tool
from lib.user_home import UserHome
from lib.util import eventually

TEAM_FILE = """team = "parser"
description = "Replace the old parser"

[defaults]
agent = "codex"
allow = ["git log *", "cargo test *"]
deny = ["git push *"]

[members.alice]

[members.bob]
agent = "gemini"

[members.carol]
plan = true

[members.dave]
worktree = true

[members.erin]
agent = "acp:my-agent"

[tasks.lex]
subject = "Write the lexer"

[tasks.parse]
subject = "Write the parser"
after = ["lex"]

[tasks.errors]
subject = "Improve the error messages: say what was expected, and where"
after = ["parse"]

[tasks.changelog]
subject = "Write the changelog"

[tasks.publish]
subject = "Publish version 0.4"
after = ["changelog"]
"""
PLAN = """# Split the parser

1. Move the tokens to `lexer.rs`
2. Keep `parse()` as the only public function
3. Add tests for each module"""
QUESTION = "The changelog is written. Does the new error format need an entry?"
BROKEN_AGENT = "#!/bin/sh\necho 'not logged in; run my-agent login' >&2\nexit 1\n"
# Maps texts that an agent receives to the steps of its model.
SCRIPTS = {
    "Answer with the tool answer_shutdown.": shutdown_steps(native=False),
    "Write the lexer": [claim_step("alice", "1", False), say("I begin with the tokens.") | {"wait": 600}],
    "Write the changelog": [
        claim_step("dave", "4", False),
        tool("exec_command", cmd="printf '## 0.4\\n\\n- New parser\\n' > CHANGELOG.md"),
        team_tool("send_message", to="team-lead", message=QUESTION),
        complete_step("4", False),
        say("Task 4 is done."),
    ],
    "Publish version 0.4": [
        claim_step("bob", "5", False),
        tool("run_shell_command", command="cargo publish --dry-run", description="Check the package"),
        say("Published."),
    ],
    "Yes, one line": [say("I have added one line.")],
    "split the parser into modules": [team_tool("submit_plan", plan=PLAN), say("I wait for your answer.")],
}


def prepare(root, url):
    """Starts the team. Returns its home when every member is in its state."""
    programs = {name: os.environ[f"PROGRAM_{name.upper()}"] for name in ("codex", "gemini")}
    home = UserHome(root / "dev", url, programs | {"brigade": os.environ["BRIGADE"]})
    broken = root / "dev/bin/my-agent"
    broken.write_text(BROKEN_AGENT)
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    (home.project / "brigade.toml").write_text(TEAM_FILE)
    home.brigade("trust", "--yes")
    home.try_brigade("up")
    home.wait_for("erin", "dead")
    for name in ("alice", "bob", "carol", "dave"):
        home.wait_for(name, "idle")
    # One after the other, so that the log always has the same order.
    home.brigade("task", "edit", "3", "--label", "errors", "--priority", "high")
    home.brigade("task", "assign", "4", "dave")
    if not eventually(lambda: home.tasks()["4"]["status"] == "completed", 30):
        raise TimeoutError("dave does not complete its task")
    home.wait_for("dave", "idle")
    home.brigade("send", "dave", "Yes, one line")
    home.brigade("task", "assign", "5", "bob")
    home.wait_for("bob", "waiting")
    home.brigade("send", "carol", "Plan how to split the parser into modules")
    home.wait_for("carol", "waiting")
    home.brigade("task", "assign", "1", "alice")
    home.wait_for("alice", "working")
    return home
