//! Starts the supervisor, and the processes that run members and links.
//!
//! Each of these processes first creates its own session, so that it survives the process that started it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;

use brigade_wire::name::{MemberName, TeamName};
use tokio::process::{Child, Command};

use crate::registry::Registry;
use crate::spec::{MemberPlace, MemberSpec};
use crate::tmux::Tmux;
use crate::variables;

/// The size in bytes above which a log is shortened.
const MAX_LOG_SIZE: u64 = 1 << 20;
/// The size in bytes to which a log is shortened.
const SHORTENED_LOG_SIZE: i64 = 1 << 18;

/// The command line with which brigade starts itself as another process. It names the folders and the store, so
/// that the new process uses the same folders and store, whatever its environment variables are.
#[derive(Clone, Debug)]
pub struct SelfCommand {
    /// The path of the brigade program.
    pub program: OsString,
    /// The global options of the new process.
    pub options: Vec<OsString>,
}

impl SelfCommand {
    pub(crate) fn command_line(&self, command: &[&str]) -> Vec<OsString> {
        let command = command.iter().map(OsString::from);
        [self.program.clone()].into_iter().chain(self.options.clone()).chain(command).collect()
    }
}

/// Starts the process that runs a member. Other processes find it by the lock that it acquires. Returns the child,
/// so that the caller can reap it. Returns `None` for a process in tmux, because that process is not our child.
pub fn member(
    self_command: &SelfCommand,
    registry: &Registry,
    team: &TeamName,
    spec: &MemberSpec,
) -> io::Result<Option<Child>> {
    let command =
        self_command.command_line(&["play", "--team", team.as_str(), "--as", spec.name.as_str()]);
    match spec.place {
        // Claude Code starts the members in its panes itself.
        MemberPlace::Pane => Ok(None),
        MemberPlace::Headless => {
            let log = registry.log(team, &spec.name);
            detached(&command, &log, &[]).map(Some)
        }
        MemberPlace::Tmux | MemberPlace::Native => {
            let tmux = Tmux::new(registry);
            tmux.open(team.as_str(), spec.name.as_str(), &command).map(|()| None)
        }
    }
}

/// Starts the process that runs a member of a team that Claude Code leads, as soon as its lead is back.
pub(crate) fn waiting_member(
    self_command: &SelfCommand,
    registry: &Registry,
    team: &TeamName,
    name: &MemberName,
) -> io::Result<Child> {
    let command = ["play", "--team", team.as_str(), "--as", name.as_str()];
    detached(&self_command.command_line(&command), &registry.log(team, name), &[])
}

/// Starts the process that links a team.
pub(crate) fn link(
    self_command: &SelfCommand,
    team: &TeamName,
    host: &str,
    log: &Path,
) -> io::Result<Child> {
    let command =
        self_command.command_line(&["link", team.as_str(), "--foreground", "--host", host]);
    // The options say everything. The supervisor's variables may name other teams, servers or credentials.
    let named =
        [variables::STORE, variables::CREDS, variables::CA, variables::CERT, variables::KEY];
    detached(&command, log, &[named.as_slice(), &[variables::TEAM, variables::AS]].concat())
}

/// Starts the supervisor.
pub fn supervisor(self_command: &SelfCommand, registry: &Registry) -> io::Result<Child> {
    detached(&self_command.command_line(&["supervise"]), &registry.supervisor_log(), &[])
}

/// Shortens a long log to its last lines. A process that has the log open can keep appending to it. Text appended
/// during the call may be lost, or may end up before the last lines.
pub fn shorten(log: &Path) -> io::Result<()> {
    match std::fs::metadata(log) {
        Ok(found) if found.len() > MAX_LOG_SIZE => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut file = OpenOptions::new().read(true).append(true).open(log)?;
    file.seek(SeekFrom::End(-SHORTENED_LOG_SIZE))?;
    let mut last = Vec::new();
    file.read_to_end(&mut last)?;
    let line = last.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    file.set_len(0)?;
    file.write_all(last.get(line..).unwrap_or_default())
}

/// Starts a process in the background, without these environment variables.
fn detached(command: &[OsString], log: &Path, without: &[&str]) -> io::Result<Child> {
    shorten(log)?;
    let open = || -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(log)
    };
    let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    for variable in without {
        command.env_remove(variable);
    }
    command
        .args(args)
        // Do not pass our pipes to the child: a program that reads our output would wait until the child ends.
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
        // Shortening a missing log is not an error.
        shorten(&log).unwrap();
        let lines: Vec<String> = (0..200_000).map(|number| format!("line {number}\n")).collect();
        std::fs::write(&log, lines.concat()).unwrap();
        let mut appends = OpenOptions::new().append(true).open(&log).unwrap();
        shorten(&log).unwrap();
        appends.write_all(b"and on\n").unwrap();
        let kept = std::fs::read_to_string(&log).unwrap();
        assert!(kept.len() <= usize::try_from(SHORTENED_LOG_SIZE).unwrap() + 7);
        assert!(kept.starts_with("line ") && kept.ends_with("line 199999\nand on\n"));
        let whole = kept.clone();
        shorten(&log).unwrap();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), whole);
    }
}
