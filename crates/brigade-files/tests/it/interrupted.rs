//! Creations and deletions that a kill interrupted. `e2e/kills` kills real processes at every system call; these tests
//! prepare the files that such a process leaves.

use std::fs;
use std::path::PathBuf;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::Event;
use brigade_core::revive;
use brigade_core::roster::{self, SkipChecks};
use brigade_core::store::{Actor, NoteKind, StoreError};
use brigade_files::layout::temp_name;
use brigade_testkit::env::{member, team, team_plan};
use brigade_testkit::files::Files;

const ID: &str = "0e9ad0d2-5d06-4a5c-b1fd-36e4b0a1c3f2";

/// Returns the team's folder in a folder of Claude Code.
fn folder(files: &Files, parent: &str, end: &str) -> PathBuf {
    let claude = files.config().ancestors().nth(3).unwrap().to_owned();
    claude.join(parent).join(format!("{}{end}", team()))
}

/// Returns the authors of the events that a closure selects.
async fn authors(files: &Files, is_it: fn(&Event) -> bool) -> Vec<Option<String>> {
    let history = files.reopen().store.history_without_work(&team()).await.unwrap();
    let events = history.iter().filter(|record| is_it(&record.event));
    events.map(|record| record.by.clone()).collect()
}

async fn add_task(files: &Files, subject: &str) {
    board::add(&files.env.seat("team-lead"), &TaskPlan::new(subject)).await.unwrap();
}

#[test]
fn deleting_again_completes_an_interrupted_deletion() {
    Files::run(async |files| {
        add_task(&files, "first").await;
        let state = files.team_state_dir();
        // The process died after it had renamed the team's folder.
        fs::write(state.join("deleting"), ID).unwrap();
        fs::write(
            state.join("intent"),
            "{\"by\":\"team-lead\",\"document\":\"roster\",\"revision\":0}\n\n",
        )
        .unwrap();
        let end = format!(".deleted-{ID}");
        fs::rename(folder(&files, "teams", ""), folder(&files, "teams", &end)).unwrap();
        let env = files.reopen();
        roster::delete(&env.seat("team-lead"), SkipChecks::Yes).await.unwrap();
        for parent in ["teams", "tasks"] {
            assert!(!folder(&files, parent, "").exists(), "{parent}");
            assert!(!folder(&files, parent, &end).exists(), "{parent}");
        }
        assert!(!state.join("deleting").exists() && !state.join("folder").exists());
        let deleted = authors(&files, |event| matches!(event, Event::TeamDeleted {})).await;
        assert_eq!(deleted, [Some("team-lead".to_owned())]);
        // Only an unfinished deletion can be completed.
        let again = env.store.delete_team(&team(), &Actor("team-lead".into())).await;
        assert!(matches!(again, Err(StoreError::NoTeam { .. })), "{again:?}");
    });
}

#[test]
fn a_new_team_does_not_get_the_tasks_of_a_half_deleted_one() {
    Files::run(async |files| {
        add_task(&files, "first").await;
        fs::write(files.team_state_dir().join("deleting"), ID).unwrap();
        let end = format!(".deleted-{ID}");
        fs::rename(folder(&files, "teams", ""), folder(&files, "teams", &end)).unwrap();
        let lead = files.reopen().seat("team-lead");
        roster::create(&lead, team_plan()).await.unwrap();
        assert!(board::list(&lead).await.unwrap().0.is_empty());
        assert!(!folder(&files, "teams", &end).exists());
    });
}

