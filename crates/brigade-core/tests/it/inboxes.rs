//! Inboxes that Claude Code shares: what it writes is kept, what it throws away is remembered, and
//! what was acknowledged gets there.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use brigade_core::event::{Event, Record};
use brigade_core::mail;
use brigade_core::store::{Mark, Receipt};
use brigade_testkit::house::{House, member, team};

use crate::{Files, leave_locked};

/// An entry as Claude Code 2.1.50 writes one.
fn native(text: &str, read: bool) -> String {
    format!(
        "  {{\n    \"from\": \"team-lead\",\n    \"text\": \"{text}\",\n    \"timestamp\": \"2026-11-15T00:00:00.000Z\",\n    \"read\": {read}\n  }}"
    )
}

fn inbox_of(entries: &[String]) -> String {
    if entries.is_empty() { "[]".into() } else { format!("[\n{}\n]", entries.join(",\n")) }
}

async fn history(house: &House) -> Vec<Record> {
    house.store.history(&team()).await.unwrap()
}

/// What the history says of messages, each in a word or two.
async fn said(house: &House) -> Vec<String> {
    let text = |json: &str| {
        mail::with_message(json.as_bytes(), |m| m.unwrap().text().into_owned()).unwrap()
    };
    let mut texts = std::collections::HashMap::new();
    let mut said = Vec::new();
    for record in history(house).await {
        match record.event {
            Event::Sent { key, message, .. } => {
                texts.insert(key, text(message.get()));
                said.push(format!("sent {}", texts[&key]));
            }
            Event::Seen { key, message, .. } => {
                texts.insert(key, text(message.get()));
                said.push(format!("seen {}", texts[&key]));
            }
            Event::Read { key, .. } => said.push(format!("read {}", texts[&key])),
            Event::Shown { key, .. } => said.push(format!("shown {}", texts[&key])),
            Event::Salvaged { kept, .. } => said.push(format!("salvaged {kept}")),
            _ => {}
        }
    }
    said
}

async fn texts(house: &House, of: &str) -> Vec<String> {
    house.texts(of).await.into_iter().map(|(text, _)| text).collect()
}

#[test]
fn what_others_write_and_prune_is_remembered() {
    Files::run(async |files| {
        let house = &files.house;
        fs::write(files.inbox("bob"), inbox_of(&[native("theirs", false)])).unwrap();
        house.say("alice", "bob", "ours").await;
        assert_eq!(texts(house, "bob").await, ["theirs", "ours"]);
        // 2.1.325 empties the inbox at its next look.
        fs::write(files.inbox("bob"), "[]").unwrap();
        assert!(texts(house, "bob").await.is_empty());
        house.say("alice", "bob", "more").await;
        assert_eq!(texts(house, "bob").await, ["more"]);
        let expected = ["sent ours", "seen theirs", "read theirs", "read ours", "sent more"];
        assert_eq!(said(house).await, expected);
    });
}

#[test]
fn a_native_mark_is_seen() {
    Files::run(async |files| {
        let house = &files.house;
        fs::write(files.inbox("bob"), inbox_of(&[native("one", false), native("two", true)]))
            .unwrap();
        house.texts("bob").await;
        fs::write(files.inbox("bob"), inbox_of(&[native("one", true), native("two", true)]))
            .unwrap();
        house.texts("bob").await;
        assert_eq!(said(house).await, ["seen one", "seen two", "read two", "read one"]);
    });
}

/// Two messages of one millisecond that say the same are two.
#[test]
fn the_very_same_words_twice_are_two_messages() {
    Files::run(async |files| {
        let house = &files.house;
        let twice = [native("same", false), native("same", false)];
        fs::write(files.inbox("bob"), inbox_of(&twice)).unwrap();
        let mail = house.store.inbox(&team(), &member("bob")).await.unwrap();
        assert_ne!(mail[0].key, mail[1].key);
        mail::mark(&house.seat("bob"), &[mail[1].key], Mark::Read).await.unwrap();
        let read: Vec<bool> = house.texts("bob").await.iter().map(|(_, read)| *read).collect();
        assert_eq!(read, [false, true]);
        assert_eq!(said(house).await, ["seen same", "seen same", "read same"]);
    });
}

