//! The promises of the file store, kept or broken in front of your eyes: real processes, real
//! signals, real file systems. `brigade-bench-store <proof> [--short]`; exit code 1 if a bar is missed.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a proof prints what it finds and stops at the first surprise"
)]

mod chance;
mod children;
mod chronicle;
mod claims;
mod contention;
mod cost;
mod crowd;
mod crowd_bare;
mod crowd_play;
mod faults;
mod faults_files;
mod faults_modes;
mod faults_space;
mod figures;
mod kill;
mod kill_board;
mod locks;
mod locks_paused;
mod mount;
mod node;
mod pipe;
mod place;
mod power;
mod process;
mod readers;
mod tools;
mod tools_kill;
mod wake;

use std::process::ExitCode;

use figures::Report;

/// How much of a proof to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Seconds: for while one works.
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
    ("crowd", crowd::run),
    ("chronicle", chronicle::run),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("", String::as_str);
    if let Some(child) = name.strip_prefix("child-") {
        children::run(child, &args[1..]);
        return ExitCode::SUCCESS;
    }
    let length = if args.iter().any(|arg| arg == "--short") { Length::Short } else { Length::Long };
    let chosen: Vec<_> =
        PROOFS.iter().filter(|(proof, _)| name == "all" || name == *proof).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = PROOFS.iter().map(|(proof, _)| *proof).collect();
        eprintln!("usage: brigade-bench-store <{}|all> [--short]", names.join("|"));
        return ExitCode::from(2);
    }
    // Ratios depend on where the files are; TMPDIR chooses.
    println!("files in {}", place::where_files_are());
    let mut report = Report::default();
    for (proof, run) in chosen {
        println!("== {proof}{}", length.of(" (short form)", ""));
        run(&mut report, length);
    }
    report.exit_code()
}