#[test]
fn creating_again_completes_an_interrupted_creation() {
    Files::run(async |files| {
        let state = files.team_state_dir();
        let config = fs::read(files.config()).unwrap();
        let created = fs::read_to_string(state.join("created")).unwrap();
        // The process died after it had created the roster. A task of an earlier team is still on the board.
        fs::create_dir_all(files.task(3).parent().unwrap()).unwrap();
        fs::write(files.task(3), "{}").unwrap();
        fs::write(state.join("creating"), format!("{created}\n3")).unwrap();
        let leftover = state.join(temp_name("created", 99_999_999, 1));
        fs::write(&leftover, "").unwrap();
        for file in ["created", "roster.json", "team.jsonl"] {
            fs::remove_file(state.join(file)).unwrap();
        }
        let env = files.reopen();
        assert!(env.store.is_ours(&team()).await.unwrap());
        let again = roster::create(&env.seat("team-lead"), team_plan()).await;
        assert!(again.is_err());
        assert_eq!(fs::read_to_string(state.join("created")).unwrap(), created);
        assert!(!state.join("creating").exists() && !leftover.exists());
        assert!(!files.task(3).exists());
        assert_eq!(fs::read(state.join("roster.json")).unwrap(), config);
    });
}

/// A process died after it changed the roster. The intents of later changes to tasks must not replace its intent.
#[test]
fn the_author_of_an_unrecorded_change_survives_changes_of_other_documents() {
    Files::run(async |files| {
        let state = files.team_state_dir();
        let before = fs::read(state.join("roster.json")).unwrap();
        let journal = fs::read(state.join("team.jsonl")).unwrap();
        let lead = files.env.seat("team-lead");
        let intent = state.join("intent");
        roster::set_activity(&lead, &"alice".parse().unwrap(), roster::Activity::Active)
            .await
            .unwrap();
        let changed = fs::read(files.config()).unwrap();
        assert_ne!(changed, before);
        // Restore the files to the moment before the change was recorded.
        fs::write(state.join("roster.json"), &before).unwrap();
        fs::write(state.join("team.jsonl"), &journal).unwrap();
        let revision = brigade_core::hash::Fnv::default().bytes(&changed).finish();
        let line =
            format!("{{\"by\":\"team-lead\",\"document\":\"roster\",\"revision\":{revision}}}\n\n");
        fs::write(&intent, line).unwrap();
        let env = files.reopen();
        board::add(&env.seat("team-lead"), &TaskPlan::new("first")).await.unwrap();
        let members = authors(&files, |event| matches!(event, Event::Member { .. })).await;
        assert_eq!(members.last(), Some(&Some("team-lead".to_owned())), "{members:?}");
        assert!(!state.join("shared").exists());
    });
}

#[test]
fn the_next_process_removes_the_temporary_file_of_a_note() {
    Files::run(async |files| {
        let (bob, note) = (member("bob"), Some(b"{}".as_slice()));
        files.env.store.put_note(&team(), &bob, NoteKind::Memory, note).await.unwrap();
        let left = files.team_state_dir().join("kept").join(temp_name("bob.json", 99_999_999, 1));
        fs::write(&left, "").unwrap();
        files.reopen().store.put_note(&team(), &bob, NoteKind::Memory, note).await.unwrap();
        assert!(!left.exists());
    });
}

/// The process that restored a team died right after it had written the roster.
#[test]
fn restoring_again_completes_the_creation() {
    Files::run(async |files| {
        add_task(&files, "first").await;
        let lead = files.env.seat("team-lead");
        roster::delete(&lead, SkipChecks::Yes).await.unwrap();
        revive::revive(&lead).await.unwrap().unwrap();
        let state = files.team_state_dir();
        fs::rename(state.join("created"), state.join("creating")).unwrap();
        let env = files.reopen();
        let note = Some(b"[]".as_slice());
        env.store.put_note(&team(), &lead.name, NoteKind::Revival, note).await.unwrap();
        revive::revive(&env.seat("team-lead")).await.unwrap().unwrap();
        assert!(state.join("created").exists() && !state.join("creating").exists());
        let tasks = authors(&files, |event| matches!(event, Event::Task { .. })).await;
        assert_eq!(tasks, [Some("team-lead".to_owned())]);
    });
}

/// A member that is restarted watches its team again.
#[test]
fn a_watch_removes_the_temporary_file_of_an_inbox() {
    Files::run(async |files| {
        files.env.say("alice", "bob", "one").await;
        let left = files.inbox("bob").with_file_name(temp_name("bob.json", 99_999_999, 1));
        fs::write(&left, "[]").unwrap();
        let _watch = files.reopen().store.watch(&team()).await.unwrap();
        assert!(!left.exists());
    });
}