#[test]
fn a_live_inbox_is_bounded_and_its_history_is_not() {
    Files::run(async |files| {
        let house = &files.house;
        let bob = house.seat("bob");
        for round in 0..10 {
            for number in 0..30 {
                house.say("alice", "bob", &format!("{round}-{number}")).await;
            }
            let mail = house.store.inbox(&team(), &bob.name).await.unwrap();
            let keys: Vec<_> = mail.iter().map(|mail| mail.key).collect();
            mail::mark(&bob, &keys, Mark::Shown).await.unwrap();
        }
        assert!(house.texts("bob").await.len() <= 8 + 30, "{}", house.texts("bob").await.len());
        let said = said(house).await;
        for kind in ["sent", "read", "shown"] {
            let said: std::collections::HashSet<_> =
                said.iter().filter(|said| said.starts_with(kind)).collect();
            assert_eq!(said.len(), 300, "{kind}");
        }
    });
}

/// 2.1.50 marks a message by its place, so a place must not move while a message is unread.
#[test]
fn an_unread_message_keeps_its_place() {
    Files::run(async |files| {
        let mut entries: Vec<String> =
            (0..200).map(|number| native(&format!("old {number}"), true)).collect();
        entries.push(native("unread", false));
        fs::write(files.inbox("bob"), inbox_of(&entries)).unwrap();
        files.house.say("alice", "bob", "new").await;
        let texts = texts(&files.house, "bob").await;
        assert_eq!((texts.len(), texts[200].as_str()), (202, "unread"));
    });
}

#[test]
fn a_torn_inbox_is_copied_and_mended_and_never_taken_for_empty() {
    Files::run(async |files| {
        let house = &files.house;
        for text in ["one", "two", "three"] {
            house.say("alice", "bob", text).await;
        }
        let whole = fs::read_to_string(files.inbox("bob")).unwrap();
        for cut in [whole.len() * 6 / 10, 1, 0] {
            let torn = whole.get(..cut).unwrap();
            fs::write(files.inbox("bob"), torn).unwrap();
            house.say("alice", "bob", "four").await;
            assert_eq!(texts(house, "bob").await[..4], ["one", "two", "three", "four"]);
            let aside = fs::read_dir(files.own().join("aside")).unwrap();
            let copied = aside.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
            assert!(copied.into_iter().any(|copy| copy == torn), "cut at {cut}");
            fs::write(files.inbox("bob"), &whole).unwrap();
            house.texts("bob").await;
        }
    });
}

/// Claude Code 2.1.50 makes an inbox, and then locks it; it does not wait for the lock, and loses what it
/// cannot write. So who looks at an inbox in that moment keeps its hands off.
#[test]
fn an_inbox_that_is_being_made_is_not_locked() {
    Files::run(async |files| {
        let house = &files.house;
        house.texts("bob").await;
        fs::write(files.inbox("bob"), "").unwrap();
        let folder = files.inbox("bob").with_file_name("");
        let changed = || fs::metadata(&folder).unwrap().modified().unwrap();
        let before = changed();
        // The kernel's clock for files is a coarse one.
        std::thread::sleep(Duration::from_millis(20));
        let (team, bob) = (team(), member("bob"));
        let whole = inbox_of(&[native("first", false)]);
        let made = async { fs::write(files.inbox("bob"), whole).unwrap() };
        // The look comes first, and goes on when it is whole.
        let (mail, ()) = tokio::join!(biased; house.store.inbox(&team, &bob), made);
        assert_eq!(mail.unwrap().len(), 1);
        assert_eq!(changed(), before, "a lock was taken");
    });
}

#[test]
fn what_others_wrote_is_salvaged_too() {
    Files::run(async |files| {
        let entries: Vec<String> = (0..20).map(|n| native(&format!("m{n}"), false)).collect();
        let whole = inbox_of(&entries);
        // Torn before we ever saw it: what is whole is kept.
        fs::write(files.inbox("bob"), whole.get(..whole.len() - 30).unwrap()).unwrap();
        files.house.say("alice", "bob", "ours").await;
        let texts = texts(&files.house, "bob").await;
        assert_eq!((texts.len(), texts[18].as_str(), texts[19].as_str()), (20, "m18", "ours"));
    });
}

