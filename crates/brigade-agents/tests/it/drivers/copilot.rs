//! Scenarios for GitHub Copilot CLI 1.0.102.

use super::check;
use super::scenario::{AgentTools, Scenario, say, script};

const TOOLS: AgentTools = AgentTools {
    agent: "copilot",
    team: "team-",
    shell: "bash",
    write: ["create", "path", "file_text"],
    edit: ["edit", "path", "old_str", "new_str"],
    edit_also: "",
};

pub(super) fn scenarios() -> Vec<Scenario> {
    let resume = TOOLS.resume([script("First.", &say("One."))]);
    [TOOLS.scenarios(), vec![TOOLS.interrupt(), resume, TOOLS.read_only(None)]].concat()
}

#[test]
fn copilot() {
    check(&scenarios());
}
