//! What every store promises, as tests that every store runs.
//!
//! A store's tests call [`contract_tests!`](crate::contract_tests) with an expression that makes an
//! empty store; each case below becomes a test of its own.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::{Event, Record};
use brigade_core::mail;
use brigade_core::revive;
use brigade_core::roster;
use brigade_core::store::{Actor, Mark, Outgoing, Question, Revision, Shelf, Store, StoreError};
use brigade_wire::team::Team;

use crate::house::{House, member, member_plan, team, team_plan};

/// Makes a test of each case of the contract, for the store that `$make` makes. `$make` gives a
/// store and something that keeps its surroundings alive.
#[macro_export]
macro_rules! contract_tests {
    ($make:expr) => {
        $crate::contract_tests!($make;
            a_team_is_made_once_and_deleted
            a_team_is_replaced_only_at_its_revision
            who_has_left_is_not_brought_back
            messages_come_once_and_in_order
            the_same_id_is_the_same_message
            concurrent_senders_lose_nothing
            marks_stay_and_are_in_the_history
            no_team_is_an_error
            numbers_are_never_given_twice
            a_task_is_replaced_only_at_its_revision
            concurrent_tasks_get_different_numbers
            one_claimer_wins
            a_watch_tells_what_happens
            history_outlives_the_team
            a_question_is_decided_once
            a_mailbox_has_a_history_of_its_own
            a_note_is_kept_until_the_next
            a_team_is_revived_from_its_journal
            what_is_recorded_is_told_and_in_the_history
        );
    };
    ($make:expr; $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                let (store, _surroundings) = $make;
                $crate::contract::run($crate::contract::$case(store));
            }
        )*
    };
}

/// Runs a case.
pub fn run(case: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_time().build().unwrap().block_on(case);
}

type AnyStore = Arc<dyn Store>;

fn actor() -> Actor {
    Actor("team-lead".into())
}

fn message(id: &str, from: &str, text: &str) -> Outgoing {
    Outgoing {
        msg_id: id.into(),
        from: from.into(),
        text: text.into(),
        summary: None,
        timestamp: "2026-11-15T12:00:00.000Z".into(),
        color: None,
        msg_v: None,
        lead_sig: None,
        team_created: 0,
    }
}

/// A team exists from its creation to its deletion, and only once.
pub async fn a_team_is_made_once_and_deleted(store: AnyStore) {
    assert!(store.teams().await.unwrap().is_empty());
    assert!(store.team(&team()).await.unwrap().is_none());
    let house = House::build(Arc::clone(&store)).await;
    assert_eq!(store.teams().await.unwrap(), [team()]);
    let again = roster::create(&house.seat("team-lead"), team_plan()).await;
    let exists = roster::RosterError::Store(StoreError::TeamExists { team: team() });
    assert_eq!(again.unwrap_err().to_string(), exists.to_string());
    store.delete_team(&team(), &actor()).await.unwrap();
    assert!(store.teams().await.unwrap().is_empty());
    assert!(store.team(&team()).await.unwrap().is_none());
    assert!(matches!(store.delete_team(&team(), &actor()).await, Err(StoreError::NoTeam { .. })));
    House::build(store).await;
}

/// Replacing a team is compare-and-set.
pub async fn a_team_is_replaced_only_at_its_revision(store: AnyStore) {
    House::build(Arc::clone(&store)).await;
    let before = store.team(&team()).await.unwrap().unwrap();
    let without = Team::read(&before.bytes).unwrap().without_member("bob").into_owned();
    let at = before.revision;
    let after = store.replace_team(&team(), &without, at, &actor()).await.unwrap();
    let stale = store.replace_team(&team(), &before.bytes, at, &actor()).await;
    assert!(matches!(stale, Err(StoreError::Conflict)), "{stale:?}");
    let now = store.team(&team()).await.unwrap().unwrap();
    assert_eq!((now.bytes, now.revision), (without, after));
}

