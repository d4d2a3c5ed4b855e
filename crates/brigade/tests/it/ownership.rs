//! Which team file a team belongs to, and which team a command means.

use std::process::Command;

use insta::assert_snapshot;
use serde_json::json;

use crate::env::{CliEnv, FAKE_AGENT, Outcome};

/// Two folders, each with a team file. Dropping this value stops their teams.
struct TwoFolders(CliEnv);

impl Drop for TwoFolders {
    fn drop(&mut self) {
        for team in ["demo", "other"] {
            let _none_up = self.0.run(&["down", "--now", team]);
        }
    }
}

impl TwoFolders {
    fn new(first: &str, second: &str) -> Self {
        let cli = CliEnv::new();
        let file = |team: &str, member: &str| {
            format!("team = \"{team}\"\n[members.{member}]\nagent = \"acp:{FAKE_AGENT}\"\n")
        };
        cli.write("a/brigade.toml", &file(first, "alice"));
        cli.write("b/brigade.toml", &file(second, "bob"));
        Self(cli)
    }

    fn command_in(&self, folder: &str, args: &[&str]) -> Command {
        let mut command = self.0.command(args);
        command.current_dir(self.0.path(folder));
        command
    }

    fn run_in(&self, folder: &str, args: &[&str]) -> Outcome {
        self.0.outcome(&self.command_in(folder, args).output().unwrap())
    }

    fn up(&self, folder: &str) {
        let up = self.run_in(folder, &["up"]);
        assert_eq!(up.code, Some(0), "{up}");
    }
}

