//! Tests locks that are held too long, and files at the path of a lock. Checks that a send waits only for a
//! limited time, and that no message is lost.
//!
//! All cases run at the same time, because each case mostly waits. Each case has its own folder.

use std::fs::File;
use std::path::Path;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant, SystemTime};

use brigade_core::board;
use brigade_core::mail::{self, InboxFilter};
use brigade_core::store::Mark;
use brigade_files::{DEFAULT_LOCK_WAIT, Durability};
use rustix::process::Signal;

use crate::Length;
use crate::children::{ChildProcess, child};
use crate::cost::native_inbox;
use crate::figures::BenchReport;
use crate::fixtures::{plan, text};
use crate::locks_paused;
use crate::node;
use crate::temp_team::{READER, TeamDirs, TempTeam, block_on, send_text};

/// The longest time that a send may take: the store's lock timeout and one second.
const BOUND: Duration = DEFAULT_LOCK_WAIT.saturating_add(Duration::from_secs(1));

/// The result of a case: notes to print, and checks.
#[derive(Debug, Default)]
pub(crate) struct LockResult {
    pub(crate) seen: Vec<String>,
    pub(crate) bars: Vec<(bool, String)>,
}

impl LockResult {
    pub(crate) fn note(&mut self, what: String) {
        self.seen.push(what);
    }

    pub(crate) fn check(&mut self, reached: bool, what: String) {
        self.bars.push((reached, what));
    }
}

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let pause = Duration::from_secs(length.pick(12, 15));
    let modules = node::modules();
    let hour = Duration::from_secs(3_600);
    let aged = |modified| spawn(move || send_behind(move |lock| make(lock, modified)));
    let native = |known| {
        let modules = modules.clone();
        spawn(move || native_stopped(&modules, known, pause))
    };
    let stopped = modules.clone();
    let now = SystemTime::now();
    let cases = [
        ("Node peer stopped while it holds the lock, 5 messages in the inbox", native(5)),
        ("Node peer stopped while it holds the lock, inbox empty", native(0)),
        (
            "brigade process stopped while it holds both locks",
            spawn(move || locks_paused::run(&stopped, pause)),
        ),
        ("lock abandoned just now", aged(None)),
        ("lock abandoned, an hour old", aged(now.checked_sub(hour))),
        ("lock abandoned, dated an hour in the future", aged(now.checked_add(hour))),
        (
            "a file at the path of the lock",
            spawn(|| send_behind(|lock: &Path| std::fs::write(lock, "").unwrap())),
        ),
        (
            "a file in the lock directory",
            spawn(|| {
                send_behind(|lock: &Path| {
                    make(lock, None);
                    std::fs::write(lock.join("file"), "").unwrap();
                })
            }),
        ),
        ("lock of a task abandoned just now", spawn(task)),
        ("a message is marked as read while it waits for the lock", spawn(marked)),
    ];
    for (name, case) in cases {
        let result = case.join().expect("no case panics");
        println!("{name}");
        for seen in result.seen {
            println!("      {seen}");
        }
        for (reached, what) in result.bars {
            report.check(reached, what);
        }
    }
}

fn make(lock: &Path, modified: Option<SystemTime>) {
    std::fs::create_dir(lock).unwrap();
    if let Some(modified) = modified {
        File::open(lock).unwrap().set_modified(modified).unwrap();
    }
}

/// Sends while another file or directory is at the path of the lock.
fn send_behind(put: impl Fn(&Path)) -> LockResult {
    let mut result = LockResult::default();
    let temp = TempTeam::with_team(&["writer"]);
    let dirs = &temp.dirs;
    std::fs::write(dirs.inbox(), native_inbox(5)).unwrap();
    put(&dirs.lock());
    let mut ids = Vec::new();
    // Send twice, because the second send must also finish in time.
    for number in 0..2 {
        ids.push(timed_send(dirs, number, &mut result));
    }
    // Remove the file or directory, and let another process read the mailbox.
    let _file = std::fs::remove_file(dirs.lock());
    let _directory = std::fs::remove_dir_all(dirs.lock());
    ChildProcess::start(&mut child("read-all", dirs, &[])).finish();
    all_there(&temp.dirs, &ids, 5, &mut result);
    result
}

fn timed_send(dirs: &TeamDirs, number: usize, result: &mut LockResult) -> String {
    let seat = dirs.seat("writer", Durability::Process);
    let start = Instant::now();
    let sent = send_text(&seat, READER, &text("writer", number)).unwrap();
    let took = start.elapsed();
    result.check(took <= BOUND, format!("send acknowledged after {:.2} s", took.as_secs_f64()));
    if let Some(why) = &sent.receipt.pending {
        result.note(format!("the message is not in the inbox yet: {why}"));
    }
    sent.receipt.msg_id
}

