//! `brigade doctor` finds every fault, and `--fix` repairs what it can and changes nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::doctor_faults::{FAULTS, Fault};
use crate::env::CliEnv;

/// Lists every file and folder below a folder, with mode, modification time and content.
type FileTree = BTreeMap<String, (u32, i64, i64, Vec<u8>)>;

pub(crate) fn file_tree(root: &Path) -> FileTree {
    let mut tree = FileTree::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let bytes = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if meta.is_dir() {
                dirs.push(path.clone());
            }
            let state = (meta.mode(), meta.mtime(), meta.mtime_nsec(), bytes);
            tree.insert(path.to_str().unwrap().to_owned(), state);
        }
    }
    tree
}

/// Sets a file's modification time to this many seconds ago.
pub(crate) fn age(path: &Path, seconds: i64) {
    let span = Duration::from_secs(seconds.unsigned_abs());
    let now = SystemTime::now();
    let then = if seconds < 0 { now + span } else { now - span };
    fs::File::open(path).unwrap().set_modified(then).unwrap();
}

/// Creates a team with read and unread mail, and a chain of dependent tasks on its board.
pub(crate) fn healthy_team() -> CliEnv {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "alice", "first"]);
    cli.run_ok(&["send", "alice", "second"]);
    cli.run_ok(&["--as", "alice", "inbox", "--mark-read"]);
    cli.run_ok(&["send", "bob", "third"]);
    cli.run_ok(&["task", "add", "one"]);
    cli.run_ok(&["task", "add", "two", "--blocked-by", "1"]);
    cli.run_ok(&["--as", "bob", "task", "claim", "1"]);
    cli
}

