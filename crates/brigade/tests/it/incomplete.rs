//! Commands on a full disk: a change that took effect is not reported as failed.

use std::fs;
use std::process::Command;

use brigade_files::claude_dir_key;

use crate::env::{CliEnv, Outcome};

/// Makes the team's journal larger than the size that [`limited`] allows. Blank lines are not records.
fn fill_journal(cli: &CliEnv) {
    let key = claude_dir_key(&cli.path("claude"));
    let journal = cli.path(&format!("state/brigade/files/{key}/demo/team.jsonl"));
    let mut text = fs::read(&journal).unwrap();
    text.resize(text.len() + (4 << 20), b'\n');
    fs::write(journal, text).unwrap();
}

/// Runs a command that can write small files but cannot extend the journal, as on a full disk.
fn limited(cli: &CliEnv, args: &[&str]) -> Outcome {
    let brigade = cli.command(args);
    let mut sh = Command::new("sh");
    sh.args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\""]);
    sh.arg(brigade.get_program()).args(brigade.get_args()).env_clear();
    for (name, value) in brigade.get_envs() {
        sh.env(name, value.unwrap_or_default());
    }
    sh.env("PATH", "/usr/bin:/bin").current_dir(cli.path("work"));
    cli.outcome(&sh.output().unwrap())
}

/// Finding 35: the task exists, so the command must not fail and a script must not add it again. Finding 39: the log
/// later names the author.
#[test]
fn finding_35_a_task_whose_event_was_not_written_counts_as_added() {
    let cli = CliEnv::with_team();
    fill_journal(&cli);
    let added = limited(&cli, &["task", "add", "one"]);
    assert_eq!(added.code, Some(0), "{added}");
    assert_eq!(added.stdout, "added task 1\n");
    let warning = "warning: task 1 was added, but the log does not show it yet: cannot write";
    assert!(added.stderr.starts_with(warning), "{added}");
    assert_eq!(cli.json(&["task", "list"]).as_array().unwrap().len(), 1);
    let log = cli.run_ok(&["log"]);
    assert!(log.contains("  team-lead           task 1 added: one\n"), "{log}");
    assert_eq!(log.matches("task 1 added").count(), 1, "{log}");
}

#[test]
fn finding_35_a_team_whose_event_was_not_written_counts_as_created_and_deleted() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["team", "delete", "--force"]);
    fill_journal(&cli);
    let created = limited(&cli, &["team", "create", "demo"]);
    assert_eq!(created.code, Some(0), "{created}");
    assert!(created.stderr.starts_with("warning: team demo was created, but "), "{created}");
    assert_eq!(cli.json(&["team", "list"]).as_array().unwrap().len(), 1);
    // The team is brigade's own, although not every step succeeded.
    cli.run_ok(&["team", "join", "alice"]);
    let deleted = limited(&cli, &["team", "delete", "demo", "--force"]);
    assert_eq!(deleted.code, Some(0), "{deleted}");
    assert!(deleted.stderr.starts_with("warning: team demo was deleted, but "), "{deleted}");
    assert!(!cli.path("claude/teams/demo").exists());
    let log = cli.run_ok(&["--team", "demo", "log"]);
    assert!(log.ends_with("  team-lead           team deleted\n"), "{log}");
    assert!(!log.contains("Claude Code"), "{log}");
}