/// Checks that the inbox contains each of these messages exactly once, and all messages from other programs.
pub(crate) fn all_there(dirs: &TeamDirs, ids: &[String], others: usize, result: &mut LockResult) {
    let inbox = std::fs::read_to_string(dirs.inbox()).unwrap();
    let entries: Vec<serde_json::Value> = serde_json::from_str(&inbox).unwrap();
    let count = |id: &String| entries.iter().filter(|entry| entry["msg_id"] == **id).count();
    let (lost, twice) = ids.iter().map(count).fold((0, 0), |(lost, twice), count| {
        (lost + usize::from(count == 0), twice + usize::from(count > 1))
    });
    let natives = entries.iter().filter(|entry| entry["from"] == "native").count();
    result.check(lost == 0, format!("our messages lost: {lost} of {}", ids.len()));
    result.check(twice == 0, format!("our messages stored twice: {twice}"));
    result.check(
        natives == others,
        format!("messages from other programs in the inbox: {natives} of {others}"),
    );
}

/// Starts a Node program that behaves like Claude Code. Stops the program after it has read the inbox. When the
/// program resumes, it overwrites the inbox with its outdated copy.
fn native_stopped(modules: &Path, known: usize, pause: Duration) -> LockResult {
    let mut result = LockResult::default();
    let temp = TempTeam::with_team(&["writer"]);
    let dirs = &temp.dirs;
    std::fs::write(dirs.inbox(), native_inbox(known)).unwrap();
    let holder = ChildProcess::start(&mut node::peer(modules, "hold", &dirs.inbox(), "holder"));
    holder.wait_for("read");
    holder.signal(Signal::STOP);
    let start = Instant::now();
    let ids: Vec<String> = (0..5).map(|number| timed_send(dirs, number, &mut result)).collect();
    let in_inbox = std::fs::read_to_string(dirs.inbox()).unwrap().matches("\"writer\"").count();
    result.note(format!("our messages in the inbox before the Node peer resumes: {in_inbox} of 5"));
    sleep(pause.saturating_sub(start.elapsed()));
    holder.signal(Signal::CONT);
    let output = holder.finish();
    let after = std::fs::read_to_string(dirs.inbox()).unwrap().matches("\"writer\"").count();
    result.note(format!(
        "our messages in the inbox after the peer wrote its outdated copy: {after} of 5"
    ));
    ChildProcess::start(&mut child("read-all", dirs, &[])).finish();
    all_there(dirs, &ids, known, &mut result);
    let holders = output.iter().filter_map(|line| line.strip_prefix("acked 0 "));
    let kept = holders.filter(|id| std::fs::read_to_string(dirs.inbox()).unwrap().contains(*id));
    result.check(kept.count() == 1, "the Node peer's own message is stored".to_owned());
    result
}

/// Marks a message as read while the message waits for the lock. Checks that the message does not become unread
/// again.
fn marked() -> LockResult {
    let mut result = LockResult::default();
    let temp = TempTeam::with_team(&["writer"]);
    let dirs = &temp.dirs;
    std::fs::write(dirs.inbox(), "[]").unwrap();
    std::fs::write(dirs.lock(), "").unwrap();
    timed_send(dirs, 0, &mut result);
    let reader = dirs.seat(READER, Durability::Process);
    let unread = || block_on(mail::inbox(&reader, &reader.name, InboxFilter::Unread)).unwrap();
    let shown: Vec<_> = unread().iter().map(|mail| mail.key).collect();
    std::fs::remove_file(dirs.lock()).unwrap();
    block_on(mail::mark(&reader, &shown, Mark::Read)).unwrap();
    let again = unread().iter().filter(|mail| shown.contains(&mail.key)).count();
    result.check(
        shown.len() == 1,
        format!("unread messages returned while a message waits for the lock: {}", shown.len()),
    );
    result.check(
        again == 0,
        format!("messages that were marked as read, but are unread again: {again}"),
    );
    result
}

/// Claims a task whose lock was abandoned.
fn task() -> LockResult {
    let mut result = LockResult::default();
    let temp = TempTeam::with_team(&["writer"]);
    let seat = temp.dirs.seat("writer", Durability::Process);
    let id = block_on(board::add(&seat, &plan(0))).unwrap();
    make(&temp.dirs.tasks().join(format!("{id}.json.lock")), None);
    let start = Instant::now();
    let claimed = block_on(board::claim(&seat, id));
    let took = start.elapsed();
    if let Err(error) = &claimed {
        result.note(format!("{error}"));
    }
    let text = format!("task claimed after {:.2} s: {}", took.as_secs_f64(), claimed.is_ok());
    result.check(took <= BOUND && claimed.is_ok(), text);
    result
}
