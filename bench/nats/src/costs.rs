//! Measures the cost of subjects, messages, connections and consumers on a NATS server, for capacity planning.

use std::time::Duration;

use brigade_nats::layout::{MessageClass, Stream, Subjects};
use brigade_testkit::nats_server::TestServers;
use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::bare_contender::{IN_FLIGHT, create_consumer, entry, publisher};
use crate::contender::{message, team};
use crate::costs_operations;
use crate::figures::BenchReport;
use crate::fixtures::member;
use crate::server::{ServerWork, memory, restart, usage};
use crate::store_contender;
use crate::{Length, block_on};

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    subjects(length);
    connections(length);
    consumers(report);
    for shards in length.pick(&[1][..], &[1, 4, 16, 64, 256]) {
        idle(*shards, length);
    }
    for shards in length.pick(&[1][..], &[1, 4]) {
        throughput(*shards, length);
    }
    for nodes in [1, 3] {
        costs_operations::run(nodes, length);
    }
}

/// Measures the cost of a subject, and of each further message on the subject.
fn subjects(length: Length) {
    let count = length.pick(20_000, 200_000);
    let mut engine = TestServers::single();
    block_on(store_contender::connect(&engine.urls));
    restart(&mut engine, "always", "\"2m\"");
    let data = engine.folder(0).join("data");
    let (empty, no_disk) = (memory(engine.pid(0)), usage(&data));
    block_on(publish(&engine.urls, 1, 0..count));
    restart(&mut engine, "\"2m\"", "\"2m\"");
    let (once, disk) = (memory(engine.pid(0)), usage(&data));
    for _ in 0..4 {
        block_on(publish(&engine.urls, 1, 0..count));
    }
    restart(&mut engine, "\"2m\"", "\"2m\"");
    let (five, more_disk) = (memory(engine.pid(0)), usage(&data));
    let each = |bytes: u64, of: u32| bytes as f64 / f64::from(of);
    println!("an empty server: {:.0} MB of memory", empty as f64 / 1e6);
    println!(
        "a subject with one message of 500 bytes: {:.0} bytes of memory, {:.0} of disk (n {count})",
        each(once.saturating_sub(empty), count),
        each(disk - no_disk, count)
    );
    println!(
        "another message on the same subject: {:.0} bytes of memory, {:.0} of disk (n {})",
        each(five.saturating_sub(once), 4 * count),
        each(more_disk - disk, 4 * count),
        4 * count
    );
}

/// Measures the cost of a connected host with its subscriptions.
fn connections(length: Length) {
    let count = length.pick(200, 1_000);
    let engine = TestServers::single();
    block_on(async {
        let before = memory(engine.pid(0));
        let mut hosts = Vec::new();
        for host in 0..count {
            let client = async_nats::connect(&engine.urls).await.unwrap();
            let mut listens = Vec::new();
            for number in 0..6 {
                let place = Subjects::new(&team("many", host * 6 + number), 1);
                let mailbox = brigade_nats::layout::wake(&place.mailbox(&member("reader")));
                listens.push(client.subscribe(mailbox).await.unwrap());
            }
            client.flush().await.unwrap();
            hosts.push((client, listens));
        }
        let grown = memory(engine.pid(0)) - before;
        let each = grown as f64 / count as f64 / 1e3;
        println!(
            "a connection with subscriptions for six mailboxes: {each:.1} kB of memory (n {count})"
        );
    });
}

/// Measures how many consumers a stream can have at the same time, and the cost of each consumer.
fn consumers(report: &mut BenchReport) {
    let engine = TestServers::single();
    block_on(async {
        store_contender::connect(&engine.urls).await;
        let client = async_nats::connect(&engine.urls).await.unwrap();
        let before = memory(engine.pid(0));
        let mut made = 0;
        let refusal = loop {
            let more = json!({ "deliver_policy": "all", "inactive_threshold": 60_000_000_000_u64 });
            let stream = Stream::Mail.name(0);
            let answer = create_consumer(&client, &stream, "mb.0.many.reader.>", more).await;
            match answer.get("error") {
                Some(error) => break error["description"].as_str().unwrap_or_default().to_owned(),
                None => made += 1,
            }
            assert!(made < 100_000, "the server does not limit the number of consumers");
        };
        let each = (memory(engine.pid(0)) - before) as f64 / f64::from(made) / 1e3;
        println!(
            "consumers of one stream: {made} ({each:.1} kB each), then the error \"{refusal}\""
        );
        report
            .check(made >= 1_000, format!("concurrent consumers of one shard: {made} (bar 1000)"));
    });
}

/// Measures the CPU time that three idle servers use.
fn idle(shards: u16, length: Length) {
    let engine = TestServers::cluster(3);
    block_on(store_contender::connect_with(&engine.urls, shards));
    std::thread::sleep(Duration::from_secs(2));
    let work = ServerWork::begin(&engine, 3);
    std::thread::sleep(Duration::from_secs(length.pick(3, 15)));
    let done = work.end();
    let most = (0..3).map(|node| memory(engine.pid(node))).max().unwrap_or_default();
    let disk = (0..3).map(|node| usage(&engine.folder(node).join("data"))).max();
    println!(
        "three idle servers, {shards} shards, {} streams of three replicas: {:.1} % of a core \
         in total, {:.1} MB of memory and {:.2} MB of disk at most each",
        usize::from(shards) * Stream::ALL.len(),
        done.processor_seconds / done.seconds * 100.0,
        most as f64 / 1e6,
        disk.unwrap_or_default() as f64 / 1e6
    );
}

/// Measures the throughput of sends with a given number of shards.
fn throughput(shards: u16, length: Length) {
    let count = length.pick(5_000, 50_000);
    for nodes in [1, 3] {
        let engine = TestServers::cluster(nodes);
        let done = block_on(async {
            store_contender::connect_with(&engine.urls, shards).await;
            publish(&engine.urls, shards, 0..count / 10).await;
            let work = ServerWork::begin(&engine, nodes);
            publish(&engine.urls, shards, 0..count).await;
            work.end()
        });
        println!(
            "{nodes} nodes, {shards} shards, {IN_FLIGHT} concurrent publishes: {}",
            done.per_operation(f64::from(count))
        );
    }
}

/// Sends one message to each of many mailboxes.
async fn publish(urls: &[String], shards: u16, mailboxes: std::ops::Range<u32>) {
    let context = publisher(urls).await;
    let body = entry(&message("writer", 0));
    stream::iter(mailboxes)
        .map(async |number| {
            let place = Subjects::new(&team("many", number as usize), shards);
            let subject = place.message(&member("reader"), "writer", MessageClass::Text);
            let ack = context.publish(subject, body.clone().into());
            ack.await.unwrap().await.unwrap();
        })
        .buffer_unordered(IN_FLIGHT)
        .for_each(async |()| ())
        .await;
}
