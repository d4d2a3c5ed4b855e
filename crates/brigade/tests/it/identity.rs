//! How commands determine the team and the member to act as.

use insta::assert_snapshot;

use crate::env::CliEnv;

#[test]
fn the_team_is_named_or_taken_from_the_folder() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["team", "create", "other"]);
    assert_snapshot!(cli.run(&["send", "bob", "hi"]), @"
    --- stderr
    error: there are several teams: demo, other
    hint: choose with `--team TEAM`, or set BRIGADE_TEAM
    --- exit 1
    ");
    cli.write("work/brigade.toml", "team = \"other\"\n");
    assert_snapshot!(cli.run(&["send", "bob", "hi"]), @r#"
    --- stderr
    error: no member named "bob" in team "other"
    hint: members are team-lead
    --- exit 1
    "#);
    assert_snapshot!(cli.run_with_env(&["send", "bob", "hi"], &[("BRIGADE_TEAM", "demo")]), @"sent to bob (<id>)");
    assert_snapshot!(cli.run(&["--team", "third", "task", "list"]), @r#"
    --- stderr
    error: no team named "third"
    hint: teams are demo, other
    hint: `brigade team create third` makes a new one
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
    hint: add `--as NAME`, or set BRIGADE_AS
    hint: members: team-lead, bob
    --- exit 1
    ");
    assert_snapshot!(cli.run_with_env(&["send", "team-lead", "hi"], &[("BRIGADE_AS", "bob")]), @"sent to team-lead (<id>)");
    assert_snapshot!(cli.run(&["inbox"]), @"
    --- stderr
    error: Claude Code leads team theirs; name the member you act as
    hint: add `--as NAME`, or set BRIGADE_AS
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
}