/// Runs `brigade doctor` and returns its report and exit code.
pub(crate) fn doctor(cli: &CliEnv, fault: Option<&Fault>, args: &[&str]) -> (Value, Option<i32>) {
    let mut command = cli.command(&[&["doctor", "--json"], args].concat());
    if fault.is_some_and(|fault| fault.has_path) {
        command.env("PATH", format!("{}:/usr/bin:/bin", cli.path("bin").display()));
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let report = serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    (report, output.status.code())
}

/// Returns the names of the checks that found something, without duplicates.
pub(crate) fn names(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let mut names: Vec<String> =
        findings.map(|finding| finding["check"].as_str().unwrap().to_owned()).collect();
    names.dedup();
    names
}

#[test]
fn every_fault_is_found_and_fixed_if_possible() {
    assert!(FAULTS.len() >= 15);
    for fault in FAULTS {
        let cli = healthy_team();
        let (before, code) = doctor(&cli, None, &[]);
        assert_eq!((names(&before), code), (vec![], Some(0)), "{}: {before}", fault.title);
        let _kept = (fault.create)(&cli);
        let seeded = file_tree(&cli.root);
        let (found, code) = doctor(&cli, Some(fault), &[]);
        assert_eq!(
            (names(&found), code),
            (vec![fault.check.to_owned()], Some(1)),
            "{}: {found}",
            fault.title
        );
        // Without `--fix`, `brigade doctor` changes no file.
        assert_eq!(file_tree(&cli.root), seeded, "{}", fault.title);
        for finding in found["findings"].as_array().unwrap() {
            for key in ["place", "what", "means", "remedy"] {
                assert!(!finding[key].as_str().unwrap().is_empty(), "{}: {finding}", fault.title);
            }
            assert_eq!(
                finding["fixable"],
                fault.assert_fixed.is_some(),
                "{}: {finding}",
                fault.title
            );
        }
        let (fixed, code) = doctor(&cli, Some(fault), &["--fix"]);
        let (again, _) = doctor(&cli, Some(fault), &[]);
        match fault.assert_fixed {
            Some(assert_fixed) => {
                assert_eq!((names(&fixed), code), (vec![], Some(0)), "{}: {fixed}", fault.title);
                assert_eq!(fixed["fixed"][0]["check"], fault.check, "{}: {fixed}", fault.title);
                assert!(fixed["fixed"][0]["did"].is_string(), "{}: {fixed}", fault.title);
                assert_eq!(names(&again), Vec::<String>::new(), "{}: {again}", fault.title);
                assert_fixed(&cli);
            }
            None => {
                assert_eq!((names(&again), code), (vec![fault.check.to_owned()], Some(1)));
                assert_eq!(file_tree(&cli.root), seeded, "{}: {fixed}", fault.title);
            }
        }
    }
}

/// After a fix, the old content of every Claude Code file still exists, in the file or in the backup folder.
#[test]
fn fixes_lose_no_files() {
    for fault in FAULTS.iter().filter(|fault| fault.assert_fixed.is_some()) {
        let cli = healthy_team();
        let _kept = (fault.create)(&cli);
        let native = file_tree(&cli.path("claude"));
        let _fixed = doctor(&cli, Some(fault), &["--fix"]);
        let after = file_tree(&cli.root);
        for (path, (_, _, _, bytes)) in native {
            let is_kept = after.values().any(|(_, _, _, after)| *after == bytes);
            assert!(bytes.is_empty() || is_kept, "{}: {path}", fault.title);
        }
    }
}

#[test]
fn healthy_files_are_not_changed() {
    let cli = healthy_team();
    let native = CliEnv::with_native_team();
    let theirs = "claude/teams/theirs/config.json";
    cli.write(theirs, &fs::read_to_string(native.path(theirs)).unwrap());
    cli.write("claude/teams/theirs/inboxes/bob.json", "[]");
    cli.write("claude/tasks/theirs/.lock", "");
    // Claude Code keeps the tasks of an ended session. It creates a team's folders before it writes the roster.
    cli.write("claude/tasks/session-0a1b2c3d/1.json", "{\"id\": \"1\"}");
    fs::create_dir_all(cli.path("claude/teams/session-4d3c2b1a/inboxes")).unwrap();
    // These locks are fresh, so another program may hold them.
    for lock in ["teams/demo/inboxes/bob.json.lock", "tasks/demo/.lock.lock"] {
        fs::create_dir(cli.path(&format!("claude/{lock}"))).unwrap();
    }
    let before = file_tree(&cli.root);
    for args in [&[][..], &["--fix"], &["--fix"]] {
        let (report, code) = doctor(&cli, None, args);
        assert_eq!((report["findings"].as_array().unwrap().len(), code), (0, Some(0)), "{report}");
        assert_eq!(report["fixed"], serde_json::json!([]));
    }
    let after = file_tree(&cli.root);
    for (path, state) in &before {
        assert_eq!(after.get(path), Some(state), "{path}");
    }
    assert_eq!(after.len(), before.len());
}

/// Runs `brigade doctor --fix` on files that Claude Code wrote in recorded scenarios.
#[test]
fn fixtures_of_claude_code_are_not_changed() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/claude-code");
    let mut seen = 0;
    for version in ["2.1.50", "2.1.325"] {
        for end in fs::read_dir(fixtures.join(version)).unwrap() {
            let end = end.unwrap().path();
            if !end.join("teams").is_dir() {
                continue;
            }
            let cli = CliEnv::new();
            let from = end.to_str().unwrap();
            for (path, (_, _, _, bytes)) in file_tree(&end) {
                if Path::new(&path).is_file() {
                    let to = cli
                        .path("claude")
                        .join(path.strip_prefix(from).unwrap().trim_start_matches('/'));
                    fs::create_dir_all(to.parent().unwrap()).unwrap();
                    fs::write(to, bytes).unwrap();
                }
            }
            let before = file_tree(&cli.path("claude"));
            let (report, _) = doctor(&cli, None, &["--fix"]);
            assert_eq!(report["fixed"], serde_json::json!([]), "{}", end.display());
            // The `tolerance-end` recordings contain damaged files on purpose.
            if !end.ends_with("tolerance-end") {
                assert_eq!(names(&report), Vec::<String>::new(), "{}: {report}", end.display());
            }
            assert_eq!(file_tree(&cli.path("claude")), before, "{}", end.display());
            seen += 1;
        }
    }
    assert!(seen > 2, "{seen}");
}

