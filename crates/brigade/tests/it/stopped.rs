//! Members that were stopped: what the commands say about them, and how they are started again.

use std::process::{Command, Stdio};

use brigade_host::spec::MemberSpec;

use crate::differences::on_roster;
use crate::doctor_host::registry;
use crate::env::{CliEnv, FAKE_AGENT};
use crate::host::HostedTeam;
use crate::process::wait_until;

fn spec(cli: &CliEnv, name: &str) -> Option<MemberSpec> {
    registry(cli, "state").member(&"demo".parse().unwrap(), &name.parse().unwrap()).unwrap()
}

/// Commands that need the member `bob`.
const FOR_BOB: [&[&str]; 10] = [
    &["restart", "bob"],
    &["interrupt", "bob"],
    &["pause", "bob"],
    &["unpause", "bob"],
    &["stop", "bob"],
    &["send", "bob", "hello"],
    &["ask", "bob", "hello?"],
    &["inbox", "bob"],
    &["task", "add", "Third", "--owner", "bob"],
    &["wait", "--idle", "bob"],
];

#[test]
fn commands_say_when_a_member_was_stopped_and_how_to_start_it_again() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let stopped = team.cli.run(&["stop", "bob", "--now"]);
    let last = stopped.stderr.lines().last();
    assert_eq!(last, Some("hint: `brigade up` starts bob again"), "{stopped}");
    for command in FOR_BOB {
        let outcome = team.cli.run(command);
        let mut lines = outcome.stderr.lines();
        let first = lines.next().unwrap_or_default();
        assert!(
            first.starts_with("error: bob of team demo was stopped "),
            "{command:?}: {outcome}"
        );
        assert!(first.ends_with(" s ago"), "{command:?}: {outcome}");
        let hint = "hint: start it again with `brigade up`";
        assert_eq!(lines.next(), Some(hint), "{command:?}: {outcome}");
        assert_eq!(outcome.code, Some(1), "{command:?}: {outcome}");
    }
    // A name that no member had is still an unknown name.
    let unknown = team.cli.run(&["send", "carl", "hello"]);
    assert!(unknown.stderr.starts_with("error: no member named \"carl\""), "{unknown}");
    let unknown = team.cli.run(&["restart", "carl"]);
    assert!(unknown.stderr.contains("carl of team demo does not run on this host"), "{unknown}");
}

#[test]
fn status_shows_the_members_of_the_file_that_do_not_run() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    assert_eq!(team.cli.status()["not_running"], serde_json::Value::Null);
    assert_eq!(team.cli.json(&["stop", "bob", "--now"])["members"][0]["start_again"], "brigade up");
    let status = team.cli.run_ok(&["status"]);
    let bob = status.lines().find(|line| line.trim_start().starts_with("bob ")).unwrap_or_default();
    assert!(bob.contains("acp:fake-agent.sh  not running: brigade up"), "{status}");
    let not_running = team.cli.status()["not_running"].clone();
    assert_eq!(not_running[0]["name"], "bob");
    assert!(not_running[0]["stopped"].is_string(), "{not_running}");
    // `up --check` lists the member that `up` would start.
    let check = team.cli.run_ok(&["up", "--check"]);
    let row = |name: &str| -> Vec<&str> {
        let mut lines = check.lines();
        let line = lines.find(|line| line.starts_with(&format!("{name} "))).unwrap_or_default();
        line.split_whitespace().collect()
    };
    assert_eq!(row("alice")[1], "runs", "{check}");
    assert_eq!(row("bob")[1], "starts", "{check}");
    let starts = team.cli.json(&["up", "--check"])["starts"].clone();
    let cwd = team.cli.path("work/b");
    let agent = format!("acp:{FAKE_AGENT}");
    let bob = serde_json::json!([{
        "name": "bob", "agent": agent, "model": null, "cwd": cwd, "worktree": false, "access": "ask", "plan": false,
    }]);
    assert_eq!(starts, bob);
    // In another folder, the command names the file.
    let mut command = team.cli.command(&["status", "demo"]);
    let outcome = command.current_dir(&team.cli.root).stdout(Stdio::piped()).output().unwrap();
    let outcome = team.cli.outcome(&outcome);
    let named = "not running: brigade up --file <root>/work/brigade.toml";
    assert!(outcome.stdout.contains(named), "{outcome}");
    team.cli.json(&["up"]);
    assert!(!team.cli.run_ok(&["status"]).contains("not running"));
    team.cli.run_ok(&["send", "bob", "hello again"]);
}

