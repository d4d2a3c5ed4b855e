//! Reports that files in folders were created, replaced or removed.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use super::changes::{ChangeWatcher, Waited};
use crate::dir::identity;
use crate::lock_mutex;

/// How long to wait for further changes before a change is reported. A command often changes several files.
const CHANGES_SETTLE: Duration = Duration::from_millis(10);
/// The longest wait of the thread; it then waits again.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Watches folders, and reports when a file in one of them is created, replaced or removed. Does not report changes of a
/// file's content. Watching ends when this value is dropped.
#[derive(Debug)]
pub struct FolderWatch {
    watcher: Arc<Mutex<ChangeWatcher>>,
    /// The watched folders, as they were when the watch was set.
    watched: HashMap<PathBuf, FolderId>,
}

/// Identifies a folder by its device, its inode and the time of its creation. A new folder may get the inode of a removed one.
type FolderId = ((u64, u64), Option<SystemTime>);

fn folder_id(folder: &Path) -> Option<FolderId> {
    let created = std::fs::symlink_metadata(folder).ok()?.created().ok();
    Some((identity(folder)?, created))
}

impl FolderWatch {
    /// Starts a thread that calls `on_change` after changes in the watched folders. Spurious calls are possible, and one call
    /// may stand for several changes.
    pub fn start(on_change: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (watcher, waiter) = ChangeWatcher::new()?;
        let watcher = Arc::new(Mutex::new(watcher));
        let weak = Arc::downgrade(&watcher);
        let run = move || {
            loop {
                match waiter.wait(MAX_WAIT) {
                    Waited::Ended => return,
                    Waited::TimedOut => continue,
                    Waited::Changed => std::thread::sleep(CHANGES_SETTLE),
                }
                let Some(watcher) = weak.upgrade() else { return };
                let _changes = lock_mutex(&watcher).take();
                on_change();
            }
        };
        std::thread::Builder::new().name("brigade-folders".into()).spawn(run)?;
        Ok(Self { watcher, watched: HashMap::new() })
    }

    /// Watches these folders and no others. Returns whether the system reports the changes in all of them. A folder that does
    /// not exist counts as not watched.
    pub fn watch(&mut self, folders: &HashSet<PathBuf>) -> bool {
        self.watched.retain(|folder, _| folders.contains(folder));
        let mut watcher = lock_mutex(&self.watcher);
        for folder in folders {
            // A folder that was deleted and created again has another identity and needs a new watch.
            let now = folder_id(folder);
            if now.is_some() && now == self.watched.get(folder).copied() {
                continue;
            }
            self.watched.remove(folder);
            if let Some(now) = now
                && watcher.watch_names(folder)
            {
                self.watched.insert(folder.clone(), now);
            }
        }
        self.watched.len() == folders.len()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use super::*;

    #[test]
    fn new_and_removed_files_are_reported_and_changed_contents_are_not() {
        let root = tempfile::tempdir().unwrap();
        let (reports, reported) = channel();
        let mut watch = FolderWatch::start(move || reports.send(()).unwrap()).unwrap();
        let folder = root.path().join("folder");
        let folders = HashSet::from([root.path().to_owned(), folder.clone()]);
        assert!(!watch.watch(&folders), "one of the folders does not exist");
        let is_reported = || {
            let first = reported.recv_timeout(Duration::from_secs(10));
            while reported.recv_timeout(Duration::from_millis(100)).is_ok() {}
            first.is_ok()
        };
        std::fs::create_dir(&folder).unwrap();
        assert!(is_reported());
        assert!(watch.watch(&folders));
        std::fs::write(folder.join("log"), "one").unwrap();
        assert!(is_reported());
        std::fs::write(folder.join("log"), "one two").unwrap();
        let silence = reported.recv_timeout(Duration::from_millis(200));
        assert_eq!(silence, Err(RecvTimeoutError::Timeout));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(is_reported());
        // The new folder of the same name is watched again.
        std::fs::create_dir(&folder).unwrap();
        assert!(is_reported());
        assert!(watch.watch(&folders));
        std::fs::write(folder.join("log"), "one").unwrap();
        assert!(is_reported());
        drop(watch);
        assert_eq!(reported.recv(), Err(std::sync::mpsc::RecvError));
    }
}
