//! Tests faults in the environment of the store. Checks that the store reports an error and changes nothing.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use brigade_files::Durability;

use crate::Length;
use crate::children::ChildProcess;
use crate::cost::native_inbox;
use crate::figures::BenchReport;
use crate::mount::{Mount, need_root};
use crate::temp_team::{READER, TeamDirs, TempTeam, send, send_text};
use crate::{faults_files, faults_modes, faults_space};

/// The id of a user that is not root.
pub(crate) const UNPRIVILEGED: u32 = 65_534;

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    need_root();
    faults_modes::run(report);
    links_and_owners(report);
    no_access(report);
    read_only(report);
    faults_space::run(report);
    faults_files::run(report, length);
}

/// Sends a message. If the send fails, returns `Err` with the error and its causes. If the message is not in the
/// inbox yet, returns the reason.
pub(crate) fn try_send(dirs: &TeamDirs, text: &str) -> Result<Option<String>, String> {
    let seat = dirs.seat("writer", Durability::Process);
    match send_text(&seat, READER, text) {
        Ok(sent) => Ok(sent.receipt.pending.as_ref().map(|why| chain(why))),
        Err(error) => Err(chain(&error)),
    }
}

/// Returns the texts of an error and its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Returns the content of every file in a folder. For a symbolic link, returns its target.
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

/// Creates a team with some messages.
pub(crate) fn used_team() -> TempTeam {
    let temp = TempTeam::with_team(&["writer"]);
    std::fs::write(temp.dirs.inbox(), native_inbox(3)).unwrap();
    let writer = temp.dirs.seat("writer", Durability::Process);
    send(&writer, 0);
    temp
}

/// Checks that a send fails and changes no file.
fn refused(
    report: &mut BenchReport,
    what: &str,
    temp: &TempTeam,
    attempt: impl Fn() -> Result<Option<String>, String>,
) {
    let before = snapshot(&temp.root);
    let result = attempt();
    println!("{what}\n      {result:?}");
    report.check(result.is_err(), format!("{what}: a send fails"));
    let after = snapshot(&temp.root);
    let changed: Vec<&PathBuf> = before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    report.check(changed.is_empty(), format!("{what}: a send changes nothing {changed:?}"));
}

fn links_and_owners(report: &mut BenchReport) {
    let temp = used_team();
    let dirs = &temp.dirs;
    let journals = crate::kill::walk(&dirs.state);
    let journal = journals.iter().find(|path| path.ends_with("mail/reader.jsonl")).unwrap();
    let elsewhere = temp.root.join("elsewhere");
    for (what, path) in
        [("inbox", &dirs.inbox()), ("inboxes", &dirs.inboxes()), ("journal", journal)]
    {
        std::fs::rename(path, &elsewhere).unwrap();
        symlink(&elsewhere, path).unwrap();
        refused(report, &format!("{what} is a link"), &temp, || try_send(dirs, "x"));
        std::fs::remove_file(path).unwrap();
        std::fs::rename(&elsewhere, path).unwrap();
    }
    for (what, path) in [("inbox", &dirs.inbox()), ("journal", journal)] {
        chown(path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        refused(report, &format!("{what} of another user"), &temp, || try_send(dirs, "x"));
        chown(path, Some(0), Some(0)).unwrap();
    }
    let well = try_send(dirs, "x");
    report.check(well == Ok(None), format!("afterwards a send succeeds: {well:?}"));
}

/// Returns the command that runs this program as a child process, as a user other than root.
pub(crate) fn as_unprivileged(temp: &TempTeam, child: &str, args: &[&str]) -> Command {
    // Copy the program, because other users might lack permission to read the original file.
    let program = temp.root.join("brigade-bench-store");
    if !program.exists() {
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        mode(&program, 0o755);
        mode(&temp.root, 0o755);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program);
    command.arg(format!("child-{child}")).arg(&temp.dirs.claude).arg(&temp.dirs.state).args(args);
    command
}

pub(crate) fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn no_access(report: &mut BenchReport) {
    let temp = used_team();
    for path in crate::kill::walk(&temp.root).iter().chain([&temp.root]) {
        chown(path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    }
    let dirs = &temp.dirs;
    let attempt = || {
        let result =
            ChildProcess::start(&mut as_unprivileged(&temp, "try", &[])).finish().join(" ");
        if result.starts_with("acked") { Ok(Some(result)) } else { Err(result) }
    };
    let first = attempt();
    report.check(
        first == Ok(Some("acked".to_owned())),
        format!("a send as another user succeeds: {first:?}"),
    );
    let config = dirs.inboxes().join("../config.json");
    let state = crate::kill::walk(&dirs.state);
    let find = |end: &str| state.iter().find(|path| path.ends_with(end)).unwrap().clone();
    let cases = [
        ("inboxes not writable", dirs.inboxes(), 0o555, 0o755),
        ("config not readable", config, 0o000, 0o644),
        ("journal not writable", find("mail/reader.jsonl"), 0o400, 0o600),
        ("state folder not writable or searchable", dirs.state.clone(), 0o400, 0o700),
    ];
    for (what, path, closed, open) in cases {
        mode(&path, closed);
        refused(report, what, &temp, attempt);
        mode(&path, open);
    }
    // The store writes the message to the journal before it opens the inbox. If the store cannot read the
    // inbox, the message stays in the journal and is not lost.
    mode(&dirs.inbox(), 0o000);
    let before = snapshot(&dirs.claude);
    let result = attempt();
    println!("inbox not readable\n      {result:?}");
    let waits = result.is_ok_and(|result| result.is_some_and(|result| result.contains("waits")));
    report.check(waits, "inbox not readable: the message waits in the journal");
    report.check(snapshot(&dirs.claude) == before, "inbox not readable: the inbox is unchanged");
    mode(&dirs.inbox(), 0o644);
    let last = attempt();
    let texts = std::fs::read_to_string(dirs.inbox()).unwrap().matches(r#""text": "x""#).count();
    report.check(texts == 3, format!("all three acknowledged messages are stored: {texts}"));
    report.check(
        last == Ok(Some("acked".to_owned())),
        format!("inbox readable again: a send succeeds: {last:?}"),
    );
}

fn read_only(report: &mut BenchReport) {
    for which in ["claude", "state"] {
        let temp = TempTeam::new();
        let mount = Mount::memory(&temp.root.join(which), "10m");
        temp.dirs.make_team(&["writer"]);
        try_send(&temp.dirs, "before").unwrap();
        mount.remount("ro");
        refused(report, &format!("{which} on a read-only file system"), &temp, || {
            try_send(&temp.dirs, "x")
        });
        mount.remount("rw");
        let well = try_send(&temp.dirs, "after");
        report.check(well == Ok(None), format!("afterwards a send succeeds: {well:?}"));
        mount.unmount();
    }
}