#[test]
fn fixes_in_claude_code_teams_are_limited() {
    let cli = CliEnv::with_native_team();
    let task = |id: u64, fields: &str| {
        let text = format!(r#"{{"id": "{id}", "subject": "s", "description": "", {fields}}}"#);
        cli.write(&format!("claude/tasks/theirs/{id}.json"), &text);
    };
    task(1, r#""owner": "zoe", "status": "in_progress", "blocks": [], "blockedBy": []"#);
    task(2, r#""status": "pending""#);
    task(3, r#""status": "pending", "blocks": [], "blockedBy": ["9"]"#);
    let inbox = "claude/teams/theirs/inboxes/zoe.json";
    cli.write(
        inbox,
        r#"[{"from": "bob", "text": "hi", "timestamp": "2026-01-01T12:00:00.000Z", "read": false}]"#,
    );
    age(&cli.path(inbox), 3600);
    let before = file_tree(&cli.root);
    let (report, code) = doctor(&cli, None, &["--fix"]);
    let found = ["inbox-of-nobody", "invisible-task", "task-of-nobody", "lost-dependency"];
    assert_eq!((names(&report), code), (found.map(str::to_owned).to_vec(), Some(1)));
    assert_eq!(report["fixed"], serde_json::json!([]));
    assert_eq!(file_tree(&cli.root), before);
}

#[test]
fn many_teams_are_checked_quickly() {
    let cli = CliEnv::with_team();
    let message = r#"{"from":"bob","text":"a message of some length, as they are","timestamp":"2026-11-15T12:00:00.000Z","read":true}"#;
    let inbox = format!("[{}]", vec![message; 200].join(","));
    let config = fs::read_to_string(cli.path("claude/teams/demo/config.json")).unwrap();
    for team in 0..20 {
        let config = config.replace("demo", &format!("team-{team}"));
        cli.write(&format!("claude/teams/team-{team}/config.json"), &config);
        for name in ["alice", "bob"] {
            cli.write(&format!("claude/teams/team-{team}/inboxes/{name}.json"), &inbox);
        }
        for id in 1..=20 {
            let task = format!(
                r#"{{"id":"{id}","subject":"s","description":"","status":"pending","blocks":[],"blockedBy":[]}}"#
            );
            cli.write(&format!("claude/tasks/team-{team}/{id}.json"), &task);
        }
    }
    let began = Instant::now();
    let (report, code) = doctor(&cli, None, &[]);
    assert_eq!(code, Some(0), "{report}");
    // The limit allows for a debug build on a shared machine. A release build takes about twenty milliseconds.
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn an_answered_plan_is_not_reported() {
    let cli = healthy_team();
    let fault = FAULTS.iter().find(|fault| fault.check == "long-wait").unwrap();
    let _kept = (fault.create)(&cli);
    assert_eq!(names(&doctor(&cli, None, &[]).0), ["long-wait"]);
    cli.answer_unconfirmed(&["deny", "plan_approval-1@bob@demo", "--reason", "tests first"]);
    assert_eq!(names(&doctor(&cli, None, &[]).0), Vec::<String>::new());
}

#[test]
fn every_check_is_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = fs::read_to_string(page).unwrap();
    let source =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/doctor.rs")).unwrap();
    let names: Vec<&str> = source
        .split("Check { name: \"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn output_shows_problem_and_remedy() {
    let cli = healthy_team();
    assert_eq!(cli.run_ok(&["doctor"]), "no problems found (40 checks)\n");
    let lock = cli.path("claude/teams/demo/inboxes/bob.json.lock");
    fs::create_dir(&lock).unwrap();
    age(&lock, 3600);
    cli.write("claude/tasks/demo/1.json", &task_of("zoe"));
    insta::assert_snapshot!(cli.run(&["doctor"]), @"
    stale-lock  a lock that was not renewed for 60 min
      <root>/claude/teams/demo/inboxes/bob.json.lock
      its holder is gone; Claude Code 2.1.50 drops writes while the file is locked
      --fix: remove the lock
    task-of-nobody  it is unfinished, and its owner zoe is not on the team
      task 1 of team demo
      no member works on it, and no other member can claim it
      --fix: remove its owner

    2 problems; `brigade doctor --fix` can fix 2 of them
    --- exit 1
    ");
    insta::assert_snapshot!(cli.run(&["doctor", "--fix"]), @"
    fixed  stale-lock  <root>/claude/teams/demo/inboxes/bob.json.lock
      removed the lock
    fixed  task-of-nobody  task 1 of team demo
      removed its owner

    no problems found (40 checks)
    ");
}

pub(crate) fn task_of(owner: &str) -> String {
    format!(
        r#"{{"id": "1", "subject": "one", "description": "", "owner": "{owner}", "status": "in_progress", "blocks": [], "blockedBy": []}}"#
    )
}
