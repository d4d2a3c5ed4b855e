//! Scenarios for Qwen Code 0.24.4.

use super::check;
use super::scenario::{AgentTools, Scenario, say, script};

const TOOLS: AgentTools = AgentTools {
    agent: "qwen",
    team: "mcp__team__",
    shell: "run_shell_command",
    write: ["write_file", "file_path", "content"],
    edit: ["edit", "file_path", "old_string", "new_string"],
    edit_also: "",
};

pub(super) fn scenarios() -> Vec<Scenario> {
    let resume = TOOLS.resume([script("First.", &say("One."))]);
    [TOOLS.scenarios(), vec![TOOLS.interrupt(), resume, TOOLS.read_only(None)]].concat()
}

#[test]
fn qwen() {
    check(&scenarios());
}
