//! Keeps the files that this process replaced open for a while.
//!
//! When a rename removes the last name of a file, the kernel frees the file, and first waits until the disk has written it. A
//! file that was itself written a moment ago is often still on its way to the disk: the wait then takes several milliseconds,
//! while the caller holds the lock of an inbox. A file that is open is freed only when it is closed.
//!
//! This applies to ext4, btrfs and xfs. On a network file system, a replaced file that is open gets another name in its folder.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

use crate::lock_mutex;

/// How many files are kept. By the time that a process replaces this many files, the disk has written the first one.
const KEPT: usize = 64;

static REPLACED: Mutex<VecDeque<OwnedFd>> = Mutex::new(VecDeque::new());

/// Opens a file that is about to be replaced, for neither reading nor writing. Returns `None` if the file system does not wait.
#[cfg(target_os = "linux")]
pub(crate) fn open(dir: impl AsFd, name: &str) -> Option<OwnedFd> {
    use rustix::fs::{Mode, OFlags, fstatfs, openat};
    /// The numbers of ext4, btrfs and xfs.
    const WAITING: [u64; 3] = [0xef53, 0x9123_683e, 0x5846_5342];
    let kind = fstatfs(&dir).ok().and_then(|stat| u64::try_from(stat.f_type).ok())?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    WAITING.contains(&kind).then(|| openat(dir, name, flags, Mode::empty()).ok())?
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open(_dir: impl AsFd, _name: &str) -> Option<OwnedFd> {
    None
}

/// Keeps a file open that was replaced, and closes the oldest one.
pub(crate) fn keep(file: OwnedFd) {
    let mut replaced = lock_mutex(&REPLACED);
    replaced.push_back(file);
    let oldest = if replaced.len() > KEPT { replaced.pop_front() } else { None };
    drop(replaced);
    drop(oldest);
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::dir::Dir;

    /// Returns how many deleted files of this folder are open.
    fn deleted_files(folder: &std::path::Path) -> usize {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
        let open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        let is_deleted = |path: &std::path::PathBuf| {
            path.starts_with(folder) && path.to_string_lossy().ends_with(" (deleted)")
        };
        open.filter(is_deleted).count()
    }

    #[test]
    fn a_few_replaced_files_stay_open() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap().unwrap();
        let mut most = 0;
        for number in 0..3 * KEPT {
            std::fs::write(folder.path().join("new"), number.to_string()).unwrap();
            dir.rename("new", "file").unwrap();
            // Other tests may replace files meanwhile, so fewer may be open.
            most = most.max(deleted_files(folder.path()));
        }
        // Some temporary folders are in memory, where nothing is kept.
        assert!(most <= KEPT, "{most}");
        assert_eq!(most > 0, open(dir.fd(), "file").is_some());
        assert_eq!(
            std::fs::read_to_string(folder.path().join("file")).unwrap(),
            (3 * KEPT - 1).to_string()
        );
    }
}
