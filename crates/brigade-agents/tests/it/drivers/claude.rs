//! Scenarios for Claude Code 2.1.325.

use brigade_agents::driver::{Access, AgentEvent, DriverOutput, TextNumber, TurnEnd};
use serde_json::{Value, json};

use super::check;
use super::permission::prompted;
use super::scenario::ScenarioStep::{Allow, Deny, Killed, PromptAgain, SetAccess, Steer, Until};
use super::scenario::{AgentTools, Scenario, interrupt_twice, limited, say, script, with_model};

const TOOLS: AgentTools = AgentTools {
    agent: "claude",
    team: "team__",
    shell: "Bash",
    write: ["Write", "file_path", "content"],
    edit: ["Edit", "file_path", "old_string", "new_string"],
    edit_also: "",
};

pub(super) fn scenarios() -> Vec<Scenario> {
    let more = vec![
        steer(),
        interrupt_twice(TOOLS.agent, "TurnStarted"),
        resume(),
        access(),
        limited(TOOLS.agent, &[Until("Limited")]),
        with_model(TOOLS.agent, "claude-sonnet-4-5"),
    ];
    [TOOLS.scenarios(), more].concat()
}

fn steer() -> Scenario {
    let slowly = r#"{"tool":"Bash","args":{"command":"sleep 2","description":"to wait"}}"#;
    Scenario::new(TOOLS.agent, "steer")
        .prompt(script("Slowly.", &format!("{slowly},{}", say("First."))))
        .then([Until("ToolStarted"), Steer(script("By the way.", &say("Second.")))])
        .then([Until("TurnEnded")])
        .prompt(script("Wait.", &format!(r#"{{"wait":2}},{}"#, say("Third."))))
        .then([Until("TurnStarted"), Steer(script("Behind it.", &say("Fourth.")))])
        .then([Until("TurnEnded"), Until("TurnEnded")])
        .then([Steer("Too late.".to_owned()), Until("NotTaken")])
}

fn resume() -> Scenario {
    let list = TOOLS.task_list();
    let steps = format!(r#"{list},{{"wait":2}},{list},{{"wait":30}},{}"#, say("Never."));
    let second = script("Second.", &steps);
    Scenario::new(TOOLS.agent, "resume")
        .turn(script("First.", &say("One.")))
        .prompt(second.clone())
        .then([Until("ToolEnded"), Until("ToolEnded"), Killed, Until("Ready")])
        // Send the second prompt again, as if the echo had been lost in a crash. The session already contains the
        // prompt.
        .then([PromptAgain(2, second), Until("TurnEnded")])
        .turn(script("Third.", &format!("{list},{}", say("Still here."))))
}

fn access() -> Scenario {
    let write = TOOLS.write("made", "1", "{result}");
    let plan = r#"{"tool":"ExitPlanMode","args":{"plan":"To make it."}}"#;
    let look = write.replace(r#",{"say""#, &format!(r#",{plan},{{"say""#));
    Scenario::new(TOOLS.agent, "access")
        .access(Access::ReadOnly)
        .prompt(script("Look.", &look))
        .then([Until("Asks"), Deny("no plan, no file"), Until("Asks"), Allow, Until("TurnEnded")])
        .turn(script("Still only look.", &say("Yes.")))
        .then([SetAccess(Access::Full)])
        .turn(script("Change.", &write))
}

#[test]
fn claude() {
    check(&scenarios());
}

#[test]
fn a_refused_prompt_ends_its_turn() {
    let hello = json!({ "subtype": "success", "request_id": "brigade-1", "response": {} });
    let opened = json!({ "type": "control_response", "response": hello });
    let mut driver = prompted("claude", Access::Ask, &[opened]);
    let written = std::iter::from_fn(|| driver.next()).filter_map(|output| match output {
        DriverOutput::Write(bytes) => serde_json::from_slice::<Value>(&bytes).ok(),
        DriverOutput::Event(_) => None,
    });
    let id = written.last().unwrap()["uuid"].clone();
    let refused = json!({ "type": "command_lifecycle", "command_uuid": id, "state": "refused" });
    driver.on_output(format!("{refused}\n").as_bytes());
    let outputs: Vec<_> = std::iter::from_fn(|| driver.next()).collect();
    let why = "the prompt was refused".to_owned();
    assert_eq!(
        outputs,
        [
            DriverOutput::Event(AgentEvent::NotTaken(TextNumber(1))),
            DriverOutput::Event(AgentEvent::TurnEnded(TurnEnd::Failed(why))),
        ]
    );
}
