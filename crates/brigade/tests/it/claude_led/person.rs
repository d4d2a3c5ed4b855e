//! Commands of the person beside a running Claude Code session.

use insta::assert_snapshot;

use super::{ClaudeTeam, SESSION, TEAM};
use crate::env::CliEnv;
use crate::process::{wait_for, wait_until};

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

/// Only Claude Code started members, so brigade itself has brought no team up.
#[test]
fn down_and_diff_find_the_only_session() {
    let mut team = ClaudeTeam::new();
    assert_snapshot!(team.cli.run(&["diff", "rev"]), @r"
    --- stderr
    error: rev has no worktree of its own
    hint: rev works in <root>/work; `git diff` there shows the changes
    --- exit 1
    ");
    assert_snapshot!(team.cli.run(&["stop", "ghost"]), @r"
    --- stderr
    error: ghost of team session-e0c67a80 does not run on this host
    hint: members on this host: rev
    --- exit 1
    ");
    // The model of the session could have chosen this command.
    let inside = [("CLAUDE_CODE_SESSION_ID", SESSION)];
    let refused = team.cli.run_with_env(&["down", "--now"], &inside);
    assert!(refused.stderr.contains("only a person may act beside Claude Code"), "{refused}");
    assert_snapshot!(team.cli.run(&["down", "--now"]), @r"
    stopped rev; Claude Code still leads team session-e0c67a80
    --- stderr
    rev: stopping
    rev: stopped
    ");
    assert_eq!(wait_for("rev to end", || team.rev.try_wait().unwrap()).code(), Some(0));
    assert_eq!(team.roster(), ["team-lead", "nat"]);
}

#[test]
fn down_ends_all_members_of_a_session_that_brigade_runs() {
    let mut team = ClaudeTeam::new();
    team.spawn_luke();
    let ghost = team.run(&["stop", "ghost"]);
    assert!(ghost.stderr.contains("members on this host: luke, rev"), "{ghost}");
    let down = team.cli.run(&["down", TEAM, "--now"]);
    let expected = "stopped rev, luke; Claude Code still leads team session-e0c67a80\n";
    assert_eq!(down.stdout, expected, "{down}");
    assert_eq!(wait_for("rev to end", || team.rev.try_wait().unwrap()).code(), Some(0));
    assert_eq!(team.roster(), ["team-lead", "nat"]);
}

#[test]
fn down_does_not_advise_to_delete_the_team_of_claude_code() {
    assert_snapshot!(CliEnv::with_native_team().run(&["down", "theirs"]), @r"
    --- stderr
    error: team theirs is not up on this host
    hint: Claude Code leads the team, and brigade runs none of its members on this host
    --- exit 1
    ");
}

#[test]
fn an_answered_request_of_a_member_that_left_is_unknown() {
    let team = ClaudeTeam::new();
    team.ask();
    let approved = team.run(&["approve", "1"]);
    assert_eq!(approved.code, Some(0), "{approved}");
    team.cli.run_ok(&["--team", TEAM, "stop", "rev", "--now"]);
    assert_snapshot!(team.run(&["deny", "1", "--reason", "no"]), @r"
    --- stderr
    error: no approval request 1
    hint: no request is waiting for an answer
    --- exit 4
    ");
}

/// Claude Code adds a member to the roster before it starts the member's process.
#[test]
fn a_member_that_is_starting_is_not_taken_for_one_of_claude_code() {
    let cli = CliEnv::with_session_team();
    let status = cli.run(&["status"]);
    assert!(status.stdout.contains("its process has not registered on this host yet"), "{status}");
    assert_snapshot!(cli.run(&["stop", "carol", "--now"]), @r"
    --- stderr
    error: carol of team session-e0c67a80 does not run on this host
    hint: no member of this team runs on this host
    --- exit 1
    ");
}
