//! `brigade use`, and which team a command takes.

use insta::assert_snapshot;
use serde_json::json;

use crate::env::CliEnv;

/// An environment with the teams `demo` and `other`, and no default team.
fn two_teams() -> CliEnv {
    let cli = CliEnv::with_team();
    cli.run_ok(&["team", "create", "other"]);
    cli.run_ok(&["use", "--clear"]);
    cli
}

#[test]
fn the_default_team_is_set_shown_and_cleared() {
    let cli = two_teams();
    assert_eq!(cli.run(&["use"]).code, Some(2));
    assert_snapshot!(cli.run(&["use", "demo"]), @"default team: demo");
    assert_snapshot!(cli.run(&["use"]), @"team demo (chosen with `brigade use`)");
    assert_snapshot!(cli.run(&["send", "bob", "hi"]), @"
    sent to bob (<id>)
    --- stderr
    team: demo (chosen with `brigade use`)
    ");
    assert_snapshot!(cli.run(&["use", "dem"]), @r#"
    --- stderr
    error: no team named "dem"
    hint: did you mean demo? teams: demo, other
    hint: `brigade team create dem` creates a new one
    --- exit 1
    "#);
    let shown = cli.json(&["use"]);
    assert_eq!(shown, json!({ "team": "demo", "source": "chosen", "default": "demo" }));
    assert_snapshot!(cli.run(&["use", "--clear"]), @"there is no default team any more");
    assert_eq!(cli.run(&["send", "bob", "hi"]).code, Some(2));
    let state: Vec<_> = std::fs::read_dir(cli.path("state/brigade/use")).unwrap().collect();
    assert!(state.is_empty(), "{state:?}");
}

#[test]
fn an_option_a_variable_and_the_folder_come_before_the_default_team() {
    let cli = two_teams();
    cli.run_ok(&["use", "demo"]);
    let source = |args: &[&str], env: &[(&str, &str)]| {
        let outcome = cli.run_with_env(&[args, &["use"]].concat(), env);
        outcome.stdout.lines().next().unwrap_or_default().to_owned()
    };
    let variable = [("BRIGADE_TEAM", "other")];
    assert_eq!(source(&[], &variable), "team other (from BRIGADE_TEAM)");
    assert_eq!(source(&["--team", "demo"], &variable), "team demo (named with `--team`)");
    cli.write("work/brigade.toml", "team = \"other\"\n");
    assert_snapshot!(cli.run(&["use"]), @"
    team other (from brigade.toml)
    default team: demo (chosen with `brigade use`)
    ");
    assert_snapshot!(cli.run(&["use", "demo"]), @"
    default team: demo
    --- stderr
    note: commands here still use team other (from brigade.toml)
    ");
    // The line is printed once, only if there was a choice, and not with --json.
    let listed = cli.run(&["task", "list"]);
    assert_eq!(listed.stderr.matches("team: other (from brigade.toml)").count(), 1, "{listed}");
    for args in [&["task", "list", "--json"][..], &["--team", "other", "task", "list"]] {
        assert!(!cli.run(args).stderr.contains("from brigade.toml"), "{args:?}");
    }
    cli.run_ok(&["team", "delete", "demo", "--force"]);
    assert!(!cli.run(&["task", "list"]).stderr.contains("from brigade.toml"));
}

#[test]
fn a_default_team_that_is_gone_is_named() {
    let cli = two_teams();
    cli.run_ok(&["team", "create", "third"]);
    cli.run_ok(&["use", "demo"]);
    cli.run_ok(&["team", "delete", "demo", "--force"]);
    assert_snapshot!(cli.run(&["task", "list"]), @"
    --- stderr
    error: team demo, which you chose with `brigade use`, is not running or does not exist
    hint: add `--team other` or `--team third`, or forget the choice with `brigade use --clear`
    --- exit 2
    ");
    // A command for a team that is gone must not act on another team, also if it is the only one.
    cli.run_ok(&["team", "delete", "third", "--force"]);
    let listed = cli.run(&["task", "list"]);
    assert_eq!(listed.code, Some(2), "{listed}");
    assert!(listed.stderr.contains("hint: add `--team other`, or forget"), "{listed}");
    let refused = cli.run(&["down", "--now"]);
    assert_ne!(refused.code, Some(0), "{refused}");
}

/// An agent could make the person's commands act on another team.
#[test]
fn an_agent_neither_sets_nor_uses_the_default_team() {
    let cli = two_teams();
    let agent = [("BRIGADE_ANSWERS", "lead")];
    let refused = cli.run_with_env(&["use", "demo"], &agent);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("only a person may choose the default team"), "{refused}");
    cli.run_ok(&["use", "demo"]);
    assert_eq!(cli.run_with_env(&["task", "list"], &agent).code, Some(2));
}
