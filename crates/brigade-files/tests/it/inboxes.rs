//! Tests of inboxes shared with Claude Code: messages that Claude Code writes are kept, messages
//! that it removes are recorded, and acknowledged messages are delivered.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::time::Duration;

use brigade_core::event::Event;
use brigade_core::mail;
use brigade_core::roster;
use brigade_core::store::Mark;
use brigade_core::wire::inbox::with_message;
use brigade_testkit::env::{TestEnv, member, team};

use brigade_testkit::files::{Files, create_stale_lock};

use crate::helpers::{edit_head, send, texts};

/// Returns an inbox entry as Claude Code 2.1.50 writes it.
fn native_entry(text: &str, read: bool) -> String {
    format!(
        "  {{\n    \"from\": \"team-lead\",\n    \"text\": \"{text}\",\n    \"timestamp\": \"2026-11-15T00:00:00.000Z\",\n    \"read\": {read}\n  }}"
    )
}

fn inbox_of(entries: &[String]) -> String {
    if entries.is_empty() { "[]".into() } else { format!("[\n{}\n]", entries.join(",\n")) }
}

/// Returns the message events of the history as short strings.
async fn message_events(env: &TestEnv) -> Vec<String> {
    let text =
        |json: &str| with_message(json.as_bytes(), |m| m.unwrap().text().into_owned()).unwrap();
    let mut texts = std::collections::HashMap::new();
    let mut events = Vec::new();
    for record in env.store.history(&team()).await.unwrap() {
        match record.into_inner().event {
            Event::Sent { key, message, .. } => {
                texts.insert(key, text(message.get()));
                events.push(format!("sent {}", texts[&key]));
            }
            Event::Seen { key, message, .. } => {
                texts.insert(key, text(message.get()));
                events.push(format!("seen {}", texts[&key]));
            }
            Event::Read { key, .. } => events.push(format!("read {}", texts[&key])),
            Event::Shown { key, .. } => events.push(format!("shown {}", texts[&key])),
            Event::Salvaged { kept, .. } => events.push(format!("salvaged {kept}")),
            _ => {}
        }
    }
    events
}

#[test]
fn messages_that_others_write_and_prune_are_recorded() {
    Files::run(async |files| {
        let env = &files.env;
        fs::write(files.inbox("bob"), inbox_of(&[native_entry("theirs", false)])).unwrap();
        env.say("alice", "bob", "ours").await;
        assert_eq!(texts(env, "bob").await, ["theirs", "ours"]);
        // Claude Code 2.1.325 empties the inbox the next time it reads the inbox.
        fs::write(files.inbox("bob"), "[]").unwrap();
        assert!(texts(env, "bob").await.is_empty());
        env.say("alice", "bob", "more").await;
        assert_eq!(texts(env, "bob").await, ["more"]);
        let expected = ["sent ours", "seen theirs", "read theirs", "read ours", "sent more"];
        assert_eq!(message_events(env).await, expected);
    });
}

#[test]
fn a_native_read_mark_is_recorded() {
    Files::run(async |files| {
        let env = &files.env;
        fs::write(
            files.inbox("bob"),
            inbox_of(&[native_entry("one", false), native_entry("two", true)]),
        )
        .unwrap();
        env.texts("bob").await;
        fs::write(
            files.inbox("bob"),
            inbox_of(&[native_entry("one", true), native_entry("two", true)]),
        )
        .unwrap();
        env.texts("bob").await;
        assert_eq!(message_events(env).await, ["seen one", "seen two", "read two", "read one"]);
    });
}

/// Two messages with the same text and the same timestamp are different messages.
#[test]
fn identical_messages_are_kept_apart() {
    Files::run(async |files| {
        let env = &files.env;
        let twice = [native_entry("same", false), native_entry("same", false)];
        fs::write(files.inbox("bob"), inbox_of(&twice)).unwrap();
        let mail = env.store.inbox(&team(), &member("bob")).await.unwrap();
        assert_ne!(mail[0].key, mail[1].key);
        mail::mark(&env.seat("bob"), &[mail[1].key], Mark::Read).await.unwrap();
        let read: Vec<bool> = env.texts("bob").await.iter().map(|(_, read)| *read).collect();
        assert_eq!(read, [false, true]);
        assert_eq!(message_events(env).await, ["seen same", "seen same", "read same"]);
    });
}

