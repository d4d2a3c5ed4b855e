//! Compares the NATS store with a bare NATS client: the same sends, receives and claims on the same servers.
//!
//! The two are measured alternately, so that noise affects both.

use std::sync::atomic::Ordering;
use std::time::Instant;

use brigade_testkit::nats_server::TestServers;
use futures_util::StreamExt;
use futures_util::stream;

use crate::bare_contender::BareContender;
use crate::contender::{Contender, LANES};
use crate::figures::{BenchReport, Times};
use crate::store_contender::StoreContender;
use crate::{Length, block_on};

/// The number of concurrent sends in the throughput measurements.
const IN_FLIGHT: usize = 64;
/// The number of operations of each kind that run before the measurements.
const WARM: usize = 50;

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    for nodes in [1, 3] {
        let engine = TestServers::cluster(nodes);
        block_on(bench(report, length, nodes, &engine.urls));
    }
}

/// The measurements of one contender.
#[derive(Debug, Default)]
struct ContenderFigures {
    send: Times,
    receive: Times,
    wake: Times,
    claim: Times,
    sends: Rate,
    receives: Rate,
    claims: Rate,
    /// The number of tasks added so far, for each lane.
    next: [usize; LANES],
}

/// Operations per second, one value for each measurement.
#[derive(Debug, Default)]
struct Rate(Vec<f64>);

impl Rate {
    fn push(&mut self, count: usize, since: Instant) {
        self.0.push(count as f64 / since.elapsed().as_secs_f64());
    }

    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

async fn bench(report: &mut BenchReport, length: Length, nodes: usize, urls: &[String]) {
    // The store creates the streams, and both contenders use them.
    let ours = StoreContender::connect(urls).await;
    let bare = BareContender::connect(urls).await;
    let [mut of_ours, mut of_bare] = <[ContenderFigures; 2]>::default();
    // Warm up: the first operations are not measured.
    for lane in 0..LANES {
        ours.receive(lane, 0).await;
        bare.receive(lane, 0).await;
    }
    latencies(&ours, &bare, &mut of_ours, &mut of_bare, WARM).await;
    of_ours.reset();
    of_bare.reset();
    let count = length.pick(600, 3_000);
    latencies(&ours, &bare, &mut of_ours, &mut of_bare, count).await;
    for _ in 0..length.pick(3, 9) {
        rates(&ours, &mut of_ours, length).await;
        rates(&bare, &mut of_bare, length).await;
    }
    table(nodes, count, &of_ours, &of_bare);
    check_figures(report, nodes, &of_ours, &of_bare);
    let empty_wakes = ours.empty_wakes.load(Ordering::Relaxed);
    report.check(
        empty_wakes == 0,
        format!("{nodes} nodes, woken without a new message: {empty_wakes} times"),
    );
}

/// Measures latencies, one operation at a time, alternating between the contenders.
async fn latencies(
    ours: &StoreContender,
    bare: &BareContender,
    of_ours: &mut ContenderFigures,
    of_bare: &mut ContenderFigures,
    count: usize,
) {
    of_ours.tasks(ours, 0, count).await;
    of_bare.tasks(bare, 0, count).await;
    let first = of_ours.next[0] - count;
    for number in 0..count {
        of_ours.one(ours, number, first + number).await;
        of_bare.one(bare, number, first + number).await;
    }
}

impl ContenderFigures {
    /// Adds tasks to the board of a lane.
    async fn tasks<S: Contender>(&mut self, side: &S, lane: usize, count: usize) {
        side.add_tasks(lane, self.next[lane], count).await;
        self.next[lane] += count;
    }

    /// Measures one operation of each kind.
    async fn one<S: Contender>(&mut self, side: &S, number: usize, task: usize) {
        let start = Instant::now();
        side.send(number % LANES, number).await;
        self.send.push(start.elapsed());
        let start = Instant::now();
        let wake = side.receive(number % LANES, number).await;
        self.receive.push(start.elapsed());
        self.wake.push(wake);
        let start = Instant::now();
        side.claim(0, task).await;
        self.claim.push(start.elapsed());
    }

