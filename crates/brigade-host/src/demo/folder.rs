//! The temporary folder of the demo.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rustix::process::{Pid, test_kill_process};

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
        fs::create_dir(&path).map_err(|source| failed(doing(), source))?;
        let lock = process_lock::take(&path.join(LOCK)).await;
        let lock = lock.map_err(|source| failed(doing(), source))?;
        let lock = lock.ok_or_else(|| failed(doing(), io::ErrorKind::WouldBlock.into()))?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            match fs::remove_dir_all(&self.path) {
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

/// Removes the folders of demos whose process was killed. Leaves all other folders alone.
pub async fn remove_leftovers(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().filter_map(Result::ok);
    for entry in entries {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(id) = id.and_then(|id| id.parse::<i32>().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let (path, lock) = (entry.path(), entry.path().join(LOCK));
        // A demo that has just begun has no lock yet. One that was killed while it removed its folder has none any more.
        let is_over = match lock.is_file() {
            true => matches!(process_lock::take(&lock).await, Ok(Some(_))),
            false => test_kill_process(id).is_err(),
        };
        if is_over {
            // Another user's folder stays.
            let _removed = fs::remove_dir_all(&path);
        }
    }
}