#[test]
fn finding_2_up_does_not_take_over_the_team_of_another_file() {
    let folders = TwoFolders::new("demo", "demo");
    folders.up("a");
    let lead = "team = \"demo\"\n[lead]\nagent = \"acp:touch took-over\"\nanswers = \"lead\"\n";
    folders.0.write("b/brigade.toml", lead);
    assert_snapshot!(folders.run_in("b", &["up"]), @r#"
    --- stderr
    error: team demo already exists and belongs to <root>/a/brigade.toml
    hint: choose another name: change `team = "demo"` in <root>/b/brigade.toml
    hint: or stop the other team first: `brigade down demo`
    hint: or, if its file was moved here, continue it with this file: `brigade up --adopt`
    --- exit 1
    "#);
    let members = folders.0.json(&["status", "--team", "demo"])[0]["members"].clone();
    assert_eq!(members.as_array().unwrap().len(), 1);
    assert!(!folders.0.path("b/took-over").exists());
    folders.up("a");
}

#[test]
fn finding_2_a_moved_file_adopts_its_team() {
    let folders = TwoFolders::new("demo", "other");
    folders.up("a");
    let (from, to) = (folders.0.path("a/brigade.toml"), folders.0.path("b/brigade.toml"));
    std::fs::rename(from, to).unwrap();
    assert_eq!(folders.run_in("b", &["up"]).code, Some(1));
    let adopted = folders.run_in("b", &["up", "--adopt"]);
    assert_eq!(adopted.code, Some(0), "{adopted}");
    folders.up("b");
}

/// Earlier versions of brigade recorded the folder of the team file, not the file.
#[test]
fn finding_2_a_team_without_a_recorded_file_belongs_to_its_folder() {
    let folders = TwoFolders::new("demo", "demo");
    folders.up("a");
    let host = folders.0.path("state/brigade/host");
    let store = std::fs::read_dir(&host).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(store.join("demo/origin.json")).unwrap();
    let refused = folders.run_in("b", &["up"]);
    assert!(refused.stderr.contains("belongs to <root>/a\n"), "{refused}");
    folders.up("a");
    assert!(store.join("demo/origin.json").exists());
}

#[test]
fn finding_2_up_does_not_take_over_a_team_that_is_not_up() {
    let folders = TwoFolders::new("demo", "demo");
    assert_eq!(folders.run_in("a", &["team", "create", "demo"]).code, Some(0));
    let refused = folders.run_in("b", &["up"]);
    assert!(
        refused.stderr.contains("team demo already exists and belongs to <root>/a\n"),
        "{refused}"
    );
    folders.up("a");
}

#[test]
fn finding_9_commands_in_a_folder_mean_the_team_of_its_file() {
    let folders = TwoFolders::new("demo", "other");
    folders.up("a");
    assert_snapshot!(folders.run_in("b", &["down", "--now"]), @"
    --- stderr
    error: team other is not up on this host
    hint: `brigade up` starts the team in brigade.toml
    hint: other teams run on this host (demo); choose a team with `--team TEAM`, or set BRIGADE_TEAM
    --- exit 4
    ");
    assert_snapshot!(folders.run_in("b", &["send", "alice", "hi"]), @"
    --- stderr
    error: team other of <root>/b/brigade.toml is not up
    hint: `brigade up` starts it
    hint: there are other teams (demo); choose a team with `--team TEAM`, or set BRIGADE_TEAM
    --- exit 1
    ");
    assert_snapshot!(folders.run_in("b", &["status"]), @"
    the team of this folder's brigade.toml is not running on this host
    --- stderr
    hint: `brigade up` starts it
    hint: other teams run here: demo; `brigade status --team demo` shows one
    --- exit 4
    ");
    assert_eq!(folders.run_in("b", &["stop", "alice", "--now"]).code, Some(1));
    // Without a team file, commands use the only team.
    assert_eq!(folders.run_in("", &["send", "alice", "hi"]).code, Some(0));
    let demo = folders.0.json(&["status"])[0].clone();
    assert_eq!((&demo["team"], &demo["members"][0]["name"]), (&json!("demo"), &json!("alice")));
}

#[test]
fn finding_9_a_file_with_the_name_of_another_team_does_not_choose_it() {
    let folders = TwoFolders::new("demo", "demo");
    folders.up("a");
    for args in [
        &["down", "--now"] as &[&str],
        &["send", "alice", "hi"],
        &["inbox"],
        &["status"],
        &["stop", "alice", "--now"],
        &["task", "add", "x"],
        &["team", "delete"],
    ] {
        let refused = folders.run_in("b", args);
        let why = "<root>/b/brigade.toml describes team demo, but that team belongs to <root>/a/brigade.toml";
        assert!(refused.code == Some(1) && refused.stderr.contains(why), "{args:?}: {refused}");
    }
    assert_eq!(folders.run_in("b", &["send", "alice", "hi", "--team", "demo"]).code, Some(0));
    let down = folders.run_in("a", &["down", "--now"]);
    assert_eq!(down.code, Some(0), "{down}");
}

#[test]
fn a_folder_with_an_unreadable_team_file_means_no_team() {
    let cli = CliEnv::with_team();
    cli.write("work/brigade.toml", "[members.x]\n");
    assert_snapshot!(cli.run(&["send", "bob", "hi"]), @"
    --- stderr
    error: cannot tell which team <root>/work/brigade.toml describes
    hint: `brigade up --check` shows its mistakes
    hint: choose a team with `--team TEAM`, or set BRIGADE_TEAM
    --- exit 2
    ");
}

#[test]
fn b1_new_chooses_a_name_that_no_other_file_uses() {
    let cli = CliEnv::new();
    let new_in = |folder: &str| {
        std::fs::create_dir_all(cli.path(folder)).unwrap();
        let mut command = cli.command(&["new", "--json"]);
        let output = command.current_dir(cli.path(folder)).output().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["team"].as_str().unwrap().to_owned()
    };
    assert_eq!(new_in("one/parser"), "parser");
    assert_eq!(new_in("two/parser"), "parser-2");
    cli.run_ok(&["team", "create", "lexer"]);
    assert_eq!(new_in("three/lexer"), "lexer-2");
    let japan = new_in("日本");
    assert!(japan.starts_with("team-") && japan != new_in("中国"), "{japan}");
    // A file that is gone does not use its name.
    std::fs::remove_file(cli.path("one/parser/brigade.toml")).unwrap();
    assert_eq!(new_in("four/parser"), "parser");
}

#[test]
fn b16_up_names_running_members_that_are_not_in_the_file() {
    let folders = TwoFolders::new("demo", "other");
    let file = std::fs::read_to_string(folders.0.path("a/brigade.toml")).unwrap();
    let more = format!("{file}[members.carol]\nagent = \"acp:{FAKE_AGENT}\"\n");
    folders.0.write("a/brigade.toml", &more);
    folders.up("a");
    folders.0.write("a/brigade.toml", &file);
    assert_snapshot!(folders.run_in("a", &["up"]).stderr.lines().next().unwrap(), @"note: carol is not in the file but keeps running");
    let answer = folders.run_in("a", &["up", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(answer["not_in_file"], json!(["carol"]));
}

#[test]
fn b18_check_reports_that_a_worktree_cannot_be_created() {
    let cli = CliEnv::new();
    let file =
        format!("team = \"demo\"\n[members.a]\nagent = \"acp:{FAKE_AGENT}\"\nworktree = true\n");
    cli.write("work/brigade.toml", &file);
    let path = [("PATH", std::env::var("PATH").unwrap())];
    let path = path.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_snapshot!(cli.run_with_env(&["up", "--check"], &path), @"
    --- stderr
    error: cannot create a worktree: <root>/work is not in a git repository
    hint: create a commit there first, or remove `worktree = true`
    --- exit 1
    ");
    let json = cli.run_with_env(&["up", "--check", "--json"], &path);
    assert!(json.code == Some(1) && json.stdout.contains("\"valid\":false"), "{json}");
    let git = Command::new("git").args(["init", "-q"]).current_dir(cli.path("work")).status();
    assert!(git.unwrap().success());
    let check = cli.run_with_env(&["up", "--check"], &path);
    assert!(check.stderr.contains("is in a git repository without a commit"), "{check}");
}

#[test]
fn b24_several_teams_have_one_exit_code() {
    let teams = TwoFolders(CliEnv::with_team());
    let cli = &teams.0;
    cli.run_ok(&["team", "create", "other"]);
    cli.run_ok(&["use", "--clear"]);
    for team in ["demo", "other"] {
        let agent = format!("acp:{FAKE_AGENT}");
        cli.run_ok(&["--team", team, "spawn", "carol", "--agent", &agent]);
    }
    for args in [&["send", "bob", "hi"] as &[&str], &["down"], &["inbox"], &["diff", "bob"]] {
        let refused = cli.run(args);
        let why = "error: there are several teams: demo, other\n\
                   hint: choose a team with `--team TEAM` or `brigade use TEAM`, or set BRIGADE_TEAM\n";
        assert_eq!((refused.code, refused.stderr.as_str()), (Some(2), why), "{args:?}");
    }
}

#[test]
fn b29_a_new_team_is_used_from_now_on() {
    let cli = CliEnv::new();
    assert_snapshot!(cli.run(&["team", "create", "one"]), @"created team one; you are its team-lead");
    assert_snapshot!(cli.run(&["team", "create", "two"]), @"
    created team two; you are its team-lead
    --- stderr
    hint: commands without `--team` use this team from now on; `brigade use TEAM` chooses another one
    ");
    assert_snapshot!(cli.run(&["team", "join", "bob"]), @"
    bob joined team two (color: blue)
    --- stderr
    team: two (chosen with `brigade use`)
    ");
    cli.write("work/brigade.toml", "team = \"three\"\n");
    cli.run_ok(&["team", "delete", "one"]);
    let created = cli.run(&["team", "create", "four"]);
    assert!(created.stderr.contains("BRIGADE_TEAM=four"), "{created}");
    let named = cli.run_with_env(&["team", "create", "five"], &[("BRIGADE_TEAM", "five")]);
    assert_eq!(named.stderr, "");
}
