//! The promises of the store on the engine, kept or broken in front of your eyes: real servers, real
//! signals, real cables pulled. `brigade-bench-nats <proof> [--short]`; exit code 1 if a bar is missed.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a proof prints what it finds and stops at the first surprise"
)]

mod bare;
mod bench;
mod costs;
mod crowd;
mod faults;
mod faults_count;
mod faults_load;
#[path = "../../store/src/figures.rs"]
#[expect(dead_code, reason = "the proofs of the file store use more of it")]
mod figures;
mod fill;
mod hosts;
mod ours;
mod scale;
mod scale_steps;
mod server;
mod size;

use std::process::ExitCode;

use figures::Report;

/// How much of a proof to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// A minute at most: for while one works.
    Short,
    /// The figures that count.
    Long,
}

impl Length {
    /// One of two numbers.
    pub(crate) fn of<T>(self, short: T, long: T) -> T {
        if self == Self::Short { short } else { long }
    }
}

/// A proof by its name.
type Proof = (&'static str, fn(&mut Report, Length));

const PROOFS: &[Proof] = &[
    ("bench", bench::run),
    ("faults", faults::run),
    ("scale", scale::run),
    ("costs", costs::run),
    ("size", size::run),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("", String::as_str);
    let length = if args.iter().any(|arg| arg == "--short") { Length::Short } else { Length::Long };
    let chosen: Vec<_> =
        PROOFS.iter().filter(|(proof, _)| name == "all" || name == *proof).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = PROOFS.iter().map(|(proof, _)| *proof).collect();
        eprintln!("usage: brigade-bench-nats <{}|all> [--short]", names.join("|"));
        return ExitCode::from(2);
    }
    let mut report = Report::default();
    for (proof, run) in chosen {
        println!("== {proof}{}", length.of(" (short form)", ""));
        run(&mut report, length);
    }
    report.exit_code()
}

/// Runs what `work` does with as many threads as the machine has cores.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}
