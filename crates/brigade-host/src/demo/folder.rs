//! The temporary folder of the demo.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::geteuid;

use crate::error::{HostError, failed};
use crate::process_lock::{self, ProcessLock};

/// How the names of the folders begin. The process id follows.
const PREFIX: &str = "brigade-demo-";
/// The file that the running demo has locked.
const LOCK: &str = "lock";

/// How often the removal of the folder is tried.
const REMOVALS: u32 = 20;
/// The pause between two tries.
const REMOVAL_INTERVAL: Duration = Duration::from_millis(20);

/// The folder of a running demo. It is removed when this value is dropped.
#[derive(Debug)]
pub struct DemoFolder {
    /// The path.
    pub path: PathBuf,
    _lock: ProcessLock,
}

impl DemoFolder {
    /// Creates the folder below `parent`, which is usually the folder for temporary files.
    pub async fn create(parent: &Path) -> Result<Self, HostError> {
        let path = parent.join(format!("{PREFIX}{}", std::process::id()));
        let doing = || format!("create {}", path.display());
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.map_err(|source| failed(doing(), source))?;
        let lock = process_lock::take(&path.join(LOCK)).await;
        let lock = lock.map_err(|source| failed(doing(), source))?;
        let lock = lock.ok_or_else(|| failed(doing(), io::ErrorKind::WouldBlock.into()))?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            match remove(&self.path) {
                // A write that the agents had begun may create a file in a folder that is being removed.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    std::thread::sleep(REMOVAL_INTERVAL);
                }
                Err(error) => {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "cannot remove the demo's folder");
                    return;
                }
                Ok(()) => return,
            }
        }
    }
}

/// Removes a demo's folder, its lock file last: a folder without a lock file has no other content.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    match fs::remove_file(folder.join(LOCK)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_dir(folder)
}

/// Removes the folders of demos whose process was killed. Leaves all other folders alone.
pub fn remove_leftovers(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().filter_map(Result::ok);
    for entry in entries {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if id.is_none_or(|id| id.parse::<u32>().is_err()) {
            continue;
        }
        // Does not follow a link.
        let is_own = entry
            .metadata()
            .is_ok_and(|folder| folder.is_dir() && folder.uid() == geteuid().as_raw());
        if !is_own {
            continue;
        }
        if is_abandoned(&entry.path().join(LOCK)) {
            let _removed = remove(&entry.path());
        } else {
            // A demo that has just begun, or that was killed at the end of its removal, has no lock file and nothing else.
            let _in_use = fs::remove_dir(entry.path());
        }
    }
}

/// Returns whether this is a lock file that no process holds. Does not follow a link, and does not change the file.
fn is_abandoned(lock: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = open(lock, flags, Mode::empty()) else { return false };
    flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_abandoned_folders_of_demos_are_removed_and_links_are_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, files: &[&str]| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).unwrap();
            for file in files {
                fs::write(folder.join(file), "kept").unwrap();
            }
            folder
        };
        let abandoned = make("brigade-demo-1", &[LOCK, "team"]);
        let empty = make("brigade-demo-2", &[]);
        let foreign = make("brigade-demo-3", &["notes"]);
        let other = make("brigade-demo-x", &[LOCK]);
        let linked = make("brigade-demo-4", &["notes"]);
        let target = parent.path().join("target");
        fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, linked.join(LOCK)).unwrap();
        remove_leftovers(parent.path());
        for gone in [abandoned, empty] {
            assert!(!gone.exists(), "{gone:?}");
        }
        for stays in [foreign, other, linked] {
            assert!(stays.exists(), "{stays:?}");
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
    }
}
