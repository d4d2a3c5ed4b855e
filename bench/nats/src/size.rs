//! The program with the engine and without it: how big it is, and how fast it starts.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Length;
use crate::figures::{Report, Times, heading, line};

/// The programs to look at, and how they are called beside this one.
const PROGRAMS: [(&str, &str); 2] =
    [("with the engine", "brigade"), ("without it", "brigade-without-engine")];

pub(crate) fn run(report: &mut Report, length: Length) {
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
    for _ in 0..length.of(50, 300) {
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
    heading("start to end of the program");
    for (name, times) in &rows {
        line(name, times);
    }
    report.bar(sizes[1] < sizes[0], "the engine can be left out, and then takes no room");
}

fn start(program: &Path, args: &[&str], home: &Path) {
    let mut command = Command::new(program);
    command.args(args).env_clear().env("HOME", home).stdout(Stdio::null()).stderr(Stdio::null());
    // A house without teams is empty, which is exit code 4 to some commands and 0 to others.
    let status = command.status().unwrap();
    assert!(matches!(status.code(), Some(0 | 4)), "{} {args:?}: {status}", program.display());
}