#[test]
fn a_spawned_member_is_started_again_with_its_settings() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let agent = format!("acp:{FAKE_AGENT}");
    let settings = ["--prompt", "hello carl", "--allow", "make *", "--dir", "b"];
    team.cli.json(&[&["spawn", "carl", "--agent", &agent][..], &settings].concat());
    let before = spec(&team.cli, "carl").unwrap();
    let stopped = team.cli.run(&["stop", "carl", "bob", "--now"]);
    let hints: Vec<&str> =
        stopped.stderr.lines().filter(|line| line.starts_with("hint: ")).collect();
    let carl = "hint: `brigade spawn carl --like carl` starts carl again";
    assert_eq!(hints, [carl, "hint: `brigade up` starts bob again"], "{stopped}");
    // `up` starts only the members of the file.
    team.cli.json(&["up"]);
    assert_eq!(spec(&team.cli, "carl"), None);
    let gone = team.cli.run(&["restart", "carl"]);
    assert!(gone.stderr.contains("`brigade spawn carl --like carl`"), "{gone}");
    team.cli.json(&["spawn", "carl", "--like", "carl"]);
    assert_eq!(spec(&team.cli, "carl"), Some(before));
}

/// The folder of alice's worktree.
const TREE: &str = "state/brigade/worktrees/demo/alice";

/// Starts a team in a git repository. Alice has a worktree, in which she has changed a file.
fn team_with_worktree() -> HostedTeam {
    let team = HostedTeam::new();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(team.cli.path("work")).args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
        ]);
        assert!(git.args(args).status().unwrap().success());
    };
    git(&["init", "-q", "-b", "main"]);
    team.cli.write("work/a/file", "one\n");
    git(&["add", "a/file"]);
    git(&["commit", "-q", "-m", "first"]);
    let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
    team.cli.write("work/brigade.toml", &file.replace("prompt =", "worktree = true\nprompt ="));
    team.cli.json(&["up"]);
    wait_until("alice's agent", || team.cli.path(&format!("{TREE}/a/heard")).exists());
    team.cli.write(&format!("{TREE}/a/file"), "two\n");
    team
}

#[test]
fn diff_shows_the_kept_worktree_of_a_stopped_member() {
    let team = team_with_worktree();
    let stopped = team.cli.run(&["stop", "alice", "bob", "--now"]);
    assert!(stopped.stderr.contains("kept its worktree"), "{stopped}");
    let diff = team.cli.run_ok(&["diff", "alice"]);
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    let bob = team.cli.run(&["diff", "bob"]);
    assert!(bob.stderr.starts_with("error: bob of team demo was stopped "), "{bob}");
    assert!(bob.stderr.contains("it had no worktree of its own"), "{bob}");
    // `down` keeps the worktree, too.
    team.cli.run_ok(&["down", "--now"]);
    let diff = team.cli.run_ok(&["diff", "alice"]);
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    assert_eq!(team.cli.json(&["diff", "alice"])["dir"], team.cli.path(TREE).to_str().unwrap());
    assert_eq!(team.cli.run(&["diff", "bob"]).code, Some(4));
}

#[test]
fn the_roster_and_the_status_name_the_worktree_of_a_member() {
    let team = team_with_worktree();
    let tree = team.cli.path(&format!("{TREE}/a"));
    let tree = tree.to_str().unwrap();
    let cwd = |name: &str| on_roster(&team, name)["cwd"].clone();
    assert_eq!(cwd("alice"), tree);
    assert_eq!(cwd("bob"), team.cli.path("work/b").to_str().unwrap());
    assert_eq!(cwd("team-lead"), team.cli.path("work").to_str().unwrap());
    assert_eq!(team.cli.member("alice")["cwd"], tree);
    assert!(team.cli.run_ok(&["team", "show"]).contains(tree));
}

/// An acknowledged message is not lost when its recipient is stopped, so the next member of this name gets it.
#[test]
fn a_member_that_is_started_again_gets_its_unread_mail_and_up_says_so() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let agent = format!("acp:{FAKE_AGENT}");
    team.cli.json(&["spawn", "carl", "--agent", &agent, "--dir", "a"]);
    for (name, dir, start) in
        [("bob", "b", &["up"][..]), ("carl", "a", &["spawn", "carl", "--like", "carl"])]
    {
        team.cli.json(&["pause", name]);
        for text in ["the first", "the second"] {
            team.cli.run_ok(&["send", name, &format!("{text} for {name}")]);
        }
        team.cli.json(&["stop", name, "--now"]);
        let started = team.cli.run(start);
        let note = format!("note: {name} has 2 unread messages from before it was stopped");
        assert!(started.stderr.lines().any(|line| line == note), "{started}");
        wait_until("the unread mail", || {
            ["the first", "the second"]
                .iter()
                .all(|text| team.received(dir).contains(&format!("{text} for {name}")))
        });
    }
    // The mail is read now.
    team.cli.json(&["stop", "bob", "--now"]);
    assert!(!team.cli.run(&["up"]).stderr.contains("unread"));
}
