//! Simulates power cuts. Processes write to an ext4 file system that is stored in a file. While they write, the
//! file system is shut down without a sync, and then mounted again.
//!
//! The kernel may write files to the disk in any order. To reach more of the possible states in a short time, this
//! benchmark also syncs single files of the store, which it chooses at random.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brigade_core::event::MessageKey;
use brigade_files::Durability;
use brigade_wire::task::Task;

use crate::Length;
use crate::children::{ChildProcess, child};
use crate::faults::try_send;
use crate::figures::{BenchReport, sample};
use crate::fixtures::member;
use crate::kill::{read_key, walk};
use crate::mount::{Mount, must, need_root};
use crate::rng::Rng;
use crate::temp_team::{READER, TeamDirs, TempTeam, block_on, team};

const WORKERS: [&str; 3] = ["ours-0", "ours-1", "writer"];

/// The totals of all rounds with one durability.
#[derive(Default)]
struct PowerTotals {
    acked: usize,
    lost: Vec<String>,
    twice: usize,
    corrupt: Vec<String>,
    copies: usize,
    after_lost: Vec<String>,
    tasks: usize,
    tasks_lost: Vec<String>,
}

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    need_root();
    for level in ["power", "process"] {
        let mut totals = PowerTotals::default();
        let rounds = length.pick(3, 30);
        for _ in 0..rounds {
            round(level, &mut totals);
        }
        println!(
            "{level}: {rounds} cuts, {} messages and {} task changes acknowledged; {} damaged inboxes backed up",
            totals.acked, totals.tasks, totals.copies
        );
        for (what, lost) in [
            ("acknowledged messages", &totals.lost),
            ("acknowledged task changes", &totals.tasks_lost),
        ] {
            if level == "power" {
                report.check_empty(format!("{level}: {what} lost"), lost);
            } else {
                println!("      {level}: {what} lost: {}", sample(lost));
            }
        }
        report.check_zero(format!("{level}: messages stored twice"), totals.twice);
        report.check_empty(format!("{level}: unreadable files"), &totals.corrupt);
        report.check_empty(
            format!("{level}: messages that were sent after the cut, but are lost"),
            &totals.after_lost,
        );
    }
}

fn round(level: &str, totals: &mut PowerTotals) {
    let temp = TempTeam::new();
    let image = temp.root.join("image");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    must("mkfs.ext4", &["-q", "-F"], &image);
    let at = temp.root.join("disk");
    let mount = Mount::image(&image, &at);
    let dirs = TeamDirs::under(&at);
    dirs.make_team(&WORKERS);
    // Sync the new team, because it must survive the cut.
    rustix::fs::sync();
    let mut rng = Rng::new();
    let output = write_until_cut(level, &dirs, &at, &mut rng);
    mount.unmount();
    let mount = Mount::image(&image, &at);
    check(&dirs, &output, totals);
    mount.unmount();
}

/// Lets processes write, then cuts the power. Returns what the processes printed before the cut.
fn write_until_cut(level: &str, dirs: &TeamDirs, at: &Path, rng: &mut Rng) -> Vec<String> {
    // Discard the error messages, because all processes fail after the cut.
    let start = |name: &str, args: &[&str]| {
        ChildProcess::start(child(name, dirs, args).stderr(std::process::Stdio::null()))
    };
    let mut running: Vec<ChildProcess> =
        WORKERS[..2].iter().map(|from| start("send", &[from, level, "60"])).collect();
    running.push(start("mark", &[]));
    running.push(start("board", &["writer", level]));
    let end = Instant::now() + Duration::from_millis(300) + rng.moment(1_500);
    while Instant::now() < end {
        std::thread::sleep(rng.moment(40));
        write_back(dirs, rng);
    }
    // Collect the output before the cut. Changes that a process acknowledges after the cut are not on the disk.
    let output: Vec<String> = running.iter().flat_map(ChildProcess::lines).collect();
    let cut = concat!(env!("CARGO_MANIFEST_DIR"), "/cut.py");
    must("python3", &[cut], at);
    for running in running {
        running.kill();
    }
    output
}

/// Syncs one random file of the store, as the kernel may do at any time.
fn write_back(dirs: &TeamDirs, rng: &mut Rng) {
    let mut files: Vec<PathBuf> = walk(&dirs.state);
    files.push(dirs.inbox());
    files.push(dirs.inboxes());
    let file = &files[rng.index(files.len())];
    if let Ok(file) = File::open(file) {
        let _gone = file.sync_all();
    }
}

fn check(dirs: &TeamDirs, output: &[String], totals: &mut PowerTotals) {
    for path in walk(&dirs.claude) {
        let document = path.extension().is_some_and(|end| end == "json") && path.is_file();
        let bytes = std::fs::read(&path).unwrap_or_default();
        // All files except the inbox must be intact. The store repairs the inbox when it reads the inbox below.
        let inbox = path == dirs.inbox();
        if document && !inbox && serde_json::from_slice::<serde_json::Value>(&bytes).is_err() {
            totals.corrupt.push(format!("{} ({} bytes)", path.display(), bytes.len()));
        }
    }
    let store = dirs.store(Durability::Process);
    let inbox = match block_on(store.inbox(&team(), &member(READER))) {
        Ok(inbox) => inbox,
        Err(error) => {
            totals.corrupt.push(error.to_string());
            return;
        }
    };
    let history = block_on(store.history(&team())).unwrap();
    let mut live: HashMap<MessageKey, usize> = HashMap::new();
    for mail in &inbox {
        *live.entry(mail.key).or_default() += 1;
    }
    let read: HashSet<MessageKey> = history.iter().filter_map(|record| read_key(record)).collect();
    totals.twice += live.values().filter(|count| **count > 1).count();
    totals.copies += walk(&dirs.state)
        .iter()
        .filter(|path| path.parent().is_some_and(|dir| dir.ends_with("aside")))
        .count();
    for line in output {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["acked", _, id, ..] => {
                totals.acked += 1;
                let key = MessageKey::from_id(id);
                if !live.contains_key(&key) && !read.contains(&key) {
                    totals.lost.push((*id).to_owned());
                }
            }
            ["added" | "claimed" | "done", id, ..] => {
                totals.tasks += 1;
                if !is_kept(dirs, words[0], id) {
                    totals.tasks_lost.push(line.clone());
                }
            }
            _ => {}
        }
    }
    after(dirs, totals);
}

fn is_kept(dirs: &TeamDirs, what: &str, id: &str) -> bool {
    let Ok(bytes) = std::fs::read(dirs.tasks().join(format!("{id}.json"))) else { return false };
    let Ok(task) = Task::read(&bytes) else { return false };
    match what {
        "added" => true,
        "claimed" => task.owner().is_some(),
        _ => task.status() == Some(brigade_wire::task::Status::Completed),
    }
}

/// Checks that messages sent after the cut are stored.
fn after(dirs: &TeamDirs, totals: &mut PowerTotals) {
    for number in 0..20 {
        let text = format!("after the cut {number}.");
        let sent = try_send(dirs, &text);
        let there = std::fs::read_to_string(dirs.inbox()).is_ok_and(|inbox| inbox.contains(&text));
        if sent != Ok(None) || !there {
            totals.after_lost.push(format!("{text} {sent:?}"));
        }
    }
}
