//! Keeps a member from starting while a fix changes something about it.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use brigade_host::Host;
use brigade_host::process_lock::{self, ProcessLock};
use brigade_wire::name::{MemberName, TeamName};

use super::backup::failed;
use crate::error::CliError;

/// Holds the lock of the process that runs a member. Dropping this value releases the lock.
#[derive(Debug)]
pub(crate) struct MemberGuard {
    lock: Option<ProcessLock>,
    /// The folders and files that were created for the lock, outermost first.
    created: Vec<PathBuf>,
}

impl MemberGuard {
    /// Takes the member's lock. Returns `None` if a process runs the member.
    pub(crate) async fn take(
        host: &Host,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<Option<Self>, CliError> {
        let path = host.registry.seat(team, member);
        let missing = path.ancestors().take_while(|path| path.symlink_metadata().is_err());
        let mut created: Vec<PathBuf> = missing.map(PathBuf::from).collect();
        created.reverse();
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|source| failed("create", folder, source))?;
        }
        let mut guard = Self { lock: None, created };
        let taken = process_lock::take(&path).await;
        guard.lock = taken.map_err(|source| failed("lock", &path, source))?;
        Ok(guard.lock.is_some().then_some(guard))
    }
}

impl Drop for MemberGuard {
    /// Removes what was created for the lock. A folder that another program uses by now is not empty and stays.
    fn drop(&mut self) {
        if self.lock.is_some()
            && let Some(path) = self.created.last().filter(|path| path.ends_with("seat"))
        {
            let _best_effort = fs::remove_file(path);
        }
        for folder in self.created.iter().rev().skip(1) {
            let _in_use = fs::remove_dir(folder);
        }
        self.lock = None;
    }
}
