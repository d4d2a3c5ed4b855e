//! Reports which files have changed.
//!
//! On Linux, the kernel reports exactly the changes that brigade asks for. A process that only reads a file
//! must not wake other processes: they would read files in turn, and wake each other.

#[cfg(target_os = "linux")]
mod inotify;
#[cfg(not(target_os = "linux"))]
mod notified;

use std::collections::HashSet;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub(super) use self::inotify::{ChangeWaiter, ChangeWatcher};
#[cfg(not(target_os = "linux"))]
pub(super) use self::notified::{NotifiedWaiter as ChangeWaiter, NotifiedWatcher as ChangeWatcher};

/// The changes since the last call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// The changed files.
    pub(super) paths: HashSet<PathBuf>,
    /// Whether changes were lost, so that any file may have changed.
    pub(super) is_incomplete: bool,
}

/// The result of waiting for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// Files have changed.
    Changed,
    /// Nothing has changed within the time limit.
    TimedOut,
    /// The watcher was dropped.
    Ended,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Changes something, and returns the names that are reported.
    fn reported(
        watcher: &mut ChangeWatcher,
        waiter: &ChangeWaiter,
        change: impl FnOnce(),
    ) -> Vec<String> {
        change();
        let mut names = HashSet::new();
        while waiter.wait(Duration::from_millis(50)) == Waited::Changed {
            names.extend(watcher.take().paths);
        }
        let names = names.iter().filter_map(|path| path.file_name()?.to_str());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names
    }

    #[test]
    fn changes_are_reported_and_reads_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let write = |name: &str| std::fs::write(path(name), name).unwrap();
        write("read");
        let (mut watcher, waiter) = ChangeWatcher::new().unwrap();
        assert!(watcher.watch_folder(dir.path()));
        let none: [&str; 0] = [];
        let read = || drop(std::fs::read(path("read")).unwrap());
        assert_eq!(reported(&mut watcher, &waiter, read), none);
        assert_eq!(reported(&mut watcher, &waiter, || write("new")), ["new"]);
        let rename = || std::fs::rename(path("new"), path("renamed")).unwrap();
        assert!(reported(&mut watcher, &waiter, rename).contains(&"renamed".to_owned()));
        let remove = || std::fs::remove_file(path("renamed")).unwrap();
        assert_eq!(reported(&mut watcher, &waiter, remove), ["renamed"]);
    }

    #[test]
    fn a_watched_file_reports_neither_its_neighbours_nor_reads() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let write = |name: &str| std::fs::write(path(name), name).unwrap();
        write("mine");
        let (mut watcher, waiter) = ChangeWatcher::new().unwrap();
        assert!(!watcher.watch_file(&path("missing")));
        assert!(watcher.watch_file(&path("mine")));
        let none: [&str; 0] = [];
        assert_eq!(reported(&mut watcher, &waiter, || write("other")), none);
        let read = || drop(std::fs::read(path("mine")).unwrap());
        assert_eq!(reported(&mut watcher, &waiter, read), none);
        assert_eq!(reported(&mut watcher, &waiter, || write("mine")), ["mine"]);
        // Another file takes its place, even while a process has the first one open.
        let open = std::fs::File::open(path("mine")).unwrap();
        let replace = || std::fs::rename(path("other"), path("mine")).unwrap();
        assert_eq!(reported(&mut watcher, &waiter, replace), ["mine"]);
        assert!(watcher.watch_file(&path("mine")));
        drop(open);
        assert_eq!(reported(&mut watcher, &waiter, || write("mine")), ["mine"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn without_reports_of_the_kernel_any_file_may_have_changed() {
        let (mut watcher, waiter) = ChangeWatcher::without_kernel().unwrap();
        assert!(!watcher.watch_folder(std::path::Path::new("/")));
        assert_eq!(waiter.wait(Duration::from_millis(1)), Waited::Changed);
        assert!(watcher.take().is_incomplete);
        drop(watcher);
        assert_eq!(waiter.wait(Duration::from_secs(60)), Waited::Ended);
    }

    #[test]
    fn waiting_ends_when_the_watcher_is_dropped() {
        let (watcher, waiter) = ChangeWatcher::new().unwrap();
        let waiting = std::thread::spawn(move || waiter.wait(Duration::from_secs(60)));
        drop(watcher);
        assert_eq!(waiting.join().unwrap(), Waited::Ended);
    }
}
