//! Who plays a member: the process that holds the lock on its seat. The lock dies with the process,
//! so that nobody is taken for there who is not, and no two play one member.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use brigade_core::pulse::Process;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::process;

/// How often a seat is tried for before it counts as taken, and how far apart: somebody may be looking
/// at who holds it, which takes a moment.
const TRIES: u32 = 10;
const NAP: Duration = Duration::from_millis(20);

/// A seat, held until this is dropped or the process ends.
#[derive(Debug)]
pub struct Held {
    _file: File,
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Takes a seat, unless another process holds it.
pub async fn take(path: &Path) -> io::Result<Option<Held>> {
    for _ in 0..TRIES {
        let mut file = open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Somebody may have removed it since it was opened, and then another is the seat.
            Ok(()) if !is_at(&file, path)? => {}
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(&serde_json::to_vec(&process::this())?)?;
                return Ok(Some(Held { _file: file }));
            }
            Err(Errno::WOULDBLOCK) => tokio::time::sleep(NAP).await,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let at = match std::fs::metadata(path) {
        Ok(at) => at,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let its = file.metadata()?;
    Ok((at.dev(), at.ino()) == (its.dev(), its.ino()))
}

/// Waits for a seat, however long.
pub async fn wait_for(path: &Path) -> io::Result<Held> {
    loop {
        if let Some(held) = take(path).await? {
            return Ok(held);
        }
    }
}

/// The process that holds a seat.
pub fn holder(path: &Path) -> io::Result<Option<Process>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        // It is given back with the file.
        Ok(()) => return Ok(None),
        Err(Errno::WOULDBLOCK) => {}
        Err(error) => return Err(error.into()),
    }
    for _ in 0..TRIES {
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        let written = serde_json::from_str(&text).ok();
        if let Some(process) = written.filter(process::is_there) {
            return Ok(Some(process));
        }
        // It was taken this moment, and its holder has not yet written who it is; or its holder has
        // just ended, or somebody looks as we do.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => return Ok(None),
            Err(_) => std::thread::sleep(NAP / 10),
        }
    }
    // Somebody holds it who does not say who.
    Ok(Some(Process::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_holds_a_seat_and_is_known() {
        let dir = std::env::temp_dir().join(format!("brigade-seat-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("seat");
        assert_eq!(holder(&path).unwrap(), None);
        let held = take(&path).await.unwrap();
        assert!(held.is_some());
        assert_eq!(holder(&path).unwrap(), Some(process::this()));
        assert!(take(&path).await.unwrap().is_none());
        drop(held);
        assert_eq!(holder(&path).unwrap(), None);
        assert!(take(&path).await.unwrap().is_some());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
