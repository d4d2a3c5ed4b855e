//! How a process that plays a member is started, and the supervising one.
//!
//! Each makes a session of its own as its first step, so that nothing that happens to whoever started
//! it happens to it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;

use brigade_wire::name::TeamName;
use tokio::process::{Child, Command};

use super::folder::Folder;
use super::spec::{MemberSpec, Place};
use super::tmux::Tmux;

/// What the house is started with again: the same folders, whatever the variables say.
#[derive(Clone, Debug)]
pub(crate) struct Again {
    /// This program.
    pub(crate) program: OsString,
    /// Its global options.
    pub(crate) options: Vec<OsString>,
}

impl Again {
    fn words(&self, command: &[&str]) -> Vec<OsString> {
        let command = command.iter().map(OsString::from);
        [self.program.clone()].into_iter().chain(self.options.clone()).chain(command).collect()
    }
}

/// Starts the process that plays a member. It is known by the seat it takes; the child is only for
/// being waited for, where it is one of ours.
pub(crate) fn member(
    again: &Again,
    folder: &Folder,
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
pub(crate) fn supervisor(again: &Again, folder: &Folder) -> io::Result<Child> {
    detached(&again.words(&["supervise"]), &folder.supervisor_log())
}

fn detached(words: &[OsString], log: &Path) -> io::Result<Child> {
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