/// A member's last words about itself do not put it back on the roster.
pub async fn who_has_left_is_not_brought_back(store: AnyStore) {
    let house = House::build(store).await;
    let (lead, bob) = (house.seat("team-lead"), member("bob"));
    roster::leave(&lead, &bob).await.unwrap();
    let late = roster::set_activity(&lead, &bob, roster::Activity::Idle).await;
    assert_eq!(late.unwrap_err().to_string(), "no member bob in team demo");
    let config = house.store.team(&team()).await.unwrap().unwrap();
    assert!(Team::read(&config.bytes).unwrap().member("bob").is_none());
}

/// What is sent is there, once, in the order in which it was sent.
pub async fn messages_come_once_and_in_order(store: AnyStore) {
    let house = House::build(store).await;
    assert!(house.texts("alice").await.is_empty());
    for number in 0..10 {
        house.say("bob", "alice", &format!("{number}\n\u{2028}\"ü")).await;
    }
    let expected: Vec<_> = (0..10).map(|n| (format!("{n}\n\u{2028}\"ü"), false)).collect();
    assert_eq!(house.texts("alice").await, expected);
    assert!(house.texts("bob").await.is_empty());
}

/// A message that is sent again, because its sender heard no answer, is there once.
pub async fn the_same_id_is_the_same_message(store: AnyStore) {
    let house = House::build(store).await;
    let config = house.store.team(&team()).await.unwrap().unwrap();
    let team_created = Team::read(&config.bytes).unwrap().created_at().unwrap();
    let id = uuid::Uuid::new_v4().to_string();
    for _ in 0..3 {
        let message = Outgoing { team_created, ..message(&id, "bob", "hello") };
        let receipt = house.store.send(&team(), &member("alice"), &message).await.unwrap();
        assert_eq!(receipt.msg_id, id);
    }
    assert_eq!(house.texts("alice").await, [("hello".into(), false)]);
}

/// Many at once, from several stores or one: all there, once, each sender's in order.
pub async fn concurrent_senders_lose_nothing(store: AnyStore) {
    const SENDERS: usize = 8;
    const EACH: usize = 25;
    let house = House::build(store).await;
    let mut sending = Vec::new();
    for sender in 0..SENDERS {
        let house = house.clone();
        sending.push(tokio::spawn(async move {
            for number in 0..EACH {
                house.say("bob", "alice", &format!("{sender}-{number}")).await;
            }
        }));
    }
    for task in sending {
        task.await.unwrap();
    }
    let texts: Vec<String> = house.texts("alice").await.into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts.len(), SENDERS * EACH);
    for sender in 0..SENDERS {
        let prefix = format!("{sender}-");
        let of_sender: Vec<&String> = texts.iter().filter(|t| t.starts_with(&prefix)).collect();
        let expected: Vec<String> = (0..EACH).map(|number| format!("{prefix}{number}")).collect();
        assert_eq!(of_sender, expected.iter().collect::<Vec<_>>());
    }
}

/// A mark stays, tells its time once, and touches no other message.
pub async fn marks_stay_and_are_in_the_history(store: AnyStore) {
    let house = House::build(store).await;
    for text in ["one", "two", "three"] {
        house.say("bob", "alice", text).await;
    }
    let (alice, seat) = (member("alice"), house.seat("alice"));
    let inbox = house.store.inbox(&team(), &alice).await.unwrap();
    mail::mark(&seat, &[inbox[0].key], Mark::Read).await.unwrap();
    mail::mark(&seat, &[inbox[0].key], Mark::Read).await.unwrap();
    mail::mark(&seat, &[inbox[2].key], Mark::Shown).await.unwrap();
    let read = |text: &str, read| (text.to_owned(), read);
    let expected = [read("one", true), read("two", false), read("three", true)];
    assert_eq!(house.texts("alice").await, expected);
    let history = house.store.history(&team()).await.unwrap();
    let count = |wanted: &dyn Fn(&Event) -> bool| {
        history.iter().filter(|record| wanted(&record.event)).count()
    };
    assert_eq!(count(&|event| matches!(event, Event::Sent { to, .. } if to == "alice")), 3);
    assert_eq!(count(&|event| matches!(event, Event::Read { key, .. } if *key == inbox[0].key)), 1);
    assert_eq!(count(&|event| matches!(event, Event::Read { key, .. } if *key == inbox[1].key)), 0);
    assert_eq!(count(&|event| matches!(event, Event::Read { key, .. } if *key == inbox[2].key)), 1);
    assert_eq!(
        count(&|event| matches!(event, Event::Shown { key, .. } if *key == inbox[2].key)),
        1
    );
    let sent: Vec<_> = history.iter().map(|record| record.at).collect();
    assert!(sent.is_sorted(), "the history is in order of time");
}

