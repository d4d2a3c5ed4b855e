//! A disk that fills up: what was acknowledged stays, what was refused was refused for that reason.

use std::collections::HashMap;

use brigade_core::mail::{self, Words};
use brigade_core::store::file::Durability;

use crate::children::{Running, child};
use crate::faults::chain;
use crate::figures::Report;
use crate::mount::Mount;
use crate::place::{Place, READER, block_on, text};

pub(crate) fn run(report: &mut Report) {
    for which in ["claude", "state"] {
        for size in ["128k", "300k"] {
            fill(report, which, size);
        }
    }
}

fn fill(report: &mut Report, which: &str, size: &str) {
    let what = format!("{which} on a full disk of {size}");
    let place = Place::new();
    let mount = Mount::memory(&place.root.join(which), size);
    place.spot.make_team(&["writer"]);
    let seat = place.spot.seat("writer", Durability::Process);
    let (mut acked, mut waits, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..1_200 {
        let text = text("writer", number);
        match block_on(mail::send(&seat, READER, Words { text: &text, summary: None })) {
            Ok(sent) => {
                acked.push(sent.receipt.msg_id);
                waits.extend(sent.receipt.waits.map(|why| chain(&why)));
            }
            Err(error) => errors.push(chain(&error)),
        }
    }
    let mut said: Vec<&String> = errors.iter().chain(&waits).collect();
    said.dedup();
    println!(
        "{what}: {} acked, of which {} wait, {} refused",
        acked.len(),
        waits.len(),
        errors.len()
    );
    println!("      {:?}", said.first());
    report.bar(!said.is_empty(), format!("{what}: said so"));
    let full = std::fs::read(place.spot.inbox()).unwrap();
    let whole = serde_json::from_slice::<Vec<serde_json::Value>>(&full).is_ok();
    report.bar(whole, format!("{what}: the inbox can be read while the disk is full"));
    mount.again("size=20m");
    // It keeps files of its own open.
    drop(seat);
    Running::start(&mut child("look", &place.spot, &[])).finish();
    let after = crate::faults::try_send(&place.spot, "after");
    report
        .bar(after == Ok(None), format!("{what}: with room again a send goes through: {after:?}"));
    let inbox = std::fs::read(place.spot.inbox()).unwrap();
    let entries: Vec<serde_json::Value> = serde_json::from_slice(&inbox).unwrap();
    let mut there: HashMap<&str, usize> = HashMap::new();
    for entry in &entries {
        *there.entry(entry["msg_id"].as_str().unwrap()).or_default() += 1;
    }
    let lost = acked.iter().filter(|id| !there.contains_key(id.as_str())).count();
    let twice = there.values().filter(|count| **count > 1).count();
    report.bar(lost == 0, format!("{what}: acked lost: {lost} of {}", acked.len()));
    report.bar(twice == 0, format!("{what}: there twice: {twice}"));
    let refused_but_there = there.len().saturating_sub(acked.len() + 1);
    report
        .bar(refused_but_there == 0, format!("{what}: refused and yet there: {refused_but_there}"));
    mount.unmount();
}
