//! Tests a full disk. Checks that acknowledged messages are kept, and that errors name the cause.

use std::collections::HashMap;

use brigade_files::Durability;

use crate::children::{ChildProcess, child};
use crate::faults::chain;
use crate::figures::BenchReport;
use crate::fixtures::text;
use crate::mount::Mount;
use crate::temp_team::{READER, TempTeam, send_text};

pub(crate) fn run(report: &mut BenchReport) {
    for which in ["claude", "state"] {
        for size in ["128k", "300k"] {
            fill(report, which, size);
        }
    }
}

fn fill(report: &mut BenchReport, which: &str, size: &str) {
    let what = format!("{which} on a full disk of {size}");
    let temp = TempTeam::new();
    let mount = Mount::memory(&temp.root.join(which), size);
    temp.dirs.make_team(&["writer"]);
    let seat = temp.dirs.seat("writer", Durability::Process);
    let (mut acked, mut waits, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..1_200 {
        match send_text(&seat, READER, &text("writer", number)) {
            Ok(sent) => {
                acked.push(sent.receipt.msg_id);
                waits.extend(sent.receipt.pending.map(|why| chain(&why)));
            }
            Err(error) => errors.push(chain(&error)),
        }
    }
    let mut reasons: Vec<&String> = errors.iter().chain(&waits).collect();
    reasons.dedup();
    println!(
        "{what}: {} acknowledged, of which {} wait, {} failed",
        acked.len(),
        waits.len(),
        errors.len()
    );
    println!("      {:?}", reasons.first());
    report.check(!reasons.is_empty(), format!("{what}: the store reports errors"));
    let full = std::fs::read(temp.dirs.inbox()).unwrap();
    let whole = serde_json::from_slice::<Vec<serde_json::Value>>(&full).is_ok();
    report.check(whole, format!("{what}: the inbox can be read while the disk is full"));
    mount.remount("size=20m");
    // Drop the seat: its store has open files, and unmounting the disk would fail.
    drop(seat);
    ChildProcess::start(&mut child("read-all", &temp.dirs, &[])).finish();
    let after = crate::faults::try_send(&temp.dirs, "after");
    report.check(
        after == Ok(None),
        format!("{what}: a send succeeds when there is space again: {after:?}"),
    );
    let inbox = std::fs::read(temp.dirs.inbox()).unwrap();
    let entries: Vec<serde_json::Value> = serde_json::from_slice(&inbox).unwrap();
    let mut there: HashMap<&str, usize> = HashMap::new();
    for entry in &entries {
        *there.entry(entry["msg_id"].as_str().unwrap()).or_default() += 1;
    }
    let lost = acked.iter().filter(|id| !there.contains_key(id.as_str())).count();
    let twice = there.values().filter(|count| **count > 1).count();
    report.check_none_of(
        format!("{what}: messages that were acknowledged, but are lost"),
        lost,
        acked.len(),
    );
    report.check_zero(format!("{what}: messages stored twice"), twice);
    let refused_but_there = there.len().saturating_sub(acked.len() + 1);
    report.check_zero(
        format!("{what}: messages stored although their send failed"),
        refused_but_there,
    );
    mount.unmount();
}
