//! Kills processes at random moments. Checks that no acknowledged message is lost or stored twice, that readers
//! never see a partly written file, and that no lock or temporary file is left behind.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use brigade_core::event::{Event, MessageKey, UncheckedRecord};
use brigade_core::store::Mail;
use brigade_files::Durability;

use crate::Length;
use crate::children::{ChildProcess, child};
use crate::cost::native_inbox;
use crate::figures::BenchReport;
use crate::fixtures::member;
use crate::kill_board;
use crate::rng::Rng;
use crate::temp_team::{READER, TeamDirs, TempTeam, block_on, team};

/// The number of messages from other programs that are in the inbox at the start.
const PREFILL: usize = 200;
const SENDERS: [&str; 3] = ["ours-0", "ours-1", "ours-2"];

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    mail(report, length.pick(1, 10));
    kill_board::run(report, length.pick(100, 1_000));
}

/// The output that the child processes printed before they were killed.
#[derive(Default)]
struct ChildOutput {
    acked: HashSet<String>,
    marked: HashSet<String>,
    refused: Vec<String>,
}

impl ChildOutput {
    fn take(&mut self, lines: &[String]) {
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["acked", _, id, ..] => drop(self.acked.insert((*id).to_owned())),
                ["marked", ids @ ..] => self.marked.extend(ids.iter().map(|id| (*id).to_owned())),
                _ => self.refused.push(line.clone()),
            }
        }
    }
}

/// The number of rounds per mailbox. With more rounds, checking the growing mailbox would take most of the time.
const ROUNDS: usize = 100;

fn mail(report: &mut BenchReport, mailboxes: usize) {
    let (mut totals, mut violations) = (KillTotals::default(), Violations::default());
    for number in 1..=mailboxes {
        mailbox(&mut totals, &mut violations);
        println!("  mailbox {number} of {mailboxes}: {} acknowledged so far", totals.acked);
    }
    let rounds = mailboxes * ROUNDS;
    let KillTotals { kills, acked, marked, reads, torn, leftovers, refused } = totals;
    println!(
        "mail: {rounds} rounds, {kills} kills, {acked} messages acknowledged ({PREFILL} per mailbox are from other programs), {marked} marked as read"
    );
    for (what, found) in [
        ("messages that were acknowledged, but are lost", violations.lost),
        ("acknowledged messages that are stored twice", violations.doubled),
        ("messages that were marked as read, but are unread again", violations.unread_again),
        ("locks and temporary files that a read did not remove", leftovers),
    ] {
        report.check_empty(what, &Vec::from_iter(found));
    }
    report.check_zero("invalid lines in a journal", violations.journal);
    report.check_none_of("torn reads of inbox and config", torn, reads);
    report.check_empty("operations that failed", &refused);
}

/// The totals of all mailboxes.
#[derive(Default)]
struct KillTotals {
    kills: usize,
    acked: usize,
    marked: usize,
    reads: usize,
    torn: usize,
    leftovers: BTreeSet<String>,
    refused: Vec<String>,
}

fn mailbox(totals: &mut KillTotals, violations: &mut Violations) {
    let temp = TempTeam::with_team(&SENDERS);
    let dirs = &temp.dirs;
    std::fs::write(dirs.inbox(), native_inbox(PREFILL)).unwrap();
    let mut output = ChildOutput::default();
    output.acked.extend((0..PREFILL).map(|n| format!("00000000-0000-4000-8000-{n:012}")));
    let watcher = FileWatcher::start(vec![dirs.inbox(), dirs.inboxes().join("../config.json")]);
    let start = |at: usize| {
        let command = match SENDERS.get(at) {
            Some(from) => &mut child("send", dirs, &[from, "process", "1000"]),
            None => &mut child("mark", dirs, &[]),
        };
        ChildProcess::start(command)
    };
    let mut rng = Rng::new();
    let mut running: Vec<Option<ChildProcess>> =
        (0..=SENDERS.len()).map(|at| Some(start(at))).collect();
    let mut journal = JournalReader::default();
    for _ in 0..ROUNDS {
        let (killed, lines) = kill_some(&mut running, &mut rng);
        totals.kills += killed;
        output.take(&lines);
        for running in running.iter().flatten() {
            output.take(&running.new_lines());
        }
        violations.add(check(dirs, &output, &mut journal));
        if killed == running.len() {
            totals.leftovers.extend(leftovers(dirs));
        }
        for (at, slot) in running.iter_mut().enumerate() {
            if slot.is_none() {
                *slot = Some(start(at));
            }
        }
    }
    for running in running.into_iter().flatten() {
        output.take(&running.kill());
    }
    violations.add(check(dirs, &output, &mut journal));
    // Check once more. This time, compare with the store's history instead of the journal files.
    violations.add(check_history(dirs, &output));
    totals.leftovers.extend(leftovers(dirs));
    let (reads, torn) = watcher.stop();
    totals.acked += output.acked.len();
    totals.marked += output.marked.len();
    totals.reads += reads;
    totals.torn += torn;
    totals.refused.extend(output.refused);
}

/// Kills one of the processes, or all of them, at a random moment. Returns how many were killed, and their output.
pub(crate) fn kill_some(
    running: &mut [Option<ChildProcess>],
    rng: &mut Rng,
) -> (usize, Vec<String>) {
    std::thread::sleep(rng.moment(30));
    let one = rng.index(running.len());
    let killed = if rng.below(4) == 0 { running } else { &mut running[one..=one] };
    let lines = killed.iter_mut().flat_map(|slot| slot.take().unwrap().kill()).collect();
    (killed.len(), lines)
}

