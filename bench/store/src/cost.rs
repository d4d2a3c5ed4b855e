//! Measures the cost of store operations as the team grows, and the cost of the bare file operations.
//!
//! Store operations and bare file operations are measured alternately, so that noise affects both.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use brigade_core::board;
use brigade_core::event::MessageKey;
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_core::store::{Actor, Mark};
use brigade_files::Durability;

use crate::Length;
use crate::figures::{BenchReport, Times, heading, line};
use crate::fixtures::{LEAD, member, plan, text};
use crate::temp_team::{READER, TempTeam, block_on, send};

/// The measurements for one size of the history.
struct CostRow {
    name: String,
    times: Times,
}

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    sends(report, length);
    unread(report, length);
    tasks(report, length);
}

/// Measures, with each durability, a send to a mailbox that has a history of read messages.
fn sends(report: &mut BenchReport, length: Length) {
    let sizes = length.pick(&[10, 1_000, 10_000][..], &[10, 1_000, 10_000, 100_000]);
    let temps: Vec<TempTeam> = sizes.iter().map(|&size| with_history(size)).collect();
    let bare = TempTeam::new();
    for (durability, rounds) in
        [(Durability::Process, length.pick(200, 1_000)), (Durability::Power, length.pick(60, 300))]
    {
        let seats: Vec<Seat> = temps.iter().map(|p| p.dirs.seat("writer", durability)).collect();
        let reader: Vec<Seat> =
            temps.iter().map(|p| p.dirs.seat(READER, Durability::Process)).collect();
        let mut rows: Vec<CostRow> = sizes
            .iter()
            .map(|size| CostRow {
                name: format!("send, history of {size}"),
                times: Times::default(),
            })
            .collect();
        let mut least = Times::default();
        for round in 0..rounds {
            for ((row, seat), reader) in rows.iter_mut().zip(&seats).zip(&reader) {
                row.times.time(|| send(seat, round));
                read_all(reader);
            }
            let text = text("bare", round);
            least.time(|| replace(&bare.root, text.as_bytes(), durability));
        }
        heading(&format!("500-byte message, durability {durability:?}"));
        for row in &rows {
            line(&row.name, &row.times);
        }
        line("bare: temporary file + rename of one message", &least);
        let (first, last) = (rows[0].times.median(), rows[rows.len() - 1].times.median());
        let biggest = sizes[sizes.len() - 1];
        let what = format!("send, {durability:?}, history of {biggest} compared with 10");
        report.check_ratio(&what, last, 1.5, first);
        let what = format!(
            "send, {durability:?}, {biggest} messages in the history, compared with plain file writes"
        );
        report.check_ratio(&what, last, 2.5, least.median());
    }
}

/// Creates a team whose reader has a history of read messages.
fn with_history(size: usize) -> TempTeam {
    let temp = TempTeam::with_team(&["writer"]);
    let writer = temp.dirs.seat("writer", Durability::Process);
    let reader = temp.dirs.seat(READER, Durability::Process);
    for number in 0..size {
        send(&writer, number);
        if number % 16 == 15 {
            read_all(&reader);
        }
    }
    read_all(&reader);
    temp
}

/// Marks all messages as read.
pub(crate) fn read_all(reader: &Seat) {
    let unread = block_on(mail::inbox(reader, &reader.name, InboxFilter::Unread)).unwrap();
    let keys: Vec<MessageKey> = unread.iter().map(|mail| mail.key).collect();
    block_on(mail::mark(reader, &keys, Mark::Read)).unwrap();
}

/// Replaces a file atomically, with the fewest operations that the durability allows.
fn replace(dir: &Path, bytes: &[u8], durability: Durability) {
    let (temp, file) = (dir.join("bare.tmp"), dir.join("bare.json"));
    let mut out = File::create(&temp).unwrap();
    out.write_all(bytes).unwrap();
    if durability == Durability::Power {
        out.sync_all().unwrap();
    }
    drop(out);
    std::fs::rename(&temp, &file).unwrap();
    if durability == Durability::Power {
        File::open(dir).unwrap().sync_all().unwrap();
    }
}

