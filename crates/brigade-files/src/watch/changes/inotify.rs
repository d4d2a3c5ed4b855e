//! Reports changed files on Linux.

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
/// The changes of one file. If another file replaces it, its number of links changes, which is an attribute.
const FILE: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);
/// Space for many events: an event is at most 272 bytes long.
const BUFFER_SIZE: usize = 16 * 1024;

/// Watches folders and files.
#[derive(Debug)]
pub(in crate::watch) struct ChangeWatcher {
    inotify: Arc<OwnedFd>,
    /// Becomes readable when this value is dropped.
    end: Arc<OwnedFd>,
    /// The watched paths by the number of the watch.
    watched: HashMap<i32, PathBuf>,
}

/// Waits for changes, without holding the [`ChangeWatcher`].
#[derive(Debug)]
pub(in crate::watch) struct ChangeWaiter {
    inotify: Arc<OwnedFd>,
    end: Arc<OwnedFd>,
}

impl Drop for ChangeWatcher {
    fn drop(&mut self) {
        let _cannot_fail = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
    }
}

impl ChangeWatcher {
    pub(in crate::watch) fn new() -> io::Result<(Self, ChangeWaiter)> {
        let inotify = Arc::new(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let waiter = ChangeWaiter { inotify: Arc::clone(&inotify), end: Arc::clone(&end) };
        Ok((Self { inotify, end, watched: HashMap::new() }, waiter))
    }

    /// Watches the files in a folder. Returns whether that is possible.
    pub(in crate::watch) fn watch_folder(&mut self, folder: &Path) -> bool {
        self.watch(folder, FOLDER)
    }

    /// Watches a file. If another file replaces it, only that change is reported, and the file must be watched again.
    /// Returns whether the file exists and can be watched.
    pub(in crate::watch) fn watch_file(&mut self, file: &Path) -> bool {
        self.watch(file, FILE)
    }

    fn watch(&mut self, path: &Path, flags: WatchFlags) -> bool {
        let added = inotify::add_watch(&self.inotify, path, flags | WatchFlags::DONT_FOLLOW);
        if let Ok(number) = added {
            self.watched.insert(number, path.to_owned());
        }
        added.is_ok()
    }

    /// Returns the changes since the last call.
    pub(in crate::watch) fn take(&mut self) -> Changes {
        let mut changes = Changes::default();
        let mut buffer = [MaybeUninit::uninit(); BUFFER_SIZE];
        let mut events = inotify::Reader::new(&self.inotify, &mut buffer);
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
        let mut ready =
            [PollFd::new(&self.inotify, PollFlags::IN), PollFd::new(&self.end, PollFlags::IN)];
        let limit = Timespec::try_from(limit).ok();
        match poll(&mut ready, limit.as_ref()) {
            Ok(0) => Waited::TimedOut,
            Ok(_) if ready[1].revents().contains(PollFlags::IN) => Waited::Ended,
            Ok(_) | Err(_) => Waited::Changed,
        }
    }
}
