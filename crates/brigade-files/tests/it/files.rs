//! Tests of teams that Claude Code created, and of file modes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::Event;
use brigade_core::mail;
use brigade_core::roster;
use brigade_core::store::{Actor, Mark, NoteKind, Question, Watch};
use brigade_files::layout::{config_path, temp_name};
use brigade_testkit::env::{TestEnv, member, member_plan, team};
use brigade_wire::inbox::with_message;
use brigade_wire::message::Message;
use brigade_wire::name::TaskId;
use brigade_wire::team::Team;

use brigade_testkit::files::Files;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/claude-code");

/// Creates the team `name` with a roster that was recorded from Claude Code. Returns the roster's
/// path and bytes.
fn write_native_team(files: &Files, recorded: &str, name: &str) -> (PathBuf, Vec<u8>) {
    let bytes = fs::read(format!("{FIXTURES}/{recorded}-teams__{name}__config.json")).unwrap();
    let path = config_path(&files.home.path().join("claude"), name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &bytes).unwrap();
    (path, bytes)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn teams_of_both_generations_are_found_and_joined() {
    Files::run(async |files| {
        for (recorded, name) in [("2.1.50/0041", "labtui"), ("2.1.325/0030", "session-e04d42a1")] {
            let (config, bytes) = write_native_team(&files, recorded, name);
            let mut seat = files.env.seat("team-lead");
            seat.team = name.parse().unwrap();
            roster::join(&seat, &member("carol"), member_plan()).await.unwrap();
            let after = fs::read(config).unwrap();
            let (before, after) = (Team::read(&bytes).unwrap(), Team::read(&after).unwrap());
            assert!(after.member("carol").is_some());
            for old_member in before.members() {
                let new_member = after.member(&old_member.name().unwrap()).unwrap();
                assert_eq!(new_member.json(), old_member.json(), "{name}");
            }
        }
        let teams = files.env.store.teams().await.unwrap();
        let names: Vec<&str> = teams.iter().map(brigade_wire::name::TeamName::as_str).collect();
        assert_eq!(names, ["demo", "labtui", "session-e04d42a1"]);
    });
}

#[test]
fn an_unfinished_roster_is_restored() {
    Files::run(async |files| {
        let config = files.config();
        let whole = fs::read(&config).unwrap();
        for left in [0, 100] {
            // Write in place, as Claude Code does.
            fs::write(&config, whole.get(..left).unwrap()).unwrap();
            let read = files.env.store.team(&team()).await.unwrap().unwrap();
            assert_eq!(read.bytes, whole);
            assert_eq!(fs::read(&config).unwrap(), whole);
            files.env.say("alice", "bob", "still works").await;
        }
        // A copy of the torn file is kept, unless the torn file was empty.
        let copies: Vec<_> = fs::read_dir(files.team_state_dir().join("aside")).unwrap().collect();
        assert_eq!(copies.len(), 1);
        let copy = fs::read(copies.first().unwrap().as_ref().unwrap().path()).unwrap();
        assert_eq!(copy, whole.get(..100).unwrap());
    });
}

#[test]
fn is_ours_waits_for_a_roster_write_in_place() {
    Files::run(async |files| {
        let config = files.config();
        let whole = fs::read(&config).unwrap();
        fs::write(&config, "").unwrap();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            fs::write(&config, whole).unwrap();
        });
        assert!(files.env.store.is_ours(&team()).await.unwrap());
        writer.join().unwrap();
    });
}

#[test]
fn a_torn_roster_of_a_claude_code_team_is_not_restored() {
    Files::run(async |files| {
        let (config, _) = write_native_team(&files, "2.1.50/0041", "labtui");
        let mut seat = files.env.seat("team-lead");
        seat.team = "labtui".parse().unwrap();
        roster::join(&seat, &member("carol"), member_plan()).await.unwrap();
        fs::write(&config, "").unwrap();
        let read = seat.store.team(&seat.team).await.unwrap().unwrap();
        assert!(read.bytes.is_empty());
        assert_eq!(fs::read(config).unwrap(), b"");
    });
}

/// If two programs write a roster in place at once, the end of the longer text follows the shorter
/// text. The shorter text was written last and is complete. Therefore the shorter text is kept, no
/// matter who created the team.
#[test]
fn of_two_overlapping_roster_writes_the_last_one_is_kept() {
    Files::run(async |files| {
        let (config, bytes) = write_native_team(&files, "2.1.50/0041", "labtui");
        let tail = [bytes.as_slice(), b"ue\n    }\n  ]\n}"].concat();
        fs::write(&config, &tail).unwrap();
        let team = "labtui".parse().unwrap();
        let read = files.env.store.team(&team).await.unwrap().unwrap();
        assert_eq!(read.bytes, bytes);
        assert_eq!(fs::read(config).unwrap(), bytes);
    });
}

