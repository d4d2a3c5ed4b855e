//! Processes killed at any moment: nothing acknowledged is lost or doubled, nothing is ever torn, and
//! nothing is left lying about.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::store::Mail;
use brigade_core::store::file::Durability;

use crate::Length;
use crate::chance::Chance;
use crate::children::{Running, child};
use crate::cost::native_inbox;
use crate::figures::Report;
use crate::kill_board;
use crate::place::{Place, READER, Spot, block_on, member, team};

/// Messages of other programs that stand in the inbox beforehand.
const PREFILL: usize = 200;
const SENDERS: [&str; 3] = ["ours-0", "ours-1", "ours-2"];

pub(crate) fn run(report: &mut Report, length: Length) {
    mail(report, length.of(1, 10));
    kill_board::run(report, length.of(100, 1_000));
}

/// What the processes said before they were killed.
#[derive(Default)]
struct Said {
    acked: HashSet<String>,
    marked: HashSet<String>,
    refused: Vec<String>,
}

impl Said {
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

/// Rounds on one mailbox: more would be spent on checking an ever longer one.
const ROUNDS: usize = 100;

fn mail(report: &mut Report, mailboxes: usize) {
    let (mut sum, mut wrong) = (Sum::default(), Wrong::default());
    for number in 1..=mailboxes {
        mailbox(&mut sum, &mut wrong);
        println!("  mailbox {number} of {mailboxes}: {} acked so far", sum.acked);
    }
    let rounds = mailboxes * ROUNDS;
    let Sum { kills, acked, marked, looks, torn, litter, refused } = sum;
    println!(
        "mail: {rounds} rounds, {kills} kills, {acked} acked ({PREFILL} of others in each mailbox), {marked} marked read"
    );
    report.bar(wrong.lost.is_empty(), format!("acked lost: {:?}", Few(&wrong.lost)));
    report.bar(wrong.doubled.is_empty(), format!("acked there twice: {:?}", Few(&wrong.doubled)));
    report.bar(
        wrong.back.is_empty(),
        format!("marked read and unread again: {:?}", Few(&wrong.back)),
    );
    report.bar(
        wrong.journal == 0,
        format!("lines of a journal that are no record: {}", wrong.journal),
    );
    report.bar(
        torn == 0,
        format!("inbox and config parseable at every look: {torn} of {looks} torn"),
    );
    report.bar(litter.is_empty(), format!("left lying about after a look: {:?}", Few(&litter)));
    report.bar(refused.is_empty(), format!("refused: {:?}", Few(&refused)));
}

/// What all mailboxes came to.
#[derive(Default)]
struct Sum {
    kills: usize,
    acked: usize,
    marked: usize,
    looks: usize,
    torn: usize,
    litter: Vec<String>,
    refused: Vec<String>,
}

fn mailbox(sum: &mut Sum, wrong: &mut Wrong) {
    let place = Place::with_team(&SENDERS);
    let spot = &place.spot;
    std::fs::write(spot.inbox(), native_inbox(PREFILL)).unwrap();
    let mut said = Said::default();
    said.acked.extend((0..PREFILL).map(|n| format!("00000000-0000-4000-8000-{n:012}")));
    let watcher = Parser::start(vec![spot.inbox(), spot.inboxes().join("../config.json")]);
    let start = |at: usize| {
        let command = match SENDERS.get(at) {
            Some(from) => &mut child("send", spot, &[from, "process", "1000"]),
            None => &mut child("mark", spot, &[]),
        };
        Running::start(command)
    };
    let mut chance = Chance::new();
    let mut running: Vec<Option<Running>> = (0..=SENDERS.len()).map(|at| Some(start(at))).collect();
    let (mut kills, mut litter) = (0, Vec::new());
    let mut journal = Journals::default();
    for _ in 0..ROUNDS {
        std::thread::sleep(chance.moment(30));
        let all = chance.below(4) == 0;
        let one = chance.index(running.len());
        for (at, slot) in running.iter_mut().enumerate() {
            if all || at == one {
                said.take(&slot.take().unwrap().kill());
                kills += 1;
            }
        }
        for running in running.iter().flatten() {
            said.take(&running.news());
        }
        wrong.add(&check(spot, &said, &mut journal));
        if all {
            litter.extend(self::litter(spot));
        }
        for (at, slot) in running.iter_mut().enumerate() {
            if slot.is_none() {
                *slot = Some(start(at));
            }
        }
    }
    for running in running.into_iter().flatten() {
        said.take(&running.kill());
    }
    wrong.add(&check(spot, &said, &mut journal));
    // And once as everybody else would ask.
    wrong.add(&check_history(spot, &said));
    litter.extend(self::litter(spot));
    litter.sort();
    litter.dedup();
    let (looks, torn) = watcher.stop();
    sum.kills += kills;
    sum.acked += said.acked.len();
    sum.marked += said.marked.len();
    sum.looks += looks;
    sum.torn += torn;
    sum.litter.extend(litter);
    sum.refused.extend(said.refused);
}

/// The number, and a few of them.
pub(crate) struct Few<'f, T>(pub(crate) &'f [T]);