#[test]
fn a_live_inbox_is_pruned_and_its_history_is_kept() {
    Files::run(async |files| {
        let env = &files.env;
        let bob = env.seat("bob");
        for round in 0..10 {
            for number in 0..30 {
                env.say("alice", "bob", &format!("{round}-{number}")).await;
            }
            let mail = env.store.inbox(&team(), &bob.name).await.unwrap();
            let keys: Vec<_> = mail.iter().map(|mail| mail.key).collect();
            mail::mark(&bob, &keys, Mark::Shown).await.unwrap();
        }
        assert!(env.texts("bob").await.len() <= 8 + 30, "{}", env.texts("bob").await.len());
        let events = message_events(env).await;
        for kind in ["sent", "read", "shown"] {
            let distinct: std::collections::HashSet<_> =
                events.iter().filter(|event| event.starts_with(kind)).collect();
            assert_eq!(distinct.len(), 300, "{kind}");
        }
    });
}

/// Only one process scans the files of the whole team. Claude Code removes a message that it has read within a second.
#[test]
fn another_member_scans_the_team_after_the_one_that_did_has_left() {
    Files::run(async |files| {
        let (alice, bob) = (files.reopen(), files.reopen());
        let first = alice.store.watch_member(&team(), &member("alice")).await.unwrap();
        let _second = bob.store.watch_member(&team(), &member("bob")).await.unwrap();
        roster::leave(&files.env.seat("team-lead"), &member("alice")).await.unwrap();
        drop(first);
        tokio::time::sleep(Duration::from_secs(2)).await;
        fs::write(files.inbox("team-lead"), inbox_of(&[native_entry("short", false)])).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        fs::write(files.inbox("team-lead"), inbox_of(&[])).unwrap();
        let events = message_events(&files.env).await;
        assert!(events.contains(&"seen short".to_owned()), "{events:?}");
    });
}

/// Under steady mail, there is always an unread message.
#[test]
fn the_lead_keeps_a_short_inbox_although_a_message_is_always_unread() {
    Files::run(async |files| {
        let (env, lead) = (&files.env, files.env.seat("team-lead"));
        for number in 0..100 {
            env.say("alice", "team-lead", &format!("report {number}")).await;
            let mail = env.store.inbox(&team(), &lead.name).await.unwrap();
            let keys: Vec<_> = mail.iter().rev().skip(1).map(|mail| mail.key).collect();
            mail::mark(&lead, &keys, Mark::Read).await.unwrap();
        }
        let texts = env.texts("team-lead").await;
        assert!(texts.len() <= 12, "{}", texts.len());
        assert_eq!(texts.last(), Some(&("report 99".to_owned(), false)));
        let events = message_events(env).await;
        for kind in ["sent", "read"] {
            let all = events.iter().filter(|event| event.starts_with(kind)).count();
            assert_eq!(all, if kind == "sent" { 100 } else { 99 }, "{kind}");
        }
    });
}

/// To mark a message as read, Claude Code 2.1.50 uses its index in the inbox. Therefore the index
/// must not change while the message is unread.
#[test]
fn an_unread_message_keeps_its_index() {
    Files::run(async |files| {
        let mut entries: Vec<String> =
            (0..200).map(|number| native_entry(&format!("old {number}"), true)).collect();
        entries.push(native_entry("unread", false));
        fs::write(files.inbox("bob"), inbox_of(&entries)).unwrap();
        files.env.say("alice", "bob", "new").await;
        let texts = texts(&files.env, "bob").await;
        assert_eq!((texts.len(), texts[200].as_str()), (202, "unread"));
    });
}