/// Finding 24: a team that brigade created could be read by every user of the computer.
#[test]
fn new_files_are_private_and_native_files_keep_their_mode() {
    Files::run(async |files| {
        let env = &files.env;
        env.say("alice", "bob", "one").await;
        let plan = TaskPlan { subject: "a task".into(), ..TaskPlan::default() };
        board::add(&env.seat("alice"), &plan).await.unwrap();
        let claude = files.home.path().join("claude");
        assert!(check_private(&claude) > 8);
        fs::set_permissions(files.inbox("bob"), fs::Permissions::from_mode(0o640)).unwrap();
        env.say("alice", "bob", "two").await;
        let keys: Vec<_> = env.store.inbox(&team(), &member("bob")).await.unwrap();
        let keys: Vec<_> = keys.iter().map(|mail| mail.key).collect();
        mail::mark(&env.seat("bob"), &keys, Mark::Read).await.unwrap();
        assert_eq!(mode(&files.inbox("bob")), 0o640);
        assert!(check_private(&files.home.path().join("state/brigade")) > 8);
    });
}

/// Checks that only the owner may read what is in the folder, and returns the number of files and folders.
fn check_private(folder: &Path) -> usize {
    let mut todo = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(path) = todo.pop() {
        seen += 1;
        if path.is_dir() {
            assert_eq!(mode(&path), 0o700, "{}", path.display());
            todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
    seen
}

#[test]
fn task_numbers_continue_after_those_of_claude_code() {
    Files::run(async |files| {
        let env = &files.env;
        let lead = env.seat("team-lead");
        let plan = TaskPlan { subject: "ours".into(), ..TaskPlan::default() };
        let native = |id: u64| {
            format!(
                "{{\n  \"id\": \"{id}\",\n  \"subject\": \"theirs\",\n  \"description\": \"d\",\n  \"status\": \"pending\",\n  \"blocks\": [],\n  \"blockedBy\": []\n}}"
            )
        };
        // The board has tasks but no high-water mark.
        for id in [1, 2, 7] {
            fs::write(files.task(id), native(id)).unwrap();
        }
        assert_eq!(board::add(&lead, &plan).await.unwrap().get(), 8);
        // Claude Code adds a task. Later it raises the high-water mark, as it does when it deletes
        // the last task.
        fs::write(files.task(9), native(9)).unwrap();
        assert_eq!(board::add(&lead, &plan).await.unwrap().get(), 10);
        fs::write(files.task(0).with_file_name(".highwatermark"), "12").unwrap();
        assert_eq!(board::add(&lead, &plan).await.unwrap().get(), 13);
        let mark = fs::read_to_string(files.task(0).with_file_name(".highwatermark")).unwrap();
        assert_eq!(mark, "13");
        assert!(!files.task(0).with_file_name(".lock.lock").exists());
    });
}

#[test]
fn a_watch_reports_changes_by_claude_code() {
    Files::run(async |files| {
        let env = &files.env;
        let mut watch = files.reopen().store.watch(&team()).await.unwrap();
        let entry = r#"[{"from":"team-lead","text":"native","timestamp":"2026-11-15T00:00:00.000Z","read":false}]"#;
        fs::write(files.inbox("bob"), entry).unwrap();
        fs::write(files.task(1), r#"{"id":"1","subject":"s","description":"d","status":"pending","blocks":[],"blockedBy":[]}"#).unwrap();
        let config = fs::read(files.config()).unwrap();
        let without = Team::read(&config).unwrap().without_member("alice").into_owned();
        fs::write(files.config(), without).unwrap();
        let mut reported = std::collections::BTreeSet::new();
        while reported.len() < 3 {
            let next = tokio::time::timeout(Duration::from_secs(5), watch.next()).await;
            let record = next.expect("an event should arrive within five seconds").unwrap();
            reported.insert(match record.into_inner().event {
                Event::Seen { to, .. } => format!("mail for {to}"),
                Event::Task { id, .. } => format!("task {id}"),
                Event::MemberLeft { name } => format!("{name} left"),
                other => format!("{other:?}"),
            });
        }
        let reported: Vec<String> = reported.into_iter().collect();
        assert_eq!(reported, ["alice left", "mail for bob", "task 1"]);
        fs::remove_file(files.task(1)).unwrap();
        let next = tokio::time::timeout(Duration::from_secs(5), watch.next()).await;
        assert!(matches!(next.unwrap().unwrap().event, Event::TaskDeleted { id: 1 }));
        assert!(env.texts("bob").await.len() == 1);
    });
}

/// The watches of one store share a follower. Each watch reports all events that happen while that
/// watch exists.
#[test]
fn each_watch_reports_events_from_its_start() {
    async fn texts(watch: &mut Watch) -> Vec<String> {
        let mut texts = Vec::new();
        let quiet_time = Duration::from_millis(400);
        while let Ok(Some(record)) = tokio::time::timeout(quiet_time, watch.next()).await {
            if let Event::Sent { message, .. } = record.into_inner().event {
                let text = |message: Option<Message<'_>>| message.unwrap().text().into_owned();
                texts.push(with_message(message.get().as_bytes(), text).unwrap());
            }
        }
        texts
    }
    Files::run(async |files| {
        let env = &files.env;
        let mut first = env.store.watch(&team()).await.unwrap();
        env.say("alice", "bob", "one").await;
        let mut second = env.store.watch(&team()).await.unwrap();
        env.say("alice", "bob", "two").await;
        assert_eq!(texts(&mut first).await, ["one", "two"]);
        assert_eq!(texts(&mut second).await, ["two"]);
        drop(first);
        env.say("alice", "bob", "three").await;
        assert_eq!(texts(&mut second).await, ["three"]);
        drop(second);
        env.say("alice", "bob", "four").await;
        let mut third = env.store.watch(&team()).await.unwrap();
        env.say("alice", "bob", "five").await;
        assert_eq!(texts(&mut third).await, ["five"]);
    });
}

/// A later process removes the temporary files that killed processes left behind.
#[test]
fn leftover_temporary_files_are_removed() {
    Files::run(async |files| {
        let env: &TestEnv = &files.env;
        let plan = TaskPlan { subject: "ours".into(), ..TaskPlan::default() };
        board::add(&env.seat("team-lead"), &plan).await.unwrap();
        env.say("alice", "bob", "one").await;
        // No process has this id: it is above the kernel's limit.
        let leftovers = [
            files.inbox("bob").with_file_name(temp_name("bob.json", 99_999_999, 1)),
            files.task(1).with_file_name(temp_name("1.json", 99_999_999, 7)),
            files.team_state_dir().join("pulse").join(temp_name("bob.json", 99_999_999, 3)),
        ];
        let pulse = async |note| {
            env.store.put_note(&team(), &member("bob"), NoteKind::Pulse, note).await.unwrap();
        };
        pulse(Some(b"{}".as_slice())).await;
        // A temporary file that Claude Code may still be using must stay.
        let native_temp = files.inbox("bob").with_file_name("bob.json.tmp.0123abcd");
        for path in leftovers.iter().chain([&native_temp]) {
            fs::write(path, "x").unwrap();
        }
        env.texts("bob").await;
        env.store.tasks(&team()).await.unwrap();
        pulse(None).await;
        assert_eq!(leftovers.each_ref().map(|path| path.exists()), [false, false, false]);
        assert!(native_temp.exists());
        assert!(env.store.task(&team(), TaskId::new(1).unwrap()).await.unwrap().is_some());
    });
}

#[test]
fn deleting_a_team_deletes_its_answers() {
    Files::run(async |files| {
        let question = Question::new(&member("alice"), "shutdown-1@alice");
        files.env.store.decide(&team(), &question, b"yes").await.unwrap();
        let decided = files.team_state_dir().join("decided");
        assert_eq!(fs::read_dir(&decided).unwrap().count(), 1);
        files.env.store.delete_team(&team(), &Actor("team-lead".into())).await.unwrap();
        assert!(!decided.exists());
    });
}

/// Claude Code 2.1.50 takes no lock, and writes back a roster that it read before our change.
/// Nevertheless, a member that joined stays on the team, and a member that left stays gone.
#[test]
fn an_old_roster_written_back_does_not_undo_changes() {
    Files::run(async |files| {
        let config = || fs::read(files.config()).unwrap();
        let has = |name: &str| Team::read(&config()).is_ok_and(|team| team.member(name).is_some());
        // Write the roster directly to the file, so that the store sees that another program also
        // writes the roster.
        let text = String::from_utf8(config()).unwrap();
        fs::write(files.config(), text.replace("\"a test\"", "\"theirs\"")).unwrap();
        for (name, presence) in [("carol", true), ("bob", false)] {
            let before = config();
            let (seat, member) = (files.env.seat("team-lead"), member(name));
            let changing = tokio::spawn(async move {
                if presence {
                    roster::join(&seat, &member, member_plan()).await.map(drop)
                } else {
                    roster::leave(&seat, &member).await.map(drop)
                }
            });
            while has(name) != presence {
                tokio::task::yield_now().await;
            }
            fs::write(files.config(), &before).unwrap();
            assert_eq!(has(name), !presence, "the old roster should undo the change at first");
            changing.await.unwrap().unwrap();
            assert_eq!(has(name), presence, "{name}");
        }
    });
}