impl<T: std::fmt::Debug> std::fmt::Debug for Few<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.len())?;
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, ", as {:?}", &self.0[..self.0.len().min(3)])
        }
    }
}

/// What is not as it should be.
#[derive(Default)]
struct Wrong {
    lost: Vec<String>,
    doubled: Vec<String>,
    back: Vec<String>,
    journal: usize,
}

impl Wrong {
    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.lost, &other.lost),
            (&mut self.doubled, &other.doubled),
            (&mut self.back, &other.back),
        ];
        for (all, new) in pairs {
            for id in new {
                if !all.contains(id) {
                    all.push(id.clone());
                }
            }
        }
        self.journal = self.journal.max(other.journal);
    }
}

/// What the journals say, read as they grow: reading them whole each round would take all the time.
#[derive(Default)]
struct Journals {
    upto: HashMap<PathBuf, usize>,
    read: HashSet<MessageKey>,
    bad: usize,
}

impl Journals {
    fn read_on(&mut self, dir: &Path) {
        let journals =
            walk(dir).into_iter().filter(|p| p.extension().is_some_and(|e| e == "jsonl"));
        for path in journals {
            let mut file = std::fs::File::open(&path).unwrap();
            let upto = self.upto.entry(path).or_default();
            file.seek(SeekFrom::Start(*upto as u64)).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            *upto += whole;
            for line in bytes[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
            {
                match serde_json::from_slice::<Record>(line) {
                    Ok(record) => self.read.extend(read_key(&record)),
                    Err(_) => self.bad += 1,
                }
            }
        }
    }
}

fn read_key(record: &Record) -> Option<MessageKey> {
    match &record.event {
        Event::Read { key, .. } => Some(*key),
        _ => None,
    }
}

/// Every acknowledged message stands in the inbox once, or is recorded as read.
fn check(spot: &Spot, said: &Said, journals: &mut Journals) -> Wrong {
    // First the inbox, then the journals: what is read in between goes from the one to the other.
    let inbox = block_on(spot.store(Durability::Process).inbox(&team(), &member(READER))).unwrap();
    journals.read_on(&spot.state);
    Wrong { journal: journals.bad, ..compare(said, &inbox, &journals.read) }
}

fn check_history(spot: &Spot, said: &Said) -> Wrong {
    let store = spot.store(Durability::Process);
    let inbox = block_on(store.inbox(&team(), &member(READER))).unwrap();
    let history = block_on(store.history(&team())).unwrap();
    compare(said, &inbox, &history.iter().filter_map(read_key).collect())
}

fn compare(said: &Said, inbox: &[Mail], read: &HashSet<MessageKey>) -> Wrong {
    let mut live: HashMap<MessageKey, (usize, bool)> = HashMap::new();
    for mail in inbox {
        let entry: serde_json::Value = serde_json::from_slice(&mail.json).unwrap();
        let here = live.entry(mail.key).or_default();
        here.0 += 1;
        here.1 = entry["read"] == false;
    }
    let mut wrong = Wrong::default();
    for id in &said.acked {
        let key = MessageKey::of_id(id);
        match live.get(&key) {
            None if !read.contains(&key) => wrong.lost.push(id.clone()),
            Some((count, _)) if *count > 1 => wrong.doubled.push(id.clone()),
            Some((_, true)) if said.marked.contains(id) => wrong.back.push(id.clone()),
            _ => {}
        }
    }
    wrong
}

/// Every path below a folder.
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

/// What is left of killed processes once another has looked at inbox and tasks.
pub(crate) fn litter(spot: &Spot) -> Vec<String> {
    Running::start(&mut child("look", spot, &[])).finish();
    let left = |path: PathBuf, locks: bool| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let lock = locks && name.ends_with(".lock") && path.is_dir();
        (lock || name.contains(".tmp.")).then_some(name)
    };
    // In its own folder brigade keeps directories that become locks at hand; there they lock nothing.
    let native = walk(&spot.claude).into_iter().filter_map(|path| left(path, true));
    let own = walk(&spot.state).into_iter().filter_map(|path| left(path, false));
    native.chain(own).collect()
}

/// Somebody who reads files all the time, without a lock.
pub(crate) struct Parser {
    stop: Arc<AtomicBool>,
    torn: Arc<AtomicUsize>,
    thread: JoinHandle<usize>,
}

impl Parser {
    /// Reads these files; of a folder, the documents in it.
    pub(crate) fn start(paths: Vec<PathBuf>) -> Self {
        let (stop, torn) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&torn));
        let thread = std::thread::spawn(move || {
            let mut looks = 0;
            while !stopped.load(Ordering::Relaxed) {
                for path in paths.iter().flat_map(|path| documents(path)) {
                    // One that is gone again is not torn.
                    let Ok(bytes) = std::fs::read(&path) else { continue };
                    looks += 1;
                    if serde_json::from_slice::<serde_json::Value>(&bytes).is_err() {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            looks
        });
        Self { stop, torn, thread }
    }

    /// How often it looked, and how often at something torn.
    pub(crate) fn stop(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        let looks = self.thread.join().unwrap();
        (looks, self.torn.load(Ordering::Relaxed))
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
