//! Benchmarks and fault tests of the NATS store, with real servers, kill signals and network failures.
//!
//! Usage: `brigade-bench-nats <benchmark> [--short]`. The exit code is 1 if a check fails.
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
mod costs_operations;
mod faults;
mod faults_count;
mod faults_load;
#[path = "../../store/src/figures.rs"]
#[expect(dead_code, reason = "the benchmarks of the file store use the rest of this module")]
mod figures;
mod fill;
#[path = "../../store/src/fixtures.rs"]
mod fixtures;
mod footprint;
mod hosts;
mod read_designs;
mod scale;
mod scale_steps;
mod server;
mod shards;
mod size;
mod store_contender;

use std::process::ExitCode;

use figures::{Benchmark, Length};

const BENCHMARKS: &[Benchmark] = &[
    ("bench", bench::run),
    ("faults", faults::run),
    ("shards", shards::run),
    ("scale", scale::run),
    ("costs", costs::run),
    ("size", size::run),
];

fn main() -> ExitCode {
    figures::run_benchmarks("brigade-bench-nats", BENCHMARKS)
}

/// Runs a future to completion, on a runtime with one thread per core.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}