/// The messages for which a guarantee was violated.
#[derive(Default)]
struct Violations {
    lost: BTreeSet<String>,
    doubled: BTreeSet<String>,
    unread_again: BTreeSet<String>,
    journal: usize,
}

impl Violations {
    fn add(&mut self, other: Self) {
        self.lost.extend(other.lost);
        self.doubled.extend(other.doubled);
        self.unread_again.extend(other.unread_again);
        self.journal = self.journal.max(other.journal);
    }
}

/// Reads the journals. Each round reads only the new lines, because reading all lines would take too long.
#[derive(Default)]
struct JournalReader {
    offsets: HashMap<PathBuf, usize>,
    read: HashSet<MessageKey>,
    bad: usize,
}

impl JournalReader {
    fn read_on(&mut self, dir: &Path) {
        let journals =
            walk(dir).into_iter().filter(|p| p.extension().is_some_and(|e| e == "jsonl"));
        for path in journals {
            let mut file = std::fs::File::open(&path).unwrap();
            let offsets = self.offsets.entry(path).or_default();
            file.seek(SeekFrom::Start(*offsets as u64)).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            *offsets += whole;
            for line in bytes[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
            {
                match serde_json::from_slice::<UncheckedRecord>(line) {
                    Ok(record) => self.read.extend(read_key(&record)),
                    Err(_) => self.bad += 1,
                }
            }
        }
    }
}

/// Returns the key of the message that this record marks as read.
pub(crate) fn read_key(record: &UncheckedRecord) -> Option<MessageKey> {
    match &record.event {
        Event::Read { key, .. } => Some(*key),
        _ => None,
    }
}

/// Checks that every acknowledged message is in the inbox exactly once, or that the journal records it as read.
fn check(dirs: &TeamDirs, output: &ChildOutput, journals: &mut JournalReader) -> Violations {
    // Read the inbox before the journal. In the other order, a message that is marked as read between the two
    // reads would seem lost.
    let inbox = block_on(dirs.store(Durability::Process).inbox(&team(), &member(READER))).unwrap();
    journals.read_on(&dirs.state);
    Violations { journal: journals.bad, ..compare(output, &inbox, &journals.read) }
}

fn check_history(dirs: &TeamDirs, output: &ChildOutput) -> Violations {
    let store = dirs.store(Durability::Process);
    let inbox = block_on(store.inbox(&team(), &member(READER))).unwrap();
    let history = block_on(store.history(&team())).unwrap();
    compare(output, &inbox, &history.iter().filter_map(|record| read_key(record)).collect())
}

fn compare(output: &ChildOutput, inbox: &[Mail], read: &HashSet<MessageKey>) -> Violations {
    let mut live: HashMap<MessageKey, (usize, bool)> = HashMap::new();
    for mail in inbox {
        let entry: serde_json::Value = serde_json::from_slice(&mail.json).unwrap();
        let entry_state = live.entry(mail.key).or_default();
        entry_state.0 += 1;
        entry_state.1 = entry["read"] == false;
    }
    let mut violations = Violations::default();
    for id in &output.acked {
        let key = MessageKey::from_id(id);
        let _new = match live.get(&key) {
            None if !read.contains(&key) => violations.lost.insert(id.clone()),
            Some((count, _)) if *count > 1 => violations.doubled.insert(id.clone()),
            Some((_, true)) if output.marked.contains(id) => {
                violations.unread_again.insert(id.clone())
            }
            _ => continue,
        };
    }
    violations
}

/// Returns every path in a folder, recursively.
pub(crate) fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return all };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            all.extend(walk(&path));
        }
        all.push(path);
    }
    all
}

/// Lets another process read the inbox and the tasks. That read should remove abandoned locks and temporary files.
/// Returns the names of those that remain.
pub(crate) fn leftovers(dirs: &TeamDirs) -> Vec<String> {
    ChildProcess::start(&mut child("read-all", dirs, &[])).finish();
    let left = |path: PathBuf, locks: bool| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let lock = locks && name.ends_with(".lock") && path.is_dir();
        (lock || name.contains(".tmp.")).then_some(name)
    };
    // Ignore the spare lock directories in brigade's own folder, because they lock nothing.
    let native = walk(&dirs.claude).into_iter().filter_map(|path| left(path, true));
    let own = walk(&dirs.state).into_iter().filter_map(|path| left(path, false));
    native.chain(own).collect()
}

/// A thread that reads JSON files in a loop without taking locks, and counts invalid files.
pub(crate) struct FileWatcher {
    stop: Arc<AtomicBool>,
    torn: Arc<AtomicUsize>,
    thread: JoinHandle<usize>,
}

impl FileWatcher {
    /// Starts a thread that reads these files and the JSON files in these folders.
    pub(crate) fn start(paths: Vec<PathBuf>) -> Self {
        let (stop, torn) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&torn));
        let thread = std::thread::spawn(move || {
            let mut reads = 0;
            while !stopped.load(Ordering::Relaxed) {
                for path in paths.iter().flat_map(|path| documents(path)) {
                    // The file was deleted in the meantime. That is not an error.
                    let Ok(bytes) = std::fs::read(&path) else { continue };
                    reads += 1;
                    if serde_json::from_slice::<serde_json::Value>(&bytes).is_err() {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            reads
        });
        Self { stop, torn, thread }
    }

    /// Stops the thread. Returns the number of reads, and how many of them got invalid JSON.
    pub(crate) fn stop(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        let reads = self.thread.join().unwrap();
        (reads, self.torn.load(Ordering::Relaxed))
    }
}

fn documents(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let mut all = walk(path);
    all.retain(|path| path.extension().is_some_and(|end| end == "json") && path.is_file());
    all
}
