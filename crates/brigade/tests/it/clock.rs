//! Commands after the clock was set forward or back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use brigade_files::claude_dir_key;

use crate::env::{CliEnv, FAKE_AGENT};
use crate::process::wait_until;

const SECRET: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// An environment with a running member. Dropping it takes the team down.
struct RunningMember(CliEnv);

impl Drop for RunningMember {
    fn drop(&mut self) {
        let _none_up = self.0.run(&["down", "--now"]);
    }
}

fn millis(at: SystemTime) -> u128 {
    at.duration_since(UNIX_EPOCH).unwrap().as_millis()
}

/// Finding 26: a member whose key was made by a wrong clock hears its lead.
#[test]
fn finding_26_an_approval_reaches_a_member_whose_key_is_from_another_time() {
    let now = SystemTime::now();
    for made in [now + HOUR, now + DAY, now - HOUR, now - DAY] {
        let team = RunningMember(CliEnv::new());
        let cli = &team.0;
        let file = format!("team = \"demo\"\n[members.alice]\nagent = \"acp:{FAKE_AGENT}\"\n");
        cli.write("work/brigade.toml", &file);
        let key =
            format!("state/brigade/host/{}/demo/alice/key", claude_dir_key(&cli.path("claude")));
        cli.write(&key, &format!("{}.{SECRET}\n", millis(made)));
        fs::set_permissions(cli.path(&key), fs::Permissions::from_mode(0o600)).unwrap();
        cli.run_ok(&["up"]);
        cli.run_ok(&["send", "alice", "ASK"]);
        wait_until("the permission request", || {
            cli.run(&["approvals", "--json"]).stdout.contains("make")
        });
        let approved = cli.run_ok(&["approve", "1"]);
        assert!(approved.starts_with("approved alice's permission 1"), "{approved}");
        wait_until("the answer", || {
            let heard = fs::read_to_string(cli.path("work/heard")).unwrap_or_default();
            heard.contains("allow-it")
        });
    }
}

/// Finding 41: the log shows where the clock was set back.
#[test]
fn finding_41_the_log_marks_a_clock_that_was_set_back() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "before"]);
    // Date the events so far an hour ahead, as if the clock had been wrong.
    let journal = cli.path(&format!(
        "state/brigade/files/{}/demo/team.jsonl",
        claude_dir_key(&cli.path("claude"))
    ));
    let text = fs::read_to_string(&journal).unwrap();
    let ahead = |line: &str| {
        if line.is_empty() {
            return String::new();
        }
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        let at: jiff::Timestamp = record["at"].as_str().unwrap().parse().unwrap();
        let later = at + jiff::SignedDuration::from_hours(1);
        record["at"] = later.to_string().into();
        record.to_string()
    };
    let lines: Vec<String> = text.split('\n').map(ahead).collect();
    fs::write(&journal, lines.join("\n")).unwrap();
    assert!(!cli.run_ok(&["log"]).contains("clock"));
    cli.run_ok(&["task", "add", "after"]);
    let log = cli.run_ok(&["log"]);
    let lines: Vec<&str> = log.lines().collect();
    let mark = lines.iter().position(|line| line.starts_with("-- the clock was set back by "));
    let mark = mark.unwrap_or_else(|| panic!("{log}"));
    assert!(lines[mark - 1].ends_with("task 1 added: before"), "{log}");
    // Before midnight, the line with the date comes first.
    let after = lines[mark + 1..].iter().find(|line| line.contains(':'));
    assert!(after.is_some_and(|line| line.ends_with("task 2 added: after")), "{log}");
}
