//! How commands determine the team and the member to act as.

use insta::assert_snapshot;

use crate::env::CliEnv;

#[test]
fn the_team_is_named_or_taken_from_the_folder() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["team", "create", "other"]);
    cli.run_ok(&["use", "--clear"]);
    assert_snapshot!(cli.run(&["send", "bob", "hi"]), @"
    --- stderr
    error: there are several teams: demo, other
    hint: choose a team with `--team TEAM` or `brigade use TEAM`, or set BRIGADE_TEAM
    --- exit 2
    ");
    cli.write("work/brigade.toml", "team = \"other\"\n");
    assert_snapshot!(cli.run(&["send", "bob", "hi"]), @r#"
    --- stderr
    team: other (from brigade.toml)
    error: no member named "bob" in team "other"
    hint: members: team-lead
    --- exit 1
    "#);
    assert_snapshot!(cli.run_with_env(&["send", "bob", "hi"], &[("BRIGADE_TEAM", "demo")]), @"sent to bob (<id>)");
    assert_snapshot!(cli.run(&["--team", "third", "task", "list"]), @r#"
    --- stderr
    error: no team named "third"
    hint: teams: demo, other
    hint: `brigade team create third` creates a new one
    --- exit 1
    "#);
    assert_snapshot!(cli.run_with_env(&["task", "list"], &[("BRIGADE_TEAM", "Not A Team")]), @"
    --- stderr
    error: BRIGADE_TEAM is not valid
      caused by: the team name must not begin with 'N'; use a-z, 0-9 and '-', beginning with a letter or digit
    --- exit 2
    ");
    let unset = cli.run_with_env(&["team", "list"], &[("BRIGADE_TEAM", "")]);
    assert_eq!(unset.code, Some(0), "an empty variable counts as unset");
}

#[test]
fn acting_as_a_claude_code_lead_must_be_explicit() {
    let cli = CliEnv::with_native_team();
    assert_snapshot!(cli.run(&["send", "bob", "hi"]), @"
    --- stderr
    error: Claude Code leads team theirs; name the member you act as
    hint: add `--as NAME`, or set BRIGADE_AS; `--as team-lead` acts as Claude Code
    hint: members: team-lead, bob
    --- exit 1
    ");
    assert_snapshot!(cli.run_with_env(&["send", "team-lead", "hi"], &[("BRIGADE_AS", "bob")]), @"sent to team-lead (<id>)");
    assert_snapshot!(cli.run(&["inbox"]), @"
    --- stderr
    error: Claude Code leads team theirs; name the member you act as
    hint: add `--as NAME`, or set BRIGADE_AS; `--as team-lead` acts as Claude Code
    hint: members: team-lead, bob
    --- exit 1
    ");
}

#[test]
fn reading_needs_no_identity() {
    let cli = CliEnv::with_native_team();
    for looking in [
        &["team", "show"] as &[&str],
        &["team", "list"],
        &["task", "list"],
        &["task", "graph"],
        &["inbox", "bob"],
        &["log"],
        &[],
    ] {
        let outcome = cli.run(looking);
        assert!(matches!(outcome.code, Some(0 | 4)), "{looking:?}: {outcome}");
    }
}

#[test]
fn the_claude_code_folder_can_be_chosen() {
    let cli = CliEnv::with_team();
    let other = cli.path("elsewhere");
    let other = other.to_str().unwrap();
    cli.run_ok(&["--claude-dir", other, "team", "create", "far"]);
    assert_snapshot!(cli.run(&["--claude-dir", other, "team", "list"]), @"
    TEAM  MEMBERS  DESCRIPTION
    far   1
    ");
    let home = cli.command(&["team", "create", "home"]).env_remove("CLAUDE_CONFIG_DIR").output();
    assert!(home.unwrap().status.success());
    assert!(cli.path("home/.claude/teams/home/config.json").exists());
    let homeless = cli.command(&["team", "list"]).env_clear().output().unwrap();
    assert_eq!(homeless.status.code(), Some(1));
    assert_snapshot!(String::from_utf8(homeless.stderr).unwrap(), @"error: there is no home directory: HOME is not set");
    let state = cli.path("state");
    let mut both_folders = cli.command(&["--claude-dir", other, "team", "list"]);
    both_folders.env_clear().env("XDG_STATE_HOME", &state);
    assert!(both_folders.output().unwrap().status.success(), "no home directory is needed");
}

/// Only the lead starts members, and only a person starts a command as a member.
#[test]
fn a_member_cannot_start_members() {
    let cli = CliEnv::with_team();
    let spawn = |agent: &str, env: &[(&str, &str)]| {
        let marker = cli.path("work/started");
        let agent = agent.replace("COMMAND", &format!("touch {}", marker.display()));
        let outcome = cli.run_with_env(&["spawn", "mole", "--agent", &agent], env);
        assert!(!marker.exists(), "{outcome}");
        outcome
    };
    assert_snapshot!(spawn("acp:COMMAND", &[("BRIGADE_AS", "bob"), ("BRIGADE_ANSWERS", "person")]), @"
    --- stderr
    error: only the lead may start a member; bob is not the lead of team demo
    hint: `--as NAME` sets the member you act as
    --- exit 1
    ");
    let file = "team = \"demo\"\n[members.mole]\nagent = \"acp:touch started\"\n";
    cli.write("work/brigade.toml", file);
    let up = cli.run_with_env(&["up"], &[("BRIGADE_AS", "bob")]);
    assert!(up.stderr.contains("only the lead may start a member"), "{up}");
    assert!(!cli.path("work/started").exists(), "{up}");
    std::fs::remove_file(cli.path("work/brigade.toml")).unwrap();
    assert_snapshot!(spawn("codex", &[("BRIGADE_AS", "bob")]), @"
    --- stderr
    error: only the lead may start a member; bob is not the lead of team demo
    hint: `--as NAME` sets the member you act as
    --- exit 1
    ");
    assert_snapshot!(spawn("acp:COMMAND", &[("BRIGADE_ANSWERS", "lead")]), @"
    --- stderr
    error: only a person may start a command as a member of team demo
    hint: run `brigade spawn` in a terminal that no agent uses
    --- exit 1
    ");
}
