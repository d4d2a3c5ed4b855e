//! Measures the size and the start time of the brigade program, built with and without the NATS store.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Length;
use crate::figures::{BenchReport, Times, heading, line};

/// The label and file name of each program. The files are in the folder of the benchmark program.
const PROGRAMS: [(&str, &str); 2] =
    [("with NATS", "brigade"), ("without NATS", "brigade-without-nats")];

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let here = std::env::current_exe().unwrap();
    let programs = PROGRAMS.map(|(name, program)| {
        let program = here.with_file_name(program);
        assert!(program.exists(), "{} is not built; see the README", program.display());
        (name, program)
    });
    let home = tempfile::tempdir().unwrap();
    let starts: [(&str, &[&str]); 2] =
        [("--version", &["--version"]), ("team list", &["team", "list"])];
    let mut rows: Vec<(String, Times)> = Vec::new();
    for (what, _) in &starts {
        for (name, _) in &programs {
            rows.push((format!("{what}, {name}"), Times::default()));
        }
    }
    for _ in 0..length.pick(50, 300) {
        for (at, (_, args)) in starts.iter().enumerate() {
            for (of, (_, program)) in programs.iter().enumerate() {
                rows[at * 2 + of].1.time(|| start(program, args, home.path()));
            }
        }
    }
    let sizes = programs.each_ref().map(|(_, program)| fs::metadata(program).unwrap().len());
    for ((name, _), size) in programs.iter().zip(sizes) {
        println!("{name}: {:.2} MB", size as f64 / 1e6);
    }
    heading("from start to exit of the program");
    for (name, times) in &rows {
        line(name, times);
    }
    report.check(sizes[1] < sizes[0], "the program without NATS is smaller");
}

fn start(program: &Path, args: &[&str], home: &Path) {
    let mut command = Command::new(program);
    command.args(args).env_clear().env("HOME", home).stdout(Stdio::null()).stderr(Stdio::null());
    // If there are no teams, some commands exit with 4 and others with 0.
    let status = command.status().unwrap();
    assert!(matches!(status.code(), Some(0 | 4)), "{} {args:?}: {status}", program.display());
}
