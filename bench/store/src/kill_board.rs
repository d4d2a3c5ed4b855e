//! At random moments, kills processes that change the board and the roster.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use brigade_files::Durability;
use brigade_wire::task::Task;

use crate::children::{ChildProcess, child};
use crate::figures::BenchReport;
use crate::kill::{FileWatcher, kill_some, leftovers, walk};
use crate::rng::Rng;
use crate::temp_team::{TeamDirs, TempTeam, block_on, team};

const WORKERS: [&str; 4] = ["ours-0", "ours-1", "ours-2", "ours-3"];
/// The board counts as stalled if no process makes progress for this long.
const STALL: Duration = Duration::from_secs(1);

pub(crate) fn run(report: &mut BenchReport, rounds: usize) {
    let temp = TempTeam::with_team(&WORKERS);
    let dirs = &temp.dirs;
    let config = dirs.inboxes().join("../config.json");
    let watcher = FileWatcher::start(vec![config, dirs.tasks()]);
    let start =
        |name: &&str| Some(ChildProcess::start(&mut child("board", dirs, &[name, "process"])));
    let mut running: Vec<Option<ChildProcess>> = WORKERS.iter().map(start).collect();
    let mut rng = Rng::new();
    // A set, because a file that one round leaves behind may be found again in later rounds.
    let (mut output, mut kills, mut left) = (Vec::new(), 0, BTreeSet::new());
    let (mut stalls, mut longest) = (0, Duration::ZERO);
    for _ in 0..rounds {
        let (killed, lines) = kill_some(&mut running, &mut rng);
        kills += killed;
        output.extend(lines);
        if killed == running.len() {
            left.extend(leftovers(dirs));
        }
        for (slot, name) in running.iter_mut().zip(&WORKERS) {
            if slot.is_none() {
                *slot = start(name);
            }
        }
        // Check that the killed processes do not block the others.
        let held = locks(dirs);
        let began = Instant::now();
        let before: usize = running.iter().flatten().map(|running| running.lines().len()).sum();
        let now = || -> usize { running.iter().flatten().map(|r| r.lines().len()).sum() };
        while now() == before && began.elapsed() < Duration::from_secs(15) {
            std::thread::sleep(Duration::from_millis(1));
        }
        longest = longest.max(began.elapsed());
        if began.elapsed() > STALL {
            stalls += 1;
            println!("      stalled for {:?}; shared locks: {held:?}", began.elapsed());
        }
    }
    for running in running.into_iter().flatten() {
        output.extend(running.kill());
    }
    left.extend(leftovers(dirs));
    let (reads, torn) = watcher.stop();
    check_board(report, dirs, &output);
    println!("board: {rounds} rounds, {kills} kills");
    report.check_none_of("torn reads of tasks and config", torn, reads);
    report
        .check_empty("locks and temporary files that a read did not remove", &Vec::from_iter(left));
    let text = format!(
        "rounds in which the board stalled for {STALL:?}: {stalls} of {rounds} (longest {longest:?})"
    );
    report.check(stalls == 0, text);
}

/// Returns the names of the shared locks that exist now. These are the lock for new tasks and the roster's lock.
fn locks(dirs: &TeamDirs) -> Vec<String> {
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let locks = walk(&dirs.claude).into_iter().filter(|path| path.is_dir()).map(name);
    locks.filter(|name| [".lock.lock", "config.json.lock"].contains(&name.as_str())).collect()
}

/// Checks that every task number is used once, and that every acknowledged claim and completion is on the board.
fn check_board(report: &mut BenchReport, dirs: &TeamDirs, output: &[String]) {
    let tasks = block_on(dirs.store(Durability::Process).tasks(&team())).unwrap();
    let there: HashMap<String, (Option<String>, String)> = tasks
        .iter()
        .map(|(id, document)| {
            let task = Task::read(&document.bytes).unwrap();
            let status = format!("{:?}", task.status().unwrap());
            (id.to_string(), (task.owner().map(std::borrow::Cow::into_owned), status))
        })
        .collect();
    let (mut added, mut twice, mut lost, mut refused) =
        (HashSet::new(), Vec::new(), Vec::new(), Vec::new());
    for line in output {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["added", id] => {
                if !added.insert(*id) {
                    twice.push(*id);
                }
                if !there.contains_key(*id) {
                    lost.push(line);
                }
            }
            ["claimed", id, me] => {
                if there.get(*id).and_then(|(owner, _)| owner.as_deref()) != Some(*me) {
                    lost.push(line);
                }
            }
            ["done", id] => {
                if there.get(*id).is_none_or(|(_, status)| status != "Completed") {
                    lost.push(line);
                }
            }
            _ => refused.push(line),
        }
    }
    println!("board: {} tasks added, {} lines of output", added.len(), output.len());
    report.check_empty("task numbers used twice", &twice);
    report.check_empty("acknowledged changes that are not on the board", &lost);
    report.check_empty("operations that failed", &refused);
}
