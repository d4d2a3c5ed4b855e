//! The store beside the bare client: the same sends, receives and claims on the same servers.
//!
//! What is compared is measured in turns, so that a noise of the machine hits both.

use std::sync::atomic::Ordering;
use std::time::Instant;

use brigade_testkit::engine::Engine;
use futures_util::StreamExt;
use futures_util::stream;

use crate::bare::Bare;
use crate::crowd::{LANES, Side};
use crate::figures::{Report, Times};
use crate::ours::Ours;
use crate::{Length, block_on};

/// How many sends are on their way at once, where as many as can be are sent.
const IN_FLIGHT: usize = 64;
/// How many of each are done before any is measured.
const WARM: usize = 50;

pub(crate) fn run(report: &mut Report, length: Length) {
    for nodes in [1, 3] {
        let engine = Engine::cluster(nodes);
        block_on(bench(report, length, nodes, &engine.urls));
    }
}

/// What one side came to.
#[derive(Debug, Default)]
struct Figures {
    send: Times,
    receive: Times,
    wake: Times,
    claim: Times,
    sends: Rate,
    receives: Rate,
    claims: Rate,
    /// How many tasks each lane has.
    next: [usize; LANES],
}

/// How many in how long, each time.
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

async fn bench(report: &mut Report, length: Length, nodes: usize, urls: &[String]) {
    // The store makes the streams, and both use them.
    let ours = Ours::connect(urls).await;
    let bare = Bare::connect(urls).await;
    let [mut of_ours, mut of_bare] = <[Figures; 2]>::default();
    // What is done for the first time is not measured.
    for lane in 0..LANES {
        ours.receive(lane, 0).await;
        bare.receive(lane, 0).await;
    }
    latencies(&ours, &bare, &mut of_ours, &mut of_bare, WARM).await;
    of_ours.forget();
    of_bare.forget();
    let count = length.of(600, 3_000);
    latencies(&ours, &bare, &mut of_ours, &mut of_bare, count).await;
    for _ in 0..length.of(3, 9) {
        rates(&ours, &mut of_ours, length).await;
        rates(&bare, &mut of_bare, length).await;
    }
    table(nodes, count, &of_ours, &of_bare);
    judge(report, nodes, &of_ours, &of_bare);
    let in_vain = ours.in_vain.load(Ordering::Relaxed);
    report.bar(in_vain == 0, format!("{nodes} nodes, woken and found nothing: {in_vain} times"));
}

/// One at a time, each by one side and then by the other.
async fn latencies(
    ours: &Ours,
    bare: &Bare,
    of_ours: &mut Figures,
    of_bare: &mut Figures,
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

impl Figures {
    /// Puts tasks on the board of a lane.
    async fn tasks<S: Side>(&mut self, side: &S, lane: usize, count: usize) {
        side.add_tasks(lane, self.next[lane], count).await;
        self.next[lane] += count;
    }

    /// One of each.
    async fn one<S: Side>(&mut self, side: &S, number: usize, task: usize) {
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

    /// Nothing was measured yet; tasks stay where they are.
    fn forget(&mut self) {
        *self = Self { next: self.next, ..Self::default() };
    }
}

/// As many as can be.
async fn rates<S: Side>(side: &S, figures: &mut Figures, length: Length) {
    let count = length.of(2_000, 10_000);
    let start = Instant::now();
    let sends = stream::iter(0..count).map(|number| side.send(number % LANES, number));
    sends.buffer_unordered(IN_FLIGHT).for_each(async |()| ()).await;
    figures.sends.push(count, start);

    let each = length.of(40, 200);
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

fn rows<'f>(ours: &'f Figures, bare: &'f Figures) -> [Row<'f>; 4] {
    [
        ("send", &ours.send, &bare.send),
        ("wake, from the beginning of the send", &ours.wake, &bare.wake),
        ("receive: send, wake, look, mark", &ours.receive, &bare.receive),
        ("claim: look, take", &ours.claim, &bare.claim),
    ]
}

fn table(nodes: usize, n: usize, ours: &Figures, bare: &Figures) {
    let many = if nodes == 1 { "one node" } else { "three nodes, three replicas" };
    println!("{many}, sync always; 500-byte texts, one at a time; us");
    let [p50, p99, bare50, bare99] = ["ours p50", "p99", "bare p50", "p99"];
    println!("{:<40} {p50:>9} {p99:>9} {bare50:>9} {bare99:>9} {:>6}", "", "n");
    for (name, ours, bare) in rows(ours, bare) {
        let [ours, bare] = [ours, bare]
            .map(|times| format!("{:>9.0} {:>9.0}", times.median(), times.quantile(0.99)));
        println!("{name:<40} {ours} {bare} {n:>6}");
    }
    println!("{:<40} {:>9} {:>9}", "as many as can be; a second", Ours::NAME, Bare::NAME);
    for (name, ours, bare) in rates_of(ours, bare) {
        println!("{name:<40} {:>9.0} {:>9.0}", ours.median(), bare.median());
    }
}

fn rates_of<'f>(ours: &'f Figures, bare: &'f Figures) -> [(&'static str, &'f Rate, &'f Rate); 3] {
    [
        ("sends, 64 on their way", &ours.sends, &bare.sends),
        ("receives, 8 readers of 8 teams", &ours.receives, &bare.receives),
        ("claims, 8 claimers on 8 boards", &ours.claims, &bare.claims),
    ]
}

fn judge(report: &mut Report, nodes: usize, ours: &Figures, bare: &Figures) {
    for (name, ours, bare) in rows(ours, bare) {
        let what = format!("{nodes} nodes, p99, {name}");
        report.at_most(&what, ours.quantile(0.99), 1.3, bare.quantile(0.99));
    }
    for (name, ours, bare) in rates_of(ours, bare) {
        let share = ours.median() / bare.median();
        let what = format!("{nodes} nodes, throughput, {name}: {share:.2} x (bar 0.85 x)");
        report.timing(0.85 / share, what);
    }
    if nodes == 3 {
        let half = ours.wake.median() / 1_000.0;
        let what =
            format!("{nodes} nodes, half of the readers awake within {half:.2} ms (bar 5 ms)");
        report.timing(half / 5.0, what);
    }
}
