//! Benchmarks and stress tests of the file store, with real processes, signals and file systems.
//!
//! Usage: `brigade-bench-store <benchmark> [--short]`. The exit code is 1 if a check fails.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its results and panics on errors"
)]

mod children;
mod claims;
mod command;
mod contention;
mod cost;
mod event_log;
mod faults;
mod faults_files;
mod faults_modes;
mod faults_space;
mod figures;
mod fixtures;
mod flood;
mod history;
mod in_process;
mod in_process_bare;
mod in_process_team;
mod kill;
mod kill_board;
mod locks;
mod locks_paused;
mod mcp_server;
mod mount;
mod node;
mod power;
mod process;
mod readers;
mod rng;
mod temp_team;
mod tools;
mod tools_kill;
mod wake;

use std::process::ExitCode;

use figures::{Benchmark, Length};

const BENCHMARKS: &[Benchmark] = &[
    ("cost", cost::run),
    ("contention", contention::run),
    ("kill", kill::run),
    ("locks", locks::run),
    ("claims", claims::run),
    ("wake", wake::run),
    ("process", process::run),
    ("tools", tools::run),
    ("tools-kill", tools_kill::run),
    ("faults", faults::run),
    ("power", power::run),
    ("in-process", in_process::run),
    ("event-log", event_log::run),
    ("flood", flood::run),
    ("history", history::run),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("", String::as_str);
    if let Some(child) = name.strip_prefix("child-") {
        children::run(child, &args[1..]);
        return ExitCode::SUCCESS;
    }
    // Results depend on the file system of the folder for temporary files (TMPDIR).
    println!("files in {}", temp_team::describe_location());
    figures::run_benchmarks("brigade-bench-store", BENCHMARKS)
}
