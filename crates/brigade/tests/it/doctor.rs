//! `brigade doctor`: every fault is found, what can be mended is, and what is healthy stays as it is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::doctor_faults::{FAULTS, Fault};
use crate::env::House;

/// Every file and folder below: its mode, its time, and what it says.
type Picture = BTreeMap<String, (u32, i64, i64, Vec<u8>)>;

pub(crate) fn picture(root: &Path) -> Picture {
    let mut picture = Picture::new();
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
            picture.insert(path.to_str().unwrap().to_owned(), state);
        }
    }
    picture
}

/// Makes something look as if it was changed that many seconds ago.
pub(crate) fn age(path: &Path, seconds: i64) {
    let span = Duration::from_secs(seconds.unsigned_abs());
    let now = SystemTime::now();
    let then = if seconds < 0 { now + span } else { now - span };
    fs::File::open(path).unwrap().set_modified(then).unwrap();
}

/// A team with mail, read and unread, and a board with a chain on it.
pub(crate) fn healthy() -> House {
    let house = House::with_team();
    house.done(&["send", "alice", "first"]);
    house.done(&["send", "alice", "second"]);
    house.done(&["--as", "alice", "inbox", "--mark-read"]);
    house.done(&["send", "bob", "third"]);
    house.done(&["task", "add", "one"]);
    house.done(&["task", "add", "two", "--blocked-by", "1"]);
    house.done(&["--as", "bob", "task", "claim", "1"]);
    house
}

