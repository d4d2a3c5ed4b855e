//! Regression tests of the file store.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::event::Event;
use brigade_core::handshake;
use brigade_core::mail;
use brigade_core::revive;
use brigade_core::store::{Actor, Mark};
use brigade_files::layout::temp_name;
use brigade_testkit::contract::run;
use brigade_testkit::env::{TestEnv, member, team};
use brigade_wire::change::Change;

use brigade_testkit::files::{Files, create_stale_lock};

use crate::helpers::{edit_head, send, texts};

async fn mark_all(env: &TestEnv, mark: Mark) {
    let mail = env.store.inbox(&team(), &member("bob")).await.unwrap();
    let keys: Vec<_> = mail.iter().map(|mail| mail.key).collect();
    mail::mark(&env.seat("bob"), &keys, mark).await.unwrap();
}

/// The write after the salvage of a torn inbox fails once. The next write must repair the inbox.
#[test]
fn a_salvage_that_failed_to_write_is_repeated() {
    Files::run(async |files| {
        let env = &files.env;
        env.say("alice", "bob", "one").await;
        env.say("alice", "bob", "two").await;
        let whole = fs::read(files.inbox("bob")).unwrap();
        fs::write(files.inbox("bob"), &whole[..whole.len() - 20]).unwrap();
        // Block the creation of the next temporary files with directories of the same names.
        let pid = std::process::id();
        let state = fs::read(files.team_state_dir().join("mail/bob.state")).unwrap();
        let last = u32::from_le_bytes(state[56..60].try_into().unwrap());
        let blockers: Vec<_> = (last + 1..last + 3000)
            .map(|n| files.inbox("bob").with_file_name(temp_name("bob.json", pid, n)))
            .collect();
        blockers.iter().for_each(|path| fs::create_dir(path).unwrap());
        assert!(send(env, "three").await.unwrap().is_some());
        blockers.iter().for_each(|path| fs::remove_dir(path).unwrap());
        assert_eq!(send(env, "three").await.unwrap(), None);
        assert_eq!(texts(env, "bob").await, ["one", "two", "three", "three"]);
    });
}

/// Messages are first marked as read and later as shown. The write that marks them as shown may also
/// remove them from the inbox. It must still record that they were shown.
#[test]
fn shown_after_read_is_recorded() {
    Files::run(async |files| {
        let env = &files.env;
        for number in 0..16 {
            env.say("alice", "bob", &number.to_string()).await;
        }
        mark_all(env, Mark::Read).await;
        mark_all(env, Mark::Shown).await;
        let history = env.store.history(&team()).await.unwrap();
        let shown = history.iter().filter(|r| matches!(r.event, Event::Shown { .. })).count();
        assert_eq!(shown, 16);
    });
}

/// If brigade refuses to touch one inbox, a watch must still report changes to the other inboxes.
#[test]
fn one_bad_inbox_does_not_stop_a_watch() {
    Files::run(async |files| {
        symlink("/etc/passwd", files.inbox("mallory")).unwrap();
        files.env.store.watch(&team()).await.unwrap();
    });
}

/// A watching process may notice that the team is gone before the deletion is recorded. That
/// process must not record the deletion without the name of the member who deleted the team.
#[test]
fn the_deleter_of_a_watched_team_is_recorded() {
    for _ in 0..10 {
        Files::run(async |files| {
            let store = files.reopen().store;
            let (sender, ready) = std::sync::mpsc::channel();
            let watching = std::thread::spawn(move || {
                let mut by = None;
                run(async {
                    let mut watch = store.watch(&team()).await.unwrap();
                    sender.send(()).unwrap();
                    while by.is_none() {
                        let record = watch.next().await.unwrap();
                        by = matches!(record.event, Event::TeamDeleted {})
                            .then(|| record.by.clone());
                    }
                });
                by.flatten()
            });
            ready.recv().unwrap();
            let lead = Actor("team-lead".into());
            files.env.store.delete_team(&team(), &lead).await.unwrap();
            assert_eq!(watching.join().unwrap(), Some(lead.0));
        });
    }
}

