//! What went wrong once.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::event::Event;
use brigade_core::mail;
use brigade_core::store::{Actor, Mark};
use brigade_testkit::contract::run;
use brigade_testkit::env::{House, member, team};
use brigade_wire::change::Change;

use brigade_testkit::files::{Files, leave_locked};

async fn texts(house: &House, of: &str) -> Vec<String> {
    house.texts(of).await.into_iter().map(|(text, _)| text).collect()
}

async fn mark_all(house: &House, mark: Mark) {
    let mail = house.store.inbox(&team(), &member("bob")).await.unwrap();
    let keys: Vec<_> = mail.iter().map(|mail| mail.key).collect();
    mail::mark(&house.seat("bob"), &keys, mark).await.unwrap();
}

/// The write after a salvage fails once; the inbox must be mended by the next.
#[test]
fn a_salvage_that_could_not_be_written_is_done_again() {
    Files::run(async |files| {
        let house = &files.house;
        house.say("alice", "bob", "one").await;
        house.say("alice", "bob", "two").await;
        let whole = fs::read(files.inbox("bob")).unwrap();
        fs::write(files.inbox("bob"), &whole[..whole.len() - 20]).unwrap();
        // Temporary files cannot be made in the folder of inboxes for now.
        let pid = std::process::id();
        let state = fs::read(files.own().join("mail/bob.state")).unwrap();
        let last = u32::from_le_bytes(state[56..60].try_into().unwrap());
        let blocks: Vec<_> = (last + 1..last + 3000)
            .map(|n| files.inbox("bob").with_extension(format!("json.tmp.brigade-{pid}-{n}")))
            .collect();
        blocks.iter().for_each(|block| fs::create_dir(block).unwrap());
        let words = mail::Words { text: "three", summary: None };
        let sent = mail::send(&house.seat("alice"), "bob", words).await.unwrap();
        assert!(sent.receipt.waits.is_some());
        blocks.iter().for_each(|block| fs::remove_dir(block).unwrap());
        let sent = mail::send(&house.seat("alice"), "bob", words).await.unwrap();
        assert!(sent.receipt.waits.is_none(), "{:?}", sent.receipt.waits);
        assert_eq!(texts(house, "bob").await, ["one", "two", "three", "three"]);
    });
}

/// Read first, shown later: the write that says so must not prune it away unsaid.
#[test]
fn shown_after_read_is_written_down() {
    Files::run(async |files| {
        let house = &files.house;
        for number in 0..16 {
            house.say("alice", "bob", &number.to_string()).await;
        }
        mark_all(house, Mark::Read).await;
        mark_all(house, Mark::Shown).await;
        let history = house.store.history(&team()).await.unwrap();
        let shown = history.iter().filter(|r| matches!(r.event, Event::Shown { .. })).count();
        assert_eq!(shown, 16);
    });
}

/// One inbox that is not touched must not end the watching of all others.
#[test]
fn one_bad_inbox_does_not_stop_a_watch() {
    Files::run(async |files| {
        symlink("/etc/passwd", files.inbox("mallory")).unwrap();
        files.house.store.watch(&team()).await.unwrap();
    });
}

/// Who watches a team may see that it is gone before it is written down who deleted it.
#[test]
fn who_deletes_a_team_is_told_though_others_watch() {
    for _ in 0..10 {
        Files::run(async |files| {
            let store = files.anew().store;
            let (sender, ready) = std::sync::mpsc::channel();
            let watching = std::thread::spawn(move || {
                let mut by = None;
                run(async {
                    let mut watch = store.watch(&team()).await.unwrap();
                    sender.send(()).unwrap();
                    while by.is_none() {
                        let record = watch.next().await.unwrap();
                        by = matches!(record.event, Event::TeamDeleted {}).then_some(record.by);
                    }
                });
                by.flatten()
            });
            ready.recv().unwrap();
            let lead = Actor("team-lead".into());
            files.house.store.delete_team(&team(), &lead).await.unwrap();
            assert_eq!(watching.join().unwrap(), Some(lead.0));
        });
    }
}

