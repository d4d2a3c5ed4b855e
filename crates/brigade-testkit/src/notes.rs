//! What a store promises to remember: histories, answers, notes, teams that are gone.

use std::collections::HashSet;
use std::time::Duration;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::{Event, Record};
use brigade_core::mail;
use brigade_core::revive;
use brigade_core::store::{Mark, Question, Shelf, StoreError};
use brigade_wire::team::Team;

use crate::contract::{AnyStore, actor};
use crate::env::{House, member, team};

/// What was said in a team that is gone can still be read.
pub async fn history_outlives_the_team(store: AnyStore) {
    let house = House::build(store).await;
    house.say("bob", "alice", "remember me").await;
    house.store.delete_team(&team(), &actor()).await.unwrap();
    let history = house.store.history(&team()).await.unwrap();
    let remembered = history.iter().any(|record| match &record.event {
        Event::Sent { message, .. } => message.get().contains("remember me"),
        _ => false,
    });
    assert!(remembered);
    assert!(history.iter().any(|record| matches!(record.event, Event::TeamDeleted {})));
}

/// However many decide at once, one answer stands, and all are given that one.
pub async fn a_question_is_decided_once(store: AnyStore) {
    let house = House::build(store).await;
    let question = Question::new(&member("alice"), "plan/../1@alice: \u{e9}");
    assert_eq!(house.store.decided(&team(), &question).await.unwrap(), None);
    let mut deciding = Vec::new();
    for number in 0..16 {
        let (house, question) = (house.clone(), question.clone());
        deciding.push(tokio::spawn(async move {
            let answer = format!("answer {number}");
            house.store.decide(&team(), &question, answer.as_bytes()).await.unwrap()
        }));
    }
    let mut answers = HashSet::new();
    for decided in deciding {
        answers.insert(decided.await.unwrap());
    }
    assert_eq!(answers.len(), 1);
    let decided = house.store.decided(&team(), &question).await.unwrap();
    assert_eq!(decided, answers.into_iter().next());
    let other = Question::new(&member("alice"), "plan/../1@alice: e");
    assert_eq!(house.store.decided(&team(), &other).await.unwrap(), None);
    let none = house.store.decided(&"nobody".parse().unwrap(), &question).await;
    assert!(matches!(none, Err(StoreError::NoTeam { .. })), "{none:?}");
}

/// The history of a mailbox is of that mailbox, and holds what became of its messages.
pub async fn a_mailbox_has_a_history_of_its_own(store: AnyStore) {
    let house = House::build(store).await;
    house.say("bob", "alice", "one").await;
    house.say("alice", "bob", "not this").await;
    house.say("bob", "alice", "two").await;
    let alice = house.seat("alice");
    let mail = mail::inbox(&alice, &alice.name, mail::Which::All).await.unwrap();
    mail::mark(&alice, &[mail.first().unwrap().key], Mark::Read).await.unwrap();
    let records = house.store.mailbox_history(&team(), &alice.name).await.unwrap();
    let told: Vec<&str> = records
        .iter()
        .map(|record| match &record.event {
            Event::Sent { message, .. } if message.get().contains("one") => "sent one",
            Event::Sent { message, .. } if message.get().contains("two") => "sent two",
            Event::Read { .. } => "read",
            _ => "something else",
        })
        .collect();
    assert_eq!(told, ["sent one", "sent two", "read"]);
}

/// The last note stands, is nobody else's and no other note, is there when the team is gone, and can be
/// thrown away.
pub async fn a_note_is_kept_until_the_next(store: AnyStore) {
    let house = House::build(store).await;
    let memory = Shelf::Memory;
    let kept = async |of: &str, shelf| house.store.kept(&team(), &member(of), shelf).await.unwrap();
    let keep = async |note: Option<&[u8]>| {
        house.store.keep(&team(), &member("alice"), Shelf::Memory, note).await.unwrap();
    };
    assert_eq!(kept("alice", memory).await, None);
    keep(None).await;
    for note in ["one", "two, longer", ""] {
        keep(Some(note.as_bytes())).await;
        assert_eq!(kept("alice", memory).await.as_deref(), Some(note.as_bytes()));
    }
    keep(Some(b"last")).await;
    assert_eq!(kept("bob", memory).await, None);
    assert_eq!(kept("alice", Shelf::Pulse).await, None);
    house.store.delete_team(&team(), &actor()).await.unwrap();
    assert_eq!(kept("alice", memory).await.as_deref(), Some(b"last".as_slice()));
    keep(None).await;
    assert_eq!(kept("alice", memory).await, None);
}

