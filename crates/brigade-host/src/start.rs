//! How a process that plays a member is started, and the supervising one.
//!
//! Each makes a session of its own as its first step, so that nothing that happens to whoever started
//! it happens to it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;

use brigade_wire::name::TeamName;
use tokio::process::{Child, Command};

use crate::registry::Registry;
use crate::spec::{MemberSpec, Place};
use crate::tmux::Tmux;

/// A log that is longer than this is shortened.
const LONGEST_LOG: u64 = 1 << 20;
/// What is left of it at most.
const LAST_WORDS: i64 = 1 << 18;

/// What the house is started with again: the same folders, whatever the variables say.
#[derive(Clone, Debug)]
pub struct SelfCommand {
    /// This program.
    pub program: OsString,
    /// Its global options.
    pub options: Vec<OsString>,
}

impl SelfCommand {
    fn words(&self, command: &[&str]) -> Vec<OsString> {
        let command = command.iter().map(OsString::from);
        [self.program.clone()].into_iter().chain(self.options.clone()).chain(command).collect()
    }
}

/// Starts the process that plays a member. It is known by the seat it takes; the child is only for
/// being waited for, where it is one of ours.
pub fn member(
    again: &SelfCommand,
    folder: &Registry,
    team: &TeamName,
    spec: &MemberSpec,
) -> io::Result<Option<Child>> {
    let words = again.words(&["play", "--team", team.as_str(), "--as", spec.name.as_str()]);
    match spec.place {
        Place::Headless => {
            let log = folder.log(team, &spec.name);
            detached(&words, &log).map(Some)
        }
        Place::Tmux | Place::Native => {
            let tmux = Tmux::new(&folder.key());
            tmux.open(team.as_str(), spec.name.as_str(), &words).map(|()| None)
        }
    }
}

/// Starts the supervising process.
pub fn supervisor(again: &SelfCommand, folder: &Registry) -> io::Result<Child> {
    detached(&again.words(&["supervise"]), &folder.supervisor_log())
}

/// Shortens a log that has grown long to its last lines. Whoever appends to it goes on doing so; what it writes
/// at this very moment may be lost, or stand before them.
pub fn shorten(log: &Path) -> io::Result<()> {
    match std::fs::metadata(log) {
        Ok(found) if found.len() > LONGEST_LOG => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut file = OpenOptions::new().read(true).append(true).open(log)?;
    file.seek(SeekFrom::End(-LAST_WORDS))?;
    let mut last = Vec::new();
    file.read_to_end(&mut last)?;
    let line = last.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    file.set_len(0)?;
    file.write_all(last.get(line..).unwrap_or_default())
}

fn detached(words: &[OsString], log: &Path) -> io::Result<Child> {
    shorten(log)?;
    let open = || -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(log)
    };
    let (program, args) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    Command::new(program)
        .args(args)
        // Whoever waits for us at a pipe of ours would wait for it as well.
        .stdin(Stdio::null())
        .stdout(open()?)
        .stderr(open()?)
        .current_dir("/")
        .spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_keeps_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        // There may be none yet.
        shorten(&log).unwrap();
        let lines: Vec<String> = (0..200_000).map(|number| format!("line {number}\n")).collect();
        std::fs::write(&log, lines.concat()).unwrap();
        let mut appends = OpenOptions::new().append(true).open(&log).unwrap();
        shorten(&log).unwrap();
        appends.write_all(b"and on\n").unwrap();
        let kept = std::fs::read_to_string(&log).unwrap();
        assert!(kept.len() <= usize::try_from(LAST_WORDS).unwrap() + 7);
        assert!(kept.starts_with("line ") && kept.ends_with("line 199999\nand on\n"));
        let whole = kept.clone();
        shorten(&log).unwrap();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), whole);
    }
}
