//! Which team, and who.

use insta::assert_snapshot;

use crate::env::House;

#[test]
fn of_several_teams_one_is_named_or_is_that_of_the_folder() {
    let house = House::with_team();
    house.done(&["team", "create", "other"]);
    assert_snapshot!(house.run(&["send", "bob", "hi"]), @"
    --- stderr
    error: there are several teams: demo, other
    hint: choose with `--team TEAM`, or set BRIGADE_TEAM
    --- exit 1
    ");
    house.write("work/brigade.toml", "team = \"other\"\n");
    assert_snapshot!(house.run(&["send", "bob", "hi"]), @r#"
    --- stderr
    error: no member named "bob" in team "other"
    hint: members are team-lead
    --- exit 1
    "#);
    assert_snapshot!(house.run_with_env(&["send", "bob", "hi"], &[("BRIGADE_TEAM", "demo")]), @"sent to bob (<id>)");
    assert_snapshot!(house.run(&["--team", "third", "task", "list"]), @r#"
    --- stderr
    error: no team named "third"
    hint: teams are demo, other
    hint: `brigade team create third` makes a new one
    --- exit 1
    "#);
    assert_snapshot!(house.run_with_env(&["task", "list"], &[("BRIGADE_TEAM", "Not A Team")]), @"
    --- stderr
    error: BRIGADE_TEAM is not valid
      caused by: the team name must not begin with 'N'; use a-z, 0-9 and '-', beginning with a letter or digit
    --- exit 2
    ");
    let unset = house.run_with_env(&["team", "list"], &[("BRIGADE_TEAM", "")]);
    assert_eq!(unset.code, Some(0), "an empty variable counts as unset");
}

#[test]
fn nobody_speaks_for_a_native_lead_by_accident() {
    let house = House::with_native_team();
    assert_snapshot!(house.run(&["send", "bob", "hi"]), @"
    --- stderr
    error: who are you? team theirs was not created by brigade
    hint: say `--as NAME`, or set BRIGADE_AS
    hint: members are team-lead, bob
    --- exit 1
    ");
    assert_snapshot!(house.run_with_env(&["send", "team-lead", "hi"], &[("BRIGADE_AS", "bob")]), @"sent to team-lead (<id>)");
    assert_snapshot!(house.run(&["inbox"]), @"
    --- stderr
    error: who are you? team theirs was not created by brigade
    hint: say `--as NAME`, or set BRIGADE_AS
    hint: members are team-lead, bob
    --- exit 1
    ");
}

#[test]
fn looking_needs_no_name() {
    let house = House::with_native_team();
    for looking in [
        &["team", "show"] as &[&str],
        &["team", "list"],
        &["task", "list"],
        &["task", "graph"],
        &["inbox", "bob"],
        &["log"],
        &[],
    ] {
        let outcome = house.run(looking);
        assert!(matches!(outcome.code, Some(0 | 4)), "{looking:?}: {outcome}");
    }
}

#[test]
fn the_folder_of_claude_code_may_be_named() {
    let house = House::with_team();
    let other = house.path("elsewhere");
    let other = other.to_str().unwrap();
    house.done(&["--claude-dir", other, "team", "create", "far"]);
    assert_snapshot!(house.run(&["--claude-dir", other, "team", "list"]), @"
    TEAM  MEMBERS  DESCRIPTION
    far   1
    ");
    let home = house.command(&["team", "create", "home"]).env_remove("CLAUDE_CONFIG_DIR").output();
    assert!(home.unwrap().status.success());
    assert!(house.path("home/.claude/teams/home/config.json").exists());
    let homeless = house.command(&["team", "list"]).env_clear().output().unwrap();
    assert_eq!(homeless.status.code(), Some(1));
    assert_snapshot!(String::from_utf8(homeless.stderr).unwrap(), @"error: there is no home directory: HOME is not set");
}