/// Where there is no team there is no mail and no board.
pub async fn no_team_is_an_error(store: AnyStore) {
    let (team, alice, by) = (team(), member("alice"), actor());
    let id = brigade_wire::name::TaskId::new(1).unwrap();
    let write = |_: brigade_wire::name::TaskId| Vec::new();
    let no_team =
        |error: StoreError| assert!(matches!(error, StoreError::NoTeam { .. }), "{error:?}");
    no_team(store.send(&team, &alice, &message("1", "bob", "hello")).await.unwrap_err());
    no_team(store.inbox(&team, &alice).await.unwrap_err());
    no_team(store.mark(&team, &alice, &[], Mark::Read).await.unwrap_err());
    no_team(store.tasks(&team).await.unwrap_err());
    no_team(store.task(&team, id).await.unwrap_err());
    no_team(store.create_task(&team, &write, &by).await.unwrap_err());
    no_team(store.watch(&team).await.unwrap_err());
    no_team(store.replace_team(&team, b"{}", Revision(0), &by).await.unwrap_err());
}

/// The number of a deleted task is not given again.
pub async fn numbers_are_never_given_twice(store: AnyStore) {
    let house = House::build(store).await;
    let lead = house.seat("team-lead");
    let mut given = Vec::new();
    for round in 0..5 {
        let plan = TaskPlan { subject: format!("task {round}"), ..TaskPlan::default() };
        let id = board::add(&lead, &plan).await.unwrap();
        given.push(id.get());
        if round % 2 == 0 {
            board::delete(&lead, id).await.unwrap();
            assert!(house.store.task(&team(), id).await.unwrap().is_none());
            let again = board::delete(&lead, id).await.unwrap_err();
            assert_eq!(again.to_string(), format!("no task {id}"));
        }
    }
    assert_eq!(given, [1, 2, 3, 4, 5]);
    let left: Vec<u64> =
        house.store.tasks(&team()).await.unwrap().iter().map(|(id, _)| id.get()).collect();
    assert_eq!(left, [2, 4]);
}

/// Replacing a task is compare-and-set.
pub async fn a_task_is_replaced_only_at_its_revision(store: AnyStore) {
    let house = House::build(store).await;
    let plan = TaskPlan { subject: "paint".into(), ..TaskPlan::default() };
    let id = board::add(&house.seat("team-lead"), &plan).await.unwrap();
    let store = &house.store;
    let before = store.task(&team(), id).await.unwrap().unwrap();
    let text = String::from_utf8(before.bytes.clone()).unwrap();
    let (red, blue) =
        (text.replace("paint", "paint it red"), text.replace("paint", "paint it blue"));
    let at = before.revision;
    store.replace_task(&team(), id, red.as_bytes(), at, &actor()).await.unwrap();
    let late = store.replace_task(&team(), id, blue.as_bytes(), at, &actor()).await;
    assert!(matches!(late, Err(StoreError::Conflict)), "{late:?}");
    assert_eq!(store.task(&team(), id).await.unwrap().unwrap().bytes, red.as_bytes());
    let absent = brigade_wire::name::TaskId::new(99).unwrap();
    let absent = store.replace_task(&team(), absent, red.as_bytes(), at, &actor()).await;
    assert!(matches!(absent, Err(StoreError::NoTask { .. })), "{absent:?}");
}

