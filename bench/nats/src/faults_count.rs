//! Compares the members' observations with the contents of the NATS store, after all faults.

use std::collections::HashMap;

use brigade_core::event::{Event, MessageKey};
use brigade_wire::task::Task;

use crate::contender::READER;
use crate::faults_load::FaultLoad;
use crate::figures::BenchReport;
use crate::fixtures::member;
use crate::store_contender::connect;

/// Compares the members' observations with the store, and reports each check.
pub(crate) async fn count(report: &mut BenchReport, load: &FaultLoad, urls: &[String]) {
    let store = connect(urls).await;
    let reader = member(READER);
    let records = store.mailbox_history(&load.team, &reader).await.unwrap();
    let tasks = store.tasks(&load.team).await.unwrap();
    let seen = load.seen();

    let [mut sent, mut shown] = <[HashMap<MessageKey, usize>; 2]>::default();
    for record in &records {
        match &record.event {
            Event::Sent { key, .. } => *sent.entry(*key).or_default() += 1,
            Event::Shown { key, .. } => *shown.entry(*key).or_default() += 1,
            _ => {}
        }
    }
    let total = seen.acknowledged.len();
    let missing = |have: &HashMap<MessageKey, usize>| {
        seen.acknowledged.iter().filter(|key| !have.contains_key(*key)).count()
    };
    let twice =
        |have: &HashMap<MessageKey, usize>| have.values().filter(|times| **times > 1).count();
    let [kept, seen_by_reader, marked] = [&sent, &seen.shown, &shown].map(missing);
    report.check(
        kept + seen_by_reader == 0,
        format!("acknowledged messages missing: {kept} in the store, {seen_by_reader} for the reader, of {total}"),
    );
    report.check_none_of("messages shown, but not marked as shown in the store", marked, total);
    report.check_none_of("messages stored twice", twice(&sent), total);
    report.check_none_of("messages shown twice", twice(&seen.shown), total);
    report.check_none_of("messages with two `shown` marks", twice(&shown), total);
    report.check_zero("messages shown out of order", seen.out_of_order);

    let owners: HashMap<_, _> = tasks
        .iter()
        .filter_map(|(id, task)| {
            let owner = Task::read(&task.bytes).ok()?.owner()?.into_owned();
            Some((*id, owner))
        })
        .collect();
    let double = seen.claimed.values().filter(|claimers| claimers.len() > 1).count();
    let taken =
        seen.claimed.iter().filter(|(id, claimers)| owners.get(id) != claimers.first()).count();
    let total = seen.claimed.len();
    report.check_none_of("tasks claimed twice", double, total);
    report.check_none_of("acknowledged claims missing in the store", taken, total);
    let unowned = tasks.iter().filter(|(id, _)| !owners.contains_key(id)).count();
    report.check_none_of("tasks without an owner", unowned, tasks.len());

    println!("how often a claimer did not yet find an acknowledged task: {}", seen.unseen);
    println!("errors from the store, all retried: {}", seen.errors.len());
    let mut kinds: HashMap<&str, usize> = HashMap::new();
    for error in &seen.errors {
        *kinds.entry(error.split_once(": ").map_or(error, |(_, rest)| rest)).or_default() += 1;
    }
    for (kind, times) in kinds {
        println!("  {times} x {kind}");
    }
}