/// A team that was deleted comes back from what was written down: who was on it, its tasks under their
/// numbers, and what nobody had read. What was read does not come again.
pub async fn a_team_is_revived_from_its_journal(store: AnyStore) {
    let house = House::build(store).await;
    let lead = house.seat("team-lead");
    let plan = |subject: &str| TaskPlan { subject: subject.to_owned(), ..TaskPlan::default() };
    let first = board::add(&lead, &plan("one")).await.unwrap();
    let second = board::add(&lead, &plan("two")).await.unwrap();
    board::delete(&lead, first).await.unwrap();
    board::claim(&house.seat("alice"), second).await.unwrap();
    let say = async |text: &str| {
        let words = mail::Words { text, summary: None };
        mail::send(&lead, "alice", words).await.unwrap();
    };
    say("read").await;
    let read = house.store.inbox(&team(), &member("alice")).await.unwrap();
    let keys: Vec<_> = read.iter().map(|mail| mail.key).collect();
    house.store.mark(&team(), &member("alice"), &keys, Mark::Read).await.unwrap();
    say("not read").await;
    let before = house.store.team(&team()).await.unwrap().unwrap();
    let names = |bytes: &[u8]| -> Vec<String> {
        let team = Team::read(bytes).unwrap();
        team.members().filter_map(|member| Some(member.name()?.into_owned())).collect()
    };
    let before = names(&before.bytes);
    house.store.delete_team(&team(), &actor()).await.unwrap();

    let revived = revive::revive(&lead).await.unwrap().unwrap();
    assert_eq!((revived.tasks, revived.messages), (1, 1));
    let after = house.store.team(&team()).await.unwrap().unwrap();
    assert_eq!(names(&after.bytes), before);
    let tasks = house.store.tasks(&team()).await.unwrap();
    assert_eq!(tasks.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [second]);
    assert!(String::from_utf8_lossy(&tasks[0].1.bytes).contains("alice"));
    let third = board::add(&lead, &plan("three")).await.unwrap();
    assert!(third > second);
    let texts = async || -> Vec<String> {
        let inbox = mail::inbox(&lead, &member("alice"), mail::Which::Unread).await.unwrap();
        let text = |mail: &brigade_core::store::Mail| {
            mail::with_message(&mail.json, |message| message.unwrap().text().into_owned()).unwrap()
        };
        inbox.iter().map(text).collect()
    };
    assert_eq!(texts().await, ["not read"]);
    // Once more changes nothing.
    revive::revive(&lead).await.unwrap();
    assert_eq!(texts().await, ["not read"]);
}

/// What is in no document is told to those who watch, and stays, with who did it.
pub async fn what_is_recorded_is_told_and_in_the_history(store: AnyStore) {
    let house = House::build(store).await;
    let mut watch = house.store.watch(&team()).await.unwrap();
    let event = Event::Answered {
        request_id: "perm-1-abcdefg".into(),
        kind: "permission".into(),
        to: "bob".into(),
        yes: false,
        reason: Some("not\nnow".into()),
        hand: "rule 2 of bob".into(),
    };
    house.store.record(&team(), event, &actor()).await.unwrap();
    let is_it = |record: &Record| match &record.event {
        Event::Answered { reason: Some(reason), hand, yes: false, .. } => {
            reason == "not\nnow" && hand == "rule 2 of bob" && record.by == Some(actor().0)
        }
        _ => false,
    };
    let told = async { while !is_it(&watch.next().await.expect("the watch goes on")) {} };
    tokio::time::timeout(Duration::from_secs(10), told).await.expect("it is told");
    let history = house.store.history(&team()).await.unwrap();
    assert_eq!(history.iter().filter(|record| is_it(record)).count(), 1);
    let nobody = Event::TeamDeleted {};
    let none = house.store.record(&"nobody".parse().unwrap(), nobody, &actor()).await;
    assert!(matches!(none, Err(StoreError::NoTeam { .. })), "{none:?}");
}