/// A process that died between its intent and its rename has delivered nothing; the next one does.
#[test]
fn an_unfinished_rename_is_finished_once() {
    Files::run(async |files| {
        files.house.say("alice", "bob", "one").await;
        let before = fs::read(files.inbox("bob")).unwrap();
        files.house.say("alice", "bob", "two").await;
        // The rename undone: the temporary file is back under its name, and the old inbox in place.
        let state = fs::read(files.own().join("mail/bob.state")).unwrap();
        let temp = u64::from_le_bytes(state[56..64].try_into().unwrap());
        let name = format!("bob.json.tmp.brigade-{}-{}", temp >> 32, temp & 0xffff_ffff);
        fs::rename(files.inbox("bob"), files.inbox("bob").with_file_name(&name)).unwrap();
        fs::write(files.inbox("bob"), &before).unwrap();
        let anew = files.anew();
        assert_eq!(texts(&anew, "bob").await, ["one", "two"]);
        anew.say("alice", "bob", "three").await;
        assert_eq!(texts(&anew, "bob").await, ["one", "two", "three"]);
        assert!(!files.inbox_names().contains(&name));
    });
}

/// Without state, after a power cut, nothing that is not read is missing.
#[test]
fn a_lost_state_loses_no_message() {
    Files::run(async |files| {
        let house = &files.house;
        for text in ["one", "two"] {
            house.say("alice", "bob", text).await;
        }
        let mail = house.store.inbox(&team(), &member("bob")).await.unwrap();
        mail::mark(&house.seat("bob"), &[mail[0].key], Mark::Read).await.unwrap();
        fs::write(files.own().join("mail/bob.state"), "").unwrap();
        fs::write(files.inbox("bob"), "[]").unwrap();
        let anew = files.anew();
        anew.say("alice", "bob", "three").await;
        assert_eq!(texts(&anew, "bob").await, ["two", "three"]);
    });
}

#[test]
fn what_waits_behind_a_lock_is_seen_and_delivered() {
    Files::run(async |files| {
        let lock = files.lock("bob");
        fs::create_dir(&lock).unwrap();
        let patient = files.impatient(Duration::from_millis(50));
        let words = mail::Words { text: "hello", summary: None };
        let sent = mail::send(&patient.seat("alice"), "bob", words).await.unwrap();
        let Receipt { waits: Some(why), .. } = sent.receipt else { panic!("it is locked") };
        assert!(why.to_string().starts_with("another program holds the lock "), "{why}");
        assert!(!files.inbox("bob").exists());
        assert_eq!(texts(&patient, "bob").await, ["hello"], "shown from the outbox");
        fs::remove_dir(&lock).unwrap();
        assert_eq!(texts(&files.anew(), "bob").await, ["hello"]);
        assert!(fs::read_to_string(files.inbox("bob")).unwrap().contains("hello"));
    });
}

/// The lock of a brigade process that died is known, and not waited for.
#[test]
fn the_lock_of_a_dead_brigade_is_taken_at_once() {
    Files::run(async |files| {
        files.house.say("alice", "bob", "one").await;
        let lock = files.lock("bob");
        fs::create_dir(&lock).unwrap();
        let meta = fs::metadata(&lock).unwrap();
        // As the dead one would have left it.
        let path = files.own().join("mail/bob.state");
        let mut state = fs::read(&path).unwrap();
        use std::os::unix::fs::MetadataExt;
        state[64..72].copy_from_slice(&meta.ino().to_le_bytes());
        let born = meta.created().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        let born = u64::try_from(born.as_nanos()).unwrap();
        state[72..80].copy_from_slice(&born.to_le_bytes());
        let sum = state[..152].iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        state[152..160].copy_from_slice(&sum.to_le_bytes());
        fs::write(&path, state).unwrap();
        let start = std::time::Instant::now();
        files.anew().say("alice", "bob", "two").await;
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        assert_eq!(texts(&files.house, "bob").await, ["one", "two"]);
    });
}

/// A native holder that slept while its lock was taken writes its old copy back: what was merged
/// meanwhile is put back.
#[test]
fn a_stale_copy_written_back_costs_nothing() {
    Files::run(async |files| {
        fs::write(files.inbox("bob"), inbox_of(&[native("old", false)])).unwrap();
        let lock = files.lock("bob");
        leave_locked(&lock);
        files.house.say("alice", "bob", "one").await;
        files.house.say("alice", "bob", "two").await;
        let stale = inbox_of(&[native("old", false), native("slept", false)]);
        fs::write(files.inbox("bob"), stale).unwrap();
        assert_eq!(texts(&files.anew(), "bob").await, ["old", "slept", "one", "two"]);
    });
}

