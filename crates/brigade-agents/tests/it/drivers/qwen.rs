//! Qwen Code 0.24.4.

use brigade_agents::driver::Access;

use super::ScenarioStep::{Allow, Deny, Interrupt, Killed, Prompt, SetAccess, Until};
use super::{Scenario, check};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        agent: "qwen",
        name: "talk",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Report. [script][{"tool":"mcp__team__send_message","args":{"to":"team-lead","message":"hi"}},{"say":"Sent."}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(r#"And now? [script][{"say":"Nothing more."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "qwen",
        name: "permission",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"One. [script][{"tool":"run_shell_command","args":{"command":"touch one","description":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(
                r#"Two. [script][{"tool":"run_shell_command","args":{"command":"touch two","description":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("not today"),
            Until("TurnEnded"),
            Prompt(
                r#"Three. [script][{"tool":"write_file","args":{"file_path":"/home/dev/project/three","content":"3"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Interrupt,
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "qwen",
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
        agent: "qwen",
        name: "resume",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(r#"First. [script][{"say":"One."}][/script]"#),
            Until("TurnEnded"),
            Prompt(
                r#"Second. [script][{"tool":"mcp__team__task_list"},{"wait":30},{"say":"Never."}][/script]"#,
            ),
            Until("ToolEnded"),
            Killed,
            Until("Ready"),
            Prompt(
                r#"Third. [script][{"tool":"mcp__team__task_list"},{"say":"Still here."}][/script]"#,
            ),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "qwen",
        name: "access",
        access: Access::ReadOnly,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Look. [script][{"tool":"run_shell_command","args":{"command":"touch made","description":"to see"}},{"say":"{result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            SetAccess(Access::Full),
            Prompt(
                r#"Change. [script][{"tool":"run_shell_command","args":{"command":"touch made && echo made","description":"to see"}},{"say":"{result}"}][/script]"#,
            ),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "qwen",
        name: "failing",
        access: Access::Ask,
        model: None,
        steps: &[Until("Ready"), Prompt("[fail] Anything."), Until("TurnEnded")],
    },
    Scenario {
        agent: "qwen",
        name: "edit",
        access: Access::Full,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Make. [script][{"tool":"write_file","args":{"file_path":"/home/dev/project/a.txt","content":"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(
                r#"Change. [script][{"tool":"edit","args":{"file_path":"/home/dev/project/a.txt","old_string":"two\n","new_string":"TWO\nTWO AND A HALF\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            SetAccess(Access::Ask),
            Prompt(
                r#"Change again. [script][{"tool":"edit","args":{"file_path":"/home/dev/project/a.txt","old_string":"nine\nten\n","new_string":"TEN\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(
                r#"And once more. [script][{"tool":"edit","args":{"file_path":"/home/dev/project/a.txt","old_string":"one\n","new_string":"ONE\n"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("not today"),
            Until("TurnEnded"),
        ],
    },
];

#[test]
fn qwen() {
    check(SCENARIOS);
}
