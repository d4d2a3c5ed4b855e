//! One server with ten thousand teams, and with a million mailboxes: what it takes, how fast it is back
//! after a kill, and whether a send there costs more than among a hundred.

use brigade_testkit::engine::Engine;

use crate::figures::{Report, heading};
use crate::fill::{MAILBOXES, Patterns};
use crate::scale_steps::{Looks, Sends};
use crate::server::{memory, processor, restart, usage};
use crate::{Length, block_on};

/// The small crowd: a hundred mailboxes, and two.
const FEW: usize = 17;

pub(crate) fn run(report: &mut Report, length: Length) {
    // 10,000 teams are 60,000 mailboxes; 166,667 a million.
    let sizes = length.of(&[2_000, 16_667][..], &[10_000, 166_667]);
    let mut big = Engine::single();
    let small = Engine::single();
    let patterns = block_on(async {
        let patterns = Patterns::make(&small.urls).await;
        patterns.fill(&small.urls, 1..FEW).await;
        let patterns = Patterns::make(&big.urls).await;
        patterns.fill(&big.urls, 1..FEW).await;
        patterns
    });
    let samples = length.of(200, 1_000);
    let mut alone = Sends::default();
    block_on(alone.measure(&big.urls, FEW, samples));
    println!("a team: {} messages in the engine, {MAILBOXES} mailboxes", patterns.len());
    heading("through the store, one server, sync always");
    alone.print(FEW * MAILBOXES);
    let mut there = FEW;
    for &teams in sizes {
        // The filling is not what is measured, and need not wait for the disk each time.
        restart(&mut big, "always", "\"2m\"");
        let (disk, before) = (usage(&big.folder(0).join("data")), there);
        let took = block_on(patterns.fill(&big.urls, there..teams));
        there = teams;
        let count = (there - before) * patterns.len();
        let rate = count as f64 / took.as_secs_f64();
        let grown = usage(&big.folder(0).join("data")) - disk;
        println!(
            "{count} messages of new teams in {:.1} s ({rate:.0} a second)",
            took.as_secs_f64()
        );
        println!("disk: {:.0} bytes a message more", grown as f64 / count as f64);
        println!("memory after the filling: {} MB", memory(big.pid(0)) / 1_000_000);
        let took = restart(&mut big, "\"2m\"", "always");
        println!("{} mailboxes: back {:.1} s after a kill", teams * MAILBOXES, took.as_secs_f64());
        println!("memory after the start: {} MB", memory(big.pid(0)) / 1_000_000);
        let [mut many, mut few] = <[Sends; 2]>::default();
        let busy = |engine: &Engine| processor(engine.pid(0));
        let cpu = (busy(&big), busy(&small));
        for _ in 0..10 {
            block_on(few.measure(&small.urls, FEW, samples / 10));
            block_on(many.measure(&big.urls, there, samples / 10));
        }
        let cpu = (busy(&big) - cpu.0, busy(&small) - cpu.1);
        heading("side by side with a server of 102 mailboxes, in turns");
        many.print(there * MAILBOXES);
        few.print(FEW * MAILBOXES);
        println!("the servers' processor time: {:.2} s and {:.2} s", cpu.0, cpu.1);
        println!("memory after the sends: {} MB", memory(big.pid(0)) / 1_000_000);
        let what = |kind| format!("{kind} among {} mailboxes to among 102", there * MAILBOXES);
        report.at_most(&what("send"), many.send.median(), 1.5, few.send.median());
        report.at_most(&what("first send"), many.idle.median(), 1.5, few.idle.median());

        let [mut many, mut few] = <[Looks; 2]>::default();
        let cpu = (busy(&big), busy(&small));
        for _ in 0..10 {
            block_on(few.measure(&small.urls, FEW, samples / 40));
            block_on(many.measure(&big.urls, there, samples / 40));
        }
        let cpu = (busy(&big) - cpu.0, busy(&small) - cpu.1);
        heading("looking, in turns");
        many.print(there * MAILBOXES);
        few.print(FEW * MAILBOXES);
        println!("the servers' processor time: {:.2} s and {:.2} s", cpu.0, cpu.1);
        println!(
            "memory {} MB, disk {} MB",
            memory(big.pid(0)) / 1_000_000,
            usage(&big.folder(0).join("data")) / 1_000_000
        );
    }
}
