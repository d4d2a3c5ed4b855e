//! What every store promises, as tests that every store runs.
//!
//! A store's tests call [`contract_tests!`](crate::contract_tests) with an expression that makes an
//! empty store; each case below becomes a test of its own.

use std::sync::Arc;
use std::time::Duration;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::Event;
use brigade_core::mail;
use brigade_core::roster;
use brigade_core::store::{Actor, Mark, Outgoing, Revision, Store, StoreError};
use brigade_wire::team::Team;

pub use crate::claims::{
    a_task_is_replaced_only_at_its_revision, concurrent_tasks_get_different_numbers,
    numbers_are_never_given_twice, one_claimer_wins,
};
use crate::env::{House, member, member_plan, team, team_plan};
pub use crate::event_log::{
    a_chronicle_has_the_past_and_goes_on, the_chronicle_of_a_deleted_team_ends,
};
pub use crate::exports::{
    a_team_is_carried_to_another_store_and_back, an_import_overwrites_nothing,
    an_import_that_was_cut_off_is_gone_on_with,
};
pub use crate::notes::{
    a_mailbox_has_a_history_of_its_own, a_note_is_kept_until_the_next, a_question_is_decided_once,
    a_team_is_revived_from_its_journal, history_outlives_the_team,
    what_is_recorded_is_told_and_in_the_history,
};
pub use crate::work::what_a_member_did_is_told_in_order;

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
            what_a_member_did_is_told_in_order
            a_team_is_carried_to_another_store_and_back
            an_import_overwrites_nothing
            an_import_that_was_cut_off_is_gone_on_with
            a_chronicle_has_the_past_and_goes_on
            the_chronicle_of_a_deleted_team_ends
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

/// A store under test.
pub type AnyStore = Arc<dyn Store>;

pub(crate) fn actor() -> Actor {
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
    assert_eq!(late.unwrap_err().to_string(), "no member named \"bob\" in team \"demo\"");
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
