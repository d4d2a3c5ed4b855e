//! How long after a send another process that watches the team hears of it.

use std::collections::HashMap;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use brigade_core::event::Event;
use brigade_core::store::file::Durability;

use crate::Length;
use crate::children::{Running, child, say};
use crate::figures::{Report, Times, heading, line};
use crate::place::{Place, Spot, block_on, send, team};

pub(crate) fn run(report: &mut Report, length: Length) {
    let samples = length.of(100, 500);
    let place = Place::with_team(&["writer"]);
    let writer = place.spot.seat("writer", Durability::Process);
    send(&writer, 0);
    let watcher = Running::start(&mut child("watch", &place.spot, &[]));
    watcher.wait_for("ready");
    // The first look of the watch is over when it has heard of something.
    send(&writer, 0);
    watcher.wait_for("heard");
    let mut sent: HashMap<String, (u64, u64)> = HashMap::new();
    for number in 1..=samples {
        let start = now();
        let id = send(&writer, number);
        sent.insert(id, (start, now()));
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_secs(3));
    let (mut wake, mut after) = (Times::default(), Times::default());
    let mut heard = 0;
    for line in watcher.kill() {
        let words: Vec<&str> = line.split(' ').collect();
        let ["heard", id, at] = words.as_slice() else { continue };
        let Some((start, end)) = sent.get(*id) else { continue };
        let at: u64 = at.parse().unwrap();
        heard += 1;
        wake.push(Duration::from_nanos(at.saturating_sub(*start)));
        after.push(Duration::from_nanos(at.saturating_sub(*end)));
    }
    heading("from send to the watch of another process");
    line("from the beginning of the send", &wake);
    line("from its acknowledgement (0: before it)", &after);
    println!("p99 {:.0} us, most {:.0} us", wake.quantile(0.99), wake.quantile(1.0));
    report.bar(heard == samples, format!("heard: {heard} of {samples}"));
    let half = wake.median() / 1_000.0;
    report.timing(half / 2.0, format!("half of them within {half:.2} ms (bar 2 ms)"));
}

/// The time in nanoseconds, the same in every process.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_nanos()).unwrap()
}

/// One that watches, and says when it heard of each message.
pub(crate) fn watch(spot: &Spot) {
    block_on(async {
        let store = spot.store(Durability::Process);
        let mut watch = store.watch(&team()).await.unwrap();
        say("ready");
        while let Some(record) = watch.next().await {
            let at = now();
            if let Event::Sent { message, .. } = &record.event {
                let entry: serde_json::Value = serde_json::from_str(message.get()).unwrap();
                say(&format!("heard {} {at}", entry["msg_id"].as_str().unwrap()));
            }
        }
    });
}
