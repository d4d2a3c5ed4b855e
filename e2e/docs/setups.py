"""The setup for the examples of each page, and which examples are run by other tests."""

from typing import NamedTuple


class Setup(NamedTuple):
    page: str
    # The setup applies to the block whose first command starts with this text. If the text is empty, the setup
    # applies to the whole page.
    command: str = ""
    # Names of fake agents to install.
    agents: tuple = ()
    # A command to run before the block.
    before: str = ""
    # Run the block in a terminal, and press these keys.
    keys: str | None = None
    # The test that runs the block instead of this one.
    run_by: str = ""


TEAM = "brigade team create demo && brigade team join bob"
AGED = "~/.claude/teams/demo/inboxes/bob.json.lock"

SETUPS = (
    Setup("README.md", run_by="e2e/readme/run"),
    Setup("docs/install.md", run_by="e2e/install/run"),
    Setup("docs/cookbook.md", run_by="e2e/cookbook/run"),
    Setup("docs/benchmarks.md", run_by="just bench-peers"),
    Setup("docs/soak.md", run_by="e2e/soak/run"),
    Setup("docs/library.md", run_by="e2e/library/run"),
    Setup("docs/operation.md", run_by="crates/brigade/tests/it/nats/operation.rs"),
    Setup("docs/start.md", "brigade agents", agents=("codex", "claude")),
    Setup("docs/start.md", "brigade init", keys="y\r", agents=("claude", "codex", "gemini", "opencode")),
    Setup("docs/start.md", "brigade new", agents=("gemini", "opencode"), before="mkdir parser && cd parser && git init -q"),
    Setup("docs/start.md", "brigade doctor", agents=("claude", "codex", "gemini", "opencode")),
    Setup("docs/guest.md", before="""mkdir -p ~/.claude && printf '{\\n  "model": "opus"\\n}' > ~/.claude/settings.json"""),
    Setup("docs/guest.md", "brigade init --undo"),
    Setup("docs/guest.md", "brigade init", agents=("codex", "claude"), keys="y\r"),
    Setup(
        "docs/approvals.md",
        agents=("gemini", "opencode"),
        before="brigade team create demo"
        " && brigade spawn bob --agent opencode --prompt 'run `cargo test`' && sleep 3"
        " && brigade spawn alice --agent gemini --plan --prompt 'The parser needs tests'",
    ),
    Setup("docs/doctor.md", before=f"{TEAM} && brigade send bob hello && mkdir {AGED} && touch -d '1 hour ago' {AGED}"),
    Setup("docs/agents.md", before="brigade team create demo"),
    Setup("docs/agents.md", "codex ", run_by="e2e/agents/run"),
    Setup("docs/agents.md", "gemini ", run_by="e2e/agents/run"),
    Setup("docs/agents.md", "claude ", run_by="e2e/agents/run"),
    Setup("docs/agents.md", "mkdir -p ~/.config/opencode", run_by="e2e/agents/run"),
    Setup("docs/agents.md", "echo \"$PROMPT\" | opencode", run_by="e2e/agents/run"),
    Setup("docs/mcp.md", "brigade team create demo", run_by="e2e/agents/run"),
    Setup("docs/adding-an-agent.md", agents=("my-agent",), before="brigade team create demo"),
    Setup("docs/brigade-toml.md", agents=("gemini", "opencode"), before="mkdir parser && cd parser && git init -q"),
    Setup("docs/ui.md", before="brigade team create orbit && brigade log --json > monday.jsonl"),
    Setup("docs/ui.md", "brigade ui", keys="qqqq"),
    Setup(
        "docs/hosts.md",
        "brigade --store",
        before="printf 'max_payload: 8MB\\njetstream { store_dir: engine }\\n' > engine.conf"
        " && nats-server -c engine.conf --addr 10.0.0.5 >engine.log 2>&1 & sleep 2",
    ),
    Setup("docs/hosts.md", "brigade --as team-lead", run_by="crates/brigade/tests/it/nats/seats.rs"),
    Setup(
        "docs/hosts.md",
        "brigade status",
        agents=("gemini", "opencode"),
        before="export BRIGADE_STORE=nats://10.0.0.5:4222; brigade task add one && brigade task add two"
        " && brigade spawn alice --agent opencode && mkdir ~/other"
        " && HOME=~/other BRIGADE_HOST=build-2 brigade spawn bob --agent gemini && brigade team join carol",
    ),
)
