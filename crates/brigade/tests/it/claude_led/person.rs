//! Commands of the person beside a running Claude Code session.

use super::{ClaudeTeam, SESSION, TEAM};
use crate::process::wait_until;

/// A person writes with the authority of the lead, to members that brigade runs.
#[test]
fn a_person_writes_to_a_member_beside_the_lead() {
    let team = ClaudeTeam::new();
    let sent = team.run(&["send", "rev", "a word of the person"]);
    assert_eq!(sent.code, Some(0), "{sent}");
    wait_until("the message", || team.heard().contains("a word of the person"));
    let heard = team.heard();
    let verified = r#"teammate_id=\"team-lead\">\na word of the person"#;
    assert!(heard.contains(verified), "{heard}");
    // Claude Code would not accept this key, and its model could have chosen the command.
    let inside = [("BRIGADE_TEAM", TEAM), ("CLAUDE_CODE_SESSION_ID", SESSION)];
    for (to, environment) in [("nat", &inside[..1]), ("rev", &inside[..])] {
        let refused = team.cli.run_with_env(&["send", to, "hello"], environment);
        assert_eq!(refused.code, Some(1), "{to}: {refused}");
    }
}

/// brigade runs a member that `brigade spawn` added, so the person can write to it, too.
#[test]
fn a_person_writes_to_a_member_that_was_added_with_spawn() {
    let team = ClaudeTeam::new();
    team.spawn_luke();
    let sent = team.run(&["send", "luke", "a word of the person"]);
    assert_eq!(sent.code, Some(0), "{sent}");
    wait_until("the message", || team.heard().contains("a word of the person"));
    let inside = [("BRIGADE_TEAM", TEAM), ("CLAUDE_CODE_SESSION_ID", SESSION)];
    let refused = team.cli.run_with_env(&["send", "luke", "hello"], &inside);
    assert!(refused.stderr.contains("only a person may act beside Claude Code"), "{refused}");
    team.cli.run_ok(&["--team", TEAM, "stop", "luke", "--now"]);
}
