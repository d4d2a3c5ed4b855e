//! Measures one server with ten thousand teams, and with a million mailboxes: memory, disk, restart time after a
//! kill, and the cost of a send and of a first read compared with a server that has a hundred mailboxes.

use brigade_testkit::nats_server::TestServers;

use crate::figures::{BenchReport, heading};
use crate::fill::{MAILBOXES, TeamTemplate};
use crate::footprint::{self, StoredContent};
use crate::read_designs;
use crate::scale_steps::{Reads, Sends, quantiles_heading};
use crate::server::{memory, processor, restart, usage};
use crate::{Length, block_on};

/// The number of teams on the small server. Together, these teams have 102 mailboxes.
const FEW: usize = 17;
/// How often `--footprint` restarts the server.
const STARTS: usize = 5;
/// How much the memory of the server may grow while processes read mailboxes for the first time.
const MAX_GROWTH: f64 = 1.1;

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    // 10,000 teams have 60,000 mailboxes; 166,667 teams have a million.
    let sizes = match requested_mailboxes() {
        Some(count) => vec![count.div_ceil(MAILBOXES).max(FEW)],
        None => length.pick(&[2_000, 16_667][..], &[10_000, 166_667]).to_vec(),
    };
    let mut big = TestServers::single();
    let small = TestServers::single();
    let patterns = block_on(async {
        let patterns = TeamTemplate::make(&small.urls).await;
        patterns.fill(&small.urls, 1..FEW).await;
        let patterns = TeamTemplate::make(&big.urls).await;
        patterns.fill(&big.urls, 1..FEW).await;
        patterns
    });
    let samples = length.pick(200, 1_000);
    let footprint_only = std::env::args().any(|arg| arg == "--footprint");
    println!("a team: {} stored messages, {MAILBOXES} mailboxes", patterns.len());
    if !footprint_only {
        let mut alone = Sends::default();
        block_on(alone.measure(&big.urls, FEW, samples));
        heading("through the store, one server, sync always");
        alone.print(FEW * MAILBOXES);
    }
    let mut there = FEW;
    for teams in sizes {
        // Filling is not part of the measurement, so the server need not sync every write.
        restart(&mut big, "always", "\"2m\"");
        let (disk, before) = (usage(&big.folder(0).join("data")), there);
        let took = block_on(patterns.fill(&big.urls, there..teams));
        there = teams;
        let count = (there - before) * patterns.len();
        let rate = count as f64 / took.as_secs_f64();
        let grown = usage(&big.folder(0).join("data")) - disk;
        println!(
            "{count} messages of new teams in {:.1} s ({rate:.0} per second)",
            took.as_secs_f64()
        );
        println!("disk: {:.0} bytes per message", grown as f64 / count as f64);
        println!("memory after filling: {} MB", memory(big.pid(0)) / 1_000_000);
        let took = restart(&mut big, "\"2m\"", "always");
        println!("{} mailboxes: ready {:.1} s after a kill", teams * MAILBOXES, took.as_secs_f64());
        println!("memory after the start: {} MB", memory(big.pid(0)) / 1_000_000);
        if footprint_only {
            let messages = there * patterns.len();
            let content = StoredContent { teams, mailboxes: teams * MAILBOXES, messages };
            footprint::print(&mut big, content, STARTS, samples);
            continue;
        }
        let [mut many, mut few] = <[Sends; 2]>::default();
        let busy = |engine: &TestServers| processor(engine.pid(0));
        let cpu = (busy(&big), busy(&small));
        for _ in 0..10 {
            block_on(few.measure(&small.urls, FEW, samples / 10));
            block_on(many.measure(&big.urls, there, samples / 10));
        }
        let cpu = (busy(&big) - cpu.0, busy(&small) - cpu.1);
        heading("sends, alternating with a server that has 102 mailboxes");
        many.print(there * MAILBOXES);
        few.print(FEW * MAILBOXES);
        println!("CPU time of the servers: {:.2} s and {:.2} s", cpu.0, cpu.1);
        println!("memory after the sends: {} MB", memory(big.pid(0)) / 1_000_000);
        let what = |kind| format!("{kind}, {} mailboxes compared with 102", there * MAILBOXES);
        report.check_ratio(&what("send"), many.send.median(), 1.5, few.send.median());
        report.check_ratio(&what("first send"), many.idle.median(), 1.5, few.idle.median());

        let [mut many, mut few] = <[Reads; 2]>::default();
        let (cpu, before) = ((busy(&big), busy(&small)), memory(big.pid(0)));
        for _ in 0..10 {
            block_on(few.measure(&small.urls, FEW, samples / 10));
            block_on(many.measure(&big.urls, there, samples / 10));
        }
        let cpu = (busy(&big) - cpu.0, busy(&small) - cpu.1);
        let after = memory(big.pid(0));
        quantiles_heading("reads, alternating with a server that has 102 mailboxes");
        many.print(there * MAILBOXES);
        few.print(FEW * MAILBOXES);
        println!("CPU time of the servers: {:.2} s and {:.2} s", cpu.0, cpu.1);
        println!("disk {} MB", usage(&big.folder(0).join("data")) / 1_000_000);
        many.check(report, there * MAILBOXES);
        check_memory(report, samples, before, after);

        // After a start, the server holds no block of the streams in memory.
        restart(&mut big, "always", "always");
        let (mut cold, before) = (Reads::default(), memory(big.pid(0)));
        block_on(cold.measure(&big.urls, there, samples));
        let after = memory(big.pid(0));
        quantiles_heading("reads after a start of the server");
        cold.print(there * MAILBOXES);
        println!("memory: {} MB, then {} MB", before / 1_000_000, after / 1_000_000);
        quantiles_heading("designs for a first read");
        block_on(read_designs::compare(&big.urls, there, samples, samples / 5));
        println!("memory: {} MB", memory(big.pid(0)) / 1_000_000);
    }
}

/// The number of mailboxes that `--mailboxes` names.
fn requested_mailboxes() -> Option<usize> {
    let mut args = std::env::args().skip_while(|arg| arg != "--mailboxes").skip(1);
    args.next().map(|count| count.parse().expect("--mailboxes is followed by a number"))
}

/// Checks that reads of other mailboxes did not make the server much larger.
fn check_memory(report: &mut BenchReport, reads: usize, before: u64, after: u64) {
    let growth = after as f64 / before as f64;
    let [before, after] = [before, after].map(|bytes| bytes / 1_000_000);
    let what = "memory of the server after the first reads";
    report.check(
        growth <= MAX_GROWTH,
        format!("{what} of {reads} mailboxes: {growth:.2} x (bar {MAX_GROWTH} x; {before} MB, then {after} MB)"),
    );
}
