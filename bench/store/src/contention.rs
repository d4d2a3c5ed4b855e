//! Tests many writers on one inbox, together with a Node program that behaves like Claude Code.

use std::collections::HashMap;
use std::path::Path;

use brigade_files::Durability;

use crate::Length;
use crate::children::{ChildProcess, child};
use crate::figures::BenchReport;
use crate::fixtures::member;
use crate::node;
use crate::readers;
use crate::temp_team::{READER, TeamDirs, TempTeam, block_on, team};

/// The outcome for the messages of a group of senders.
#[derive(Debug, Default)]
struct SenderCounts {
    acked: usize,
    refused: usize,
    lost: usize,
    doubled: usize,
    unordered: usize,
}

/// The result of one run of senders and readers.
struct ContentionResult {
    ours: SenderCounts,
    peers: SenderCounts,
    reads: usize,
    torn: usize,
    polls: usize,
    polls_torn: usize,
}

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    readers::run(report, length);
    let modules = node::modules();
    let seconds = length.pick(2.0, 5.0);
    let eight = contend(&modules, 0, 8, seconds);
    let alone = contend(&modules, 0, 1, seconds);
    let mixed = contend(&modules, 8, 1, seconds);
    let ours = contend(&modules, 8, 0, seconds);
    println!("{seconds} s; 500-byte messages to one inbox; a reader parses the inbox in a loop");
    let columns = ["acked", "refused", "lost", "twice", "disorder", "kept/s", "reads", "torn"];
    println!("{:<34} {}", "", columns.map(|name| format!("{name:>8}")).join(" "));
    let line = |name: &str, counts: &SenderCounts, run: &ContentionResult| {
        let SenderCounts { acked, refused, lost, doubled, unordered } = counts;
        let rate = rate(counts, seconds);
        println!(
            "{name:<34} {acked:>8} {refused:>8} {lost:>8} {doubled:>8} {unordered:>8} {rate:>8.0} {:>8} {:>8}",
            run.reads, run.torn
        );
    };
    line("(a) eight Node peers", &eight.peers, &eight);
    line("(b) one Node peer", &alone.peers, &alone);
    line("(c) 8 brigade + 1 Node: brigade", &mixed.ours, &mixed);
    line("(c) 8 brigade + 1 Node: Node", &mixed.peers, &mixed);
    line("(d) eight brigade", &ours.ours, &ours);
    let SenderCounts { acked, refused, lost, doubled, unordered } = mixed.ours;
    report.check_none_of("our sends that failed", refused, acked + refused);
    report.check_none_of("our messages lost", lost, acked);
    report.check_zero("our messages stored twice", doubled);
    report.check_zero("our messages out of order", unordered);
    report.check_none_of("torn reads", mixed.torn, mixed.reads);
    let baseline = loss(&eight.peers).max(loss(&alone.peers));
    let text = format!(
        "acknowledged messages that Node peers lose: {:.2} % while brigade also writes, {:.2} % without brigade",
        loss(&mixed.peers) * 100.0,
        baseline * 100.0
    );
    report.check(loss(&mixed.peers) <= baseline, text);
    report.check_none_of(
        "torn reads by a Node program without a lock",
        mixed.polls_torn,
        mixed.polls,
    );
    let (us, them) = (rate(&mixed.ours, seconds), rate(&eight.peers, seconds));
    let text = format!(
        "our rate: {:.1} x the rate of eight Node peers (bar 3 x; {us:.0}/s, {them:.0}/s)",
        us / them
    );
    report.check_time(3.0 * them / us, text);
}

fn contend(modules: &Path, brigades: usize, peers: usize, seconds: f64) -> ContentionResult {
    let names: Vec<String> = (0..brigades).map(|number| format!("ours-{number}")).collect();
    let temp = TempTeam::with_team(&names.iter().map(String::as_str).collect::<Vec<_>>());
    std::fs::write(temp.dirs.inbox(), "[]").unwrap();
    let time = seconds.to_string();
    let reader = ChildProcess::start(&mut child("parse", &temp.dirs, &[&time]));
    let mut poller = node::peer(modules, "read", &temp.dirs.inbox(), "poller");
    let poller = ChildProcess::start(poller.arg(&time));
    let peers: Vec<(String, ChildProcess)> = (0..peers)
        .map(|number| {
            let name = format!("peer-{number}");
            let mut command = node::peer(modules, "append", &temp.dirs.inbox(), &name);
            (name, ChildProcess::start(command.arg(&time)))
        })
        .collect();
    let ours: Vec<(String, ChildProcess)> = names
        .into_iter()
        .map(|name| {
            let mut command = child("send", &temp.dirs, &[&name, "process", &time]);
            (name, ChildProcess::start(&mut command))
        })
        .collect();
    let finish = |all: Vec<(String, ChildProcess)>| -> Vec<(String, Vec<String>)> {
        all.into_iter().map(|(name, running)| (name, running.finish())).collect()
    };
    let (ours, peers) = (finish(ours), finish(peers));
    let (reads, torn) = read_counts(reader);
    let (polls, polls_torn) = read_counts(poller);
    let kept = kept(&temp.dirs);
    ContentionResult {
        ours: counts_of(&ours, &kept),
        peers: counts_of(&peers, &kept),
        reads,
        torn,
        polls,
        polls_torn,
    }
}

/// Returns the number of reads, and how many of them got a torn (partly written) file.
fn read_counts(reader: ChildProcess) -> (usize, usize) {
    let output = reader.finish();
    let mut numbers = output[0].split(' ').skip(1).map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Lets a new store read the inbox once. Then returns the message ids in the inbox file, with their positions.
fn kept(dirs: &TeamDirs) -> HashMap<String, Vec<usize>> {
    block_on(dirs.store(Durability::Process).inbox(&team(), &member(READER))).unwrap();
    let inbox = std::fs::read(dirs.inbox()).unwrap();
    let entries: Vec<serde_json::Value> = serde_json::from_slice(&inbox).unwrap();
    let mut kept: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        kept.entry(entry["msg_id"].as_str().unwrap().to_owned()).or_default().push(at);
    }
    kept
}

fn counts_of(
    senders: &[(String, Vec<String>)],
    kept: &HashMap<String, Vec<usize>>,
) -> SenderCounts {
    let mut counts = SenderCounts::default();
    for (_, lines) in senders {
        let mut last = None;
        for line in lines {
            let mut words = line.split(' ');
            match (words.next(), words.nth(1)) {
                (Some("acked"), Some(id)) => {
                    counts.acked += 1;
                    let positions = kept.get(id).map_or(&[][..], Vec::as_slice);
                    counts.lost += usize::from(positions.is_empty());
                    counts.doubled += usize::from(positions.len() > 1);
                    let first = positions.first().copied();
                    counts.unordered += usize::from(first.is_some() && first < last);
                    last = first.or(last);
                }
                _ => counts.refused += 1,
            }
        }
    }
    counts
}

fn loss(counts: &SenderCounts) -> f64 {
    if counts.acked == 0 { 0.0 } else { counts.lost as f64 / counts.acked as f64 }
}

fn rate(counts: &SenderCounts, seconds: f64) -> f64 {
    (counts.acked - counts.lost) as f64 / seconds
}
