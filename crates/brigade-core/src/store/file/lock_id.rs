//! Which directory a lock is.
//!
//! A file system gives the number of a directory that was removed to the next that is made. So the
//! time of its birth is asked for as well, which moving it does not change. Linux and macOS tell it
//! in different ways; the way of macOS is untested.

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::dir::Dir;
use crate::store::StoreError;

/// Which directory a lock is: another one made in its place has another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockId {
    pub(crate) inode: u64,
    pub(crate) born: i64,
}

impl LockId {
    /// The lock that is there.
    pub(crate) fn find(dir: &Dir, name: &str) -> Result<Option<Self>, StoreError> {
        match stat_lock(dir, name) {
            Ok(id) => Ok(Some(id)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(dir.io_error("look at", name, error)),
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