/// What `brigade doctor` says, and how it ends.
fn doctor(house: &House, fault: Option<&Fault>, args: &[&str]) -> (Value, Option<i32>) {
    let mut command = house.command(&[&["doctor", "--json"], args].concat());
    for (name, value) in fault.map_or(&[] as &[_], |fault| fault.env) {
        command.env(name, value.replace("HOUSE", house.root.to_str().unwrap()));
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    (said, output.status.code())
}

/// The names of the checks that found something, each once.
fn names(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let mut names: Vec<String> =
        findings.map(|finding| finding["check"].as_str().unwrap().to_owned()).collect();
    names.dedup();
    names
}

#[test]
fn every_fault_is_found_and_what_can_be_mended_is() {
    assert!(FAULTS.len() >= 15);
    for fault in FAULTS {
        let house = healthy();
        let (before, code) = doctor(&house, None, &[]);
        assert_eq!((names(&before), code), (vec![], Some(0)), "{}: {before}", fault.called);
        let _kept = (fault.seed)(&house);
        let seeded = picture(&house.root);
        let (found, code) = doctor(&house, Some(fault), &[]);
        assert_eq!(
            (names(&found), code),
            (vec![fault.check.to_owned()], Some(1)),
            "{}: {found}",
            fault.called
        );
        // Looking changes nothing.
        assert_eq!(picture(&house.root), seeded, "{}", fault.called);
        for finding in found["findings"].as_array().unwrap() {
            for key in ["place", "what", "means", "remedy"] {
                assert!(!finding[key].as_str().unwrap().is_empty(), "{}: {finding}", fault.called);
            }
            assert_eq!(finding["fixable"], fault.mended.is_some(), "{}: {finding}", fault.called);
        }
        let (fixed, code) = doctor(&house, Some(fault), &["--fix"]);
        let (again, _) = doctor(&house, Some(fault), &[]);
        match fault.mended {
            Some(is_mended) => {
                assert_eq!((names(&fixed), code), (vec![], Some(0)), "{}: {fixed}", fault.called);
                assert_eq!(fixed["fixed"][0]["check"], fault.check, "{}: {fixed}", fault.called);
                assert!(fixed["fixed"][0]["did"].is_string(), "{}: {fixed}", fault.called);
                assert_eq!(names(&again), Vec::<String>::new(), "{}: {again}", fault.called);
                is_mended(&house);
            }
            None => {
                assert_eq!((names(&again), code), (vec![fault.check.to_owned()], Some(1)));
                assert_eq!(picture(&house.root), seeded, "{}: {fixed}", fault.called);
            }
        }
    }
}

/// What was there before is all there after: in its place, or aside.
#[test]
fn nothing_that_was_there_is_lost() {
    for fault in FAULTS.iter().filter(|fault| fault.mended.is_some()) {
        let house = healthy();
        let _kept = (fault.seed)(&house);
        let files = |house: &House| -> Vec<Vec<u8>> {
            let files = picture(&house.root).into_values().map(|(_, _, _, bytes)| bytes);
            files.filter(|bytes| !bytes.is_empty()).collect()
        };
        let native = picture(&house.path("claude"));
        let _fixed = doctor(&house, Some(fault), &["--fix"]);
        let after = files(&house);
        for (path, (_, _, _, bytes)) in native {
            assert!(bytes.is_empty() || after.contains(&bytes), "{}: {path}", fault.called);
        }
    }
}

#[test]
fn a_healthy_house_stays_as_it_is_to_the_last_byte() {
    let house = healthy();
    let native = House::with_native_team();
    let theirs = "claude/teams/theirs/config.json";
    house.write(theirs, &fs::read_to_string(native.path(theirs)).unwrap());
    house.write("claude/teams/theirs/inboxes/bob.json", "[]");
    house.write("claude/tasks/theirs/.lock", "");
    // Claude Code keeps the tasks of a session that has ended, and makes folders before it has a team.
    house.write("claude/tasks/session-0a1b2c3d/1.json", "{\"id\": \"1\"}");
    fs::create_dir_all(house.path("claude/teams/session-4d3c2b1a/inboxes")).unwrap();
    // Locks that somebody holds.
    for lock in ["teams/demo/inboxes/bob.json.lock", "tasks/demo/.lock.lock"] {
        fs::create_dir(house.path(&format!("claude/{lock}"))).unwrap();
    }
    let before = picture(&house.root);
    for args in [&[][..], &["--fix"], &["--fix"]] {
        let (report, code) = doctor(&house, None, args);
        assert_eq!((report["findings"].as_array().unwrap().len(), code), (0, Some(0)), "{report}");
        assert_eq!(report["fixed"], serde_json::json!([]));
    }
    let after = picture(&house.root);
    for (path, state) in &before {
        assert_eq!(after.get(path), Some(state), "{path}");
    }
    assert_eq!(after.len(), before.len());
}

/// Real files, as Claude Code left them when a scenario ended.
#[test]
fn the_files_of_the_real_claude_code_are_left_as_they_are() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/claude-code");
    let mut seen = 0;
    for version in ["2.1.50", "2.1.325"] {
        for end in fs::read_dir(fixtures.join(version)).unwrap() {
            let end = end.unwrap().path();
            if !end.join("teams").is_dir() {
                continue;
            }
            let house = House::new();
            let from = end.to_str().unwrap();
            for (path, (_, _, _, bytes)) in picture(&end) {
                if Path::new(&path).is_file() {
                    let to = house
                        .path("claude")
                        .join(path.strip_prefix(from).unwrap().trim_start_matches('/'));
                    fs::create_dir_all(to.parent().unwrap()).unwrap();
                    fs::write(to, bytes).unwrap();
                }
            }
            let before = picture(&house.path("claude"));
            let (report, _) = doctor(&house, None, &["--fix"]);
            assert_eq!(report["fixed"], serde_json::json!([]), "{}", end.display());
            // Where it was made to tolerate broken files there are some.
            if !end.ends_with("tolerance-end") {
                assert_eq!(names(&report), Vec::<String>::new(), "{}: {report}", end.display());
            }
            assert_eq!(picture(&house.path("claude")), before, "{}", end.display());
            seen += 1;
        }
    }
    assert!(seen > 2, "{seen}");
}