/// Measures a send to an inbox with many unread messages, compared with copying the inbox file.
fn unread(report: &mut BenchReport, length: Length) {
    const MANY: usize = 10_000;
    let temp = TempTeam::with_team(&["writer"]);
    let copy: PathBuf = temp.root.join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(temp.dirs.inbox(), native_inbox(MANY)).unwrap();
    let writer = temp.dirs.seat("writer", Durability::Process);
    let (mut ours, mut least) = (Times::default(), Times::default());
    send(&writer, 0);
    for round in 1..=length.pick(20, 100) {
        ours.time(|| send(&writer, round));
        least.time(|| {
            let bytes = std::fs::read(temp.dirs.inbox()).unwrap();
            replace(&copy, &bytes, Durability::Process);
        });
    }
    heading("inbox of 10,000 unread");
    line("send", &ours);
    line("bare: read + temporary file + rename, whole inbox", &least);
    report.check_ratio(
        "send into 10,000 unread compared with bare",
        ours.median(),
        2.0,
        least.median(),
    );
    let left = block_on(mail::inbox(&writer, &member(READER), InboxFilter::Unread)).unwrap().len();
    let sent = MANY + 1 + length.pick(20, 100);
    report.check(left == sent, format!("unread messages after the sends: {left} of {sent}"));
}

/// Returns the content of an inbox in the format of newer Claude Code versions.
pub(crate) fn native_inbox(count: usize) -> Vec<u8> {
    let entry = |number: usize| {
        serde_json::json!({
            "from": "native", "text": text("native", number),
            "timestamp": "2026-01-01T00:00:00.000Z", "color": "blue", "read": false,
            "msgV": 1, "msg_id": format!("00000000-0000-4000-8000-{number:012}"),
            "type": "message",
        })
    };
    let entries: Vec<_> = (0..count).map(entry).collect();
    serde_json::to_vec_pretty(&entries).unwrap()
}

/// Measures adding, claiming, completing and listing tasks on boards of different sizes.
fn tasks(report: &mut BenchReport, length: Length) {
    let sizes = [10, 1_000, 10_000];
    let temps: Vec<TempTeam> = sizes.iter().map(|&size| with_tasks(size)).collect();
    let seats: Vec<Seat> = temps.iter().map(|p| p.dirs.seat(LEAD, Durability::Process)).collect();
    let names = ["add", "claim", "done"];
    let mut times: Vec<[Times; 3]> = sizes.iter().map(|_| Default::default()).collect();
    for round in 0..length.pick(200, 1_000) {
        for (seat, [add, claim, done]) in seats.iter().zip(&mut times) {
            let plan = plan(round);
            let id = add.time(|| block_on(board::add(seat, &plan))).unwrap();
            claim.time(|| block_on(board::claim(seat, id))).unwrap();
            done.time(|| block_on(board::done(seat, id))).unwrap();
            // Delete the new task, so that the board keeps its size.
            let by = Actor(seat.name.to_string());
            block_on(seat.store.delete_task(&seat.team, id, &by)).unwrap();
        }
    }
    heading("board");
    for (size, times) in sizes.iter().zip(&times) {
        for (name, times) in names.iter().zip(times) {
            line(&format!("{name}, {size} tasks"), times);
        }
    }
    for (at, name) in names.iter().enumerate() {
        let (small, big) = (times[0][at].median(), times[2][at].median());
        report.check_ratio(&format!("{name}, 10,000 tasks compared with 10"), big, 1.5, small);
    }
    lists(report, length, &temps[2], &seats[2]);
}

/// Measures listing all tasks, compared with reading all task files.
fn lists(report: &mut BenchReport, length: Length, temp: &TempTeam, seat: &Seat) {
    let [mut list, mut documents, mut least] = <[Times; 3]>::default();
    for _ in 0..length.pick(10, 50) {
        let listed = list.time(|| block_on(board::list(seat)).unwrap().0.len());
        documents.time(|| block_on(seat.store.tasks(&seat.team)).unwrap().len());
        let read = least.time(|| read_each(&temp.dirs.tasks()));
        assert_eq!(listed, read, "the list lacks tasks");
    }
    heading("all of 10,000 tasks");
    line("list, 10000 tasks", &list);
    line("of which Store::tasks: read and parsed", &documents);
    line("bare: read_dir + read of each file", &least);
    report.check_ratio(
        "list of 10,000 tasks compared with bare",
        list.median(),
        2.0,
        least.median(),
    );
}

fn read_each(dir: &Path) -> usize {
    let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let tasks = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    tasks.map(|path| std::fs::read(path).unwrap()).filter(|bytes| !bytes.is_empty()).count()
}

/// Creates a team with this many tasks. The lead adds them, because a member may add only 2,000.
fn with_tasks(size: usize) -> TempTeam {
    let temp = TempTeam::with_team(&[]);
    let seat = temp.dirs.seat(LEAD, Durability::Process);
    for number in 0..size {
        block_on(board::add(&seat, &plan(number))).unwrap();
    }
    temp
}
