//! The measurements on a server with many teams: sends, wake-ups and reads.

use std::time::Instant;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use brigade_nats::layout::{MessageClass, Subjects};

use crate::bare_contender::entry;
use crate::contender::{SHARDS, message, team};
use crate::figures::{BenchReport, Times, line};
use crate::fill::{FILLED, MEMBERS};
use crate::fixtures::member;
use crate::store_contender::{connect, seat, send, wait_for};

/// The step from one team number to the next, modulo the number of teams. A prime step reaches all teams.
pub(crate) const STEP: usize = 7_919;

/// The times of sends to members of many teams.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    n: usize,
    /// Sends to a mailbox that has been idle since it was filled.
    pub(crate) idle: Times,
    /// Sends with the bare client, to another idle mailbox.
    bare_idle: Times,
    /// Sends to a mailbox that just received a message.
    pub(crate) send: Times,
    wake: Times,
    watch: Times,
}

impl Sends {
    pub(crate) async fn measure(&mut self, urls: &[String], teams: usize, samples: usize) {
        let (here, there) = (connect(urls).await, connect(urls).await);
        let context = async_nats::jetstream::new(async_nats::connect(urls).await.unwrap());
        for number in self.n..self.n + samples {
            let team = team(FILLED, (number * STEP) % teams);
            let [from, to, other] = [MEMBERS[0], MEMBERS[1], MEMBERS[2]];
            let writer = seat(&here, &team, from);
            let start = Instant::now();
            let mut watch = there.watch(&team).await.unwrap();
            self.watch.push(start.elapsed());
            here.team(&team).await.unwrap().expect("the team exists");

            let first = message(from, number);
            let start = Instant::now();
            send(&writer, to, &first).await;
            self.idle.push(start.elapsed());

            let bare = message(from, number);
            let subject =
                Subjects::new(&team, SHARDS).message(&member(other), from, MessageClass::Text);
            let start = Instant::now();
            let mut headers = HeaderMap::new();
            headers.insert(NATS_MESSAGE_ID, bare.msg_id.as_str());
            let ack = context.publish_with_headers(subject, headers, entry(&bare).into());
            ack.await.unwrap().await.unwrap();
            self.bare_idle.push(start.elapsed());

            let message = message(from, number);
            let start = Instant::now();
            let (sent, woken) = tokio::join!(
                async {
                    send(&writer, to, &message).await;
                    start.elapsed()
                },
                async {
                    wait_for(&mut watch, message.key()).await;
                    start.elapsed()
                }
            );
            self.send.push(sent);
            self.wake.push(woken);
        }
        self.n += samples;
    }

    pub(crate) fn print(&self, among: usize) {
        let rows = [
            ("send", &self.send),
            ("wake", &self.wake),
            ("first send, to an idle mailbox", &self.idle),
            ("bare: the same", &self.bare_idle),
            ("start of a watch", &self.watch),
        ];
        for (name, times) in rows {
            line(&format!("{name}, among {among}"), times);
        }
    }
}

/// The durations of reads from mailboxes that the reading process has never read before, in many teams.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    n: usize,
    inbox: Times,
}

impl Reads {
    /// Reads mailboxes, each through a new connection to its team.
    pub(crate) async fn measure(&mut self, urls: &[String], teams: usize, samples: usize) {
        let store = connect(urls).await;
        for number in self.n..self.n + samples {
            let team = team(FILLED, (number * STEP) % teams);
            let start = Instant::now();
            let inbox = store.inbox(&team, &member(MEMBERS[1])).await.unwrap();
            self.inbox.push(start.elapsed());
            assert!(!inbox.is_empty(), "the inbox lacks the sent messages");
        }
        self.n += samples;
    }

    pub(crate) fn print(&self, among: usize) {
        quantiles_line(&format!("first read of a mailbox, among {among}"), &self.inbox);
    }

    /// Checks the limits for a first read.
    pub(crate) fn check(&self, report: &mut BenchReport, among: usize) {
        for (name, q, limit) in [("p50", 0.5, FIRST_READ_P50), ("p99", 0.99, FIRST_READ_P99)] {
            let took = self.inbox.quantile(q);
            let what = format!("first read among {among}, {name}: {took:.0} us (bar {limit:.0})");
            report.check_time(took / limit, what);
        }
    }
}

/// The longest time that a first read may take, in microseconds: the median and the 99th percentile.
const FIRST_READ_P50: f64 = 5_000.0;
const FIRST_READ_P99: f64 = 20_000.0;

/// Prints the heading of a table with higher percentiles.
pub(crate) fn quantiles_heading(what: &str) {
    println!("{what:<60} {:>9} {:>9} {:>9}", "p50 us", "p90", "p99");
}

/// Prints one row of that table.
pub(crate) fn quantiles_line(what: &str, times: &Times) {
    let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|q| times.quantile(q));
    println!("{what:<60} {p50:>9.0} {p90:>9.0} {p99:>9.0}");
}
