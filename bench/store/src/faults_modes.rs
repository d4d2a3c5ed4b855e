//! Tests the permissions of the files that the store writes, with several umasks.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brigade_core::board;
use brigade_files::Durability;
use rustix::fs::Mode;

use crate::children::{ChildProcess, child};
use crate::faults::{as_unprivileged, mode};
use crate::figures::BenchReport;
use crate::fixtures::plan;
use crate::kill::walk;
use crate::temp_team::{TeamDirs, TempTeam, block_on, send};

pub(crate) fn run(report: &mut BenchReport) {
    for umask in ["000", "022", "077", "777"] {
        let temp = TempTeam::new();
        std::fs::create_dir_all(&temp.dirs.claude).unwrap();
        ChildProcess::start(&mut child("modes", &temp.dirs, &[umask])).finish();
        check(report, &format!("umask {umask}"), &temp.dirs);
        for kept in [0o600, 0o640, 0o644] {
            mode(&temp.dirs.inbox(), kept);
            ChildProcess::start(&mut child("modes", &temp.dirs, &[umask])).finish();
            let now = bits(&temp.dirs.inbox());
            report.check(
                now == kept,
                format!("umask {umask}: an inbox with mode {kept:o} now has mode {now:o}"),
            );
        }
    }
    // Repeat the test as another user, because file permissions do not restrict root.
    let temp = TempTeam::new();
    let mut command = as_unprivileged(&temp, "modes", &["077"]);
    mode(&temp.root, 0o777);
    ChildProcess::start(&mut command).finish();
    mode(&temp.root, 0o755);
    check(report, "umask 077, as another user", &temp.dirs);
    let second = TempTeam::new();
    for dir in [&second.dirs.claude, &second.root.join("state")] {
        std::fs::create_dir_all(dir).unwrap();
        mode(dir, 0o777);
    }
    let output =
        ChildProcess::start(&mut as_unprivileged(&second, "own", &["777"])).finish().join(" ");
    report.check(
        output == "made",
        format!(
            "umask 777, as another user: brigade can use the folders that it creates: {output}"
        ),
    );
}

fn check(report: &mut BenchReport, what: &str, dirs: &TeamDirs) {
    let mut own = walk(&dirs.state);
    own.push(dirs.state.clone());
    let right = |path: &Path| bits(path) == if path.is_dir() { 0o700 } else { 0o600 };
    let wrong: Vec<String> = own
        .iter()
        .filter(|path| !right(path))
        .map(|path| format!("{} {:o}", path.display(), bits(path)))
        .collect();
    report.check(
        wrong.is_empty(),
        format!(
            "{what}: all {} of brigade's own files and folders are private {wrong:?}",
            own.len()
        ),
    );
    let native: Vec<String> = walk(&dirs.claude)
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

/// Sets this umask, sends a message, and adds and claims a task. Runs in a child process.
pub(crate) fn use_store(dirs: &TeamDirs, umask: &str) {
    set(umask);
    if !dirs.inboxes().exists() {
        dirs.make_team(&["writer"]);
    }
    let writer = dirs.seat("writer", Durability::Process);
    send(&writer, 0);
    let id = block_on(board::add(&writer, &plan(0))).unwrap();
    block_on(board::claim(&writer, id)).unwrap();
}

/// Sets this umask, and creates only brigade's own folders. Runs in a child process.
pub(crate) fn use_own_folders(dirs: &TeamDirs, umask: &str) {
    set(umask);
    match block_on(dirs.store(Durability::Process).history(&crate::temp_team::team())) {
        Ok(_) => crate::children::print_line("made"),
        Err(error) => crate::children::print_line(&crate::faults::chain(&error)),
    }
}
