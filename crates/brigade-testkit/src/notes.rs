//! Contract tests for stores: histories, decisions, notes, and deleted teams.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::{Event, Record};
use brigade_core::mail;
use brigade_core::revive;
use brigade_core::store::{Mark, NoteKind, Question, Store, StoreError};
use brigade_core::wire::inbox::with_message;
use brigade_wire::team::Team;

use crate::env::{TestEnv, actor, member, team};

/// The messages of a deleted team can still be read.
pub async fn history_outlives_the_team(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    env.say("bob", "alice", "remember me").await;
    env.store.delete_team(&team(), &actor()).await.unwrap();
    let history = env.store.history(&team()).await.unwrap();
    let remembered = history.iter().any(|record| match &record.event {
        Event::Sent { message, .. } => message.get().contains("remember me"),
        _ => false,
    });
    assert!(remembered);
    assert!(history.iter().any(|record| matches!(record.event, Event::TeamDeleted {})));
}

/// If several callers decide a question at the same time, one decision is stored and all callers receive it.
pub async fn a_question_has_one_decision(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let question = Question::new(&member("alice"), "plan/../1@alice: \u{e9}");
    assert_eq!(env.store.decided(&team(), &question).await.unwrap(), None);
    let mut deciding = Vec::new();
    for number in 0..16 {
        let (env, question) = (env.clone(), question.clone());
        deciding.push(tokio::spawn(async move {
            let answer = format!("answer {number}");
            env.store.decide(&team(), &question, answer.as_bytes()).await.unwrap()
        }));
    }
    let mut answers = HashSet::new();
    for decided in deciding {
        answers.insert(decided.await.unwrap());
    }
    assert_eq!(answers.len(), 1);
    let decided = env.store.decided(&team(), &question).await.unwrap();
    assert_eq!(decided, answers.into_iter().next());
    let other = Question::new(&member("alice"), "plan/../1@alice: e");
    assert_eq!(env.store.decided(&team(), &other).await.unwrap(), None);
    let none = env.store.decided(&"unknown".parse().unwrap(), &question).await;
    assert!(matches!(none, Err(StoreError::NoTeam { .. })), "{none:?}");
}

/// The history of a mailbox contains only events about the messages in that mailbox.
pub async fn a_mailbox_has_its_own_history(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    env.say("bob", "alice", "one").await;
    env.say("alice", "bob", "not this").await;
    env.say("bob", "alice", "two").await;
    let alice = env.seat("alice");
    let mail = mail::inbox(&alice, &alice.name, mail::InboxFilter::All).await.unwrap();
    mail::mark(&alice, &[mail.first().unwrap().key], Mark::Read).await.unwrap();
    let records = env.store.mailbox_history(&team(), &alice.name).await.unwrap();
    let events: Vec<&str> = records
        .iter()
        .map(|record| match &record.event {
            Event::Sent { message, .. } if message.get().contains("one") => "sent one",
            Event::Sent { message, .. } if message.get().contains("two") => "sent two",
            Event::Read { .. } => "read",
            _ => "something else",
        })
        .collect();
    assert_eq!(events, ["sent one", "sent two", "read"]);
}

/// A note belongs to one member and one note kind, survives the deletion of the team, and can be replaced and
/// removed.
pub async fn a_note_is_stored_until_it_is_replaced(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let memory = NoteKind::Memory;
    let note_of =
        async |name: &str, kind| env.store.get_note(&team(), &member(name), kind).await.unwrap();
    let set_note = async |note: Option<&[u8]>| {
        env.store.put_note(&team(), &member("alice"), NoteKind::Memory, note).await.unwrap();
    };
    assert_eq!(note_of("alice", memory).await, None);
    set_note(None).await;
    for note in ["one", "two, longer", ""] {
        set_note(Some(note.as_bytes())).await;
        assert_eq!(note_of("alice", memory).await.as_deref(), Some(note.as_bytes()));
    }
    set_note(Some(b"last")).await;
    assert_eq!(note_of("bob", memory).await, None);
    assert_eq!(note_of("alice", NoteKind::Pulse).await, None);
    env.store.delete_team(&team(), &actor()).await.unwrap();
    assert_eq!(note_of("alice", memory).await.as_deref(), Some(b"last".as_slice()));
    set_note(None).await;
    assert_eq!(note_of("alice", memory).await, None);
}

