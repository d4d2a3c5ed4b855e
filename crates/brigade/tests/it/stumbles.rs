//! Where somebody who is new here stumbles: what is said then, and that nothing was begun.

use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;

use crate::env::House;

const FAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-agent.sh");

/// A house in which no program is to be found.
fn bare() -> House {
    let mut house = House::new();
    house.variables.push(("PATH", house.path("none").to_str().unwrap().to_owned()));
    house
}

#[test]
fn a_misspelled_agent_is_guessed() {
    let house = House::with_team();
    assert_snapshot!(house.run(&["spawn", "carol", "--agent", "codx"]), @r#"
    --- stderr
    error: there is no driver for the agent "codx"
    hint: did you mean codex? brigade drives codex, claude, gemini, opencode, copilot, qwen, and acp:COMMAND
    --- exit 2
    "#);
    let none = house.run(&["spawn", "carol", "--agent", "cursor"]);
    assert!(!none.stderr.contains("did you mean"), "{}", none.stderr);
}

fn members_there(house: &House) -> bool {
    house.path("claude/teams/demo").exists()
}

#[test]
fn an_agent_that_is_not_installed_is_not_started() {
    let house = bare();
    house.write(
        "work/brigade.toml",
        "team = \"demo\"\n[members.bob]\nagent = \"codex\"\n[members.gem]\nagent = \"gemini\"\nplace = \"tmux\"\n",
    );
    assert_snapshot!(house.run(&["up"]), @"
    --- stderr
    error: not installed: codex, gemini, tmux
    hint: `npm install -g @openai/codex`; `brigade agents` shows what is here
    hint: `npm install -g @google/gemini-cli`; `brigade agents` shows what is here
    hint: install tmux with your package manager
    --- exit 1
    ");
    assert!(!members_there(&house));
    house.done(&["team", "create", "demo"]);
    assert_snapshot!(house.run(&["spawn", "bob", "--agent", "codex"]), @"
    --- stderr
    error: not installed: codex
    hint: `npm install -g @openai/codex`; `brigade agents` shows what is here
    --- exit 1
    ");
    assert_eq!(house.run(&["status"]).code, Some(4), "nobody is up");
}

#[test]
fn a_worktree_needs_git_and_a_commit() {
    let mut house = bare();
    house.write(
        "work/brigade.toml",
        &format!("team = \"demo\"\n[members.bob]\nagent = \"acp:{FAKE}\"\nworktree = true\n"),
    );
    assert_snapshot!(house.run(&["up"]), @"
    --- stderr
    error: not installed: git
    hint: install git with your package manager
    --- exit 1
    ");
    house.variables = vec![("PATH", std::env::var("PATH").unwrap())];
    let refused = house.run(&["up"]);
    assert!(refused.stderr.contains("is in no git repository"), "{}", refused.stderr);
    git(&house.path("work"), &["init", "--quiet"]);
    let refused = house.run(&["up"]);
    assert!(refused.stderr.contains("without a commit"), "{}", refused.stderr);
    assert_eq!(refused.code, Some(1));
    assert!(!members_there(&house));
}

fn git(dir: &Path, args: &[&str]) {
    let done = Command::new("git").current_dir(dir).args(args).status().unwrap();
    assert!(done.success(), "{args:?}");
}

#[test]
fn a_first_file_where_no_agent_is_says_so() {
    let house = House::new();
    assert_snapshot!(house.run(&["new"]), @"
    wrote brigade.toml: team work, with claude
    read it, change it, and look at the outcome with `brigade up --check`
    --- stderr
    note: claude is not installed, and no other agent is; `brigade agents` says how to get one
    ");
}

#[test]
fn help_can_be_asked_for_in_either_way() {
    let house = House::new();
    assert_eq!(house.done(&["help"]), house.done(&["--help"]));
    assert_eq!(house.done(&["help", "task", "add"]), house.done(&["task", "add", "--help"]));
    let unknown = house.run(&["help", "statsu"]);
    assert!(unknown.stderr.contains("'status'"), "{}", unknown.stderr);
}

#[test]
fn where_no_team_is_up_the_next_step_is_told() {
    assert_snapshot!(House::new().run(&["status"]), @"
    no team is up on this host
    --- stderr
    hint: `brigade new` writes a brigade.toml, `brigade up` brings it up
    --- exit 4
    ");
    let house = House::new();
    house.write("work/brigade.toml", "team = \"demo\"\n");
    assert_snapshot!(house.run(&["down"]), @"
    --- stderr
    error: no team is up on this host
    hint: `brigade up` brings up what is in brigade.toml
    --- exit 4
    ");
    house.write("state/brigade/host/0123456789abcdef/far/team.json", "{}");
    assert_snapshot!(house.run(&["status"]), @"
    no team is up on this host
    --- stderr
    hint: up on this host, and kept elsewhere, is far; say where with `--store`, BRIGADE_STORE or CLAUDE_CONFIG_DIR
    --- exit 4
    ");
    assert_snapshot!(House::with_team().run(&["down", "demo"]), @"
    --- stderr
    error: team demo is not up on this host
    hint: nobody brought it up here; `brigade team delete demo` deletes it
    --- exit 1
    ");
    assert_snapshot!(House::with_native_team().run(&["status"]), @"
    no team is up on this host
    --- stderr
    hint: theirs was not brought up here; `brigade` and `brigade ui` show it
    --- exit 4
    ");
}

#[test]
fn a_new_task_can_be_somebodys_at_once() {
    let house = House::with_team();
    assert_snapshot!(house.run(&["task", "add", "Write the docs", "--owner", "bob"]), @"added task 1, and told bob");
    let inbox = house.run(&["inbox", "bob"]);
    assert!(inbox.stdout.contains("Write the docs"), "{}", inbox.stdout);
    assert_snapshot!(house.run(&["task", "add", "Print them", "--owner", "nobody"]), @r#"
    --- stderr
    error: cannot assign the task: no member named "nobody"
    hint: members are team-lead, alice, bob
    --- exit 1
    "#);
    assert_eq!(house.json(&["task", "list"]).as_array().unwrap().len(), 1, "not half of it");
}

#[test]
fn a_no_has_a_reason() {
    let refused = House::with_team().run(&["deny", "1", "--reason", ""]);
    assert_eq!(refused.code, Some(2), "{refused}");
}

#[test]
fn a_teammate_does_not_end_others_in_the_leads_name() {
    let house = House::with_team();
    assert_snapshot!(house.run(&["--as", "bob", "stop", "alice"]), @"
    --- stderr
    error: only the lead may ask a member to stop; bob is not the lead of team demo
    hint: `--as NAME` says who you are
    --- exit 1
    ");
}

/// An agent in the lead's seat would be shown the person's own mail.
#[test]
fn nobody_is_started_under_the_name_of_another() {
    let house = House::with_team();
    assert_snapshot!(house.run(&["spawn", "team-lead", "--agent", "codex"]), @"
    --- stderr
    error: team-lead is the lead of team demo, and no other member can be
    hint: choose another name; `[lead]` in brigade.toml has an agent lead
    --- exit 1
    ");
    assert_snapshot!(house.run(&["spawn", "BOB", "--agent", "codex"]), @r#"
    --- stderr
    error: 'BOB' would share an inbox with "bob"; choose another name
    hint: `brigade team show` lists the members
    --- exit 1
    "#);
    let here = house.run(&["spawn", "team-lead", "--agent", "codex", "--place", "here"]);
    assert!(here.stderr.contains("is the lead of team demo"), "{here}");
}