    /// Discards all measurements, but keeps the number of tasks.
    fn reset(&mut self) {
        *self = Self { next: self.next, ..Self::default() };
    }
}

/// Measures the throughput of one contender.
async fn rates<S: Contender>(side: &S, figures: &mut ContenderFigures, length: Length) {
    let count = length.pick(2_000, 10_000);
    let start = Instant::now();
    let sends = stream::iter(0..count).map(|number| side.send(number % LANES, number));
    sends.buffer_unordered(IN_FLIGHT).for_each(async |()| ()).await;
    figures.sends.push(count, start);

    let each = length.pick(40, 200);
    let start = Instant::now();
    let lanes = stream::iter(0..LANES).map(async |lane| {
        for number in 0..each {
            side.receive(lane, number).await;
        }
    });
    lanes.buffer_unordered(LANES).for_each(async |()| ()).await;
    figures.receives.push(each * LANES, start);

    let first = figures.next;
    let lanes = stream::iter(0..LANES).map(|lane| side.add_tasks(lane, first[lane], each));
    lanes.buffer_unordered(LANES).for_each(async |()| ()).await;
    figures.next = first.map(|next| next + each);
    let start = Instant::now();
    let lanes = stream::iter(0..LANES).map(async |lane| {
        for number in first[lane]..first[lane] + each {
            side.claim(lane, number).await;
        }
    });
    lanes.buffer_unordered(LANES).for_each(async |()| ()).await;
    figures.claims.push(each * LANES, start);
}

type Row<'f> = (&'static str, &'f Times, &'f Times);

fn rows<'f>(ours: &'f ContenderFigures, bare: &'f ContenderFigures) -> [Row<'f>; 4] {
    [
        ("send", &ours.send, &bare.send),
        ("wake, from the start of the send", &ours.wake, &bare.wake),
        ("receive: send, wake, read, mark", &ours.receive, &bare.receive),
        ("claim: read, update", &ours.claim, &bare.claim),
    ]
}

fn table(nodes: usize, n: usize, ours: &ContenderFigures, bare: &ContenderFigures) {
    let many = if nodes == 1 { "one node" } else { "three nodes, three replicas" };
    println!("{many}, sync always; 500-byte texts, one at a time; us");
    let [p50, p99, bare50, bare99] = ["ours p50", "p99", "bare p50", "p99"];
    println!("{:<40} {p50:>9} {p99:>9} {bare50:>9} {bare99:>9} {:>6}", "", "n");
    for (name, ours, bare) in rows(ours, bare) {
        let [ours, bare] = [ours, bare]
            .map(|times| format!("{:>9.0} {:>9.0}", times.median(), times.quantile(0.99)));
        println!("{name:<40} {ours} {bare} {n:>6}");
    }
    println!(
        "{:<40} {:>9} {:>9}",
        "throughput, per second",
        StoreContender::NAME,
        BareContender::NAME
    );
    for (name, ours, bare) in rates_of(ours, bare) {
        println!("{name:<40} {:>9.0} {:>9.0}", ours.median(), bare.median());
    }
}

fn rates_of<'f>(
    ours: &'f ContenderFigures,
    bare: &'f ContenderFigures,
) -> [(&'static str, &'f Rate, &'f Rate); 3] {
    [
        ("sends, 64 concurrent", &ours.sends, &bare.sends),
        ("receives, 8 teams with a reader each", &ours.receives, &bare.receives),
        ("claims, 8 boards with a claimer each", &ours.claims, &bare.claims),
    ]
}

fn check_figures(
    report: &mut BenchReport,
    nodes: usize,
    ours: &ContenderFigures,
    bare: &ContenderFigures,
) {
    for (name, ours, bare) in rows(ours, bare) {
        let what = format!("{nodes} nodes, p99, {name}");
        report.check_ratio(&what, ours.quantile(0.99), 1.3, bare.quantile(0.99));
    }
    for (name, ours, bare) in rates_of(ours, bare) {
        let share = ours.median() / bare.median();
        let what = format!("{nodes} nodes, throughput, {name}: {share:.2} x (bar 0.85 x)");
        report.check_time(0.85 / share, what);
    }
    if nodes == 3 {
        let median = ours.wake.median() / 1_000.0;
        let what = format!("{nodes} nodes, median wake-up {median:.2} ms (bar 5 ms)");
        report.check_time(median / 5.0, what);
    }
}
