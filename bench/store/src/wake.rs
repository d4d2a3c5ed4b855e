//! Measures the time from a send until another process that watches the team sees the message.

use std::collections::HashMap;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use brigade_core::event::Event;
use brigade_files::Durability;

use crate::Length;
use crate::children::{ChildProcess, child, print_line};
use crate::figures::{BenchReport, Times, heading, line};
use crate::temp_team::{TeamDirs, TempTeam, block_on, send, team};

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let samples = length.pick(100, 500);
    let temp = TempTeam::with_team(&["writer"]);
    let writer = temp.dirs.seat("writer", Durability::Process);
    send(&writer, 0);
    let watcher = ChildProcess::start(&mut child("watch", &temp.dirs, &[]));
    watcher.wait_for("ready");
    // Wait until the watch has seen a message. Only then is the watch certainly ready.
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
    heading("from a send to the watch of another process");
    line("from the start of the send", &wake);
    line("from the acknowledgement (0 if seen earlier)", &after);
    println!("p99 {:.0} us, max {:.0} us", wake.quantile(0.99), wake.quantile(1.0));
    report.check(heard == samples, format!("messages seen: {heard} of {samples}"));
    let median = wake.median() / 1_000.0;
    report.check_time(median / 2.0, format!("median {median:.2} ms (bar 2 ms)"));
}

/// Returns the nanoseconds since 1970. All processes read the same clock.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_nanos()).unwrap()
}

/// Watches the team, and prints when it saw each message. Runs in a child process.
pub(crate) fn watch(dirs: &TeamDirs) {
    block_on(async {
        let store = dirs.store(Durability::Process);
        let mut watch = store.watch(&team()).await.unwrap();
        print_line("ready");
        while let Some(record) = watch.next().await {
            let at = now();
            if let Event::Sent { message, .. } = &record.event {
                let entry: serde_json::Value = serde_json::from_str(message.get()).unwrap();
                print_line(&format!("heard {} {at}", entry["msg_id"].as_str().unwrap()));
            }
        }
    });
}
