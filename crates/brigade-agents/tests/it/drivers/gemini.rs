//! Scenarios for Gemini CLI 0.61.0.

use brigade_agents::driver::{AgentEvent, DriverOutput, agent};

use super::scenario::{AgentTools, Scenario, failing, limited, say, script, with_model};
use super::{check, launch};

const TOOLS: AgentTools = AgentTools {
    agent: "gemini",
    team: "team_",
    shell: "run_shell_command",
    write: ["write_file", "file_path", "content"],
    edit: ["replace", "file_path", "old_string", "new_string"],
    edit_also: r#","instruction":"to see""#,
};
const MODEL: &str = "gemini-2.5-flash";

pub(super) fn scenarios() -> Vec<Scenario> {
    // Because of a bug in Gemini, the first turns must take a long time. The name of a session file contains the
    // minute in which the session was started. If Gemini is restarted within that minute, it truncates the file
    // before it searches for the session, and the session is lost.
    let slow = |text, answer| script(text, &format!(r#"{{"wait":31}},{}"#, say(answer)));
    let resume = TOOLS.resume([slow("First.", "One."), slow("More.", "Two.")]);
    // Without a fixed model, Gemini keeps trying other models instead of reporting the limit.
    let limited = limited(TOOLS.agent, &[]).model(MODEL);
    let model = with_model(TOOLS.agent, MODEL);
    let more = vec![TOOLS.interrupt(), resume, TOOLS.read_only(None), limited, model];
    [TOOLS.scenarios(), more].concat()
}

#[test]
fn gemini() {
    check(&scenarios());
}

/// Gemini looks up the session before it writes any output. If the session is unknown, Gemini reports that only
/// through its exit code.
#[test]
fn an_unknown_session_is_reported_by_the_exit_code() {
    let check = |resume: Option<&str>, code: i32, refused: bool| {
        let launch = launch(&failing("gemini"), resume.map(str::to_owned));
        let mut driver = (agent("gemini").unwrap().agent.driver)(launch);
        let args = driver.invocation().args;
        let session = args.iter().skip_while(|arg| *arg != "--resume").nth(1);
        assert_eq!(session.map(String::as_str), resume);
        driver.start();
        driver.on_exit(code);
        let broken = |output| matches!(output, DriverOutput::Event(AgentEvent::Broken { .. }));
        let reported = std::iter::from_fn(|| driver.next()).any(broken);
        assert_eq!(reported, refused, "{resume:?}, {code}");
    };
    check(Some("s1"), 42, true);
    check(Some("s1"), 1, false);
    check(None, 42, false);
}
