//! Codex 0.166.0.

use brigade_agents::driver::Access;

use super::ScenarioStep::{Allow, Deny, Interrupt, Killed, Prompt, SetAccess, Steer, Until};
use super::{Scenario, check};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        agent: "codex",
        name: "talk",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Report. [script][{"tool":"team/send_message","args":{"to":"team-lead","message":"hi"}},{"say":"Sent."}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(r#"And now? [script][{"say":"Nothing more."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "codex",
        name: "permission",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"One. [script][{"tool":"exec_command","args":{"cmd":"echo one","sandbox_permissions":"require_escalated","justification":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(
                r#"Two. [script][{"tool":"exec_command","args":{"cmd":"echo two","sandbox_permissions":"require_escalated","justification":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("not today"),
            Until("TurnEnded"),
            Prompt(
                r#"Three. [script][{"tool":"exec_command","args":{"cmd":"echo three","sandbox_permissions":"require_escalated","justification":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Interrupt,
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "codex",
        name: "files",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Outside. [script][{"tool":"exec_command","args":{"cmd":"apply_patch <<'E'\n*** Begin Patch\n*** Add File: /home/dev/other/a.txt\n+hello\n*** End Patch\nE"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "codex",
        name: "other-server",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"One. [script][{"tool":"other/task_list"},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(
                r#"Two. [script][{"tool":"other/task_list"},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("not today"),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "codex",
        name: "steer",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Slowly. [script][{"tool":"exec_command","args":{"cmd":"sleep 2; echo slept"}},{"say":"First."}][/script]"#,
            ),
            Until("ToolStarted"),
            Steer(r#"By the way. [script][{"say":"Second."}][/script]"#),
            Until("TurnEnded"),
            Steer("Too late."),
            Until("NotTaken"),
        ],
    },
    Scenario {
        agent: "codex",
        name: "interrupt",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(r#"Very slowly. [script][{"wait":30},{"say":"Never."}][/script]"#),
            Until("Taken"),
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
        agent: "codex",
        name: "resume",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(r#"First. [script][{"say":"One."}][/script]"#),
            Until("TurnEnded"),
            Prompt(r#"Second. [script][{"wait":30},{"say":"Never."}][/script]"#),
            Until("Taken"),
            Killed,
            Until("Ready"),
            Prompt(r#"Third. [script][{"tool":"team/task_list"},{"say":"Still here."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "codex",
        name: "access",
        access: Access::ReadOnly,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Look. [script][{"tool":"exec_command","args":{"cmd":"touch made && echo made"}},{"tool":"team/task_list"},{"say":"{result#0}"}][/script]"#,
            ),
            Until("TurnEnded"),
            SetAccess(Access::Full),
            Prompt(
                r#"Change. [script][{"tool":"exec_command","args":{"cmd":"touch /home/dev/made && echo made"}},{"say":"{result}"}][/script]"#,
            ),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "codex",
        name: "failing",
        access: Access::Ask,
        model: None,
        steps: &[Until("Ready"), Prompt("[fail] Anything."), Until("TurnEnded")],
    },
    Scenario {
        agent: "codex",
        name: "limited",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt("[limit] Anything."),
            Until("TurnEnded"),
            Prompt(r#"[enough] Again. [script][{"say":"Here I am."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "codex",
        name: "model",
        access: Access::Ask,
        model: Some("scripted-too"),
        steps: &[
            Until("Ready"),
            Prompt(r#"Who? [script][{"say":"Me."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "codex",
        name: "edit",
        access: Access::Full,
        model: None,
        steps: &[
            Until("Ready"),
            Prompt(
                r#"Make. [script][{"tool":"exec_command","args":{"cmd":"apply_patch <<'E'\n*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n+three\n+four\n+five\n+six\n+seven\n+eight\n+nine\n+ten\n*** End Patch\nE"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(
                r#"Change. [script][{"tool":"exec_command","args":{"cmd":"apply_patch <<'E'\n*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+TWO\n+TWO AND A HALF\n three\n@@\n eight\n-nine\n ten\n*** End Patch\nE"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            Prompt(
                r#"Move. [script][{"tool":"exec_command","args":{"cmd":"apply_patch <<'E'\n*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+ONE\n*** End Patch\nE"}},{"tool":"exec_command","args":{"cmd":"apply_patch <<'E'\n*** Begin Patch\n*** Delete File: b.txt\n*** End Patch\nE"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
        ],
    },
];

#[test]
fn codex() {
    check(SCENARIOS);
}
