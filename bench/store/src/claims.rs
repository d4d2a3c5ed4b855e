//! Sixteen processes claim the same tasks. Checks that each task is claimed by exactly one process.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use brigade_core::board::{self, BoardError};
use brigade_core::seat::Seat;
use brigade_files::Durability;

use crate::Length;
use crate::children::{ChildProcess, child, print_line, wait_for_go};
use crate::figures::{BenchReport, Times};
use crate::fixtures::plan;
use crate::temp_team::{TempTeam, block_on};
use crate::wake::now;

const CLAIMERS: usize = 16;

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let tasks = length.pick(200, 1_000);
    // Conflicts are most frequent if all processes claim the tasks in the same order.
    for apart in [false, true] {
        contest(report, tasks, apart);
    }
}

fn contest(report: &mut BenchReport, tasks: usize, apart: bool) {
    let names: Vec<String> = (0..CLAIMERS).map(|number| format!("ours-{number}")).collect();
    let temp = TempTeam::with_team(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let seat = temp.dirs.seat("team-lead", Durability::Process);
    for number in 0..tasks {
        block_on(board::add(&seat, &plan(number))).unwrap();
    }
    let claimers: Vec<ChildProcess> = names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let first = if apart { number * tasks / CLAIMERS } else { 0 };
            let args = [name, &tasks.to_string(), &first.to_string()];
            ChildProcess::start(&mut child("claim", &temp.dirs, &args.map(String::as_str)))
        })
        .collect();
    for claimer in &claimers {
        claimer.wait_for("ready");
    }
    let (start, go) = (Instant::now(), now());
    std::fs::write(temp.dirs.claude.join("go"), "").unwrap();
    let output: Vec<String> = claimers.into_iter().flat_map(ChildProcess::finish).collect();
    let took = start.elapsed().as_secs_f64();
    let mut owners: HashMap<&str, usize> = HashMap::new();
    let mut last = go;
    for line in output.iter().filter_map(|line| line.strip_prefix("claimed ")) {
        let (id, at) = line.split_once(' ').unwrap();
        *owners.entry(id).or_default() += 1;
        last = last.max(at.parse().unwrap());
    }
    // The race ends when the last task is claimed. All later attempts fail.
    let race = Duration::from_nanos(last - go).as_secs_f64();
    let twice: Vec<&str> = owners.iter().filter(|(_, n)| **n > 1).map(|(id, _)| *id).collect();
    let failed: Vec<&String> = output.iter().filter(|line| line.starts_with("refused")).collect();
    let rate = owners.len() as f64 / race;
    let way =
        if apart { "each process starts with a different task" } else { "all in the same order" };
    println!(
        "{CLAIMERS} claimers, {tasks} tasks, {way}: all claimed after {race:.3} s, all {} attempts done after {took:.3} s",
        CLAIMERS * tasks
    );
    let mut late = Times::default();
    for number in 1..=tasks {
        let id = number.to_string().parse().unwrap();
        assert!(
            late.time(|| block_on(board::claim(&seat, id))).is_err(),
            "a task was claimed twice"
        );
    }
    let median = late.median();
    println!("a failed attempt while no other process runs: {median:.0} us (n {tasks})");
    report.check_empty("tasks claimed twice", &twice);
    report.check(owners.len() == tasks, format!("claimed: {} of {tasks}", owners.len()));
    report.check_empty("claims that failed with an error", &failed);
    report.check_time(1_000.0 / rate, format!("claims per second: {rate:.0} (bar 1000)"));
}

/// Tries to claim every task once, and prints which tasks were claimed. Runs in a child process.
pub(crate) fn claim(seat: &Seat, tasks: usize, first: usize, dirs: &crate::temp_team::TeamDirs) {
    wait_for_go(dirs);
    let mut got = Vec::new();
    for step in 0..tasks {
        let id = ((first + step) % tasks + 1).to_string().parse().unwrap();
        match block_on(board::claim(seat, id)) {
            Ok(()) => got.push(format!("claimed {id} {}", now())),
            Err(BoardError::Taken { .. }) => {}
            Err(error) => got.push(format!("refused {id} {error}")),
        }
    }
    if !got.is_empty() {
        print_line(&got.join("\n"));
    }
}
