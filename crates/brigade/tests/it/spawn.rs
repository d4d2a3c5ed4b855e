//! The settings of `brigade spawn`, which are those of a member in `brigade.toml`.

use std::process::Command;

use brigade_host::spec::MemberSpec;
use serde_json::json;

use crate::doctor_host::registry;
use crate::env::{CliEnv, FAKE_AGENT};
use crate::host::HostedTeam;
use crate::process::wait_until;

fn spec(cli: &CliEnv, name: &str) -> Option<MemberSpec> {
    registry(cli, "state").member(&"demo".parse().unwrap(), &name.parse().unwrap()).unwrap()
}

fn agent() -> String {
    format!("acp:{FAKE_AGENT}")
}

/// The same settings, once in the team file and once as options, give the same member.
#[test]
fn options_say_what_the_team_file_says() {
    let team = HostedTeam::new();
    team.cli.write("work/prompt.md", "Hello, Zoe\n");
    let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
    let zoe = r#"
[members.zoe]
dir = "a"
model = "gpt"
prompt-file = "prompt.md"
plan = true
access = "full"
allow = ["cargo test *"]
ask = ["git commit*"]
deny = ["git push*", "rm*"]
env = ["OPENAI_*"]
restart = "never"
"#;
    team.cli.write("work/brigade.toml", &(file + zoe));
    team.cli.json(&["up"]);
    let spawned = team.cli.json(&[
        "spawn",
        "eve",
        "--agent",
        &agent(),
        "--dir",
        "a",
        "--model",
        "gpt",
        "--prompt-file",
        "prompt.md",
        "--plan",
        "--access",
        "full",
        "--allow",
        "cargo test *",
        "--ask",
        "git commit*",
        "--deny",
        "git push*",
        "--deny",
        "rm*",
        "--env",
        "OPENAI_*",
        "--restart",
        "never",
    ]);
    assert_eq!(spawned, json!({ "name": "eve", "new": true }));
    let (zoe, eve) = (spec(&team.cli, "zoe").unwrap(), spec(&team.cli, "eve").unwrap());
    assert_eq!(MemberSpec { name: zoe.name.clone(), ..eve }, zoe);
    wait_until("the prompt", || team.received("a").contains("Hello, Zoe"));
}

#[test]
fn a_member_can_be_spawned_like_another_one() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let agent = agent();
    let carl = ["spawn", "carl", "--agent", &agent, "--dir", "a", "--model", "gpt"];
    team.cli.json(&[&carl[..], &["--allow", "make", "--plan"]].concat());
    let dave = ["spawn", "dave", "--like", "carl", "--plan=false", "--deny", "rm*"];
    team.cli.json(&dave);
    let (carl, dave) = (spec(&team.cli, "carl").unwrap(), spec(&team.cli, "dave").unwrap());
    let rules: Vec<_> = dave.rules.iter().filter_map(|rule| rule.command.as_deref()).collect();
    assert_eq!((dave.plan, rules), (false, vec!["rm*", "make"]));
    assert_eq!((&dave.cwd, &dave.model, &dave.agent), (&carl.cwd, &carl.model, &carl.agent));
    // A member of the file that does not run.
    team.cli.json(&["stop", "bob", "--now"]);
    team.cli.json(&["spawn", "bert", "--like", "bob"]);
    assert_eq!(spec(&team.cli, "bert").unwrap().cwd, team.cli.path("work/b"));
    let unknown = team.cli.run(&["spawn", "fred", "--like", "bib"]);
    assert_eq!(unknown.code, Some(1), "{unknown}");
    assert!(unknown.stderr.contains("members: alice, bert, bob, carl, dave"), "{unknown}");
}

/// Brigade does not use the settings of a file that the person has not trusted.
#[test]
fn only_a_trusted_file_is_copied() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    team.cli.json(&["stop", "bob", "--now"]);
    let mut spawn = team.cli.command(&["spawn", "bert", "--like", "bob"]);
    let refused = team.cli.outcome(&spawn.env_remove("BRIGADE_TRUST").output().unwrap());
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("is not trusted"), "{refused}");
    assert!(spec(&team.cli, "bert").is_none());
}

#[test]
fn a_new_member_has_its_own_worktree() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let agent = agent();
    let spawn = ["spawn", "carl", "--agent", &agent, "--worktree"];
    // The same check as that of `up`.
    let refused = team.cli.run(&spawn);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("cannot create a worktree"), "{refused}");
    assert!(spec(&team.cli, "carl").is_none());
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args);
        assert!(git.current_dir(team.cli.path("work")).output().unwrap().status.success());
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    team.cli.json(&spawn);
    let tree = team.cli.path("state/brigade/worktrees/demo/carl");
    wait_until("the worktree", || tree.join("heard").exists());
    std::fs::remove_file(tree.join("heard")).unwrap();
    team.cli.json(&["stop", "carl", "--now"]);
    assert!(!tree.exists());
}

/// A member with more permissions than its starter would let an agent do everything.
#[test]
fn an_agent_gives_a_new_member_no_permissions() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    for option in [
        &["--access", "full"][..],
        &["--allow", "make"],
        &["--program", "/bin/sh"],
        &["--env", "*"],
    ] {
        let spawn = [&["spawn", "carl", "--agent", "codex"][..], option].concat();
        let refused = team.cli.run_with_env(&spawn, &[("BRIGADE_ANSWERS", "lead")]);
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.stderr.contains("only a person may"), "{refused}");
    }
    assert!(spec(&team.cli, "carl").is_none());
}

#[test]
fn options_are_checked_before_anything_starts() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let agent = agent();
    for (option, code, why) in [
        (&["--dir", "nowhere"][..], 1, "there is no folder"),
        (&["--allow", "git log | head"], 2, "can never allow a command"),
        (&["--env", "KEY=secret"], 2, "is not the name of a variable"),
        (&["--prompt-file", "missing.md"], 1, "cannot read"),
        (&["--place", "native"], 2, "cannot be native"),
        (&["--place", "here", "--allow", "make"], 2, "which --allow needs"),
    ] {
        let spawn = [&["spawn", "carl", "--agent", &agent][..], option].concat();
        let refused = team.cli.run(&spawn);
        assert_eq!(refused.code, Some(code), "{refused}");
        assert!(refused.stderr.contains(why), "{refused}");
    }
    assert_eq!(team.cli.run(&["spawn", "carl"]).code, Some(2));
    assert!(spec(&team.cli, "carl").is_none());
}
