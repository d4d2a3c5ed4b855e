//! GitHub Copilot CLI 1.0.102.

use brigade_agents::driver::Access;

use super::ScenarioStep::{Allow, Deny, Interrupt, Killed, Prompt, SetAccess, Until};
use super::{Scenario, check};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        agent: "copilot",
        name: "talk",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Report. [script][{"tool":"team-send_message","args":{"to":"team-lead","message":"hi"}},{"say":"Sent."}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(r#"And now? [script][{"say":"Nothing more."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "copilot",
        name: "permission",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"One. [script][{"tool":"bash","args":{"command":"touch one","description":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(
                r#"Two. [script][{"tool":"bash","args":{"command":"touch two","description":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("not today"),
            Until("TurnEnded"),
            Prompt(
                r#"Three. [script][{"tool":"create","args":{"path":"/home/dev/project/three","file_text":"3"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Interrupt,
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "copilot",
        name: "interrupt",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(r#"Very slowly. [script][{"wait":30},{"say":"Never."}][/script]"#),
            Interrupt,
            Until("TurnEnded"),
            Prompt(r#"And on. [script][{"say":"Here."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "copilot",
        name: "resume",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(r#"First. [script][{"say":"One."}][/script]"#),
            Until("TurnEnded"),
            Prompt(
                r#"Second. [script][{"tool":"team-task_list"},{"wait":30},{"say":"Never."}][/script]"#,
            ),
            Until("ToolEnded"),
            Killed,
            Until("Ready"),
            Prompt(r#"Third. [script][{"tool":"team-task_list"},{"say":"Still here."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "copilot",
        name: "access",
        access: Access::ReadOnly,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Look. [script][{"tool":"bash","args":{"command":"touch made","description":"to see"}},{"say":"{result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            SetAccess(Access::Full),
            Prompt(
                r#"Change. [script][{"tool":"bash","args":{"command":"touch made && echo made","description":"to see"}},{"say":"{result}"}][/script]"#,
            ),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "copilot",
        name: "failing",
        access: Access::Ask,
        model: None,
        steps: &[Until("Ready"), Prompt("[fail] Anything."), Until("TurnEnded")],
    },
    Scenario {
        agent: "copilot",
        name: "edit",
        access: Access::Full,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Make. [script][{"tool":"create","args":{"path":"/home/dev/project/a.txt","file_text":"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(
                r#"Change. [script][{"tool":"edit","args":{"path":"/home/dev/project/a.txt","old_str":"two\n","new_str":"TWO\nTWO AND A HALF\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            SetAccess(Access::Ask),
            Prompt(
                r#"Change again. [script][{"tool":"edit","args":{"path":"/home/dev/project/a.txt","old_str":"nine\nten\n","new_str":"TEN\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(
                r#"And once more. [script][{"tool":"edit","args":{"path":"/home/dev/project/a.txt","old_str":"one\n","new_str":"ONE\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("not today"),
            Until("TurnEnded"),
        ],
    },
];

#[test]
fn copilot() {
    check(SCENARIOS);
}
