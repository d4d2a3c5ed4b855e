//! The same for tasks and the roster: processes that add, claim, finish and join are killed.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use brigade_core::store::file::Durability;
use brigade_wire::task::Task;

use crate::chance::Chance;
use crate::children::{Running, child};
use crate::figures::Report;
use crate::kill::{Few, Parser, litter, walk};
use crate::place::{Place, Spot, block_on, team};

const WORKERS: [&str; 4] = ["ours-0", "ours-1", "ours-2", "ours-3"];
/// A board on which nobody gets anywhere for so long stands still.
const STILL: Duration = Duration::from_secs(1);

pub(crate) fn run(report: &mut Report, rounds: usize) {
    let place = Place::with_team(&WORKERS);
    let spot = &place.spot;
    let config = spot.inboxes().join("../config.json");
    let parser = Parser::start(vec![config, spot.tasks()]);
    let start = |name: &&str| Some(Running::start(&mut child("board", spot, &[name, "process"])));
    let mut running: Vec<Option<Running>> = WORKERS.iter().map(start).collect();
    let mut chance = Chance::new();
    let (mut said, mut kills, mut left) = (Vec::new(), 0, Vec::new());
    let (mut stills, mut longest) = (0, Duration::ZERO);
    for _ in 0..rounds {
        std::thread::sleep(chance.moment(30));
        let all = chance.below(4) == 0;
        let one = chance.index(running.len());
        for (at, slot) in running.iter_mut().enumerate() {
            if all || at == one {
                said.extend(slot.take().unwrap().kill());
                kills += 1;
            }
        }
        if all {
            left.extend(litter(spot));
        }
        for (slot, name) in running.iter_mut().zip(&WORKERS) {
            if slot.is_none() {
                *slot = start(name);
            }
        }
        // A killed process must not keep the others from the board.
        let held = locks(spot);
        let began = Instant::now();
        let before: usize = running.iter().flatten().map(|running| running.lines().len()).sum();
        let now = || -> usize { running.iter().flatten().map(|r| r.lines().len()).sum() };
        while now() == before && began.elapsed() < Duration::from_secs(15) {
            std::thread::sleep(Duration::from_millis(1));
        }
        longest = longest.max(began.elapsed());
        if began.elapsed() > STILL {
            stills += 1;
            println!("      stood still for {:?}; shared locks: {held:?}", began.elapsed());
        }
    }
    for running in running.into_iter().flatten() {
        said.extend(running.kill());
    }
    left.extend(litter(spot));
    // One that lies there for ten seconds is found again and again.
    left.sort();
    left.dedup();
    let (looks, torn) = parser.stop();
    judge(report, spot, &said);
    println!("board: {rounds} rounds, {kills} kills");
    report.bar(
        torn == 0,
        format!("tasks and config parseable at every look: {torn} of {looks} torn"),
    );
    report.bar(left.is_empty(), format!("left lying about after a look: {:?}", Few(&left)));
    let text = format!(
        "rounds in which the board stood still for {STILL:?}: {stills} of {rounds} (longest {longest:?})"
    );
    report.bar(stills == 0, text);
}

/// The locks there are that everybody needs: that of creating a task, and the roster's.
fn locks(spot: &Spot) -> Vec<String> {
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let locks = walk(&spot.claude).into_iter().filter(|path| path.is_dir()).map(name);
    locks.filter(|name| [".lock.lock", "config.json.lock"].contains(&name.as_str())).collect()
}

/// Numbers are given once, and what was said to be claimed or done is.
fn judge(report: &mut Report, spot: &Spot, said: &[String]) {
    let tasks = block_on(spot.store(Durability::Process).tasks(&team())).unwrap();
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
    for line in said {
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
    println!("board: {} tasks added, {} things said", added.len(), said.len());
    report.bar(twice.is_empty(), format!("task numbers given twice: {:?}", Few(&twice)));
    report.bar(lost.is_empty(), format!("said and not so on the board: {:?}", Few(&lost)));
    report.bar(refused.is_empty(), format!("refused: {:?}", Few(&refused)));
}
