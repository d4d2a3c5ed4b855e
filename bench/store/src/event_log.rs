//! Measures the event log of a long journal: the time and memory to read the whole journal, and the CPU time to
//! follow a thousand new records per second.
//!
//! The reader is a separate process that only counts records.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brigade_core::clock::{Clock, SystemClock};
use brigade_core::event::{Event, MessageKey, UncheckedRecord, WorkEvent, one_line};
use brigade_core::store::Actor;
use brigade_files::{Durability, claude_dir_key};

use crate::Length;
use crate::children::{ChildProcess, child, print_line};
use crate::figures::{BenchReport, Times, heading, line};
use crate::in_process::{CpuTime, memory};
use crate::temp_team::{TEAM, TeamDirs, TempTeam, block_on, team};

const MEMBERS: [&str; 10] = ["ada", "ben", "cleo", "dan", "eve", "finn", "gus", "hal", "ida", "jo"];
/// How many new records are written per second.
const RATE: u32 = 1_000;

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let count = length.pick(100_000, 1_000_000);
    let rounds = length.pick(5, 7);
    let temp = TempTeam::with_team(&MEMBERS);
    let paths = JournalWriter::new(&temp.dirs).write(count);
    let bytes: u64 = paths.iter().map(|path| path.metadata().unwrap().len()).sum();
    println!("{count} records, {} MB in {} journals", bytes >> 20, paths.len());
    let [mut least, mut feed] = <[Times; 2]>::default();
    let (mut most, mut busy) = (0, 0);
    for _ in 0..rounds {
        let lines = least.time(|| paths.iter().map(|path| count_lines(path)).sum::<usize>());
        let reader = ChildProcess::start(&mut child("event-log", &temp.dirs, &[]));
        reader.wait_for("heard");
        let output = reader.kill();
        let heard = output.iter().find(|line| line.starts_with("heard")).unwrap();
        let [records, micros, grown, cpu] = numbers(heard);
        // There are more records than `count`, because creating the team also wrote some.
        assert!(records >= count && records <= lines, "read {records} of {count}");
        feed.push(Duration::from_micros(micros as u64));
        (most, busy) = (most.max(grown), busy.max(cpu));
    }
    heading("the whole journal, from the call to the last record");
    line("event log", &feed);
    line("bare: read and split into lines", &least);
    println!("at most {busy} ms of CPU time; memory grew by at most {most} KiB");
    report.check_ratio("event log compared with bare", feed.median(), 12.0, least.median());
    if length == Length::Long {
        let seconds = feed.median() / 1e6;
        report.check_time(seconds / 0.7, format!("all records read in {seconds:.2} s (bar 0.7 s)"));
    }
    report.check(most < 40 << 10, format!("memory grew by {} MiB (must be below 40)", most >> 10));
    live(report, length, &temp);
}

/// Measures the CPU time to follow new records.
fn live(report: &mut BenchReport, length: Length, temp: &TempTeam) {
    let seconds = length.pick(3, 10);
    let store = temp.dirs.store(Durability::Process);
    let reader = ChildProcess::start(&mut child("event-log", &temp.dirs, &[]));
    reader.wait_for("heard");
    let start = Instant::now();
    let count = seconds * RATE;
    for number in 0..count {
        let due = start + Duration::from_secs(1) * number / RATE;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let number = number as usize;
        let name = MEMBERS[number % MEMBERS.len()];
        let event = Event::Worked { name: name.into(), act: act(number) };
        block_on(store.record(&team(), event, &Actor(name.into()))).unwrap();
    }
    let took = start.elapsed();
    let last =
        Event::Worked { name: "ada".into(), act: WorkEvent::Said { text: "the last".into() } };
    block_on(store.record(&team(), last, &Actor("ada".into()))).unwrap();
    reader.wait_for("after");
    let output = reader.kill();
    let after = output.iter().find(|line| line.starts_with("after")).unwrap();
    let [records, cpu, twice] = numbers(after);
    let share = cpu as f64 / took.as_millis() as f64;
    let rate = f64::from(count) / took.as_secs_f64();
    println!(
        "{rate:.0} records/s for {:.1} s: {:.1} % of a core",
        took.as_secs_f64(),
        share * 100.0
    );
    let sent = count as usize + 1;
    report.check(
        records == sent && twice == 0,
        format!("records received: {records} of {sent}; received twice: {twice}"),
    );
    report.check_time(share / 0.1, format!("{:.1} % of a core (bar 10 %)", share * 100.0));
}