#[test]
fn what_claude_code_made_is_not_changed_beyond_what_a_guest_may() {
    let house = House::with_native_team();
    let task = |id: u64, fields: &str| {
        let text = format!(r#"{{"id": "{id}", "subject": "s", "description": "", {fields}}}"#);
        house.write(&format!("claude/tasks/theirs/{id}.json"), &text);
    };
    task(1, r#""owner": "zoe", "status": "in_progress", "blocks": [], "blockedBy": []"#);
    task(2, r#""status": "pending""#);
    task(3, r#""status": "pending", "blocks": [], "blockedBy": ["9"]"#);
    let inbox = "claude/teams/theirs/inboxes/zoe.json";
    house.write(
        inbox,
        r#"[{"from": "bob", "text": "hi", "timestamp": "2026-01-01T12:00:00.000Z", "read": false}]"#,
    );
    age(&house.path(inbox), 3600);
    let before = picture(&house.root);
    let (report, code) = doctor(&house, None, &["--fix"]);
    let found = ["inbox-of-nobody", "invisible-task", "task-of-nobody", "lost-dependency"];
    assert_eq!((names(&report), code), (found.map(str::to_owned).to_vec(), Some(1)));
    assert_eq!(report["fixed"], serde_json::json!([]));
    assert_eq!(picture(&house.root), before);
}

#[test]
fn a_house_with_many_teams_is_looked_at_in_no_time() {
    let house = House::with_team();
    let message = r#"{"from":"bob","text":"a message of some length, as they are","timestamp":"2026-11-15T12:00:00.000Z","read":true}"#;
    let inbox = format!("[{}]", vec![message; 200].join(","));
    let config = fs::read_to_string(house.path("claude/teams/demo/config.json")).unwrap();
    for team in 0..20 {
        let config = config.replace("demo", &format!("team-{team}"));
        house.write(&format!("claude/teams/team-{team}/config.json"), &config);
        for name in ["alice", "bob"] {
            house.write(&format!("claude/teams/team-{team}/inboxes/{name}.json"), &inbox);
        }
        for id in 1..=20 {
            let task = format!(
                r#"{{"id":"{id}","subject":"s","description":"","status":"pending","blocks":[],"blockedBy":[]}}"#
            );
            house.write(&format!("claude/tasks/team-{team}/{id}.json"), &task);
        }
    }
    let began = Instant::now();
    let (report, code) = doctor(&house, None, &[]);
    assert_eq!(code, Some(0), "{report}");
    // An unoptimised program on a shared machine; optimised it takes some twenty milliseconds.
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn a_plan_that_was_answered_waits_no_more() {
    let house = healthy();
    let fault = FAULTS.iter().find(|fault| fault.check == "long-wait").unwrap();
    let _kept = (fault.seed)(&house);
    assert_eq!(names(&doctor(&house, None, &[]).0), ["long-wait"]);
    house.done(&["deny", "plan_approval-1@bob@demo", "--reason", "tests first"]);
    assert_eq!(names(&doctor(&house, None, &[]).0), Vec::<String>::new());
}

#[test]
fn every_check_is_in_the_papers() {
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
fn it_says_what_is_wrong_and_what_to_do() {
    let house = healthy();
    assert_eq!(house.done(&["doctor"]), "nothing is wrong, as far as 33 checks can tell\n");
    let lock = house.path("claude/teams/demo/inboxes/bob.json.lock");
    fs::create_dir(&lock).unwrap();
    age(&lock, 3600);
    house.write("claude/tasks/demo/1.json", &task_of("zoe"));
    insta::assert_snapshot!(house.run(&["doctor"]), @r"
    stale-lock  a lock that nobody has renewed for 60 min
      <house>/claude/teams/demo/inboxes/bob.json.lock
      its holder is gone; Claude Code 2.1.50 drops what it cannot write at once
      --fix: remove the lock
    task-of-nobody  it is open, and belongs to zoe, who is not on the team
      task 1 of team demo
      nobody works on it, and nobody else may take it
      --fix: give it back to the board

    2 to see to; `brigade doctor --fix` mends 2 of them
    --- exit 1
    ");
    insta::assert_snapshot!(house.run(&["doctor", "--fix"]), @r"
    fixed  stale-lock  <house>/claude/teams/demo/inboxes/bob.json.lock
      removed the lock
    fixed  task-of-nobody  task 1 of team demo
      gave it back to the board

    nothing is wrong, as far as 33 checks can tell
    ");
}

pub(crate) fn task_of(owner: &str) -> String {
    format!(
        r#"{{"id": "1", "subject": "one", "description": "", "owner": "{owner}", "status": "in_progress", "blocks": [], "blockedBy": []}}"#
    )
}
