//! `brigade doctor --fix` while other programs change what it has checked.
//!
//! The doctor lists tmux windows after it has read all files and before it fixes anything. In these tests, a program
//! named `tmux` makes a change at that moment.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use brigade_files::claude_dir_key;
use serde_json::{Value, json};

use crate::doctor::{age, doctor, file_tree, healthy_team, names};
use crate::doctor_faults::FAULTS;
use crate::env::CliEnv;

const SETTLED: &str = "already settled; nothing was changed";
const CONFIG: &str = "claude/teams/demo/config.json";
const UNREAD: &str = r#"[{"from": "alice", "text": "are you there?", "timestamp": "2026-01-01T12:00:00.000Z", "read": false}]"#;

/// Creates the fault that this check finds.
fn create_fault(cli: &CliEnv, title: &str) {
    let fault = FAULTS.iter().find(|fault| fault.title == title).unwrap();
    let _kept = (fault.create)(cli);
}

/// Runs `brigade doctor --fix`. The shell script runs once, between the checks and the fixes. Returns what the doctor
/// did about this check.
fn fix_during(cli: &CliEnv, script: &str, check: &str) -> Value {
    let once = cli.path("once");
    let once = once.display();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *list-windows*) ;; *) exit 0 ;; esac\n[ -e {once} ] && exit 0\n: > {once}\n{script}\n"
    );
    cli.write("bin/tmux", &script);
    fs::set_permissions(cli.path("bin/tmux"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = cli.command(&["doctor", "--fix", "--json"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", cli.path("bin").display()));
    let output = command.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert!(cli.path("once").exists(), "the script did not run");
    let fixed = report["fixed"].as_array().unwrap().iter().find(|fixed| fixed["check"] == check);
    fixed.cloned().unwrap_or_else(|| panic!("{report}"))
}

#[test]
fn finding_29_a_lock_that_is_taken_again_stays() {
    let cli = healthy_team();
    create_fault(&cli, "a stale lock on the roster");
    let lock = cli.path("claude/teams/demo/config.json.lock");
    let script = format!("rmdir {0} && sleep 0.05 && mkdir {0}", lock.display());
    assert_eq!(fix_during(&cli, &script, "stale-lock")["did"], SETTLED);
    assert!(lock.is_dir());
}

#[test]
fn finding_29_mail_of_a_member_that_joins_again_stays() {
    let cli = healthy_team();
    create_fault(&cli, "mail to a name that is not on the team");
    let script = format!("{} team join zoe", env!("CARGO_BIN_EXE_brigade"));
    assert_eq!(fix_during(&cli, &script, "inbox-of-nobody")["did"], SETTLED);
    assert!(cli.run_ok(&["inbox", "zoe"]).contains("are you there?"));
}

#[test]
fn finding_29_a_member_that_is_alive_again_keeps_its_seat_and_tasks() {
    let cli = healthy_team();
    create_fault(&cli, "a member whose process is gone");
    let key = claude_dir_key(&cli.path("claude"));
    let pulse = cli.path(&format!("state/brigade/files/{key}/demo/pulse/bob.json"));
    let mut alive: Value = serde_json::from_slice(&fs::read(&pulse).unwrap()).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", std::process::id())).unwrap();
    let began = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    alive["process"] = json!({ "pid": std::process::id(), "began": began });
    cli.write("alive.json", &alive.to_string());
    let script = format!("cp {} {}", cli.path("alive.json").display(), pulse.display());
    assert_eq!(fix_during(&cli, &script, "ghost-member")["did"], SETTLED);
    assert_eq!(cli.json(&["team", "show"])["members"].as_array().unwrap().len(), 3);
    assert_eq!(cli.json(&["task", "show", "1"])["owner"], "bob");
}

/// Another process may hold the lock of the member's process.
#[test]
fn finding_29_a_member_whose_process_starts_keeps_its_seat() {
    let cli = healthy_team();
    create_fault(&cli, "a member whose process is gone");
    let key = claude_dir_key(&cli.path("claude"));
    let seat = cli.path(&format!("state/brigade/host/{key}/demo/bob/seat"));
    let seat = seat.display();
    let script = format!(
        "mkdir -p $(dirname {seat}) && flock {seat} sleep 20 >/dev/null 2>&1 </dev/null & sleep 0.5"
    );
    assert_eq!(fix_during(&cli, &script, "ghost-member")["did"], SETTLED);
    assert_eq!(cli.json(&["team", "show"])["members"].as_array().unwrap().len(), 3);
}

/// Every change is listed with its backup, so that a person can undo it.
#[test]
fn finding_29_the_changes_of_a_run_are_listed() {
    let cli = healthy_team();
    create_fault(&cli, "a member that reappears after it left");
    let config = fs::read(cli.path(CONFIG)).unwrap();
    let (report, _) = doctor(&cli, None, &["--fix"]);
    let runs = fs::read_dir(cli.path("state/brigade/doctor")).unwrap();
    let runs: Vec<_> = runs.map(|run| run.unwrap().path()).collect();
    let [run] = runs.as_slice() else { panic!("{runs:?}") };
    let list = fs::read_to_string(run.join("changes.jsonl")).unwrap();
    let change: Value = serde_json::from_str(list.lines().next().unwrap()).unwrap();
    assert_eq!(change, report["fixed"][0]);
    assert_eq!(fs::read(run.join("teams/demo/config.json")).unwrap(), config);
}

/// A team of the same name that Claude Code created after brigade's team was deleted without brigade.
fn later_native_team(config: &str) -> CliEnv {
    let cli = healthy_team();
    for folder in ["claude/teams/demo", "claude/tasks/demo"] {
        fs::remove_dir_all(cli.path(folder)).unwrap();
    }
    cli.write(CONFIG, config);
    cli.write("claude/tasks/demo/2.json", r#"{"id": "2", "sub"#);
    for file in [CONFIG, "claude/tasks/demo/2.json"] {
        age(&cli.path(file), 60);
    }
    cli
}

/// Finding 28: data of an earlier team must not be written over the files of a later one.
#[test]
fn finding_28_an_earlier_team_of_the_same_name_is_not_restored() {
    for config in ["", "{", r#"{"name": "demo", "createdAt": 1763180000000, "leadAg"#] {
        let cli = later_native_team(config);
        let before = file_tree(&cli.path("claude"));
        let (report, code) = doctor(&cli, None, &["--fix"]);
        assert_eq!((names(&report), code), (vec!["torn-file".to_owned()], Some(1)), "{report}");
        assert_eq!(report["fixed"], json!([]), "{config}");
        assert_eq!(file_tree(&cli.path("claude")), before, "{config}");
        // Nor do other commands restore it.
        assert_ne!(cli.run(&["team", "show", "demo"]).code, Some(0));
        assert_eq!(fs::read_to_string(cli.path(CONFIG)).unwrap(), config);
    }
}

/// Finding 28: a readable roster of a later team does not make the tasks of an earlier team restorable.
#[test]
fn finding_28_tasks_of_an_earlier_team_are_not_restored() {
    let config =
        fs::read_to_string(CliEnv::with_native_team().path("claude/teams/theirs/config.json"));
    let cli = later_native_team(&config.unwrap().replace("theirs", "demo"));
    let before = fs::read(cli.path("claude/tasks/demo/2.json")).unwrap();
    let (report, _) = doctor(&cli, None, &["--fix"]);
    assert_eq!((names(&report), &report["fixed"]), (vec!["torn-file".to_owned()], &json!([])));
    assert_eq!(fs::read(cli.path("claude/tasks/demo/2.json")).unwrap(), before);
}

/// Finding 34: a linked folder is reported, and nothing in it is touched.
#[test]
fn finding_34_a_linked_folder_of_inboxes_is_not_followed() {
    let cli = healthy_team();
    let inboxes = cli.path("claude/teams/demo/inboxes");
    fs::rename(&inboxes, cli.path("elsewhere")).unwrap();
    cli.write("elsewhere/zoe.json", UNREAD);
    fs::create_dir(cli.path("elsewhere/bob.json.lock")).unwrap();
    for file in ["elsewhere/zoe.json", "elsewhere/bob.json.lock"] {
        age(&cli.path(file), 3600);
    }
    symlink(cli.path("elsewhere"), &inboxes).unwrap();
    let before = file_tree(&cli.path("elsewhere"));
    let (report, _) = doctor(&cli, None, &["--fix"]);
    assert_eq!(names(&report), ["foreign-file"], "{report}");
    assert_eq!(report["findings"][0]["place"], inboxes.to_str().unwrap());
    assert_eq!(report["fixed"], json!([]));
    assert_eq!(file_tree(&cli.path("elsewhere")), before);
}

fn stale_lock(path: &Path) {
    fs::create_dir_all(path).unwrap();
    age(path, 60);
}

/// B25: `--team` limits the doctor to one team.
#[test]
fn b25_other_teams_are_not_checked() {
    let cli = healthy_team();
    cli.run_ok(&["team", "create", "other"]);
    for team in ["demo", "other"] {
        stale_lock(&cli.path(&format!("claude/teams/{team}/config.json.lock")));
        let tree = format!("state/brigade/worktrees/{team}/carl/.git");
        cli.write(&tree, "gitdir: /nowhere/.git/worktrees/carl\n");
    }
    let (report, _) = doctor(&cli, None, &["--team", "other", "--fix"]);
    assert_eq!(names(&report), ["open-worktree"], "{report}");
    let place = report["findings"][0]["place"].as_str().unwrap();
    assert!(place.ends_with("worktrees/other/carl"), "{report}");
    assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["fixed"].as_array().unwrap().len(), 1, "{report}");
    assert!(cli.path("claude/teams/demo/config.json.lock").is_dir());
    assert!(!cli.path("claude/teams/other/config.json.lock").exists());
    let unknown = cli.run(&["--team", "nosuch", "doctor"]);
    assert_eq!(unknown.code, Some(1), "{unknown}");
    assert!(unknown.stderr.starts_with("error: no team named \"nosuch\""), "{unknown}");
}