#[test]
fn a_torn_inbox_is_copied_and_repaired() {
    Files::run(async |files| {
        let env = &files.env;
        for text in ["one", "two", "three"] {
            env.say("alice", "bob", text).await;
        }
        let whole = fs::read_to_string(files.inbox("bob")).unwrap();
        for cut in [whole.len() * 6 / 10, 1, 0] {
            let torn = whole.get(..cut).unwrap();
            fs::write(files.inbox("bob"), torn).unwrap();
            env.say("alice", "bob", "four").await;
            assert_eq!(texts(env, "bob").await[..4], ["one", "two", "three", "four"]);
            let aside = fs::read_dir(files.team_state_dir().join("aside")).unwrap();
            let copied = aside.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
            assert!(copied.into_iter().any(|copy| copy == torn), "not copied if cut at {cut}");
            fs::write(files.inbox("bob"), &whole).unwrap();
            env.texts("bob").await;
        }
    });
}

/// Claude Code 2.1.50 creates an inbox and then locks it. It does not wait for the lock, and loses
/// its message if another process holds the lock. Therefore brigade does not lock an inbox that a
/// program is still creating.
#[test]
fn an_inbox_that_is_being_created_is_not_locked() {
    Files::run(async |files| {
        let env = &files.env;
        env.texts("bob").await;
        fs::write(files.inbox("bob"), "").unwrap();
        let folder = files.inbox("bob").with_file_name("");
        let changed = || fs::metadata(&folder).unwrap().modified().unwrap();
        let before = changed();
        // File times have a coarse resolution: wait until a new lock would get a different time.
        std::thread::sleep(Duration::from_millis(20));
        let (team, bob) = (team(), member("bob"));
        let whole = inbox_of(&[native_entry("first", false)]);
        let create_inbox = async { fs::write(files.inbox("bob"), whole).unwrap() };
        // The store reads the inbox before it is complete, and waits until it is complete.
        let (mail, ()) = tokio::join!(biased; env.store.inbox(&team, &bob), create_inbox);
        assert_eq!(mail.unwrap().len(), 1);
        assert_eq!(changed(), before, "the inbox lock should not be taken");
    });
}

#[test]
fn native_messages_are_salvaged_too() {
    Files::run(async |files| {
        let entries: Vec<String> = (0..20).map(|n| native_entry(&format!("m{n}"), false)).collect();
        let whole = inbox_of(&entries);
        // Tear the inbox before brigade first reads it. Its complete entries are kept.
        fs::write(files.inbox("bob"), whole.get(..whole.len() - 30).unwrap()).unwrap();
        files.env.say("alice", "bob", "ours").await;
        let texts = texts(&files.env, "bob").await;
        assert_eq!((texts.len(), texts[18].as_str(), texts[19].as_str()), (20, "m18", "ours"));
    });
}

/// A process that dies after writing its intent, but before the rename, has delivered nothing. The
/// next process delivers the message.
#[test]
fn an_unfinished_rename_is_finished_once() {
    Files::run(async |files| {
        files.env.say("alice", "bob", "one").await;
        let before = fs::read(files.inbox("bob")).unwrap();
        files.env.say("alice", "bob", "two").await;
        // Undo the rename: turn the new inbox into the temporary file again, and restore the old inbox.
        let state = fs::read(files.team_state_dir().join("mail/bob.state")).unwrap();
        let temp = u64::from_le_bytes(state[56..64].try_into().unwrap());
        let name = format!("bob.json.tmp.brigade-{}-{}", temp >> 32, temp & 0xffff_ffff);
        fs::rename(files.inbox("bob"), files.inbox("bob").with_file_name(&name)).unwrap();
        fs::write(files.inbox("bob"), &before).unwrap();
        let reopened = files.reopen();
        assert_eq!(texts(&reopened, "bob").await, ["one", "two"]);
        reopened.say("alice", "bob", "three").await;
        assert_eq!(texts(&reopened, "bob").await, ["one", "two", "three"]);
        assert!(!files.inbox_names().contains(&name));
    });
}

