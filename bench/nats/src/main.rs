//! Benchmarks and fault tests of the NATS store, with real servers, signals and network cuts.
//! `brigade-bench-nats <benchmark> [--short]`; exit code 1 if a check fails.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its results and panics on errors"
)]

mod bare_contender;
mod bench;
mod contender;
mod costs;
mod faults;
mod faults_count;
mod faults_load;
#[path = "../../store/src/figures.rs"]
#[expect(dead_code, reason = "the benchmarks of the file store use more of it")]
mod figures;
mod fill;
mod hosts;
mod scale;
mod scale_steps;
mod server;
mod size;
mod store_contender;

use std::process::ExitCode;

use figures::Report;

/// How long a benchmark runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// A minute at most, for development and CI.
    Short,
    /// Long enough for reliable figures.
    Long,
}

impl Length {
    /// Picks one of two values.
    pub(crate) fn pick<T>(self, short: T, long: T) -> T {
        if self == Self::Short { short } else { long }
    }
}

/// A benchmark and its name.
type Benchmark = (&'static str, fn(&mut Report, Length));

const BENCHMARKS: &[Benchmark] = &[
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
        BENCHMARKS.iter().filter(|(benchmark, _)| name == "all" || name == *benchmark).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = BENCHMARKS.iter().map(|(benchmark, _)| *benchmark).collect();
        eprintln!("usage: brigade-bench-nats <{}|all> [--short]", names.join("|"));
        return ExitCode::from(2);
    }
    let mut report = Report::default();
    for (benchmark, run) in chosen {
        println!("== {benchmark}{}", length.pick(" (short form)", ""));
        run(&mut report, length);
    }
    report.exit_code()
}

/// Runs a future on one thread per core.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}