/// Two tasks made at once are two tasks.
pub async fn concurrent_tasks_get_different_numbers(store: AnyStore) {
    let house = House::build(store).await;
    let mut adding = Vec::new();
    for worker in 0..8 {
        let seat = house.seat("team-lead");
        adding.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for number in 0..10 {
                let plan =
                    TaskPlan { subject: format!("{worker}-{number}"), ..TaskPlan::default() };
                ids.push(board::add(&seat, &plan).await.unwrap().get());
            }
            ids
        }));
    }
    let mut ids = HashSet::new();
    for task in adding {
        ids.extend(task.await.unwrap());
    }
    assert_eq!(ids, (1..=80).collect());
    assert_eq!(house.store.tasks(&team()).await.unwrap().len(), 80);
}

/// Of many who claim a task one gets it.
pub async fn one_claimer_wins(store: AnyStore) {
    let house = House::build(store).await;
    let lead = house.seat("team-lead");
    let names: Vec<String> = (0..8).map(|number| format!("worker-{number}")).collect();
    for name in &names {
        roster::join(&lead, &member(name), member_plan()).await.unwrap();
    }
    for number in 0..20 {
        let plan = TaskPlan { subject: format!("task {number}"), ..TaskPlan::default() };
        board::add(&lead, &plan).await.unwrap();
    }
    let mut claiming = Vec::new();
    for name in names {
        let seat = house.seat(&name);
        claiming.push(tokio::spawn(async move {
            let mut won = Vec::new();
            for number in 1..=20 {
                let id = brigade_wire::name::TaskId::new(number).unwrap();
                match board::claim(&seat, id).await {
                    Ok(()) => won.push(number),
                    Err(board::BoardError::Taken { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            won
        }));
    }
    let mut won = Vec::new();
    for task in claiming {
        won.extend(task.await.unwrap());
    }
    won.sort_unstable();
    assert_eq!(won, (1..=20).collect::<Vec<u64>>());
}

/// A watch tells of mail, board and roster, and nothing twice.
pub async fn a_watch_tells_what_happens(store: AnyStore) {
    let house = House::build(store).await;
    house.say("bob", "alice", "before").await;
    let mut watch = house.store.watch(&team()).await.unwrap();
    let lead = house.seat("team-lead");
    let id = house.say("bob", "alice", "hello").await;
    let plan = TaskPlan { subject: "paint".into(), ..TaskPlan::default() };
    board::add(&lead, &plan).await.unwrap();
    board::claim(&house.seat("alice"), brigade_wire::name::TaskId::new(1).unwrap()).await.unwrap();
    roster::join(&lead, &member("carol"), member_plan()).await.unwrap();
    roster::leave(&lead, &member("carol")).await.unwrap();
    let mut told = Vec::new();
    while let Ok(Some(record)) =
        tokio::time::timeout(Duration::from_millis(500), watch.next()).await
    {
        told.push(match record.event {
            Event::Sent { message, .. } => {
                assert!(message.get().contains(&id), "{message}");
                "sent".to_owned()
            }
            Event::Task { id, .. } => format!("task {id} by {}", record.by.unwrap_or_default()),
            Event::Member { name, joined, .. } => format!("{name} joined: {joined}"),
            Event::MemberLeft { name } => format!("{name} left"),
            other => format!("{other:?}"),
        });
    }
    told.sort();
    let expected =
        ["carol joined: true", "carol left", "sent", "task 1 by alice", "task 1 by team-lead"];
    assert_eq!(told, expected);
}

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
    let question = Question::new("plan/../1@alice: \u{e9}");
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
    let other = Question::new("plan/../1@alice: e");
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
