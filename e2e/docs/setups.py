"""What each page of the guide needs around its examples, and which of them are not run here.

A row is a page and the beginning of a block's first command; "" stands for the page as a whole, before its first
block. `before` is done first, unseen. `keys` has the block typed at a terminal. `elsewhere` names what runs the
block instead, and `cannot` why nothing does."""

from typing import NamedTuple


class Row(NamedTuple):
    page: str
    begins: str = ""
    # The agents that are installed; stand-ins.
    installed: tuple = ()
    before: str = ""
    keys: str | None = None
    elsewhere: str = ""
    cannot: str = ""


TEAM = "brigade team create demo && brigade team join bob"
AGED = "~/.claude/teams/demo/inboxes/bob.json.lock"

ROWS = (
    Row("README.md", elsewhere="e2e/readme/run"),
    Row("docs/install.md", elsewhere="e2e/install/run"),
    Row("docs/benchmarks.md", elsewhere="just bench-peers"),
    Row("docs/soak.md", elsewhere="e2e/soak/run"),
    Row("docs/library.md", elsewhere="e2e/library/run"),
    Row("docs/operation.md", elsewhere="crates/brigade/tests/it/nats/operation.rs"),
    Row("docs/start.md", "brigade agents", installed=("codex", "claude")),
    Row("docs/start.md", "brigade init", keys="y\r", installed=("claude", "codex", "gemini", "opencode")),
    Row("docs/start.md", "brigade new", installed=("gemini", "opencode"), before="mkdir parser && cd parser && git init -q"),
    Row("docs/start.md", "brigade doctor", installed=("claude", "codex", "gemini", "opencode")),
    Row("docs/guest.md", before="""mkdir -p ~/.claude && printf '{\\n  "model": "opus"\\n}' > ~/.claude/settings.json"""),
    Row("docs/guest.md", "brigade init --undo"),
    Row("docs/guest.md", "brigade init", installed=("codex", "claude"), keys="y\r"),
    Row(
        "docs/approvals.md",
        installed=("gemini", "opencode"),
        before="brigade team create demo"
        " && brigade spawn bob --agent opencode --prompt 'run `cargo test`' && sleep 3"
        " && brigade spawn alice --agent gemini --plan --prompt 'The parser needs tests'",
    ),
    Row("docs/doctor.md", before=f"{TEAM} && brigade send bob hello && mkdir {AGED} && touch -d '1 hour ago' {AGED}"),
    Row("docs/agents.md", before="brigade team create demo"),
    Row("docs/agents.md", "codex ", elsewhere="e2e/agents/run"),
    Row("docs/agents.md", "gemini ", elsewhere="e2e/agents/run"),
    Row("docs/agents.md", "claude ", elsewhere="e2e/agents/run"),
    Row("docs/agents.md", "mkdir -p ~/.config/opencode", elsewhere="e2e/agents/run"),
    Row("docs/agents.md", "echo \"$PROMPT\" | opencode", elsewhere="e2e/agents/run"),
    Row("docs/mcp.md", "brigade team create demo", elsewhere="e2e/agents/run"),
    Row("docs/adding-an-agent.md", installed=("my-agent",), before="brigade team create demo"),
    Row("docs/brigade-toml.md", installed=("gemini", "opencode"), before="mkdir parser && cd parser && git init -q"),
    Row("docs/ui.md", before="brigade team create orbit && brigade log --json > monday.jsonl"),
    Row("docs/ui.md", "brigade ui", keys="qqqq"),
    Row(
        "docs/hosts.md",
        "brigade --store",
        before='nats-server --jetstream --store_dir "$PWD/engine" --addr 10.0.0.5 >engine.log 2>&1 & sleep 2',
    ),
    Row("docs/hosts.md", "brigade --as team-lead", elsewhere="crates/brigade/tests/it/nats/seats.rs"),
    Row(
        "docs/hosts.md",
        "brigade status",
        installed=("gemini", "opencode"),
        before="export BRIGADE_STORE=nats://10.0.0.5:4222; brigade task add one && brigade task add two"
        " && brigade spawn alice --agent opencode && mkdir ~/other"
        " && HOME=~/other BRIGADE_HOST=build-2 brigade spawn bob --agent gemini && brigade team join carol",
    ),
)