fn numbers<const N: usize>(line: &str) -> [usize; N] {
    let numbers: Vec<usize> =
        line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// Reads the event log, in a child process. Prints the number of records, the duration in microseconds, the memory
/// growth in KiB and the CPU time in milliseconds. Then follows new records, and prints their figures at the end.
pub(crate) fn read(dirs: &TeamDirs) {
    block_on(async {
        let store = dirs.store(Durability::Process);
        let (before, used) = (memory("VmHWM:"), CpuTime::now());
        let (mut stream, lookup) = store.event_stream(&team()).await.unwrap();
        let mut records = 0;
        let mut one = None;
        while let Some(batch) = stream.next().await {
            records += batch.records.len();
            one = batch.records.first().map(|(place, record)| (*place, record.at)).or(one);
            if batch.caught_up {
                break;
            }
        }
        let (took, busy) = used.since();
        let (place, at) = one.unwrap();
        assert_eq!(lookup.record(place).unwrap().at, at, "the lookup returned another record");
        let grown = memory("VmHWM:") - before;
        print_line(&format!("heard {records} {:.0} {grown:.0} {:.0}", took * 1e6, busy * 1e3));
        let used = CpuTime::now();
        let mut heard = HashMap::new();
        while let Some(batch) = stream.next().await {
            for (place, record) in batch.records {
                *heard.entry(place).or_insert(0) += 1;
                if let Event::Worked { act: WorkEvent::Said { text }, .. } = &record.event
                    && text == "the last"
                {
                    let twice = heard.values().filter(|&&times| times > 1).count();
                    print_line(&format!(
                        "after {} {:.0} {twice}",
                        heard.len(),
                        used.since().1 * 1e3
                    ));
                }
            }
        }
    });
}

/// Reads the file and counts its lines: the least work that any reader of all records must do.
fn count_lines(path: &Path) -> usize {
    let mut file = File::open(path).unwrap();
    let mut piece = vec![0; 1 << 20];
    let mut lines = 0;
    loop {
        let read = file.read(&mut piece).unwrap();
        if read == 0 {
            return lines;
        }
        lines += piece[..read].iter().filter(|&&byte| byte == b'\n').count();
    }
}

/// Writes long journals for the team.
struct JournalWriter {
    own: PathBuf,
    open: HashMap<PathBuf, BufWriter<File>>,
}

impl JournalWriter {
    fn new(dirs: &TeamDirs) -> Self {
        let own = dirs.state.join("files").join(claude_dir_key(&dirs.claude)).join(TEAM);
        Self { own, open: HashMap::new() }
    }

    /// Writes `count` records of a team of ten: messages, read and shown events, tasks and work events. Returns
    /// the paths of the journals.
    fn write(mut self, count: usize) -> Vec<PathBuf> {
        let step = Duration::from_millis(50);
        let start = SystemClock.now() - step * u32::try_from(count).unwrap();
        for number in 0..count {
            let at = start + step * u32::try_from(number).unwrap();
            let (turn, of) = (number / 20, number % 5);
            let to = MEMBERS[(turn * 5 + of) % MEMBERS.len()];
            let key = MessageKey::from_id(&format!("{turn}-{of}"));
            let (journal, by, event) = match number % 20 {
                0..=4 => {
                    let from = MEMBERS[(turn + of * 3 + 1) % MEMBERS.len()];
                    let message = one_line(message(number, from).as_bytes());
                    let to = to.to_owned();
                    let event =
                        Event::Sent { to, key, team_created: 1, power_safe: false, message };
                    ("mail", from, event)
                }
                5..=9 => ("mail", to, Event::Read { to: to.into(), key, gone: false }),
                10..=14 => ("mail", to, Event::Shown { to: to.into(), key }),
                15..=17 => {
                    let id = number as u64 / 50 + 1;
                    ("", to, Event::Task { id, task: one_line(task(id, to).as_bytes()) })
                }
                _ => ("work", to, Event::Worked { name: to.into(), act: act(number) }),
            };
            self.append(journal, to, &UncheckedRecord { at, by: Some(by.into()), event });
        }
        let paths = self.open.keys().cloned().collect();
        for (_, journal) in self.open {
            journal.into_inner().unwrap();
        }
        paths
    }

    fn append(&mut self, folder: &str, of: &str, record: &UncheckedRecord) {
        let path = match folder {
            "" => self.own.join("team.jsonl"),
            folder => self.own.join(folder).join(format!("{of}.jsonl")),
        };
        let journal = self.open.entry(path).or_insert_with_key(|path| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            BufWriter::new(OpenOptions::new().append(true).create(true).open(path).unwrap())
        });
        journal.write_all(b"\n").unwrap();
        serde_json::to_writer(&mut *journal, record).unwrap();
        journal.write_all(b"\n").unwrap();
    }
}

fn message(number: usize, from: &str) -> String {
    let text =
        format!("{:.<150}", format!("the parser passes case {number}; the next is the printer "));
    format!(
        r#"{{"from":"{from}","text":"{text}","timestamp":"2026-11-15T12:00:00.000Z","read":false,"msg_id":"{number:08}-0000-4000-8000-000000000000"}}"#
    )
}

fn task(id: u64, owner: &str) -> String {
    let about = format!("{:.<120}", format!("case {id} of the printer "));
    format!(
        r#"{{"id":"{id}","subject":"task {id}","description":"{about}","status":"in_progress","owner":"{owner}","blocks":[],"blockedBy":[]}}"#
    )
}

fn act(number: usize) -> WorkEvent {
    match number % 3 {
        0 => WorkEvent::Said { text: format!("I am reading case {number} of the parser now.") },
        1 => WorkEvent::ToolStarted {
            id: format!("call_{number}"),
            tool: "Bash".into(),
            about: "cargo test -p parser".into(),
        },
        _ => WorkEvent::ToolEnded { id: format!("call_{}", number - 1), ok: true },
    }
}