/// If another program holds the lock while brigade restores overwritten messages, messages that
/// were already read must not be delivered again.
#[test]
fn read_messages_are_not_delivered_again_after_a_lock() {
    Files::run(async |files| {
        let env = &files.env;
        let lock = files.lock("bob");
        create_stale_lock(&lock);
        env.say("alice", "bob", "one").await; // steals the lock
        mark_all(env, Mark::Read).await;
        // The suspended program resumes, writes its old copy, and takes the lock again.
        fs::write(files.inbox("bob"), "[]").unwrap();
        fs::create_dir(&lock).unwrap();
        let lock_path = lock.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            fs::remove_dir(lock_path).unwrap();
        });
        let found = env.texts("bob").await;
        thread.join().unwrap();
        assert!(found.is_empty(), "{found:?}");
    });
}

/// A process is killed between its rename and its lock check. No other process took the lock.
#[test]
fn a_kill_before_the_lock_check_delivers_nothing_twice() {
    Files::run(async |files| {
        let env = &files.env;
        env.say("alice", "bob", "one").await;
        // Change the state as if the process had been killed right after its rename: the lock was
        // not yet checked.
        edit_head(&files, |head| head[128] &= !4);
        let lock = files.lock("bob");
        fs::rename(files.team_state_dir().join("mail/bob.lock"), &lock).unwrap();
        // A brigade process reads the inbox and removes the lock of the dead process.
        assert_eq!(texts(&files.reopen(), "bob").await, ["one"]);
        assert!(!lock.exists());
        // Claude Code 2.1.325 removes the message.
        fs::write(files.inbox("bob"), "[]").unwrap();
        assert!(texts(&files.reopen(), "bob").await.is_empty());
    });
}

/// A failed update leaves the board unchanged.
#[test]
fn a_failed_update_changes_nothing() {
    Files::run(async |files| {
        let lead = files.env.seat("team-lead");
        let plan = TaskPlan { subject: "one".into(), ..TaskPlan::default() };
        let one = board::add(&lead, &plan).await.unwrap();
        let owner = Change::Set(member("bob"));
        let update = Update { owner, add_blocked_by: vec![one], ..Update::default() };
        board::update(&lead, one, &update).await.unwrap_err();
        let task = String::from_utf8(board::show(&lead, one).await.unwrap().bytes).unwrap();
        assert!(!task.contains("bob"), "{task}");
    });
}

/// If the board reports a task as ready, the task can be claimed, even if another program recorded
/// only one side of a dependency.
#[test]
fn claim_and_graph_agree_on_what_is_blocked() {
    Files::run(async |files| {
        let lead = files.env.seat("team-lead");
        let plan = TaskPlan { subject: "one".into(), ..TaskPlan::default() };
        board::add(&lead, &plan).await.unwrap();
        let two = board::add(&lead, &plan).await.unwrap();
        let task = fs::read_to_string(files.task(1)).unwrap();
        fs::write(files.task(1), task.replace("\"blocks\": []", "\"blocks\": [\"2\"]")).unwrap();
        let (_, graph) = board::list(&lead).await.unwrap();
        assert!(graph.waits_for(two).is_empty());
        board::claim(&files.env.seat("bob"), two).await.unwrap();
    });
}

async fn recreate_team(env: &TestEnv) {
    use brigade_testkit::env::{member_plan, team_plan};
    let lead = env.seat("team-lead");
    brigade_core::roster::delete(&lead, brigade_core::roster::SkipChecks::Yes).await.unwrap();
    brigade_core::roster::create(&lead, team_plan()).await.unwrap();
    for name in ["alice", "bob"] {
        brigade_core::roster::join(&lead, &member(name), member_plan()).await.unwrap();
    }
}

/// The team is deleted and re-created within a second. Pending mail to the deleted team is neither
/// delivered nor shown.
#[test]
fn a_recreated_team_receives_no_old_mail() {
    for pending in [false, true] {
        Files::run(async |files| {
            let lock = files.lock("bob");
            fs::create_dir(&lock).unwrap();
            files.impatient(Duration::ZERO).say("alice", "bob", "old").await;
            recreate_team(&files.env).await;
            let found = if pending {
                fs::create_dir(&lock).unwrap();
                texts(&files.impatient(Duration::ZERO), "bob").await
            } else {
                texts(&files.env, "bob").await
            };
            assert!(found.is_empty(), "{found:?}, pending: {pending}");
        });
    }
}

