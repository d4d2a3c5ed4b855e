//! opencode 1.18.33.

use brigade_agents::driver::Access;

use super::ScenarioStep::{Allow, Deny, Interrupt, Killed, Prompt, SetAccess, Until};
use super::{Scenario, check};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        agent: "opencode",
        name: "talk",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Report. [script][{"tool":"team_send_message","args":{"to":"team-lead","message":"hi"}},{"say":"Sent."}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(r#"And now? [script][{"say":"Nothing more."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "opencode",
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
                r#"Three. [script][{"tool":"write","args":{"filePath":"/home/dev/project/three","content":"3"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Interrupt,
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "opencode",
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
        agent: "opencode",
        name: "resume",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(r#"First. [script][{"say":"One."}][/script]"#),
            Until("TurnEnded"),
            Prompt(
                r#"Second. [script][{"tool":"team_task_list"},{"wait":30},{"say":"Never."}][/script]"#,
            ),
            Until("ToolEnded"),
            Killed,
            Until("Ready"),
            Prompt(r#"Third. [script][{"tool":"team_task_list"},{"say":"Still here."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "opencode",
        name: "access",
        access: Access::ReadOnly,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Look. [script][{"tool":"bash","args":{"command":"touch made","description":"to see"}},{"say":"{result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("only look"),
            Until("TurnEnded"),
            SetAccess(Access::Full),
            Prompt(
                r#"Change. [script][{"tool":"bash","args":{"command":"touch made && echo made","description":"to see"}},{"say":"{result}"}][/script]"#,
            ),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "opencode",
        name: "failing",
        access: Access::Ask,
        model: None,
        steps: &[Until("Ready"), Prompt("[fail] Anything."), Until("TurnEnded")],
    },
    Scenario {
        agent: "opencode",
        name: "model",
        access: Access::Ask,
        model: Some("scripted/too"),
        steps: &[
            Until("Ready"),
            Prompt(r#"Who? [script][{"say":"Me."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "opencode",
        name: "edit",
        access: Access::Full,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Make. [script][{"tool":"write","args":{"filePath":"/home/dev/project/a.txt","content":"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(
                r#"Change. [script][{"tool":"edit","args":{"filePath":"/home/dev/project/a.txt","oldString":"two\n","newString":"TWO\nTWO AND A HALF\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            SetAccess(Access::Ask),
            Prompt(
                r#"Change again. [script][{"tool":"edit","args":{"filePath":"/home/dev/project/a.txt","oldString":"nine\nten\n","newString":"TEN\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(
                r#"And once more. [script][{"tool":"edit","args":{"filePath":"/home/dev/project/a.txt","oldString":"one\n","newString":"ONE\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("not today"),
            Until("TurnEnded"),
        ],
    },
];

#[test]
fn opencode() {
    check(SCENARIOS);
}
