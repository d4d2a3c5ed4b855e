//! Who may read what the store writes, whatever the umask.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brigade_core::board;
use brigade_core::store::file::Durability;
use rustix::fs::Mode;

use crate::children::{Running, child};
use crate::cost::plan;
use crate::faults::{as_nobody, mode};
use crate::figures::Report;
use crate::kill::walk;
use crate::place::{Place, Spot, block_on, send};

pub(crate) fn run(report: &mut Report) {
    for umask in ["000", "022", "077", "777"] {
        let place = Place::new();
        std::fs::create_dir_all(&place.spot.claude).unwrap();
        Running::start(&mut child("modes", &place.spot, &[umask])).finish();
        check(report, &format!("umask {umask}"), &place.spot);
        for kept in [0o600, 0o640, 0o644] {
            mode(&place.spot.inbox(), kept);
            Running::start(&mut child("modes", &place.spot, &[umask])).finish();
            let now = bits(&place.spot.inbox());
            report.bar(now == kept, format!("umask {umask}: inbox of {kept:o} is now {now:o}"));
        }
    }
    // To root every folder is open; to others not even one of their own without the right bits.
    let place = Place::new();
    let mut command = as_nobody(&place, "modes", &["077"]);
    mode(&place.root, 0o777);
    Running::start(&mut command).finish();
    mode(&place.root, 0o755);
    check(report, "umask 077, as nobody", &place.spot);
    let second = Place::new();
    for dir in [&second.spot.claude, &second.root.join("state")] {
        std::fs::create_dir_all(dir).unwrap();
        mode(dir, 0o777);
    }
    let said = Running::start(&mut as_nobody(&second, "own", &["777"])).finish().join(" ");
    report.bar(said == "made", format!("umask 777, as nobody, own folders can be used: {said}"));
}

fn check(report: &mut Report, what: &str, spot: &Spot) {
    let mut own = walk(&spot.state);
    own.push(spot.state.clone());
    let right = |path: &Path| bits(path) == if path.is_dir() { 0o700 } else { 0o600 };
    let wrong: Vec<String> = own
        .iter()
        .filter(|path| !right(path))
        .map(|path| format!("{} {:o}", path.display(), bits(path)))
        .collect();
    report.bar(
        wrong.is_empty(),
        format!("{what}: {} own files and folders closed {wrong:?}", own.len()),
    );
    let native: Vec<String> = walk(&spot.claude)
        .iter()
        .map(|path| format!("{} {:o}", path.file_name().unwrap().to_string_lossy(), bits(path)))
        .collect();
    println!("      native: {}", native.join(", "));
}

fn bits(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set(umask: &str) {
    rustix::process::umask(Mode::from_raw_mode(u32::from_str_radix(umask, 8).unwrap()));
}

/// Does a little of everything under this umask.
pub(crate) fn a_little(spot: &Spot, umask: &str) {
    set(umask);
    if !spot.inboxes().exists() {
        spot.make_team(&["writer"]);
    }
    let writer = spot.seat("writer", Durability::Process);
    send(&writer, 0);
    let id = block_on(board::add(&writer, &plan(0))).unwrap();
    block_on(board::claim(&writer, id)).unwrap();
}

/// Makes only what is brigade's own.
pub(crate) fn own(spot: &Spot, umask: &str) {
    set(umask);
    match block_on(spot.store(Durability::Process).history(&crate::place::team())) {
        Ok(_) => crate::children::say("made"),
        Err(error) => crate::children::say(&crate::faults::chain(&error)),
    }
}
