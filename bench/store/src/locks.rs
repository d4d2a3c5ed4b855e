//! Locks that are held too long, or are none: a bounded wait, a clear word, nothing lost.
//!
//! Each case has a place of its own, and all run at once, for each waits most of its time.

use std::fs::File;
use std::path::Path;
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant, SystemTime};

use brigade_core::board;
use brigade_core::mail::{self, Which, Words};
use brigade_core::store::Mark;
use brigade_core::store::file::{Durability, LOCK_WAIT};
use rustix::process::Signal;

use crate::Length;
use crate::children::{Running, child};
use crate::cost::{native_inbox, plan};
use crate::figures::Report;
use crate::locks_paused;
use crate::node;
use crate::place::{Place, READER, Spot, block_on, text};

/// The longest a send may take: the store's patience and a little.
const BOUND: Duration = LOCK_WAIT.saturating_add(Duration::from_secs(1));

/// What a case came to: what it saw, and the bars it reached or missed.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) seen: Vec<String>,
    pub(crate) bars: Vec<(bool, String)>,
}

impl Verdict {
    pub(crate) fn see(&mut self, what: String) {
        self.seen.push(what);
    }

    pub(crate) fn bar(&mut self, reached: bool, what: String) {
        self.bars.push((reached, what));
    }
}

pub(crate) fn run(report: &mut Report, length: Length) {
    let pause = Duration::from_secs(length.of(12, 15));
    let modules = node::modules();
    let hour = Duration::from_secs(3_600);
    let mut cases: Vec<(&str, JoinHandle<Verdict>)> = Vec::new();
    for (name, known) in [
        ("native holder stopped, 5 messages in the inbox", 5),
        ("native holder stopped, inbox empty", 0),
    ] {
        let modules = modules.clone();
        cases.push((name, spawn(move || native_stopped(&modules, known, pause))));
    }
    let stopped = modules.clone();
    cases.push((
        "brigade stopped under both locks",
        spawn(move || locks_paused::run(&stopped, pause)),
    ));
    cases.push(("lock abandoned just now", spawn(|| obstacle(|lock| make(lock, None)))));
    let old = move |lock: &Path| make(lock, SystemTime::now().checked_sub(hour));
    cases.push(("lock abandoned, an hour old", spawn(move || obstacle(old))));
    let ahead = move |lock: &Path| make(lock, SystemTime::now().checked_add(hour));
    cases.push(("lock abandoned, an hour in the future", spawn(move || obstacle(ahead))));
    let file = |lock: &Path| std::fs::write(lock, "").unwrap();
    cases.push(("lock is a file", spawn(move || obstacle(file))));
    let full = |lock: &Path| {
        make(lock, None);
        std::fs::write(lock.join("file"), "").unwrap();
    };
    cases.push(("lock directory with a file in it", spawn(move || obstacle(full))));
    cases.push(("lock of a task abandoned just now", spawn(task)));
    cases.push(("a message that waits is read and marked", spawn(marked)));
    for (name, case) in cases {
        let verdict = case.join().expect("a case broke off");
        println!("{name}");
        for seen in verdict.seen {
            println!("      {seen}");
        }
        for (reached, what) in verdict.bars {
            report.bar(reached, what);
        }
    }
}

fn spawn(case: impl FnOnce() -> Verdict + Send + 'static) -> JoinHandle<Verdict> {
    std::thread::spawn(case)
}

fn make(lock: &Path, modified: Option<SystemTime>) {
    std::fs::create_dir(lock).unwrap();
    if let Some(modified) = modified {
        File::open(lock).unwrap().set_modified(modified).unwrap();
    }
}

/// A send that finds something where the lock should be.
fn obstacle(put: impl Fn(&Path)) -> Verdict {
    let mut verdict = Verdict::default();
    let place = Place::with_team(&["writer"]);
    let spot = &place.spot;
    std::fs::write(spot.inbox(), native_inbox(5)).unwrap();
    put(&spot.lock());
    let mut ids = Vec::new();
    // Twice: the second must not wait for what the first has found out, and be bounded if it does.
    for number in 0..2 {
        ids.push(timed_send(spot, number, &mut verdict));
    }
    // Somebody tidies up, and anybody does anything.
    let _file = std::fs::remove_file(spot.lock());
    let _directory = std::fs::remove_dir_all(spot.lock());
    Running::start(&mut child("look", spot, &[])).finish();
    all_there(&place.spot, &ids, 5, &mut verdict);
    verdict
}