/// The same holder, asleep until somebody has read the inbox: nobody can tell its old copy from what
/// the reader left, so what was merged since comes once more. Never twice more.
#[test]
fn after_a_taken_lock_a_message_comes_again_at_most_once() {
    Files::run(async |files| {
        let lock = files.lock("bob");
        leave_locked(&lock);
        files.house.say("alice", "bob", "one").await;
        fs::write(files.inbox("bob"), "[]").unwrap();
        assert_eq!(texts(&files.anew(), "bob").await, ["one"]);
        fs::write(files.inbox("bob"), "[]").unwrap();
        assert!(texts(&files.anew(), "bob").await.is_empty());
    });
}

/// Where every native program is known to be dead there is no such doubt: its lock is nobody's, what it
/// overwrote before comes back, and what the next one takes out of the inbox stays out.
#[test]
fn what_a_dead_program_left_locked_is_free_at_once_and_in_no_doubt() {
    Files::run(async |files| {
        let (bob, ended) = (member("bob"), crate::store(&files.home));
        let lock = files.lock("bob");
        fs::create_dir(&lock).unwrap();
        files.impatient(Duration::ZERO).say("alice", "bob", "one").await;
        ended.natives_ended(&team(), &bob).await.unwrap();
        assert!(!lock.exists());
        assert_eq!(texts(&files.anew(), "bob").await, ["one"]);

        // One that is older was taken from it by now.
        leave_locked(&lock);
        files.house.say("alice", "bob", "two").await;
        fs::write(files.inbox("bob"), "[]").unwrap();
        ended.natives_ended(&team(), &bob).await.unwrap();
        // It may have been overwritten, and stands there before anybody reads.
        assert!(fs::read_to_string(files.inbox("bob")).unwrap().contains("two"));
        assert_eq!(texts(&files.anew(), "bob").await, ["two"]);
        files.house.say("alice", "bob", "three").await;
        fs::write(files.inbox("bob"), "[]").unwrap();
        assert!(texts(&files.anew(), "bob").await.is_empty());
    });
}

/// After a power cut the journal may be shorter than the state says; what is sent then must not hide
/// below the mark.
#[test]
fn a_shortened_journal_hides_no_later_message() {
    Files::run(async |files| {
        files.house.say("alice", "bob", "one").await;
        let journal = files.own().join("mail/bob.jsonl");
        let whole = fs::read(&journal).unwrap();
        files.house.say("alice", "bob", "two").await;
        // The disk kept the state and lost the last record; the next one is exactly as long.
        fs::write(&journal, &whole).unwrap();
        let anew = files.anew();
        anew.say("alice", "bob", "six").await;
        assert_eq!(texts(&anew, "bob").await, ["one", "two", "six"]);
    });
}

#[test]
fn a_link_is_not_followed() {
    Files::run(async |files| {
        let target = files.home.path().join("target.json");
        fs::write(&target, "[]").unwrap();
        symlink(&target, files.inbox("bob")).unwrap();
        let words = mail::Words { text: "hello", summary: None };
        let error = mail::send(&files.house.seat("alice"), "bob", words).await.unwrap_err();
        assert!(error.to_string().ends_with("bob.json: it is a symbolic link"));
        assert_eq!(fs::read_to_string(&target).unwrap(), "[]");
        assert!(said(&files.house).await.is_empty(), "nothing was acknowledged");
    });
}

#[test]
fn a_lock_that_is_a_file_is_named() {
    Files::run(async |files| {
        let lock = files.lock("bob");
        fs::write(&lock, "").unwrap();
        let words = mail::Words { text: "hello", summary: None };
        let sent = mail::send(&files.house.seat("alice"), "bob", words).await.unwrap();
        let why = sent.receipt.waits.expect("no program can take it").to_string();
        assert!(why.ends_with("is a file, but a lock must be a directory; remove the file"));
        fs::remove_file(&lock).unwrap();
        assert_eq!(texts(&files.house, "bob").await, ["hello"]);
    });
}

/// What is shown from the outbox can be marked, though it is not in the inbox yet.
#[test]
fn what_waits_can_be_marked() {
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