/// A process that creates a team dies before it has recorded that the team exists. The team is still ours.
#[test]
fn a_team_whose_creation_was_interrupted_is_ours() {
    Files::run(async |files| {
        let (created, creating) =
            (files.team_state_dir().join("created"), files.team_state_dir().join("creating"));
        assert!(files.env.store.is_ours(&team()).await.unwrap());
        assert!(!creating.exists());
        fs::rename(&created, &creating).unwrap();
        assert!(files.env.store.is_ours(&team()).await.unwrap());
        fs::write(&creating, "1").unwrap();
        assert!(!files.env.store.is_ours(&team()).await.unwrap());
    });
}

/// Finding 21: one member filled the lead's mailbox so that the lead could not read any mail.
#[test]
fn one_sender_cannot_fill_a_mailbox() {
    Files::run(async |files| {
        let env = &files.env;
        let large = "x".repeat(1 << 20);
        let mut refused = None;
        for _ in 0..262 {
            if let Err(error) = mail::send(&env.seat("alice"), "team-lead", large.as_str()).await {
                refused = Some(error.to_string());
                break;
            }
        }
        let refused = refused.unwrap();
        let expected = "team-lead has not read 4 messages of alice (4194 kB); no more fit until team-lead reads them";
        assert_eq!(refused, expected);
        env.say("bob", "team-lead", "mine arrives").await;
        let lead = env.seat("team-lead");
        handshake::submit_plan(&env.seat("alice"), "a plan", None).await.unwrap();
        assert_eq!(env.texts("team-lead").await.len(), 6);
        let keys: Vec<_> = env.store.inbox(&team(), &lead.name).await.unwrap();
        let keys: Vec<_> = keys.iter().map(|mail| mail.key).collect();
        mail::mark(&lead, &keys, Mark::Read).await.unwrap();
        env.say("alice", "team-lead", "there is room again").await;
    });
}

/// B3: while a process watches the team, the tasks of a deleted team are recorded as deleted, too. Reviving
/// the team must restore them nevertheless.
#[test]
fn b3_tasks_that_were_deleted_with_their_team_are_restored() {
    Files::run(async |files| {
        let env = files.reopen();
        let lead = env.seat("team-lead");
        let plan = |subject: &str| TaskPlan { subject: subject.to_owned(), ..TaskPlan::default() };
        let gone = board::add(&lead, &plan("deleted before the team")).await.unwrap();
        board::add(&lead, &plan("restored")).await.unwrap();
        board::delete(&lead, gone).await.unwrap();
        let mut watch = env.store.watch(&team()).await.unwrap();
        env.store.delete_team(&team(), &Actor("team-lead".into())).await.unwrap();
        while !matches!(watch.next().await.unwrap().event, Event::TaskDeleted { id: 2 }) {}
        let revived = revive::revive(&lead).await.unwrap().unwrap();
        assert_eq!((revived.members.len(), revived.tasks), (2, 1));
        let tasks = env.store.tasks(&team()).await.unwrap();
        assert_eq!(tasks.iter().map(|(id, _)| id.get()).collect::<Vec<_>>(), [2]);
    });
}

/// B3: when another program deletes a team, the journal says first that the team is gone and then that its tasks
/// are, also if the process that watches the team notices a missing task first.
#[test]
fn b3_the_deletion_of_a_team_is_recorded_before_that_of_its_tasks() {
    Files::run(async |files| {
        let env = files.reopen();
        let plan = TaskPlan { subject: "a task".to_owned(), ..TaskPlan::default() };
        let id = board::add(&env.seat("team-lead"), &plan).await.unwrap();
        let mut watch = env.store.watch(&team()).await.unwrap();
        // The file of the roster disappears with its folder, so that only the task's file is reported as changed.
        fs::rename(files.config().parent().unwrap(), files.home.path().join("gone")).unwrap();
        fs::remove_file(files.task(id.get())).unwrap();
        let mut deleted = Vec::new();
        while deleted.len() < 2 {
            match watch.next().await.unwrap().event {
                Event::TeamDeleted {} => deleted.push("team"),
                Event::TaskDeleted { .. } => deleted.push("task"),
                _ => {}
            }
        }
        assert_eq!(deleted, ["team", "task"]);
    });
}
