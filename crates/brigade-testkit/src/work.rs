//! Contract tests for stores: work events.

use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::{Event, Record, TurnOutcome, WorkEvent};
use brigade_core::store::{Actor, Store};

use crate::env::{TestEnv, member, team};

/// A store reports and stores work events in order, with their author. Neither the history of a
/// mailbox nor the history without work contains work events.
pub async fn work_events_are_reported_in_order(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let mut watch = env.store.watch(&team()).await.unwrap();
    let mut mail = env.store.watch_without_work(&team()).await.unwrap();
    let said = |text: &str| WorkEvent::Said { text: text.to_owned() };
    let acts = [
        WorkEvent::Started {},
        WorkEvent::Ready {},
        WorkEvent::TurnStarted {},
        said("I read.\n\u{2028}\"ü"),
        WorkEvent::ToolStarted { id: "1".into(), tool: "Bash".into(), about: "cargo test".into() },
        WorkEvent::Changed {
            path: "src/lib.rs".into(),
            added: 3,
            removed: 1,
            diff: Some("-old\n+new".into()),
        },
        WorkEvent::ToolEnded { id: "1".into(), ok: true },
        said("Done."),
        WorkEvent::Used { input: 10, output: 2, cost: Some(0.25) },
        WorkEvent::TurnEnded { end: TurnOutcome::Limited, why: Some("529".into()) },
        WorkEvent::Trouble { why: "the program ended".into() },
    ];
    // Two members record work at the same time, and one sends mail to the other.
    for act in &acts {
        for name in ["alice", "bob"] {
            let event = Event::Worked { name: name.to_owned(), act: act.clone() };
            env.store.record(&team(), event, &Actor(name.to_owned())).await.unwrap();
        }
    }
    env.say("bob", "alice", "hello").await;

    let mut reported = Vec::new();
    let listen = async {
        while reported.len() < acts.len() * 2 {
            let record = watch.next().await.expect("the watch ended");
            reported.extend(work(&record));
        }
    };
    tokio::time::timeout(Duration::from_secs(10), listen)
        .await
        .expect("all work events should arrive in time");
    let message = async { while !is_message(&mail.next().await.expect("the watch ended")) {} };
    tokio::time::timeout(Duration::from_secs(10), message)
        .await
        .expect("the message should arrive in time");
    let history = env.store.history(&team()).await.unwrap();
    let stored: Vec<(String, WorkEvent)> = history.iter().filter_map(work).collect();
    for records in [reported, stored] {
        for name in ["alice", "bob"] {
            let found = records.iter().filter(|(by, _)| by == name);
            let found: Vec<WorkEvent> = found.map(|(_, act)| act.clone()).collect();
            assert_eq!(found, acts, "{name}");
        }
    }
    assert!(history.iter().map(|record| record.at).is_sorted());

    let mailbox = env.store.mailbox_history(&team(), &member("alice")).await.unwrap();
    assert_eq!(mailbox.iter().filter_map(work).count(), 0);
    let others = env.store.history_without_work(&team()).await.unwrap();
    let rest = history.iter().filter(|record| work(record).is_none());
    let lines = |record: &Record| serde_json::to_string(record).unwrap();
    assert_eq!(others.iter().map(lines).collect::<Vec<_>>(), rest.map(lines).collect::<Vec<_>>());

    env.store.delete_team(&team(), &Actor("team-lead".into())).await.unwrap();
    let history = env.store.history(&team()).await.unwrap();
    assert_eq!(history.iter().filter_map(work).count(), acts.len() * 2);
}

fn is_message(record: &Record) -> bool {
    matches!(record.event, Event::Sent { .. })
}

/// Returns the author and the work event in a record; `None` if the record is of another kind.
fn work(record: &Record) -> Option<(String, WorkEvent)> {
    match &record.event {
        Event::Worked { name, act } => {
            assert_eq!(record.by.as_ref(), Some(name));
            Some((name.clone(), act.clone()))
        }
        _ => None,
    }
}
