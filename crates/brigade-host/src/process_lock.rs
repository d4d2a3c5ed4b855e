//! Lock files. The process that runs a member holds the member's lock. The supervisor holds the supervisor's lock.
//!
//! The kernel releases a lock when the process ends, so a lock never outlives its process, and two processes
//! never run the same member.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use brigade_core::pulse::Process;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::process;

/// How many times to try a lock before treating it as taken. One attempt is not enough, because [`holder`] also
/// locks the file for a moment.
const TRIES: u32 = 10;
/// The pause between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// A held lock. It is released when this value is dropped or the process ends.
#[derive(Debug)]
pub struct ProcessLock {
    file: File,
}

impl ProcessLock {
    /// Lets the programs that this process starts inherit the lock. The lock is held until the last of them has ended.
    pub fn share_with_programs(&self) -> io::Result<()> {
        Ok(fcntl_setfd(&self.file, FdFlags::empty())?)
    }
}

/// Returns whether a process holds the lock. If that cannot be found out, returns true.
pub fn is_held(path: &Path) -> bool {
    match File::open(path) {
        Err(error) => error.kind() != io::ErrorKind::NotFound,
        // Closing the file releases the shared lock taken here.
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Acquires a lock. Returns `None` if another process holds the lock.
pub async fn take(path: &Path) -> io::Result<Option<ProcessLock>> {
    for _ in 0..TRIES {
        let mut file = open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Another process removed the lock file after this process opened it. Try again with the new file.
            Ok(()) if !is_at(&file, path)? => {}
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(&serde_json::to_vec(&process::current())?)?;
                return Ok(Some(ProcessLock { file }));
            }
            Err(Errno::WOULDBLOCK) => tokio::time::sleep(RETRY_INTERVAL).await,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let on_disk = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let opened = file.metadata()?;
    Ok((on_disk.dev(), on_disk.ino()) == (opened.dev(), opened.ino()))
}

/// Returns the process that holds the lock, or `None` if no process does.
pub fn holder(path: &Path) -> io::Result<Option<Process>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        // No process holds the lock. Closing the file releases the shared lock taken here.
        Ok(()) => return Ok(None),
        Err(Errno::WOULDBLOCK) => {}
        Err(error) => return Err(error.into()),
    }
    for _ in 0..TRIES {
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        let written = serde_json::from_str(&text).ok();
        if let Some(process) = written.filter(process::is_running) {
            return Ok(Some(process));
        }
        // The holder has acquired the lock but not yet written its process id, or it has just ended, or
        // another process is calling this function at the same time.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => return Ok(None),
            Err(_) => std::thread::sleep(RETRY_INTERVAL / 10),
        }
    }
    // A process holds the lock but has not written its process id.
    Ok(Some(Process::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_process_holds_a_lock_and_is_identified() {
        let dir = std::env::temp_dir().join(format!("brigade-lock-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("lock");
        assert_eq!(holder(&path).unwrap(), None);
        let held = take(&path).await.unwrap();
        assert!(held.is_some());
        assert_eq!(holder(&path).unwrap(), Some(process::current()));
        assert!(take(&path).await.unwrap().is_none());
        drop(held);
        // If another test starts a child at this moment, the child has a copy of the descriptor and holds the
        // lock until the child calls exec.
        for _ in 0..100 {
            if holder(&path).unwrap().is_none() {
                break;
            }
            tokio::time::sleep(RETRY_INTERVAL / 10).await;
        }
        assert_eq!(holder(&path).unwrap(), None);
        assert!(take(&path).await.unwrap().is_some());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
