//! Many writers on one inbox, beside a program that behaves as Claude Code does.

use std::collections::HashMap;
use std::path::Path;

use brigade_core::store::file::Durability;

use crate::Length;
use crate::children::{Running, child};
use crate::figures::Report;
use crate::node;
use crate::place::{Place, READER, Spot, block_on, member, team};
use crate::readers;

/// What one sender said and what became of it.
#[derive(Debug, Default)]
struct Tally {
    acked: usize,
    refused: usize,
    lost: usize,
    doubled: usize,
    unordered: usize,
}

/// What a run came to.
struct Outcome {
    ours: Tally,
    peers: Tally,
    reads: usize,
    torn: usize,
    polls: usize,
    polls_torn: usize,
}

pub(crate) fn run(report: &mut Report, length: Length) {
    readers::run(report, length);
    let modules = node::modules();
    let seconds = length.of(2.0, 5.0);
    let eight = contend(&modules, 0, 8, seconds);
    let alone = contend(&modules, 0, 1, seconds);
    let mixed = contend(&modules, 8, 1, seconds);
    let ours = contend(&modules, 8, 0, seconds);
    println!("one inbox, {seconds} s, 500-byte messages, a reader parsing it all the time");
    let columns = ["acked", "refused", "lost", "twice", "disorder", "kept/s", "reads", "torn"];
    println!("{:<34} {}", "", columns.map(|name| format!("{name:>8}")).join(" "));
    let line = |name: &str, tally: &Tally, run: &Outcome| {
        let Tally { acked, refused, lost, doubled, unordered } = tally;
        let rate = rate(tally, seconds);
        println!(
            "{name:<34} {acked:>8} {refused:>8} {lost:>8} {doubled:>8} {unordered:>8} {rate:>8.0} {:>8} {:>8}",
            run.reads, run.torn
        );
    };
    line("(a) eight Node peers", &eight.peers, &eight);
    line("(b) one Node peer", &alone.peers, &alone);
    line("(c) eight brigade, beside one peer", &mixed.ours, &mixed);
    line("(c) one Node peer, beside eight", &mixed.peers, &mixed);
    line("(d) eight brigade, for comparison", &ours.ours, &ours);
    let Tally { acked, refused, lost, doubled, unordered } = mixed.ours;
    report.bar(refused == 0, format!("ours refused: {refused} of {}", acked + refused));
    report.bar(lost == 0, format!("ours lost: {lost} of {acked}"));
    report.bar(doubled == 0, format!("ours there twice: {doubled}"));
    report.bar(unordered == 0, format!("ours out of their sender's order: {unordered}"));
    report.bar(mixed.torn == 0, format!("torn reads: {} of {}", mixed.torn, mixed.reads));
    let baseline = loss(&eight.peers).max(loss(&alone.peers));
    let text = format!(
        "the peer's acknowledged that are lost: {:.2} % beside us, {:.2} % among itself",
        loss(&mixed.peers) * 100.0,
        baseline * 100.0
    );
    report.bar(loss(&mixed.peers) <= baseline, text);
    let polls =
        format!("Node's readFile without a lock, torn: {} of {}", mixed.polls_torn, mixed.polls);
    report.bar(mixed.polls_torn == 0, polls);
    let (us, them) = (rate(&mixed.ours, seconds), rate(&eight.peers, seconds));
    let text =
        format!("our rate: {:.1} x eight Node peers' (bar 3 x; {us:.0}/s, {them:.0}/s)", us / them);
    report.timing(3.0 * them / us, text);
}

fn contend(modules: &Path, brigades: usize, peers: usize, seconds: f64) -> Outcome {
    let names: Vec<String> = (0..brigades).map(|number| format!("ours-{number}")).collect();
    let place = Place::with_team(&names.iter().map(String::as_str).collect::<Vec<_>>());
    std::fs::write(place.spot.inbox(), "[]").unwrap();
    let time = seconds.to_string();
    let reader = Running::start(&mut child("parse", &place.spot, &[&time]));
    let mut poller = node::peer(modules, "read", &place.spot.inbox(), "poller");
    let poller = Running::start(poller.arg(&time));
    let peers: Vec<(String, Running)> = (0..peers)
        .map(|number| {
            let name = format!("peer-{number}");
            let mut command = node::peer(modules, "append", &place.spot.inbox(), &name);
            (name, Running::start(command.arg(&time)))
        })
        .collect();
    let ours: Vec<(String, Running)> = names
        .into_iter()
        .map(|name| {
            let mut command = child("send", &place.spot, &[&name, "process", &time]);
            (name, Running::start(&mut command))
        })
        .collect();
    let finish = |all: Vec<(String, Running)>| -> Vec<(String, Vec<String>)> {
        all.into_iter().map(|(name, running)| (name, running.finish())).collect()
    };
    let (ours, peers) = (finish(ours), finish(peers));
    let (reads, torn) = counts(reader);
    let (polls, polls_torn) = counts(poller);
    let kept = kept(&place.spot);
    Outcome {
        ours: tally(&ours, &kept),
        peers: tally(&peers, &kept),
        reads,
        torn,
        polls,
        polls_torn,
    }
}

/// How often a reader looked, and how often at something torn.
fn counts(reader: Running) -> (usize, usize) {
    let said = reader.finish();
    let mut numbers = said[0].split(' ').skip(1).map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// The ids in the inbox with their places, after one more look by a fresh store.
fn kept(spot: &Spot) -> HashMap<String, Vec<usize>> {
    block_on(spot.store(Durability::Process).inbox(&team(), &member(READER))).unwrap();
    let inbox = std::fs::read(spot.inbox()).unwrap();
    let entries: Vec<serde_json::Value> = serde_json::from_slice(&inbox).unwrap();
    let mut kept: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        kept.entry(entry["msg_id"].as_str().unwrap().to_owned()).or_default().push(at);
    }
    kept
}

fn tally(senders: &[(String, Vec<String>)], kept: &HashMap<String, Vec<usize>>) -> Tally {
    let mut tally = Tally::default();
    for (_, lines) in senders {
        let mut last = None;
        for line in lines {
            let mut words = line.split(' ');
            match (words.next(), words.nth(1)) {
                (Some("acked"), Some(id)) => {
                    tally.acked += 1;
                    let places = kept.get(id).map_or(&[][..], Vec::as_slice);
                    tally.lost += usize::from(places.is_empty());
                    tally.doubled += usize::from(places.len() > 1);
                    let place = places.first().copied();
                    tally.unordered += usize::from(place.is_some() && place < last);
                    last = place.or(last);
                }
                _ => tally.refused += 1,
            }
        }
    }
    tally
}

fn loss(tally: &Tally) -> f64 {
    if tally.acked == 0 { 0.0 } else { tally.lost as f64 / tally.acked as f64 }
}

fn rate(tally: &Tally, seconds: f64) -> f64 {
    (tally.acked - tally.lost) as f64 / seconds
}
