//! Reports changed files on Linux.
//!
//! The system limits the number of watching processes of a user (`fs.inotify.max_user_instances`, often 128). When that is
//! reached, a process looks at its files every second instead.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::{Changes, Waited};

/// The changes in a folder. A file that is replaced by a rename is reported as moved.
const FOLDER: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::ONLYDIR);
/// The changes of the list of files in a folder.
const NAMES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::ONLYDIR);
/// The changes of one file. If another file replaces it, its number of links changes, which is an attribute.
const FILE: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);
/// How often a process looks at its files if the kernel does not report their changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Space for many events: an event is at most 272 bytes long.
const BUFFER_SIZE: usize = 16 * 1024;

/// Watches folders and files.
#[derive(Debug)]
pub(in crate::watch) struct ChangeWatcher {
    /// `None` if the limit of the system is reached.
    inotify: Option<Arc<OwnedFd>>,
    /// Becomes readable when this value is dropped.
    end: Arc<OwnedFd>,
    /// The watched paths by the number of the watch.
    watched: HashMap<i32, PathBuf>,
}

/// Waits for changes, without holding the [`ChangeWatcher`].
#[derive(Debug)]
pub(in crate::watch) struct ChangeWaiter {
    inotify: Option<Arc<OwnedFd>>,
    end: Arc<OwnedFd>,
}

impl Drop for ChangeWatcher {
    fn drop(&mut self) {
        let _cannot_fail = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
    }
}

impl ChangeWatcher {
    pub(in crate::watch) fn new() -> io::Result<(Self, ChangeWaiter)> {
        let inotify = match inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
            Ok(inotify) => Some(inotify),
            Err(Errno::MFILE) => {
                tracing::warn!(
                    "fs.inotify.max_user_instances is reached; looking at files every second"
                );
                None
            }
            Err(error) => return Err(error.into()),
        };
        Self::over(inotify)
    }

    fn over(inotify: Option<OwnedFd>) -> io::Result<(Self, ChangeWaiter)> {
        let inotify = inotify.map(Arc::new);
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let waiter = ChangeWaiter { inotify: inotify.clone(), end: Arc::clone(&end) };
        Ok((Self { inotify, end, watched: HashMap::new() }, waiter))
    }

    /// Returns a watcher to which the kernel reports nothing.
    #[cfg(test)]
    pub(in crate::watch) fn without_kernel() -> io::Result<(Self, ChangeWaiter)> {
        Self::over(None)
    }

    /// Watches the files in a folder. Returns whether that is possible.
    pub(in crate::watch) fn watch_folder(&mut self, folder: &Path) -> bool {
        self.watch(folder, FOLDER)
    }

    /// Watches the list of files in a folder, but not their contents. Returns whether that is possible.
    pub(in crate::watch) fn watch_names(&mut self, folder: &Path) -> bool {
        self.watch(folder, NAMES)
    }

    /// Watches a file. If another file replaces it, only that change is reported, and the file must be watched again.
    /// Returns whether the file exists and can be watched.
    pub(in crate::watch) fn watch_file(&mut self, file: &Path) -> bool {
        self.watch(file, FILE)
    }

    fn watch(&mut self, path: &Path, flags: WatchFlags) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        let added = inotify::add_watch(inotify, path, flags | WatchFlags::DONT_FOLLOW);
        if let Ok(number) = added {
            self.watched.insert(number, path.to_owned());
        }
        added.is_ok()
    }

    /// Returns the changes since the last call.
    pub(in crate::watch) fn take(&mut self) -> Changes {
        let mut changes = Changes::default();
        let Some(inotify) = &self.inotify else {
            changes.is_incomplete = true;
            return changes;
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER_SIZE];
        let mut events = inotify::Reader::new(inotify, &mut buffer);
        loop {
            match events.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                    changes.is_incomplete = true;
                }
                Ok(event) => {
                    let Some(path) = self.watched.get(&event.wd()) else { continue };
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    let path = name.map_or_else(|| path.clone(), |name| path.join(name));
                    changes.paths.insert(path);
                    if event.events().contains(ReadFlags::IGNORED) {
                        self.watched.remove(&event.wd());
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return changes,
            }
        }
    }
}

impl ChangeWaiter {
    /// Waits until a file changes.
    pub(in crate::watch) fn wait(&self, limit: Duration) -> Waited {
        let limit = if self.inotify.is_some() { limit } else { limit.min(POLL_INTERVAL) };
        let mut ready = vec![PollFd::new(&self.end, PollFlags::IN)];
        ready.extend(self.inotify.as_ref().map(|inotify| PollFd::new(inotify, PollFlags::IN)));
        let limit = Timespec::try_from(limit).ok();
        match poll(&mut ready, limit.as_ref()) {
            Ok(0) if self.inotify.is_some() => Waited::TimedOut,
            Ok(0) | Err(_) => Waited::Changed,
            Ok(_) => match ready.first().is_some_and(|end| end.revents().contains(PollFlags::IN)) {
                true => Waited::Ended,
                false => Waited::Changed,
            },
        }
    }
}