/// If power loss destroys the state file, no unread message is lost.
#[test]
fn a_lost_state_loses_no_message() {
    Files::run(async |files| {
        let env = &files.env;
        for text in ["one", "two"] {
            env.say("alice", "bob", text).await;
        }
        let mail = env.store.inbox(&team(), &member("bob")).await.unwrap();
        mail::mark(&env.seat("bob"), &[mail[0].key], Mark::Read).await.unwrap();
        fs::write(files.team_state_dir().join("mail/bob.state"), "").unwrap();
        fs::write(files.inbox("bob"), "[]").unwrap();
        let reopened = files.reopen();
        reopened.say("alice", "bob", "three").await;
        assert_eq!(texts(&reopened, "bob").await, ["two", "three"]);
    });
}

#[test]
fn messages_pending_behind_a_lock_are_shown_and_delivered() {
    Files::run(async |files| {
        let lock = files.lock("bob");
        fs::create_dir(&lock).unwrap();
        let impatient = files.impatient(Duration::from_millis(50));
        let why = send(&impatient, "hello").await.unwrap().expect("the message should wait");
        assert!(why.starts_with("another program holds the lock "), "{why}");
        assert!(!files.inbox("bob").exists());
        assert_eq!(texts(&impatient, "bob").await, ["hello"], "should be shown from the outbox");
        fs::remove_dir(&lock).unwrap();
        assert_eq!(texts(&files.reopen(), "bob").await, ["hello"]);
        assert!(fs::read_to_string(files.inbox("bob")).unwrap().contains("hello"));
    });
}

/// The lock of a dead brigade process is recognized, so no process waits for that lock to become
/// stale.
#[test]
fn the_lock_of_a_dead_brigade_process_is_taken_immediately() {
    Files::run(async |files| {
        files.env.say("alice", "bob", "one").await;
        let lock = files.lock("bob");
        fs::create_dir(&lock).unwrap();
        let meta = fs::metadata(&lock).unwrap();
        let born = meta.created().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        let born = u64::try_from(born.as_nanos()).unwrap();
        // Change the state to what the dead process would have left behind.
        edit_head(&files, |head| {
            head[64..72].copy_from_slice(&meta.ino().to_le_bytes());
            head[72..80].copy_from_slice(&born.to_le_bytes());
        });
        let start = std::time::Instant::now();
        files.reopen().say("alice", "bob", "two").await;
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        assert_eq!(texts(&files.env, "bob").await, ["one", "two"]);
    });
}

/// While a native program is suspended, brigade steals its lock. The program then resumes and
/// writes back its old copy of the inbox. Messages merged in the meantime are restored.
#[test]
fn messages_overwritten_by_a_stale_copy_are_restored() {
    Files::run(async |files| {
        fs::write(files.inbox("bob"), inbox_of(&[native_entry("old", false)])).unwrap();
        let lock = files.lock("bob");
        create_stale_lock(&lock);
        files.env.say("alice", "bob", "one").await;
        files.env.say("alice", "bob", "two").await;
        let stale = inbox_of(&[native_entry("old", false), native_entry("slept", false)]);
        fs::write(files.inbox("bob"), stale).unwrap();
        assert_eq!(texts(&files.reopen(), "bob").await, ["old", "slept", "one", "two"]);
    });
}

/// Brigade steals the lock of a suspended native program, and then a reader empties the inbox.
/// Brigade cannot tell whether the reader or the suspended program removed the messages. So it
/// restores all messages that were merged since the steal, but only once.
#[test]
fn after_a_stolen_lock_a_message_is_redelivered_at_most_once() {
    Files::run(async |files| {
        let lock = files.lock("bob");
        create_stale_lock(&lock);
        files.env.say("alice", "bob", "one").await;
        fs::write(files.inbox("bob"), "[]").unwrap();
        assert_eq!(texts(&files.reopen(), "bob").await, ["one"]);
        fs::write(files.inbox("bob"), "[]").unwrap();
        assert!(texts(&files.reopen(), "bob").await.is_empty());
    });
}

