//! The part of the contract that is about members' work.

use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::{Act, Ending, Event, Record};
use brigade_core::store::{Actor, Store};

use crate::env::{House, member, team};

/// What a member did is told, and is in the history, in the order in which it was done and with who did
/// it; and it is in nobody's mailbox, nor in what else went on in the team.
pub async fn what_a_member_did_is_told_in_order(store: Arc<dyn Store>) {
    let house = House::build(store).await;
    let mut watch = house.store.watch(&team()).await.unwrap();
    let mut mail = house.store.watch_proceedings(&team()).await.unwrap();
    let said = |text: &str| Act::Said { text: text.to_owned() };
    let acts = [
        Act::Started {},
        Act::Ready {},
        Act::TurnStarted {},
        said("I look.\n\u{2028}\"ü"),
        Act::ToolStarted { id: "1".into(), tool: "Bash".into(), about: "cargo test".into() },
        Act::Changed { path: "src/lib.rs".into(), added: 3, removed: 1 },
        Act::ToolEnded { id: "1".into(), ok: true },
        said("Done."),
        Act::Used { input: 10, output: 2, cost: Some(0.25) },
        Act::TurnEnded { end: Ending::Limited, why: Some("529".into()) },
        Act::Trouble { why: "the program ended".into() },
    ];
    // Two at work at once, and mail between them.
    for act in &acts {
        for name in ["alice", "bob"] {
            let event = Event::Worked { name: name.to_owned(), act: act.clone() };
            house.store.record(&team(), event, &Actor(name.to_owned())).await.unwrap();
        }
    }
    house.say("bob", "alice", "hello").await;

    let mut told = Vec::new();
    let hear = async {
        while told.len() < acts.len() * 2 {
            let record = watch.next().await.expect("the watch goes on");
            told.extend(work(&record));
        }
    };
    tokio::time::timeout(Duration::from_secs(10), hear).await.expect("everything is told");
    let letter = async { while !is_letter(&mail.next().await.expect("the watch goes on")) {} };
    tokio::time::timeout(Duration::from_secs(10), letter).await.expect("the mail is told");
    let history = house.store.history(&team()).await.unwrap();
    let kept: Vec<(String, Act)> = history.iter().filter_map(work).collect();
    for records in [told, kept] {
        for name in ["alice", "bob"] {
            let its = records.iter().filter(|(by, _)| by == name);
            let its: Vec<Act> = its.map(|(_, act)| act.clone()).collect();
            assert_eq!(its, acts, "{name}");
        }
    }
    assert!(history.iter().map(|record| record.at).is_sorted());

    let mailbox = house.store.mailbox_history(&team(), &member("alice")).await.unwrap();
    assert_eq!(mailbox.iter().filter_map(work).count(), 0);
    let others = house.store.proceedings(&team()).await.unwrap();
    let rest = history.iter().filter(|record| work(record).is_none());
    let lines = |record: &Record| serde_json::to_string(record).unwrap();
    assert_eq!(others.iter().map(lines).collect::<Vec<_>>(), rest.map(lines).collect::<Vec<_>>());

    house.store.delete_team(&team(), &Actor("team-lead".into())).await.unwrap();
    let history = house.store.history(&team()).await.unwrap();
    assert_eq!(history.iter().filter_map(work).count(), acts.len() * 2);
}

fn is_letter(record: &Record) -> bool {
    matches!(record.event, Event::Sent { .. })
}

/// What a member did, if a record is about that, and who wrote it down.
fn work(record: &Record) -> Option<(String, Act)> {
    match &record.event {
        Event::Worked { name, act } => {
            assert_eq!(record.by.as_ref(), Some(name));
            Some((name.clone(), act.clone()))
        }
        _ => None,
    }
}
