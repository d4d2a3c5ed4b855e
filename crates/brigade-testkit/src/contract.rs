//! The contract of a store: tests that every store must pass.
//!
//! The tests of a store call [`contract_tests!`](crate::contract_tests) with an expression that creates an empty
//! store. Each case becomes a separate test.

use std::sync::Arc;
use std::time::Duration;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::{Event, Record};
use brigade_core::mail;
use brigade_core::roster;
use brigade_core::store::{Mark, Outgoing, Revision, Store, StoreError};
use brigade_wire::team::Team;

pub use crate::claims::{
    a_task_has_one_claimer, a_task_is_replaced_only_at_its_revision,
    concurrent_tasks_get_different_numbers, task_numbers_are_never_reused,
    the_size_of_a_board_is_that_of_its_tasks,
};
use crate::env::{TestEnv, actor, member, member_plan, message, team, team_plan};
pub use crate::event_authors::only_allowed_events_can_be_recorded;
pub use crate::event_log::{
    an_event_log_has_past_and_new_records, the_event_log_of_a_deleted_team_ends,
};
pub use crate::exports::{
    a_manipulated_export_is_refused, a_team_survives_export_and_import,
    an_import_overwrites_nothing, an_interrupted_import_can_be_continued,
};
pub use crate::limits::{
    a_member_cannot_fill_the_board, a_member_has_a_limited_number_of_open_requests,
};
pub use crate::notes::{
    a_deleted_team_is_restored_from_its_journal, a_mailbox_has_its_own_history,
    a_note_is_stored_until_it_is_replaced, a_question_has_one_decision,
    a_recorded_event_is_reported_and_in_the_history, history_outlives_the_team,
};
pub use crate::search::a_search_finds_what_the_history_contains;
pub use crate::text_search::a_text_search_finds_what_the_history_contains;
pub use crate::work::work_events_are_reported_in_order;

/// Defines a test for each case of the contract. `$make` returns an empty store and a second value,
/// such as a temporary directory, which must live as long as the store. `$program` is a
/// [program](crate::needs::ExternalProgram) that the store needs.
#[macro_export]
macro_rules! contract_tests {
    ($make:expr $(, $program:ident)?) => {
        $crate::contract_tests!($make; ($($program)?)
            a_team_is_created_once_and_deleted
            a_team_is_replaced_only_at_its_revision
            a_late_update_does_not_restore_a_member_that_left
            messages_arrive_once_and_in_order
            sending_the_same_id_twice_stores_one_message
            concurrent_senders_lose_no_messages
            marks_are_persistent_and_in_the_history
            no_team_is_an_error
            task_numbers_are_never_reused
            a_task_is_replaced_only_at_its_revision
            concurrent_tasks_get_different_numbers
            a_task_has_one_claimer
            the_size_of_a_board_is_that_of_its_tasks
            a_member_cannot_fill_the_board
            a_member_has_a_limited_number_of_open_requests
            a_watch_reports_every_change_once
            a_watch_of_a_member_reports_what_concerns_the_member
            history_outlives_the_team
            a_question_has_one_decision
            a_mailbox_has_its_own_history
            a_search_finds_what_the_history_contains
            a_text_search_finds_what_the_history_contains
            a_note_is_stored_until_it_is_replaced
            a_deleted_team_is_restored_from_its_journal
            a_recorded_event_is_reported_and_in_the_history
            only_allowed_events_can_be_recorded
            work_events_are_reported_in_order
            a_team_survives_export_and_import
            a_manipulated_export_is_refused
            an_import_overwrites_nothing
            an_interrupted_import_can_be_continued
            an_event_log_has_past_and_new_records
            the_event_log_of_a_deleted_team_ends
        );
    };
    ($make:expr; $program:tt $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $crate::contract_tests!(@needs $program);
                let (store, _environment) = $make;
                $crate::contract::run($crate::contract::$case(store));
            }
        )*
    };
    (@needs ()) => {};
    (@needs ($program:ident)) => {
        $crate::needs!($program);
    };
}

/// Runs a test case to completion.
pub fn run(case: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_time().build().unwrap().block_on(case);
}