/// What was read does not come again because a lock was held at the wrong moment.
#[test]
fn what_was_read_does_not_come_again_behind_a_lock() {
    Files::run(async |files| {
        let house = &files.house;
        let lock = files.lock("bob");
        leave_locked(&lock);
        house.say("alice", "bob", "one").await; // takes the lock
        mark_all(house, Mark::Read).await;
        // The sleeper wakes, writes its old copy, and holds the lock once more.
        fs::write(files.inbox("bob"), "[]").unwrap();
        fs::create_dir(&lock).unwrap();
        let later = lock.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            fs::remove_dir(later).unwrap();
        });
        let found = house.texts("bob").await;
        thread.join().unwrap();
        assert!(found.is_empty(), "{found:?}");
    });
}

/// Killed between the rename and the look back; nobody stole anything.
#[test]
fn a_kill_before_the_look_back_brings_nothing_twice() {
    Files::run(async |files| {
        let house = &files.house;
        house.say("alice", "bob", "one").await;
        // As a process killed right behind its rename leaves it.
        let state = files.own().join("mail/bob.state");
        let mut bytes = fs::read(&state).unwrap();
        bytes[128] &= !4; // closed
        let sum = bytes[..152].iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, &byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        bytes[152..160].copy_from_slice(&sum.to_le_bytes());
        fs::write(&state, bytes).unwrap();
        let lock = files.lock("bob");
        fs::rename(files.own().join("mail/bob.lock"), &lock).unwrap();
        // One of us looks, and removes the lock of the dead.
        assert_eq!(texts(&files.anew(), "bob").await, ["one"]);
        assert!(!lock.exists());
        // 2.1.325 takes the message out.
        fs::write(files.inbox("bob"), "[]").unwrap();
        assert!(texts(&files.anew(), "bob").await.is_empty());
    });
}

/// What fails leaves the board as it was.
#[test]
fn an_update_that_fails_changes_nothing() {
    Files::run(async |files| {
        let lead = files.house.seat("team-lead");
        let plan = TaskPlan { subject: "one".into(), ..TaskPlan::default() };
        let one = board::add(&lead, &plan).await.unwrap();
        let owner = Change::Set(member("bob"));
        let update = Update { owner, add_blocked_by: vec![one], ..Update::default() };
        board::update(&lead, one, &update).await.unwrap_err();
        let task = String::from_utf8(board::show(&lead, one).await.unwrap().bytes).unwrap();
        assert!(!task.contains("bob"), "{task}");
    });
}

/// What the board calls ready can be claimed, though another program stated half a dependency.
#[test]
fn claim_and_graph_agree_on_what_is_blocked() {
    Files::run(async |files| {
        let lead = files.house.seat("team-lead");
        let plan = TaskPlan { subject: "one".into(), ..TaskPlan::default() };
        board::add(&lead, &plan).await.unwrap();
        let two = board::add(&lead, &plan).await.unwrap();
        let task = fs::read_to_string(files.task(1)).unwrap();
        fs::write(files.task(1), task.replace("\"blocks\": []", "\"blocks\": [\"2\"]")).unwrap();
        let (_, graph) = board::list(&lead).await.unwrap();
        assert!(graph.waits_for(two).is_empty());
        board::claim(&files.house.seat("bob"), two).await.unwrap();
    });
}

async fn new_team_of_the_name(house: &House) {
    use brigade_testkit::env::{member_plan, team_plan};
    let lead = house.seat("team-lead");
    brigade_core::roster::delete(&lead, brigade_core::roster::Force::Yes).await.unwrap();
    brigade_core::roster::create(&lead, team_plan()).await.unwrap();
    for name in ["alice", "bob"] {
        brigade_core::roster::join(&lead, &member(name), member_plan()).await.unwrap();
    }
}

/// Deleted and made again within a second.
#[test]
fn a_namesake_made_at_once_gets_no_old_mail() {
    Files::run(async |files| {
        let lock = files.lock("bob");
        fs::create_dir(&lock).unwrap();
        files.impatient(Duration::ZERO).say("alice", "bob", "old").await;
        new_team_of_the_name(&files.house).await;
        assert!(texts(&files.house, "bob").await.is_empty());
    });
}

/// What waits for another team is not shown either.
#[test]
fn a_namesake_is_shown_no_old_mail() {
    Files::run(async |files| {
        let lock = files.lock("bob");
        fs::create_dir(&lock).unwrap();
        files.impatient(Duration::ZERO).say("alice", "bob", "old").await;
        new_team_of_the_name(&files.house).await;
        fs::create_dir(&lock).unwrap();
        let found = texts(&files.impatient(Duration::ZERO), "bob").await;
        assert!(found.is_empty(), "{found:?}");
    });
}
