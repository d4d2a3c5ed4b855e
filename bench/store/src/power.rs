//! Power cuts: an ext4 file system in a file, cut off from its disk while processes write to it, and
//! mounted again.
//!
//! The kernel writes back what it likes when it likes. To meet more of what that can come to than a
//! short run would, somebody syncs files of the store at random, each by itself.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brigade_core::event::{Event, MessageKey};
use brigade_core::store::file::Durability;
use brigade_wire::task::Task;

use crate::Length;
use crate::chance::Chance;
use crate::children::{Running, child};
use crate::faults::try_send;
use crate::figures::Report;
use crate::kill::{Few, walk};
use crate::mount::{Mount, must, need_root};
use crate::place::{Place, READER, Spot, block_on, member, team};

const WORKERS: [&str; 3] = ["ours-0", "ours-1", "writer"];

/// What all rounds of a level came to.
#[derive(Default)]
struct Sum {
    acked: usize,
    lost: Vec<String>,
    twice: usize,
    corrupt: Vec<String>,
    asides: usize,
    after_lost: Vec<String>,
    tasks: usize,
    tasks_lost: Vec<String>,
}

pub(crate) fn run(report: &mut Report, length: Length) {
    need_root();
    for level in ["power", "process"] {
        let mut sum = Sum::default();
        let rounds = length.of(3, 30);
        for _ in 0..rounds {
            round(level, &mut sum);
        }
        println!(
            "{level}: {rounds} cuts, {} messages and {} changes of tasks acked; {} damaged inboxes copied aside",
            sum.acked, sum.tasks, sum.asides
        );
        let lost = format!("{level}: acked messages lost: {:?} of {}", Few(&sum.lost), sum.acked);
        let tasks =
            format!("{level}: changes of tasks lost: {:?} of {}", Few(&sum.tasks_lost), sum.tasks);
        if level == "power" {
            report.bar(sum.lost.is_empty(), lost);
            report.bar(sum.tasks_lost.is_empty(), tasks);
        } else {
            println!("      {lost}\n      {tasks}");
        }
        report.bar(sum.twice == 0, format!("{level}: there twice: {}", sum.twice));
        report
            .bar(sum.corrupt.is_empty(), format!("{level}: not readable: {:?}", Few(&sum.corrupt)));
        let after =
            format!("{level}: sent after the cut and not there: {:?}", Few(&sum.after_lost));
        report.bar(sum.after_lost.is_empty(), after);
    }
}

fn round(level: &str, sum: &mut Sum) {
    let place = Place::new();
    let image = place.root.join("image");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    must("mkfs.ext4", &["-q", "-F"], &image);
    let at = place.root.join("disk");
    let mount = Mount::image(&image, &at);
    let spot = Spot::under(&at);
    spot.make_team(&WORKERS);
    // The team is older than the cut.
    rustix::fs::sync();
    let mut chance = Chance::new();
    let said = write_until_cut(level, &spot, &at, &mut chance);
    mount.unmount();
    let mount = Mount::image(&image, &at);
    check(&spot, &said, sum);
    mount.unmount();
}

/// Lets processes write, cuts the power under them, and gives back what they had said by then.
fn write_until_cut(level: &str, spot: &Spot, at: &Path, chance: &mut Chance) -> Vec<String> {
    // What they complain of when their disk is gone is not news.
    let start = |name: &str, args: &[&str]| {
        Running::start(child(name, spot, args).stderr(std::process::Stdio::null()))
    };
    let mut running: Vec<Running> =
        WORKERS[..2].iter().map(|from| start("send", &[from, level, "60"])).collect();
    running.push(start("mark", &[]));
    running.push(start("board", &["writer", level]));
    let end = Instant::now() + Duration::from_millis(300) + chance.moment(1_500);
    while Instant::now() < end {
        std::thread::sleep(chance.moment(40));
        write_back(spot, chance);
    }
    // Heard before the cut: what is said later may have been written to nowhere.
    let said: Vec<String> = running.iter().flat_map(Running::lines).collect();
    let cut = concat!(env!("CARGO_MANIFEST_DIR"), "/cut.py");
    must("python3", &[cut], at);
    for running in running {
        running.kill();
    }
    said
}

/// What the kernel may do at any time: one file of the store goes to the disk.
fn write_back(spot: &Spot, chance: &mut Chance) {
    let mut files: Vec<PathBuf> = walk(&spot.state);
    files.push(spot.inbox());
    files.push(spot.inboxes());
    let file = &files[chance.index(files.len())];
    if let Ok(file) = File::open(file) {
        let _gone = file.sync_all();
    }
}

fn check(spot: &Spot, said: &[String], sum: &mut Sum) {
    for path in walk(&spot.claude) {
        let document = path.extension().is_some_and(|end| end == "json") && path.is_file();
        let bytes = std::fs::read(&path).unwrap_or_default();
        // A damaged inbox is mended below; here only what nobody mends.
        let inbox = path == spot.inbox();
        if document && !inbox && serde_json::from_slice::<serde_json::Value>(&bytes).is_err() {
            sum.corrupt.push(format!("{} ({} bytes)", path.display(), bytes.len()));
        }
    }
    let store = spot.store(Durability::Process);
    let inbox = match block_on(store.inbox(&team(), &member(READER))) {
        Ok(inbox) => inbox,
        Err(error) => {
            sum.corrupt.push(error.to_string());
            return;
        }
    };
    let history = block_on(store.history(&team())).unwrap();
    let mut live: HashMap<MessageKey, usize> = HashMap::new();
    for mail in &inbox {
        *live.entry(mail.key).or_default() += 1;
    }
    let read: HashSet<MessageKey> = history
        .iter()
        .filter_map(|record| match &record.event {
            Event::Read { key, .. } => Some(*key),
            _ => None,
        })
        .collect();
    sum.twice += live.values().filter(|count| **count > 1).count();
    sum.asides += walk(&spot.state)
        .iter()
        .filter(|path| path.parent().is_some_and(|dir| dir.ends_with("aside")))
        .count();
    for line in said {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["acked", _, id, ..] => {
                sum.acked += 1;
                let key = MessageKey::of_id(id);
                if !live.contains_key(&key) && !read.contains(&key) {
                    sum.lost.push((*id).to_owned());
                }
            }
            ["added" | "claimed" | "done", id, ..] => {
                sum.tasks += 1;
                if !is_so(spot, words[0], id) {
                    sum.tasks_lost.push(line.clone());
                }
            }
            _ => {}
        }
    }
    after(spot, sum);
}

fn is_so(spot: &Spot, what: &str, id: &str) -> bool {
    let Ok(bytes) = std::fs::read(spot.tasks().join(format!("{id}.json"))) else { return false };
    let Ok(task) = Task::read(&bytes) else { return false };
    match what {
        "added" => true,
        "claimed" => task.owner().is_some(),
        _ => task.status() == Some(brigade_wire::task::Status::Completed),
    }
}

/// The store goes on: what is sent after the cut arrives, and numbers of tasks are new.
fn after(spot: &Spot, sum: &mut Sum) {
    for number in 0..20 {
        let text = format!("after the cut {number}.");
        let sent = try_send(spot, &text);
        let there = std::fs::read_to_string(spot.inbox()).is_ok_and(|inbox| inbox.contains(&text));
        if sent != Ok(None) || !there {
            sum.after_lost.push(format!("{text} {sent:?}"));
        }
    }
}