/// A team exists from its creation to its deletion, and can be created only once.
pub async fn a_team_is_created_once_and_deleted(store: Arc<dyn Store>) {
    assert!(store.teams().await.unwrap().is_empty());
    assert!(store.team(&team()).await.unwrap().is_none());
    let env = TestEnv::build(Arc::clone(&store)).await;
    assert_eq!(store.teams().await.unwrap(), [team()]);
    let repeated = roster::create(&env.seat("team-lead"), team_plan()).await;
    let exists = roster::RosterError::Store(StoreError::TeamExists { team: team() });
    assert_eq!(repeated.unwrap_err().to_string(), exists.to_string());
    store.delete_team(&team(), &actor()).await.unwrap();
    assert!(store.teams().await.unwrap().is_empty());
    assert!(store.team(&team()).await.unwrap().is_none());
    assert!(matches!(store.delete_team(&team(), &actor()).await, Err(StoreError::NoTeam { .. })));
    TestEnv::build(store).await;
}

/// A team is replaced only if the caller has the team's latest revision.
pub async fn a_team_is_replaced_only_at_its_revision(store: Arc<dyn Store>) {
    TestEnv::build(Arc::clone(&store)).await;
    let before = store.team(&team()).await.unwrap().unwrap();
    let without = Team::read(&before.bytes).unwrap().without_member("bob").into_owned();
    let at = before.revision;
    let after = store.replace_team(&team(), &without, at, &actor()).await.unwrap();
    let stale = store.replace_team(&team(), &before.bytes, at, &actor()).await;
    assert!(matches!(stale, Err(StoreError::Conflict)), "{stale:?}");
    let now = store.team(&team()).await.unwrap().unwrap();
    assert_eq!((now.bytes, now.revision), (without, after));
}

/// If a member has left, a late activity update does not add the member to the roster again.
pub async fn a_late_update_does_not_restore_a_member_that_left(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let (lead, bob) = (env.seat("team-lead"), member("bob"));
    roster::leave(&lead, &bob).await.unwrap();
    let late = roster::set_activity(&lead, &bob, roster::Activity::Idle).await;
    assert_eq!(late.unwrap_err().to_string(), "no member named \"bob\" in team \"demo\"");
    let config = env.store.team(&team()).await.unwrap().unwrap();
    assert!(Team::read(&config.bytes).unwrap().member("bob").is_none());
}

/// Messages are stored once, in the order in which they were sent.
pub async fn messages_arrive_once_and_in_order(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    assert!(env.texts("alice").await.is_empty());
    for number in 0..10 {
        env.say("bob", "alice", &format!("{number}\n\u{2028}\"ü")).await;
    }
    let expected: Vec<_> = (0..10).map(|n| (format!("{n}\n\u{2028}\"ü"), false)).collect();
    assert_eq!(env.texts("alice").await, expected);
    assert!(env.texts("bob").await.is_empty());
}

/// If a sender gets no answer, and sends the message again with the same id, the message is stored once.
pub async fn sending_the_same_id_twice_stores_one_message(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let config = env.store.team(&team()).await.unwrap().unwrap();
    let team_created = Team::read(&config.bytes).unwrap().created_at().unwrap();
    let id = uuid::Uuid::new_v4().to_string();
    for _ in 0..3 {
        let message = Outgoing { team_created, ..message(&id, "bob", "hello") };
        let receipt = env.store.send(&team(), &member("alice"), &message).await.unwrap();
        assert_eq!(receipt.msg_id, id);
    }
    assert_eq!(env.texts("alice").await, [("hello".into(), false)]);
}

/// With concurrent senders, every message is stored once, and the messages of each sender are in order.
pub async fn concurrent_senders_lose_no_messages(store: Arc<dyn Store>) {
    const SENDERS: usize = 8;
    const EACH: usize = 25;
    let env = TestEnv::build(store).await;
    let mut sending = Vec::new();
    for sender in 0..SENDERS {
        let env = env.clone();
        sending.push(tokio::spawn(async move {
            for number in 0..EACH {
                env.say("bob", "alice", &format!("{sender}-{number}")).await;
            }
        }));
    }
    for task in sending {
        task.await.unwrap();
    }
    let texts: Vec<String> = env.texts("alice").await.into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts.len(), SENDERS * EACH);
    for sender in 0..SENDERS {
        let prefix = format!("{sender}-");
        let of_sender: Vec<&String> = texts.iter().filter(|t| t.starts_with(&prefix)).collect();
        let expected: Vec<String> = (0..EACH).map(|number| format!("{prefix}{number}")).collect();
        assert_eq!(of_sender, expected.iter().collect::<Vec<_>>());
    }
}

