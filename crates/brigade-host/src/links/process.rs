//! The process of a link: its lock, the state that it reports and the state that it saves.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use brigade_core::clock::Timestamp;
use brigade_link::{LinkEvent, LinkStateStore};

use crate::error::{HostError, Trouble, file_failed};
use crate::link_registry::{LinkCondition, LinkFiles, LinkStatus};
use crate::process_lock::{self, ProcessLock};

/// A link that this process runs. Dropping the value removes the reported state, but not the lock file.
#[derive(Debug)]
pub(super) struct HeldLink {
    pub(super) files: LinkFiles,
    status: Mutex<LinkStatus>,
    _lock: ProcessLock,
}

impl HeldLink {
    /// Locks the team, so that no other process on this host links it, and reports that the link starts.
    pub(super) async fn new(files: LinkFiles, status: LinkStatus) -> Result<Self, HostError> {
        files.create_dir()?;
        let path = files.lock();
        let lock = process_lock::take(&path).await;
        let lock = lock.map_err(|source| file_failed("lock", &path, source))?;
        let Some(lock) = lock else {
            let team = files.team.to_string();
            let error = HostError::failed(Trouble::LinkedAlready { team });
            return Err(error.hint(format!("`brigade link --stop {}` ends that link", files.team)));
        };
        files.put_status(&status)?;
        Ok(Self { files, status: Mutex::new(status), _lock: lock })
    }

    /// Reports a state with its reason.
    pub(super) fn report(&self, state: LinkCondition, why: Option<String>) {
        self.change(|status| {
            if status.state != state {
                (status.state, status.since) = (state, Timestamp::now());
            }
            status.why = why;
        });
    }

    /// Reports the state that follows from an event.
    pub(super) fn report_event(&self, event: &LinkEvent) {
        match event {
            LinkEvent::Synced { local, remote } => {
                self.change(|status| {
                    (status.local, status.remote) = (local.clone(), remote.clone());
                });
                self.report(LinkCondition::Connected, None);
            }
            LinkEvent::Back => self.report(LinkCondition::Connected, None),
            LinkEvent::Cut { why } => self.report(LinkCondition::Unreachable, Some(why.clone())),
            LinkEvent::Trouble { why } if self.state() == LinkCondition::Starting => {
                self.report(LinkCondition::Starting, Some(why.clone()));
            }
            _ => {}
        }
    }

    /// Returns the state that was last reported.
    pub(super) fn state(&self) -> LinkCondition {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).state
    }

    fn change(&self, change: impl FnOnce(&mut LinkStatus)) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let before = status.clone();
        change(&mut status);
        if *status != before {
            // The link works without the report, and the next change writes it again.
            let _best_effort = self.files.put_status(&status);
        }
    }
}

impl Drop for HeldLink {
    fn drop(&mut self) {
        // A report without a process is ignored, so a file that stays does no harm.
        let _best_effort = self.files.remove_status();
    }
}

/// The file in which a link saves its state.
#[derive(Debug)]
pub(super) struct LinkStateFile {
    pub(super) path: PathBuf,
}

impl LinkStateStore for LinkStateFile {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        // This process holds the team's lock, so no other process writes the temporary file.
        let draft = self.path.with_extension("draft");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(text)?;
        fs::rename(draft, &self.path)
    }
}
