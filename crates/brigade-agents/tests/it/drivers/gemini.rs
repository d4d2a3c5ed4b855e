//! Gemini CLI 0.61.0.

use brigade_agents::driver::{Access, Event, Output, agent};

use super::ScenarioStep::{Allow, Deny, Interrupt, Killed, Prompt, SetAccess, Until};
use super::{Scenario, check, launch};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        agent: "gemini",
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
        agent: "gemini",
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
        agent: "gemini",
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
        agent: "gemini",
        name: "resume",
        access: Access::Ask,
        model: None,
        steps: &[
            Until("Ready"),
            // A session loaded in the minute in which it was started is lost: its file name contains
            // the minute, and the new program truncates that file before it searches for the session.
            Prompt(r#"First. [script][{"wait":31},{"say":"One."}][/script]"#),
            Until("TurnEnded"),
            Prompt(r#"More. [script][{"wait":31},{"say":"Two."}][/script]"#),
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
        agent: "gemini",
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
        agent: "gemini",
        name: "failing",
        access: Access::Ask,
        model: None,
        steps: &[Until("Ready"), Prompt("[fail] Anything."), Until("TurnEnded")],
    },
    Scenario {
        agent: "gemini",
        name: "limited",
        access: Access::Ask,
        // Without a fixed model it keeps searching for an available one.
        model: Some("gemini-2.5-flash"),
        steps: &[
            Until("Ready"),
            Prompt("[limit] Anything."),
            Until("TurnEnded"),
            Prompt(r#"[enough] Again. [script][{"say":"Here I am."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "gemini",
        name: "model",
        access: Access::Ask,
        model: Some("gemini-2.5-flash"),
        steps: &[
            Until("Ready"),
            Prompt(r#"Who? [script][{"say":"Me."}][/script]"#),
            Until("TurnEnded"),
        ],
    },
    Scenario {
        agent: "gemini",
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
                r#"Change. [script][{"tool":"replace","args":{"file_path":"/home/dev/project/a.txt","old_string":"two\n","new_string":"TWO\nTWO AND A HALF\n","instruction":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("TurnEnded"),
            SetAccess(Access::Ask),
            Prompt(
                r#"Change again. [script][{"tool":"replace","args":{"file_path":"/home/dev/project/a.txt","old_string":"nine\nten\n","new_string":"TEN\n","instruction":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Allow,
            Until("TurnEnded"),
            Prompt(
                r#"And once more. [script][{"tool":"replace","args":{"file_path":"/home/dev/project/a.txt","old_string":"one\n","new_string":"ONE\n","instruction":"to see"}},{"say":"Done: {result}"}][/script]"#,
            ),
            Until("Asks"),
            Deny("not today"),
            Until("TurnEnded"),
        ],
    },
];

#[test]
fn gemini() {
    check(SCENARIOS);
}

/// Gemini searches for the session before it writes anything, and reports a failure only through its
/// exit code.
#[test]
fn an_unknown_session_is_reported_by_the_exit_code() {
    let check = |resume: Option<&str>, code: i32, refused: bool| {
        let launch = launch(&SCENARIOS[0], resume.map(str::to_owned));
        let mut driver = (agent("gemini").unwrap().agent.driver)(launch);
        let args = driver.invocation().args;
        let session = args.iter().skip_while(|arg| *arg != "--resume").nth(1);
        assert_eq!(session.map(String::as_str), resume);
        driver.start();
        driver.ended(code);
        let broken = |output| matches!(output, Output::Event(Event::Broken { .. }));
        let reported = std::iter::from_fn(|| driver.next()).any(broken);
        assert_eq!(reported, refused, "{resume:?}, {code}");
    };
    check(Some("s1"), 42, true);
    check(Some("s1"), 1, false);
    check(None, 42, false);
}