/// Marking a message as read or shown is persistent, is recorded once, and affects no other message.
pub async fn marks_are_persistent_and_in_the_history(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    for text in ["one", "two", "three"] {
        env.say("bob", "alice", text).await;
    }
    let (alice, seat) = (member("alice"), env.seat("alice"));
    let inbox = env.store.inbox(&team(), &alice).await.unwrap();
    mail::mark(&seat, &[inbox[0].key], Mark::Read).await.unwrap();
    mail::mark(&seat, &[inbox[0].key], Mark::Read).await.unwrap();
    mail::mark(&seat, &[inbox[2].key], Mark::Shown).await.unwrap();
    let read = |text: &str, read| (text.to_owned(), read);
    let expected = [read("one", true), read("two", false), read("three", true)];
    assert_eq!(env.texts("alice").await, expected);
    let history = env.store.history(&team()).await.unwrap();
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
    assert!(sent.is_sorted(), "the history is not ordered by time");
}

/// Operations on mail, board and roster fail if the team does not exist.
pub async fn no_team_is_an_error(store: Arc<dyn Store>) {
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

/// A watch of a member reports its mail, its own actions and its removal, each once. It may report other events, too.
pub async fn a_watch_of_a_member_reports_what_concerns_the_member(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let lead = env.seat("team-lead");
    env.say("bob", "alice", "before").await;
    env.say("alice", "bob", "before").await;
    let mut watch = env.seat("alice").watch_own().await.unwrap();
    env.say("bob", "alice", "to alice").await;
    env.say("alice", "bob", "to bob").await;
    env.say("bob", "team-lead", "for others").await;
    board::add(&lead, &TaskPlan { subject: "paint".into(), ..TaskPlan::default() }).await.unwrap();
    board::claim(&env.seat("alice"), brigade_wire::name::TaskId::new(1).unwrap()).await.unwrap();
    let mut reported = Vec::new();
    let collect = |record: Arc<Record>, reported: &mut Vec<String>| match &record.event {
        Event::Sent { to, .. } if to == "alice" => reported.push("mail to alice".to_owned()),
        Event::Sent { to, .. } if record.by.as_deref() == Some("alice") => {
            reported.push(format!("mail by alice to {to}"));
        }
        Event::Task { id, .. } if record.by.as_deref() == Some("alice") => {
            reported.push(format!("task {id} by alice"));
        }
        Event::MemberLeft { name } => reported.push(format!("{name} left")),
        _ => {}
    };
    let short = Duration::from_millis(500);
    watch.refresh();
    while let Ok(Some(record)) = tokio::time::timeout(short, watch.next_shared()).await {
        collect(record, &mut reported);
    }
    reported.sort();
    assert_eq!(reported, ["mail by alice to bob", "mail to alice", "task 1 by alice"]);
    // A second refresh reports nothing again.
    watch.refresh();
    roster::leave(&lead, &member("alice")).await.unwrap();
    let mut reported = Vec::new();
    while let Ok(Some(record)) = tokio::time::timeout(short, watch.next_shared()).await {
        collect(record, &mut reported);
    }
    assert_eq!(reported, ["alice left"]);
}

/// A watch reports each change to mail, board and roster once.
pub async fn a_watch_reports_every_change_once(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    env.say("bob", "alice", "before").await;
    let mut watch = env.store.watch(&team()).await.unwrap();
    let lead = env.seat("team-lead");
    let id = env.say("bob", "alice", "hello").await;
    let plan = TaskPlan { subject: "paint".into(), ..TaskPlan::default() };
    board::add(&lead, &plan).await.unwrap();
    board::claim(&env.seat("alice"), brigade_wire::name::TaskId::new(1).unwrap()).await.unwrap();
    roster::join(&lead, &member("carol"), member_plan()).await.unwrap();
    roster::leave(&lead, &member("carol")).await.unwrap();
    let mut reported = Vec::new();
    while let Ok(Some(record)) =
        tokio::time::timeout(Duration::from_millis(500), watch.next()).await
    {
        let record = record.into_inner();
        reported.push(match record.event {
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
    reported.sort();
    let expected =
        ["carol joined: true", "carol left", "sent", "task 1 by alice", "task 1 by team-lead"];
    assert_eq!(reported, expected);
}