/// Reviving a deleted team restores its members, its tasks with their numbers, and its unread messages from the
/// journal. Messages that were read are not delivered again.
pub async fn a_deleted_team_is_restored_from_its_journal(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let lead = env.seat("team-lead");
    let plan = |subject: &str| TaskPlan { subject: subject.to_owned(), ..TaskPlan::default() };
    let first = board::add(&lead, &plan("one")).await.unwrap();
    let second = board::add(&lead, &plan("two")).await.unwrap();
    board::delete(&lead, first).await.unwrap();
    board::claim(&env.seat("alice"), second).await.unwrap();
    let send = async |text: &str| {
        let message = mail::MessageText { text, summary: None };
        mail::send(&lead, "alice", message).await.unwrap();
    };
    send("read").await;
    let read = env.store.inbox(&team(), &member("alice")).await.unwrap();
    let keys: Vec<_> = read.iter().map(|mail| mail.key).collect();
    env.store.mark(&team(), &member("alice"), &keys, Mark::Read).await.unwrap();
    send("not read").await;
    let before = env.store.team(&team()).await.unwrap().unwrap();
    let names = |bytes: &[u8]| -> Vec<String> {
        let team = Team::read(bytes).unwrap();
        team.members().filter_map(|member| Some(member.name()?.into_owned())).collect()
    };
    let before = names(&before.bytes);
    env.store.delete_team(&team(), &actor()).await.unwrap();

    let revived = revive::revive(&lead).await.unwrap().unwrap();
    assert_eq!((revived.tasks, revived.messages), (1, 1));
    let after = env.store.team(&team()).await.unwrap().unwrap();
    assert_eq!(names(&after.bytes), before);
    let tasks = env.store.tasks(&team()).await.unwrap();
    assert_eq!(tasks.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [second]);
    assert!(String::from_utf8_lossy(&tasks[0].1.bytes).contains("alice"));
    let third = board::add(&lead, &plan("three")).await.unwrap();
    assert!(third > second);
    let texts = async || -> Vec<String> {
        let inbox = mail::inbox(&lead, &member("alice"), mail::InboxFilter::Unread).await.unwrap();
        let text = |mail: &brigade_core::store::Mail| {
            with_message(&mail.json, |message| message.unwrap().text().into_owned()).unwrap()
        };
        inbox.iter().map(text).collect()
    };
    assert_eq!(texts().await, ["not read"]);
    // Reviving the team again changes nothing.
    revive::revive(&lead).await.unwrap();
    assert_eq!(texts().await, ["not read"]);
}

/// An event that a member records is reported to watches and stored in the history, with its author.
pub async fn a_recorded_event_is_reported_and_in_the_history(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let mut watch = env.store.watch(&team()).await.unwrap();
    let event = Event::Answered {
        request_id: "perm-1-abcdefg".into(),
        kind: "permission".into(),
        to: "bob".into(),
        yes: false,
        reason: Some("not\nnow".into()),
        hand: "rule 2 of bob".into(),
    };
    env.store.record(&team(), event.clone(), &actor()).await.unwrap();
    let is_expected = |record: &Record| match &record.event {
        Event::Answered { reason: Some(reason), hand, yes: false, .. } => {
            reason == "not\nnow" && hand == "rule 2 of bob" && record.by == Some(actor().0)
        }
        _ => false,
    };
    let report = async { while !is_expected(&watch.next().await.expect("the watch ended")) {} };
    tokio::time::timeout(Duration::from_secs(10), report)
        .await
        .expect("the watch should report the event in time");
    let history = env.store.history(&team()).await.unwrap();
    assert_eq!(history.iter().filter(|record| is_expected(record)).count(), 1);
    let none = env.store.record(&"unknown".parse().unwrap(), event, &actor()).await;
    assert!(matches!(none, Err(StoreError::NoTeam { .. })), "{none:?}");
}
