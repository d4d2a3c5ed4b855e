//! Mistakes that new users make: each causes a helpful error, and no process is started.

use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;

use crate::env::{CliEnv, FAKE_AGENT};
use crate::host::HostedTeam;

/// An environment without any installed program.
fn without_programs() -> CliEnv {
    let mut cli = CliEnv::new();
    cli.variables.push(("PATH", cli.path("none").to_str().unwrap().to_owned()));
    cli
}

#[test]
fn a_misspelled_agent_gets_a_suggestion() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["spawn", "carol", "--agent", "codx"]), @r#"
    --- stderr
    error: unknown agent "codx"
    hint: did you mean codex? supported agents: codex, claude, gemini, opencode, copilot, qwen, acp:COMMAND
    --- exit 2
    "#);
    let none = cli.run(&["spawn", "carol", "--agent", "cursor"]);
    assert!(!none.stderr.contains("did you mean"), "{}", none.stderr);
}

fn members_there(cli: &CliEnv) -> bool {
    cli.path("claude/teams/demo").exists()
}

#[test]
fn an_agent_that_is_not_installed_is_refused() {
    let cli = without_programs();
    cli.write(
        "work/brigade.toml",
        "team = \"demo\"\n[members.bob]\nagent = \"codex\"\n[members.gem]\nagent = \"gemini\"\nplace = \"tmux\"\n",
    );
    assert_snapshot!(cli.run(&["up"]), @"
    --- stderr
    error: not installed: codex, gemini, tmux
    hint: `npm install -g @openai/codex`; `brigade agents` lists the installed agents
    hint: `npm install -g @google/gemini-cli`; `brigade agents` lists the installed agents
    hint: install tmux with your package manager
    --- exit 1
    ");
    assert!(!members_there(&cli));
    cli.run_ok(&["team", "create", "demo"]);
    assert_snapshot!(cli.run(&["spawn", "bob", "--agent", "codex"]), @"
    --- stderr
    error: not installed: codex
    hint: `npm install -g @openai/codex`; `brigade agents` lists the installed agents
    --- exit 1
    ");
    assert_eq!(cli.run(&["status"]).code, Some(4), "a team was started");
}

#[test]
fn a_worktree_needs_git_and_a_commit() {
    let mut cli = without_programs();
    cli.write(
        "work/brigade.toml",
        &format!("team = \"demo\"\n[members.bob]\nagent = \"acp:{FAKE_AGENT}\"\nworktree = true\n"),
    );
    assert_snapshot!(cli.run(&["up"]), @"
    --- stderr
    error: not installed: git
    hint: install git with your package manager
    --- exit 1
    ");
    cli.variables = vec![("PATH", std::env::var("PATH").unwrap())];
    let refused = cli.run(&["up"]);
    assert!(refused.stderr.contains("is not in a git repository"), "{}", refused.stderr);
    git(&cli.path("work"), &["init", "--quiet"]);
    let refused = cli.run(&["up"]);
    assert!(refused.stderr.contains("without a commit"), "{}", refused.stderr);
    assert_eq!(refused.code, Some(1));
    assert!(!members_there(&cli));
}

fn git(dir: &Path, args: &[&str]) {
    let done = Command::new("git").current_dir(dir).args(args).status().unwrap();
    assert!(done.success(), "{args:?}");
}

#[test]
fn new_notes_that_no_agent_is_installed() {
    let cli = CliEnv::new();
    assert_snapshot!(cli.run(&["new"]), @"
    wrote brigade.toml: team work with claude
    edit it, then preview the team with `brigade up --check`
    --- stderr
    note: claude is not installed, and neither is any other agent; `brigade agents` shows how to install one
    ");
}

#[test]
fn help_command_and_option_are_equivalent() {
    let cli = CliEnv::new();
    assert_eq!(cli.run_ok(&["help"]), cli.run_ok(&["--help"]));
    assert_eq!(cli.run_ok(&["help", "task", "add"]), cli.run_ok(&["task", "add", "--help"]));
    let unknown = cli.run(&["help", "statsu"]);
    assert!(unknown.stderr.contains("'status'"), "{}", unknown.stderr);
}

#[test]
fn hints_if_no_team_is_running() {
    assert_snapshot!(CliEnv::new().run(&["status"]), @"
    no team is running on this host
    --- stderr
    hint: `brigade new` writes a brigade.toml, `brigade up` starts its team
    --- exit 4
    ");
    let cli = CliEnv::new();
    cli.write("work/brigade.toml", "team = \"demo\"\n");
    assert_snapshot!(cli.run(&["down"]), @"
    --- stderr
    error: no team is up on this host
    hint: `brigade up` starts the team in brigade.toml
    --- exit 4
    ");
    cli.write("state/brigade/host/0123456789abcdef/far/team.json", "{}");
    assert_snapshot!(cli.run(&["status"]), @"
    no team is running on this host
    --- stderr
    hint: far runs here but lives in another store; choose it with `--store`, BRIGADE_STORE or CLAUDE_CONFIG_DIR
    --- exit 4
    ");
    assert_snapshot!(CliEnv::with_team().run(&["down", "demo"]), @"
    --- stderr
    error: team demo is not up on this host
    hint: the team was not started on this host; `brigade ui --team demo` shows it, `brigade up` starts the team of a brigade.toml, `brigade team delete demo` deletes it
    --- exit 1
    ");
    assert_snapshot!(CliEnv::with_native_team().run(&["status"]), @"
    theirs  1 member
      Claude Code leads; no running session was found
      MEMBER  AGENT            STATE
      bob     general-purpose  idle (run by Claude Code)
    ");
}

#[test]
fn a_new_task_can_have_an_owner() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["task", "add", "Write the docs", "--owner", "bob"]), @"added task 1 and notified bob");
    let inbox = cli.run(&["inbox", "bob"]);
    assert!(inbox.stdout.contains("Write the docs"), "{}", inbox.stdout);
    assert_snapshot!(cli.run(&["task", "add", "Print them", "--owner", "nobody"]), @r#"
    --- stderr
    error: cannot assign the task: no member named "nobody"
    hint: members: team-lead, alice, bob
    --- exit 1
    "#);
    assert_eq!(cli.json(&["task", "list"]).as_array().unwrap().len(), 1, "a second task was added");
}

#[test]
fn deny_requires_a_reason() {
    let refused = CliEnv::with_team().run(&["deny", "1", "--reason", ""]);
    assert_eq!(refused.code, Some(2), "{refused}");
}

#[test]
fn a_teammate_cannot_stop_others_as_the_lead() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["--as", "bob", "stop", "alice"]), @"
    --- stderr
    error: only the lead may ask a member to stop; bob is not the lead of team demo
    hint: `--as NAME` sets the member you act as
    --- exit 1
    ");
}

/// An agent with the lead's name would receive the mail for the person who leads the team.
#[test]
fn spawn_refuses_names_in_use() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["spawn", "team-lead", "--agent", "codex"]), @"
    --- stderr
    error: team-lead is the name of the lead of team demo; no member can have it
    hint: choose another name; to let an agent lead, add `[lead]` to brigade.toml
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["spawn", "BOB", "--agent", "codex"]), @r#"
    --- stderr
    error: 'BOB' would share an inbox with "bob"; choose another name
    hint: `brigade team show` lists the members
    --- exit 1
    "#);
    let here = cli.run(&["spawn", "team-lead", "--agent", "codex", "--place", "here"]);
    assert!(here.stderr.contains("is the name of the lead of team demo"), "{here}");
}

#[test]
fn a_mistyped_team_name_is_corrected() {
    let cli = CliEnv::with_team();
    let sent = cli.run(&["send", "bob", "hi", "--team", "dmeo"]);
    assert!(sent.stderr.contains("hint: did you mean demo? teams: demo\n"), "{sent}");
}

#[test]
fn deleting_a_running_team_names_its_members() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    let deleted = team.cli.run(&["team", "delete", "demo", "--force"]);
    assert_eq!(deleted.code, Some(0), "{deleted}");
    assert!(deleted.stderr.contains("the members on this host (alice, bob) end"), "{deleted}");
}

/// The advice to create a team does not fit a folder that has a team file.
#[test]
fn commands_for_a_team_that_is_down_name_its_file() {
    let cli = CliEnv::new();
    let file = format!("team = \"demo\"\n[members.bob]\nagent = \"acp:{FAKE_AGENT}\"\n");
    cli.write("work/brigade.toml", &file);
    let is_not_up = "team demo of <root>/work/brigade.toml is not up";
    let commands: [&[&str]; 12] = [
        &["send", "bob", "hello"],
        &["broadcast", "hello"],
        &["ask", "bob", "hello?"],
        &["inbox"],
        &["task", "add", "One"],
        &["task", "list"],
        &["approvals"],
        &["wait", "--tasks"],
        &["team", "show"],
        &["restart", "bob"],
        &["stop", "bob"],
        &["send", "bob", "hello", "--team", "demo"],
    ];
    for command in commands {
        let outcome = cli.run(command);
        let expected = format!("error: {is_not_up}\nhint: `brigade up` starts it\n");
        assert_eq!(outcome.stderr, expected, "{command:?}");
        assert_eq!(outcome.code, Some(1), "{command:?}");
    }
    let sentence = format!("{is_not_up}; `brigade up` starts it\n");
    assert_eq!(cli.run(&[]).stdout, sentence);
    assert_eq!(cli.run(&["team", "list"]).stderr, format!("note: {sentence}"));
    let status = cli.run(&["status"]);
    assert!(status.stderr.contains("`brigade up` starts the team in brigade.toml"), "{status}");
}