/// After every native program has died, brigade removes the remaining lock and restores overwritten
/// messages. Messages that the next program removes stay removed.
#[test]
fn natives_ended_frees_the_lock_and_clears_the_risk() {
    Files::run(async |files| {
        let (bob, store) = (member("bob"), brigade_testkit::files::store(&files.home));
        let lock = files.lock("bob");
        fs::create_dir(&lock).unwrap();
        files.impatient(Duration::ZERO).say("alice", "bob", "one").await;
        store.recover_after_natives_ended(&team(), &bob).await.unwrap();
        assert!(!lock.exists());
        assert_eq!(texts(&files.reopen(), "bob").await, ["one"]);

        // The lock is stale, so brigade steals it.
        create_stale_lock(&lock);
        files.env.say("alice", "bob", "two").await;
        fs::write(files.inbox("bob"), "[]").unwrap();
        store.recover_after_natives_ended(&team(), &bob).await.unwrap();
        // The overwritten message is back in the inbox before any program reads the inbox.
        assert!(fs::read_to_string(files.inbox("bob")).unwrap().contains("two"));
        assert_eq!(texts(&files.reopen(), "bob").await, ["two"]);
        files.env.say("alice", "bob", "three").await;
        fs::write(files.inbox("bob"), "[]").unwrap();
        assert!(texts(&files.reopen(), "bob").await.is_empty());
    });
}

/// After power loss, the journal may end before the offset recorded in the state. Messages appended
/// below that offset must not be skipped.
#[test]
fn a_truncated_journal_hides_no_later_message() {
    Files::run(async |files| {
        files.env.say("alice", "bob", "one").await;
        let journal = files.team_state_dir().join("mail/bob.jsonl");
        let whole = fs::read(&journal).unwrap();
        files.env.say("alice", "bob", "two").await;
        // The disk kept the state but lost the journal's last record. The next record has the same
        // length as the lost one.
        fs::write(&journal, &whole).unwrap();
        let reopened = files.reopen();
        reopened.say("alice", "bob", "six").await;
        assert_eq!(texts(&reopened, "bob").await, ["one", "two", "six"]);
    });
}

#[test]
fn a_symbolic_link_is_not_followed() {
    Files::run(async |files| {
        let target = files.home.path().join("target.json");
        fs::write(&target, "[]").unwrap();
        symlink(&target, files.inbox("bob")).unwrap();
        let error = send(&files.env, "hello").await.unwrap_err();
        assert!(error.ends_with("bob.json: it is a symbolic link"));
        assert_eq!(fs::read_to_string(&target).unwrap(), "[]");
        assert!(message_events(&files.env).await.is_empty(), "no message should be acknowledged");
    });
}

#[test]
fn a_lock_that_is_a_file_is_reported() {
    Files::run(async |files| {
        let lock = files.lock("bob");
        fs::write(&lock, "").unwrap();
        let why = send(&files.env, "hello").await.unwrap().expect("no program can take the lock");
        assert!(why.ends_with("is a file, but a lock must be a directory; remove the file"));
        fs::remove_file(&lock).unwrap();
        assert_eq!(texts(&files.env, "bob").await, ["hello"]);
    });
}

/// A member can mark a message as read while the message is still in the outbox.
#[test]
fn a_pending_message_can_be_marked() {
    Files::run(async |files| {
        let lock = files.lock("bob");
        fs::create_dir(&lock).unwrap();
        let impatient = files.impatient(Duration::ZERO);
        impatient.say("alice", "bob", "hello").await;
        let mail = impatient.store.inbox(&team(), &member("bob")).await.unwrap();
        fs::remove_dir(&lock).unwrap();
        mail::mark(&impatient.seat("bob"), &[mail[0].key], Mark::Read).await.unwrap();
        assert_eq!(impatient.texts("bob").await, [("hello".into(), true)]);
    });
}
