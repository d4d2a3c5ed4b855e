//! Identifies the directory that serves as a lock.
//!
//! A file system may give a new directory the inode number of a removed one. Therefore the id also
//! contains the creation time, which renaming does not change. Linux and macOS report the creation
//! time in different ways; the macOS code is untested.

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::dir::Dir;
use brigade_core::store::StoreError;

/// Identifies a lock directory. A directory created later under the same name has another id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockId {
    pub(crate) inode: u64,
    pub(crate) born: i64,
}

impl LockId {
    /// Returns the id of the lock with this name, or `None` if it does not exist.
    pub(crate) fn find(dir: &Dir, name: &str) -> Result<Option<Self>, StoreError> {
        match stat_lock(dir, name) {
            Ok(id) => Ok(Some(id)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(dir.io_error("stat", name, error)),
        }
    }
}

#[cfg(target_os = "linux")]
fn stat_lock(dir: &Dir, name: &str) -> Result<LockId, Errno> {
    use rustix::fs::{StatxFlags, statx};
    let stat =
        statx(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO | StatxFlags::BTIME)?;
    let born = stat.stx_btime;
    let nanos = born.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(i64::from(born.tv_nsec));
    Ok(LockId { inode: stat.stx_ino, born: nanos })
}

#[cfg(not(target_os = "linux"))]
fn stat_lock(dir: &Dir, name: &str) -> Result<LockId, Errno> {
    let stat = rustix::fs::statat(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
    let nanos = stat.st_birthtime.wrapping_mul(1_000_000_000).wrapping_add(stat.st_birthtime_nsec);
    Ok(LockId { inode: stat.st_ino, born: nanos })
}