fn timed_send(spot: &Spot, number: usize, verdict: &mut Verdict) -> String {
    let seat = spot.seat("writer", Durability::Process);
    let start = Instant::now();
    let text = text("writer", number);
    let sent = block_on(mail::send(&seat, READER, Words { text: &text, summary: None })).unwrap();
    let took = start.elapsed();
    verdict.bar(took <= BOUND, format!("send acknowledged after {:.2} s", took.as_secs_f64()));
    if let Some(why) = &sent.receipt.waits {
        verdict.see(format!("it waits: {why}"));
    }
    sent.receipt.msg_id
}

/// Whether these and as many others stand in the inbox, each once.
pub(crate) fn all_there(spot: &Spot, ids: &[String], others: usize, verdict: &mut Verdict) {
    let inbox = std::fs::read_to_string(spot.inbox()).unwrap();
    let entries: Vec<serde_json::Value> = serde_json::from_str(&inbox).unwrap();
    let count = |id: &String| entries.iter().filter(|entry| entry["msg_id"] == **id).count();
    let (lost, twice) = ids.iter().map(count).fold((0, 0), |(lost, twice), count| {
        (lost + usize::from(count == 0), twice + usize::from(count > 1))
    });
    let natives = entries.iter().filter(|entry| entry["from"] == "native").count();
    verdict.bar(lost == 0, format!("ours lost: {lost} of {}", ids.len()));
    verdict.bar(twice == 0, format!("ours there twice: {twice}"));
    verdict.bar(natives == others, format!("of others: {natives} of {others}"));
}

/// A native program that stops between reading and writing, and then writes its old copy.
fn native_stopped(modules: &Path, known: usize, pause: Duration) -> Verdict {
    let mut verdict = Verdict::default();
    let place = Place::with_team(&["writer"]);
    let spot = &place.spot;
    std::fs::write(spot.inbox(), native_inbox(known)).unwrap();
    let holder = Running::start(&mut node::peer(modules, "hold", &spot.inbox(), "holder"));
    holder.wait_for("read");
    holder.signal(Signal::STOP);
    let start = Instant::now();
    let ids: Vec<String> = (0..5).map(|number| timed_send(spot, number, &mut verdict)).collect();
    let in_inbox = std::fs::read_to_string(spot.inbox()).unwrap().matches("\"writer\"").count();
    verdict.see(format!("in the inbox before the holder resumes: {in_inbox} of 5"));
    sleep(pause.saturating_sub(start.elapsed()));
    holder.signal(Signal::CONT);
    let said = holder.finish();
    let after = std::fs::read_to_string(spot.inbox()).unwrap().matches("\"writer\"").count();
    verdict.see(format!("after it wrote its old copy: {after} of 5"));
    Running::start(&mut child("look", spot, &[])).finish();
    all_there(spot, &ids, known, &mut verdict);
    let holders = said.iter().filter_map(|line| line.strip_prefix("acked 0 "));
    let kept = holders.filter(|id| std::fs::read_to_string(spot.inbox()).unwrap().contains(*id));
    verdict.bar(kept.count() == 1, "the holder's own message is there".to_owned());
    verdict
}

/// A reader is shown what waits before the lock, and marks it: it must not come to it again.
fn marked() -> Verdict {
    let mut verdict = Verdict::default();
    let place = Place::with_team(&["writer"]);
    let spot = &place.spot;
    std::fs::write(spot.inbox(), "[]").unwrap();
    std::fs::write(spot.lock(), "").unwrap();
    timed_send(spot, 0, &mut verdict);
    let reader = spot.seat(READER, Durability::Process);
    let unread = || block_on(mail::inbox(&reader, &reader.name, Which::Unread)).unwrap();
    let shown: Vec<_> = unread().iter().map(|mail| mail.key).collect();
    std::fs::remove_file(spot.lock()).unwrap();
    block_on(mail::mark(&reader, &shown, Mark::Read)).unwrap();
    let again = unread().iter().filter(|mail| shown.contains(&mail.key)).count();
    verdict.bar(shown.len() == 1, format!("shown while it waits: {}", shown.len()));
    verdict.bar(again == 0, format!("marked read and unread again: {again}"));
    verdict
}

/// A claim that finds the task's lock abandoned.
fn task() -> Verdict {
    let mut verdict = Verdict::default();
    let place = Place::with_team(&["writer"]);
    let seat = place.spot.seat("writer", Durability::Process);
    let id = block_on(board::add(&seat, &plan(0))).unwrap();
    make(&place.spot.tasks().join(format!("{id}.json.lock")), None);
    let start = Instant::now();
    let claimed = block_on(board::claim(&seat, id));
    let took = start.elapsed();
    if let Err(error) = &claimed {
        verdict.see(format!("{error}"));
    }
    let text = format!("claimed after {:.2} s: {}", took.as_secs_f64(), claimed.is_ok());
    verdict.bar(took <= BOUND && claimed.is_ok(), text);
    verdict
}
