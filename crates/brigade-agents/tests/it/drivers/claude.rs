//! Claude Code 2.1.325.

use brigade_agents::driver::{Access, End, Event, Note, Output};
use serde_json::{Value, json};

use super::ScenarioStep::{
    Allow, Deny, Interrupt, Killed, Prompt, PromptAgain, SetAccess, Steer, Until,
};
use super::leave::prompted;
use super::{Scenario, check};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        agent: "claude",
        name: "talk",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Report. [script][{"tool":"team__send_message","args":{"to":"team-lead","message":"hi"}},{"say":"Sent."}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(r#"And now? [script][{"say":"Nothing more."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "claude",
        name: "permission",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"One. [script][{"tool":"Bash","args":{"command":"touch one","description":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(
                r#"Two. [script][{"tool":"Bash","args":{"command":"touch two","description":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("not today"),
            Until("TurnEnded"),
            Prompt(
                r#"Three. [script][{"tool":"Write","args":{"file_path":"/home/dev/project/three","content":"3"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Interrupt,
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "claude",
        name: "steer",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Slowly. [script][{"tool":"Bash","args":{"command":"sleep 2","description":"to wait"}},{"say":"First."}][/script]"#,
            ),
            Until("ToolStarted"),
            Steer(r#"By the way. [script][{"say":"Second."}][/script]"#),
            Until("TurnEnded"),
            Prompt(r#"Wait. [script][{"wait":2},{"say":"Third."}][/script]"#),
            Until("TurnStarted"),
            Steer(r#"Behind it. [script][{"say":"Fourth."}][/script]"#),
            Until("TurnEnded"),
            Until("TurnEnded"),
            Steer("Too late."),
            Until("NotTaken"),
        ],
    },
    Scenario {
        agent: "claude",
        name: "interrupt",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(r#"Very slowly. [script][{"wait":30},{"say":"Never."}][/script]"#),
            Until("TurnStarted"),
            Interrupt,
            Until("TurnEnded"),
            Prompt(r#"At once. [script][{"wait":30},{"say":"Never."}][/script]"#),
            Interrupt,
            Until("TurnEnded"),
            Prompt(r#"And on. [script][{"say":"Here."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "claude",
        name: "resume",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(r#"First. [script][{"say":"One."}][/script]"#),
            Until("TurnEnded"),
            Prompt(
                r#"Second. [script][{"tool":"team__task_list"},{"wait":2},{"tool":"team__task_list"},{"wait":30},{"say":"Never."}][/script]"#,
            ),
            Until("ToolEnded"),
            Until("ToolEnded"),
            Killed,
            Until("Ready"),
            // Its receipt was not reported, so it is sent again; the session already has it.
            PromptAgain(
                2,
                r#"Second. [script][{"tool":"team__task_list"},{"wait":2},{"tool":"team__task_list"},{"wait":30},{"say":"Never."}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(r#"Third. [script][{"tool":"team__task_list"},{"say":"Still here."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "claude",
        name: "access",
        access: Access::ReadOnly,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Look. [script][{"tool":"Write","args":{"file_path":"/home/dev/project/made","content":"1"}},{"tool":"ExitPlanMode","args":{"plan":"To make it."}},{"say":"{result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("no plan, no file"),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(r#"Still only look. [script][{"say":"Yes."}][/script]"#),
            Until("TurnEnded"),
            SetAccess(Access::Full),
            Prompt(
                r#"Change. [script][{"tool":"Write","args":{"file_path":"/home/dev/project/made","content":"1"}},{"say":"{result}"}][/script]"#,
            ),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "claude",
        name: "failing",
        access: Access::Ask,
        model: None,
        steps: &[Until("Ready"), Prompt("[fail] Anything."), Until("TurnEnded")],
    },
    Scenario {
        agent: "claude",
        name: "limited",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt("[limit] Anything."),
            Until("Limited"),
            Until("TurnEnded"),
            Prompt(r#"[enough] Again. [script][{"say":"Here I am."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "claude",
        name: "model",
        access: Access::Ask,
        model: Some("claude-sonnet-4-5"),
        steps: &[
            Until("Ready"),
            Prompt(r#"Who? [script][{"say":"Me."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "claude",
        name: "edit",
        access: Access::Full,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Make. [script][{"tool":"Write","args":{"file_path":"/home/dev/project/a.txt","content":"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(
                r#"Change. [script][{"tool":"Edit","args":{"file_path":"/home/dev/project/a.txt","old_string":"two\n","new_string":"TWO\nTWO AND A HALF\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            SetAccess(Access::Ask),
            Prompt(
                r#"Change again. [script][{"tool":"Edit","args":{"file_path":"/home/dev/project/a.txt","old_string":"nine\nten\n","new_string":"TEN\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(
                r#"And once more. [script][{"tool":"Edit","args":{"file_path":"/home/dev/project/a.txt","old_string":"one\n","new_string":"ONE\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("not today"),
            Until("TurnEnded"),
        ],
    },
];

#[test]
fn claude() {
    check(SCENARIOS);
}

#[test]
fn a_refused_prompt_ends_its_turn() {
    let hello = json!({ "subtype": "success", "request_id": "brigade-1", "response": {} });
    let opened = json!({ "type": "control_response", "response": hello });
    let mut driver = prompted("claude", Access::Ask, &[opened]);
    let written = std::iter::from_fn(|| driver.next()).filter_map(|output| match output {
        Output::Write(bytes) => serde_json::from_slice::<Value>(&bytes).ok(),
        Output::Event(_) => None,
    });
    let id = written.last().unwrap()["uuid"].clone();
    let refused = json!({ "type": "command_lifecycle", "command_uuid": id, "state": "refused" });
    driver.hear(format!("{refused}\n").as_bytes());
    let outputs: Vec<_> = std::iter::from_fn(|| driver.next()).collect();
    let why = "the prompt was refused".to_owned();
    assert_eq!(
        outputs,
        [
            Output::Event(Event::NotTaken(Note(1))),
            Output::Event(Event::TurnEnded(End::Failed(why))),
        ]
    );
}
