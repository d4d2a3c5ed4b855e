//! File operations that follow no symbolic link inside the folders that brigade and Claude Code own.
//!
//! Between a check and its fix, another program may replace a folder with a link. A path would then lead to files that
//! the check has not seen. Therefore a fix opens the folders one by one, and acts relative to the last one.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use brigade_files::layout::{TASKS, TEAMS, temp_name};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// The folders that the user chose. They may be symbolic links; folders inside them may not.
#[derive(Clone, Debug)]
pub(super) struct Roots(Vec<PathBuf>);

/// A file or folder, relative to the open folder that contains it.
#[derive(Debug)]
pub(super) struct AnchoredPath {
    parent: OwnedFd,
    name: OsString,
}

/// Distinguishes two files, and two versions of a file, that have the same path one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    pub(super) fn new(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Self { device: metadata.dev(), inode: metadata.ino(), modified }
    }
}

/// The result of removing or moving a file that was inspected before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileRemoval {
    Done,
    /// The file is gone, or another file has replaced it.
    NotFound,
}

impl Roots {
    pub(super) fn new(claude_dir: &Path, state_dir: &Path) -> Self {
        Self(vec![claude_dir.join(TEAMS), claude_dir.join(TASKS), state_dir.to_owned()])
    }

    /// Opens the folder that contains `path`.
    pub(super) fn anchor(&self, path: &Path) -> io::Result<AnchoredPath> {
        let outside = || io::Error::other("it is outside the folders of teams");
        let root = self.0.iter().find(|root| path != **root && path.starts_with(root));
        let (root, name) = root.zip(path.file_name()).ok_or_else(outside)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut parent = rustix::fs::openat(CWD, root, flags, Mode::empty())?;
        let inside = path.parent().and_then(|parent| parent.strip_prefix(root).ok());
        for component in inside.ok_or_else(outside)?.components() {
            let Component::Normal(folder) = component else { return Err(outside()) };
            let flags = flags | OFlags::NOFOLLOW;
            parent = rustix::fs::openat(&parent, folder, flags, Mode::empty())?;
        }
        Ok(AnchoredPath { parent, name: name.to_owned() })
    }
}

impl AnchoredPath {
    fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(rustix::fs::openat(&self.parent, &self.name, flags, Mode::empty())?)
    }

    /// Returns the identity of a file in the folder.
    fn identity(&self, name: &OsString) -> io::Result<FileIdentity> {
        let stat = rustix::fs::statat(&self.parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        #[expect(clippy::useless_conversion, reason = "on macOS, these numbers have other types")]
        Ok(FileIdentity {
            device: u64::try_from(stat.st_dev).unwrap_or_default(),
            inode: stat.st_ino,
            modified: (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or_default()),
        })
    }

    /// Returns whether the file is still the one that was inspected.
    fn is(&self, inspected: FileIdentity) -> io::Result<bool> {
        match self.identity(&self.name) {
            Ok(identity) => Ok(identity == inspected),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads a regular file.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let mut file = File::from(self.open(OFlags::RDONLY)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Sets the mode of a file or folder.
    pub(super) fn set_mode(&self, mode: u32) -> io::Result<()> {
        let file = self.open(OFlags::RDONLY)?;
        Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?)
    }

    /// Removes an empty folder, and first the empty folder `child` in it, if there is one.
    pub(super) fn remove_empty(&self, child: &str) -> io::Result<()> {
        let folder = self.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
        let _absent = rustix::fs::unlinkat(&folder, child, AtFlags::REMOVEDIR);
        Ok(rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR)?)
    }

    /// Removes an empty folder that serves as a lock, if it is still the lock that was inspected. Renames the lock
    /// first, and restores it if another program has taken it again meanwhile.
    pub(super) fn remove_lock(&self, inspected: FileIdentity) -> io::Result<FileRemoval> {
        let moved = OsString::from(temp_name(&self.name.to_string_lossy(), std::process::id(), 0));
        match rustix::fs::renameat(&self.parent, &self.name, &self.parent, &moved) {
            Err(Errno::NOENT) => return Ok(FileRemoval::NotFound),
            renamed => renamed?,
        }
        let is_same = self.identity(&moved)? == inspected;
        if is_same && rustix::fs::unlinkat(&self.parent, &moved, AtFlags::REMOVEDIR).is_ok() {
            return Ok(FileRemoval::Done);
        }
        let flags = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(&self.parent, &moved, &self.parent, &self.name, flags)?;
        Ok(FileRemoval::NotFound)
    }

    /// Moves a file or folder to `to`, if it is still the one that was inspected. Fails with
    /// [`io::ErrorKind::CrossesDevices`] if `to` is on another file system.
    pub(super) fn move_to(&self, to: &Path, inspected: FileIdentity) -> io::Result<FileRemoval> {
        if !self.is(inspected)? {
            return Ok(FileRemoval::NotFound);
        }
        rustix::fs::renameat(&self.parent, &self.name, CWD, to)?;
        let moved = to.symlink_metadata().map(|metadata| FileIdentity::new(&metadata))?;
        if moved == inspected {
            return Ok(FileRemoval::Done);
        }
        // Another program replaced the file just before it was moved. Put the new file back.
        let flags = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(CWD, to, &self.parent, &self.name, flags)?;
        Ok(FileRemoval::NotFound)
    }

    /// Removes a regular file, if it is still the one that was inspected.
    pub(super) fn remove_file(&self, inspected: FileIdentity) -> io::Result<FileRemoval> {
        if !self.is(inspected)? {
            return Ok(FileRemoval::NotFound);
        }
        rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::empty())?;
        Ok(FileRemoval::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn identity(path: &Path) -> FileIdentity {
        FileIdentity::new(&path.symlink_metadata().unwrap())
    }

    #[test]
    fn finding_34_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (claude, other) = (dir.path().join("claude"), dir.path().join("other"));
        fs::create_dir_all(claude.join("teams/demo")).unwrap();
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("bob.json"), "[]").unwrap();
        symlink(&other, claude.join("teams/demo/inboxes")).unwrap();
        let roots = Roots::new(&claude, &dir.path().join("state"));
        assert!(roots.anchor(&claude.join("teams/demo/inboxes/bob.json")).is_err());
        assert!(roots.anchor(&claude.join("settings.json")).is_err());
        assert!(roots.anchor(&claude.join("teams/demo/../../settings.json")).is_err());
    }

    /// Finding 29: a lock that another program took again after the check stays in place.
    #[test]
    fn finding_29_a_lock_that_was_taken_again_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("teams/demo/config.json.lock");
        fs::create_dir_all(&lock).unwrap();
        let roots = Roots::new(dir.path(), &dir.path().join("state"));
        let inspected = identity(&lock);
        fs::remove_dir(&lock).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::create_dir(&lock).unwrap();
        let anchored = roots.anchor(&lock).unwrap();
        assert_eq!(anchored.remove_lock(inspected).unwrap(), FileRemoval::NotFound);
        assert!(lock.is_dir());
        assert_eq!(anchored.remove_lock(identity(&lock)).unwrap(), FileRemoval::Done);
        assert!(!lock.exists());
        assert_eq!(fs::read_dir(lock.parent().unwrap()).unwrap().count(), 0);
    }
}
