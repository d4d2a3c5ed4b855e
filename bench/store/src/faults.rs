//! What goes wrong around the store: it says what, and what was there stays as it was.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use brigade_core::mail::{self, Words};
use brigade_core::store::file::Durability;

use crate::Length;
use crate::children::Running;
use crate::cost::native_inbox;
use crate::figures::Report;
use crate::mount::{Mount, need_root};
use crate::place::{Place, READER, Spot, block_on, send};
use crate::{faults_files, faults_modes, faults_space};

/// Somebody who is not root.
pub(crate) const NOBODY: u32 = 65_534;

pub(crate) fn run(report: &mut Report, length: Length) {
    need_root();
    faults_modes::run(report);
    links_and_owners(report);
    no_access(report);
    read_only(report);
    faults_space::run(report);
    faults_files::run(report, length);
}

/// Sends once; the error with its causes, or why the message waits, if it does.
pub(crate) fn try_send(spot: &Spot, text: &str) -> Result<Option<String>, String> {
    let seat = spot.seat("writer", Durability::Process);
    match block_on(mail::send(&seat, READER, Words { text, summary: None })) {
        Ok(sent) => Ok(sent.receipt.waits.as_ref().map(|why| chain(why))),
        Err(error) => Err(chain(&error)),
    }
}

/// An error and what caused it, as a person would be shown it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Every file below a folder, with what is in it; links as what they point to.
pub(crate) fn snapshot(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths =
        crate::kill::walk(dir).into_iter().filter(|path| path.is_symlink() || path.is_file());
    let read = |path: PathBuf| {
        let bytes = match std::fs::read_link(&path) {
            Ok(target) => target.into_os_string().into_encoded_bytes(),
            Err(_) => std::fs::read(&path).unwrap(),
        };
        (path, bytes)
    };
    paths.map(read).collect()
}

/// A place with a little in it.
pub(crate) fn lived_in() -> Place {
    let place = Place::with_team(&["writer"]);
    std::fs::write(place.spot.inbox(), native_inbox(3)).unwrap();
    let writer = place.spot.seat("writer", Durability::Process);
    send(&writer, 0);
    place
}

/// A send that must be refused, and change nothing.
fn refused(
    report: &mut Report,
    what: &str,
    place: &Place,
    attempt: impl Fn() -> Result<Option<String>, String>,
) {
    let before = snapshot(&place.root);
    let said = attempt();
    println!("{what}\n      {said:?}");
    report.bar(said.is_err(), format!("{what}: refused"));
    let after = snapshot(&place.root);
    let changed: Vec<&PathBuf> = before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    report.bar(changed.is_empty(), format!("{what}: nothing changed {changed:?}"));
}

fn links_and_owners(report: &mut Report) {
    let place = lived_in();
    let spot = &place.spot;
    let elsewhere = place.root.join("elsewhere");
    let inbox = spot.inbox();
    std::fs::rename(&inbox, &elsewhere).unwrap();
    symlink(&elsewhere, &inbox).unwrap();
    refused(report, "inbox is a link", &place, || try_send(spot, "x"));
    std::fs::remove_file(&inbox).unwrap();
    std::fs::rename(&elsewhere, &inbox).unwrap();
    chown(&inbox, Some(NOBODY), Some(NOBODY)).unwrap();
    refused(report, "inbox of another user", &place, || try_send(spot, "x"));
    chown(&inbox, Some(0), Some(0)).unwrap();
    std::fs::rename(spot.inboxes(), &elsewhere).unwrap();
    symlink(&elsewhere, spot.inboxes()).unwrap();
    refused(report, "inboxes is a link", &place, || try_send(spot, "x"));
    std::fs::remove_file(spot.inboxes()).unwrap();
    std::fs::rename(&elsewhere, spot.inboxes()).unwrap();
    let mut journals = crate::kill::walk(&spot.state);
    journals.retain(|path| path.ends_with("mail/reader.jsonl"));
    let journal = &journals[0];
    std::fs::rename(journal, &elsewhere).unwrap();
    symlink(&elsewhere, journal).unwrap();
    refused(report, "journal is a link", &place, || try_send(spot, "x"));
    std::fs::remove_file(journal).unwrap();
    std::fs::rename(&elsewhere, journal).unwrap();
    chown(journal, Some(NOBODY), Some(NOBODY)).unwrap();
    refused(report, "journal of another user", &place, || try_send(spot, "x"));
    chown(journal, Some(0), Some(0)).unwrap();
    let well = try_send(spot, "x");
    report.bar(well == Ok(None), format!("afterwards a send goes through: {well:?}"));
}

/// This program as a child of somebody who is not root.
pub(crate) fn as_nobody(place: &Place, child: &str, args: &[&str]) -> Command {
    // Where this program stands may be closed to others.
    let program = place.root.join("brigade-bench-store");
    if !program.exists() {
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        mode(&program, 0o755);
        mode(&place.root, 0o755);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program);
    command.arg(format!("child-{child}")).arg(&place.spot.claude).arg(&place.spot.state).args(args);
    command
}

pub(crate) fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn no_access(report: &mut Report) {
    let place = lived_in();
    for path in crate::kill::walk(&place.root).iter().chain([&place.root]) {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let spot = &place.spot;
    let attempt = || {
        let said = Running::start(&mut as_nobody(&place, "try", &[])).finish().join(" ");
        if said.starts_with("acked") { Ok(Some(said)) } else { Err(said) }
    };
    let first = attempt();
    report.bar(first == Ok(Some("acked".to_owned())), format!("as nobody, all well: {first:?}"));
    let config = spot.inboxes().join("../config.json");
    let state = crate::kill::walk(&spot.state);
    let find = |end: &str| state.iter().find(|path| path.ends_with(end)).unwrap().clone();
    let cases = [
        ("inboxes not writable", spot.inboxes(), 0o555, 0o755),
        ("config not readable", config, 0o000, 0o644),
        ("journal not writable", find("mail/reader.jsonl"), 0o400, 0o600),
        ("state folder not writable or searchable", spot.state.clone(), 0o400, 0o700),
    ];
    for (what, path, closed, open) in cases {
        mode(&path, closed);
        refused(report, what, &place, attempt);
        mode(&path, open);
    }
    // This the store finds out when the message is safe already: it waits, and is not lost.
    mode(&spot.inbox(), 0o000);
    let before = snapshot(&spot.claude);
    let said = attempt();
    println!("inbox not readable\n      {said:?}");
    let waits = said.is_ok_and(|said| said.is_some_and(|said| said.contains("waits")));
    report.bar(waits, "inbox not readable: the message is safe and waits");
    report.bar(snapshot(&spot.claude) == before, "inbox not readable: it stays as it was");
    mode(&spot.inbox(), 0o644);
    let last = attempt();
    let texts = std::fs::read_to_string(spot.inbox()).unwrap().matches(r#""text": "x""#).count();
    report.bar(texts == 3, format!("all three that were acknowledged are there: {texts}"));
    report.bar(last == Ok(Some("acked".to_owned())), format!("afterwards: {last:?}"));
}

fn read_only(report: &mut Report) {
    for which in ["claude", "state"] {
        let place = Place::new();
        let mount = Mount::memory(&place.root.join(which), "10m");
        place.spot.make_team(&["writer"]);
        try_send(&place.spot, "before").unwrap();
        mount.again("ro");
        refused(report, &format!("{which} on a read-only file system"), &place, || {
            try_send(&place.spot, "x")
        });
        mount.again("rw");
        let well = try_send(&place.spot, "after");
        report.bar(well == Ok(None), format!("afterwards a send goes through: {well:?}"));
        mount.unmount();
    }
}
