//! Reports changed files on macOS and other systems. Untested.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{Changes, Waited};
use crate::lock_mutex;

/// Watches folders and files.
#[derive(Debug)]
pub(in crate::watch) struct NotifiedWatcher {
    watcher: RecommendedWatcher,
    changed: Arc<Mutex<HashSet<PathBuf>>>,
    end: Sender<Waited>,
}

/// Waits for changes, without holding the [`NotifiedWatcher`].
#[derive(Debug)]
pub(in crate::watch) struct NotifiedWaiter {
    news: Receiver<Waited>,
}

impl Drop for NotifiedWatcher {
    fn drop(&mut self) {
        let _waiter_is_gone = self.end.send(Waited::Ended);
    }
}

impl NotifiedWatcher {
    pub(in crate::watch) fn new() -> io::Result<(Self, NotifiedWaiter)> {
        let (end, news) = channel();
        let changed = Arc::<Mutex<HashSet<PathBuf>>>::default();
        let (sender, reported) = (end.clone(), Arc::clone(&changed));
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Ignore events about reads.
            if let Ok(event) = event
                && !event.kind.is_access()
            {
                lock_mutex(&reported).extend(event.paths);
                let _waiter_is_gone = sender.send(Waited::Changed);
            }
        });
        let watcher = watcher.map_err(io::Error::other)?;
        Ok((Self { watcher, changed, end }, NotifiedWaiter { news }))
    }

    /// Watches the files in a folder. Returns whether that is possible.
    pub(in crate::watch) fn watch_folder(&mut self, folder: &Path) -> bool {
        self.watcher.watch(folder, RecursiveMode::NonRecursive).is_ok()
    }

    /// The list of files in a folder cannot be watched without their contents.
    #[expect(clippy::unused_self, reason = "the same interface as on Linux")]
    pub(in crate::watch) fn watch_names(&mut self, _folder: &Path) -> bool {
        false
    }

    /// Watches a file. If another file replaces it, the file must be watched again. Returns whether the file exists and
    /// can be watched.
    pub(in crate::watch) fn watch_file(&mut self, file: &Path) -> bool {
        file.exists() && self.watcher.watch(file, RecursiveMode::NonRecursive).is_ok()
    }

    /// Returns the changes since the last call.
    pub(in crate::watch) fn take(&mut self) -> Changes {
        let paths = std::mem::take(&mut *lock_mutex(&self.changed));
        Changes { paths, is_incomplete: false }
    }
}

impl NotifiedWaiter {
    /// Waits until a file changes.
    pub(in crate::watch) fn wait(&self, limit: Duration) -> Waited {
        match self.news.recv_timeout(limit) {
            // One report is enough for all changes so far.
            Ok(Waited::Changed) => match self.news.try_iter().find(|news| *news == Waited::Ended) {
                Some(ended) => ended,
                None => Waited::Changed,
            },
            Ok(waited) => waited,
            Err(RecvTimeoutError::Timeout) => Waited::TimedOut,
            Err(RecvTimeoutError::Disconnected) => Waited::Ended,
        }
    }
}
