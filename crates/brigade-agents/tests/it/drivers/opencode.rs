//! Scenarios for opencode 1.18.33.

use super::check;
use super::scenario::ScenarioStep::Deny;
use super::scenario::{AgentTools, Scenario, say, script, with_model};

const TOOLS: AgentTools = AgentTools {
    agent: "opencode",
    team: "team_",
    shell: "bash",
    write: ["write", "filePath", "content"],
    edit: ["edit", "filePath", "oldString", "newString"],
    edit_also: "",
};

pub(super) fn scenarios() -> Vec<Scenario> {
    let resume = TOOLS.resume([script("First.", &say("One."))]);
    let read_only = TOOLS.read_only(Some(Deny("only look")));
    let model = with_model(TOOLS.agent, "scripted/too");
    [TOOLS.scenarios(), vec![TOOLS.interrupt(), resume, read_only, model]].concat()
}

#[test]
fn opencode() {
    check(&scenarios());
}
