//! An open directory, and operations on the files in it.
//!
//! All operations take names relative to an open directory. If another process puts a different
//! directory at the same path, later operations still use the open directory. Symbolic links are
//! not followed, and other users' files are not touched.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use std::os::unix::fs::DirBuilderExt as _;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::layout::MAX_FILE;
use brigade_core::store::{Refusal, StoreError};

/// The mode of all files that brigade creates.
pub(crate) const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

/// Distinguishes two versions of a file without reading the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) inode: u64,
    pub(crate) modified: i64,
    pub(crate) size: u64,
}

/// The contents of a file, with its stamp and mode.
#[derive(Debug)]
pub(crate) struct FileContents {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stamp: FileStamp,
    pub(crate) mode: Mode,
}

/// Whether data must be on disk before a write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fsync {
    No,
    Yes,
}

impl Dir {
    /// Opens a directory that the user chose. It may be a symbolic link.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match fs::open(path, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(Self { fd, path: path.to_owned() })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(io_error("open", path.to_owned(), error)),
        }
    }

    /// Opens a subdirectory.
    pub(crate) fn child(&self, name: &str) -> Result<Option<Self>, StoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = self.path.join(name);
        match fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(Self { fd, path })),
            Err(Errno::NOENT) => Ok(None),
            // If the path is a symbolic link, Linux reports NOTDIR here, and macOS reports LOOP.
            Err(Errno::LOOP | Errno::NOTDIR) if self.is_link(name) => {
                Err(self.refused(name, Refusal::Symlink))
            }
            Err(error) => Err(io_error("open", path, error)),
        }
    }

    /// Opens a subdirectory, creating it for the current user alone if needed.
    pub(crate) fn open_or_create_child(&self, name: &str) -> Result<Self, StoreError> {
        loop {
            if let Some(child) = self.child(name)? {
                return Ok(child);
            }
            match fs::mkdirat(&self.fd, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => {
                    return Err(io_error("create the directory", self.path.join(name), error));
                }
            }
        }
    }

    /// Fails as on a read-only file system if one of these files or folders does not exist.
    pub(crate) fn check_exists(&self, names: &[&str]) -> Result<(), StoreError> {
        for name in names {
            if self.stamp(name)?.is_none() {
                return Err(io_error("create", self.path.join(name), Errno::ROFS));
            }
        }
        Ok(())
    }

    /// Opens one of brigade's own subdirectories, creating it if needed. Only the current user may
    /// enter it, regardless of the umask.
    pub(crate) fn private_child(&self, name: &str) -> Result<Self, StoreError> {
        if let Ok(()) = fs::mkdirat(&self.fd, name, Mode::RWXU) {
            // Set the mode again: with some umasks, even the owner cannot open the new directory.
            self.set_mode(name, Mode::RWXU)?;
        }
        let child = self.open_or_create_child(name)?;
        let io_error = |error| io_error("stat", child.path.clone(), error);
        let stat = fs::fstat(&child.fd).map_err(io_error)?;
        check_owner(stat.st_uid, &child.path)?;
        if Mode::from_raw_mode(stat.st_mode) != Mode::RWXU {
            match fs::fchmod(&child.fd, Mode::RWXU) {
                Ok(()) | Err(Errno::ROFS) => {}
                Err(error) => return Err(io_error(error)),
            }
        }
        Ok(child)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn dir_path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the directory still exists.
    pub(crate) fn exists(&self) -> bool {
        fs::fstat(&self.fd).is_ok_and(|stat| stat.st_nlink > 0)
    }

    /// Opens a regular file for reading. Returns `None` if it does not exist.
    pub(crate) fn file(&self, name: &str) -> Result<Option<(OwnedFd, fs::Stat)>, StoreError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = match fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(self.refused(name, Refusal::Symlink)),
            Err(error) => return Err(self.io_error("open", name, error)),
        };
        let stat = fs::fstat(&fd).map_err(|error| self.io_error("stat", name, error))?;
        check_owner(stat.st_uid, &self.path.join(name))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.refused(name, Refusal::NotAFile));
        }
        Ok(Some((fd, stat)))
    }

    /// Reads a whole file. Returns `None` if it does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<FileContents>, StoreError> {
        let Some((fd, stat)) = self.file(name)? else { return Ok(None) };
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if size > MAX_FILE {
            return Err(self.refused(name, Refusal::TooBig));
        }
        // Reserve one byte more than the size of the file. If the first read does not fill the
        // buffer, it has reached the end of the file, and no second read is needed.
        let mut bytes: Vec<u8> = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
        loop {
            let capacity = bytes.spare_capacity_mut().len();
            let offset = bytes.len() as u64;
            let spare = rustix::buffer::spare_capacity(&mut bytes);
            let read = rustix::io::pread(&fd, spare, offset);
            if read.map_err(|error| self.io_error("read", name, error))? < capacity {
                break;
            }
            bytes.reserve(bytes.len().max(4096));
        }
        let mode = Mode::from_raw_mode(stat.st_mode);
        Ok(Some(FileContents { bytes, stamp: FileStamp::from_stat(&stat), mode }))
    }

    /// Returns the stamp of a file, or `None` if it does not exist.
    pub(crate) fn stamp(&self, name: &str) -> Result<Option<FileStamp>, StoreError> {
        match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileStamp::from_stat(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.io_error("stat", name, error)),
        }
    }

    /// Returns an error if brigade refuses to read and replace this file, for example a symbolic
    /// link or another user's file.
    pub(crate) fn check_replaceable(&self, name: &str) -> Result<(), StoreError> {
        let stat = match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(self.io_error("stat", name, error)),
        };
        let why = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => return check_owner(stat.st_uid, &self.path.join(name)),
            FileType::Symlink => Refusal::Symlink,
            _ => Refusal::NotAFile,
        };
        Err(self.refused(name, why))
    }

    /// Creates an empty file if it does not exist.
    pub(crate) fn touch(&self, name: &str) -> Result<(), StoreError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = fs::openat(&self.fd, name, flags, PRIVATE);
        made.map(drop).map_err(|error| self.io_error("create", name, error))
    }

    /// Writes a temporary file. If `mode` is `None`, only the current user may read the file; otherwise the
    /// file gets exactly `mode`. The name must be unique to this process.
    pub(crate) fn write_temp(
        &self,
        name: &str,
        bytes: &[u8],
        mode: Option<Mode>,
        sync: Fsync,
    ) -> Result<FileStamp, StoreError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let io_error = |doing, error| self.io_error(doing, name, error);
        let create_mode = mode.unwrap_or(PRIVATE);
        let fd = match fs::openat(&self.fd, name, flags, create_mode) {
            // A dead process that had the same process id left this file behind.
            Err(Errno::EXIST) => {
                self.remove(name)?;
                fs::openat(&self.fd, name, flags, create_mode)
            }
            other => other,
        };
        let fd = fd.map_err(|error| io_error("create", error))?;
        let written = (|| {
            write_all(&fd, bytes).map_err(|e| io_error("write", e))?;
            let stat = fs::fstat(&fd).map_err(|e| io_error("stat", e))?;
            // Restore the permissions that the umask removed.
            if let Some(mode) = mode.filter(|&mode| Mode::from_raw_mode(stat.st_mode) != mode) {
                fs::fchmod(&fd, mode).map_err(|e| io_error("set the mode of", e))?;
            }
            if sync == Fsync::Yes {
                fs::fsync(&fd).map_err(|e| io_error("sync", e))?;
            }
            Ok(FileStamp::from_stat(&stat))
        })();
        if written.is_err() {
            self.remove_quietly(name);
        }
        written
    }

    fn set_mode(&self, name: &str, mode: Mode) -> Result<(), StoreError> {
        let set = fs::chmodat(&self.fd, name, mode, AtFlags::empty());
        set.map_err(|error| self.io_error("set the mode of", name, error))
    }

    /// Renames a file, replacing the target.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let renamed = fs::renameat(&self.fd, from, &self.fd, to);
        renamed.map_err(|error| self.io_error("replace", to, error))
    }

    /// Replaces a file that is of use only until the system restarts. Unlike [`Dir::rename`], this does not make the file
    /// system write the new content to disk, which takes longer than everything else.
    pub(crate) fn replace_volatile(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let flags = fs::RenameFlags::EXCHANGE;
        match fs::renameat_with(&self.fd, from, &self.fd, to, flags) {
            Ok(()) => self.remove(from).map(drop),
            // The target does not exist, or this file system cannot exchange files.
            Err(_) => self.rename(from, to),
        }
    }

    /// Renames a file unless the target exists. Returns whether it was renamed.
    pub(crate) fn rename_new(&self, from: &str, to: &str) -> Result<bool, StoreError> {
        let flags = fs::RenameFlags::NOREPLACE;
        match fs::renameat_with(&self.fd, from, &self.fd, to, flags) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // This file system does not support `NOREPLACE`.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => self.link_new(from, to),
            Err(error) => Err(self.io_error("create", to, error)),
        }
    }

    fn link_new(&self, from: &str, to: &str) -> Result<bool, StoreError> {
        match fs::linkat(&self.fd, from, &self.fd, to, AtFlags::empty()) {
            Ok(()) => self.remove(from),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(self.io_error("create", to, error)),
        }
    }

    /// Removes a file. Returns whether it existed.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, StoreError> {
        match fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(self.io_error("remove", name, error)),
        }
    }

    /// Removes a file, ignoring errors. Meant for files that are harmless if left behind.
    pub(crate) fn remove_quietly(&self, name: &str) {
        let _best_effort = fs::unlinkat(&self.fd, name, AtFlags::empty());
    }

    /// Removes an empty directory, ignoring errors.
    pub(crate) fn remove_dir_quietly(&self, name: &str) {
        let _best_effort = fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR);
    }

    /// Fsyncs the directory, so that created, renamed and removed names are on disk.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        fs::fsync(&self.fd).map_err(|error| io_error("sync", self.path.clone(), error))
    }

    /// Returns the names in the directory, in no particular order.
    pub(crate) fn names(&self) -> Result<Vec<String>, StoreError> {
        let io_error = |error| io_error("list", self.path.clone(), error);
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.fd).map_err(io_error)? {
            let entry = entry.map_err(io_error)?;
            // Skip names that are not UTF-8. Neither brigade nor Claude Code creates them.
            if let Ok(name) = entry.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Opens one of brigade's own files for reading and writing, creating it if needed. If the file
    /// exists but cannot be written, opens it for reading only.
    pub(crate) fn private_file(
        &self,
        name: &str,
        extra_flags: OFlags,
    ) -> Result<OwnedFd, StoreError> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | extra_flags;
        let mode = PRIVATE;
        let open = |flags: OFlags| fs::openat(&self.fd, name, flags, mode);
        let opened = match open(flags | OFlags::RDWR | OFlags::CREATE) {
            Err(error @ (Errno::ROFS | Errno::ACCESS)) => {
                open(flags | OFlags::RDONLY).map_err(|_| error)
            }
            opened => opened,
        };
        let fd = opened.map_err(|error| match error {
            Errno::LOOP => self.refused(name, Refusal::Symlink),
            error => self.io_error("open", name, error),
        })?;
        let stat = fs::fstat(&fd).map_err(|error| self.io_error("stat", name, error))?;
        check_owner(stat.st_uid, &self.path.join(name))?;
        if Mode::from_raw_mode(stat.st_mode) != mode {
            match fs::fchmod(&fd, mode) {
                Ok(()) | Err(Errno::ROFS) => {}
                Err(error) => return Err(self.io_error("set the mode of", name, error)),
            }
        }
        Ok(fd)
    }

    pub(crate) fn io_error(&self, doing: &'static str, name: &str, error: Errno) -> StoreError {
        io_error(doing, self.path.join(name), error)
    }

    fn refused(&self, name: &str, why: Refusal) -> StoreError {
        StoreError::Refused { path: self.path.join(name), why }
    }

    pub(crate) fn fd(&self) -> impl AsFd + '_ {
        &self.fd
    }

    fn is_link(&self, name: &str) -> bool {
        let stat = fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }
}

impl FileStamp {
    pub(crate) fn from_stat(stat: &fs::Stat) -> Self {
        let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
        Self {
            inode: stat.st_ino,
            modified: stat.st_mtime.wrapping_mul(1_000_000_000).wrapping_add(nanos),
            size: u64::try_from(stat.st_size).unwrap_or_default(),
        }
    }
}

/// Creates a directory and its parents for the current user alone, if needed.
pub(crate) fn create_all(path: &Path) -> Result<(), StoreError> {
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700).create(path).map_err(|source| {
        let path = path.to_owned();
        StoreError::Io { doing: "create the directory", path, source }
    })
}

/// Returns the device and inode of the file or directory at a path.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    let stat = fs::lstat(path).ok()?;
    #[expect(clippy::useless_conversion, reason = "on macOS, a device number has another type")]
    Some((u64::try_from(stat.st_dev).ok()?, stat.st_ino))
}

/// Returns the device and inode of an open file.
pub(crate) fn identity_of(file: impl AsFd) -> Result<(u64, u64), Errno> {
    let stat = fs::fstat(file)?;
    #[expect(clippy::useless_conversion, reason = "on macOS, a device number has another type")]
    Ok((u64::try_from(stat.st_dev).unwrap_or_default(), stat.st_ino))
}

/// Writes all bytes, or returns an error.
pub(crate) fn write_all(fd: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(&fd, bytes) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn io_error(doing: &'static str, path: PathBuf, error: Errno) -> StoreError {
    StoreError::Io { doing, path, source: io::Error::from(error) }
}

/// Returns whether an error means that a file or folder can be read but not written.
pub(crate) fn is_read_only(error: &StoreError) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match error {
        StoreError::Io { source, .. } => {
            matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem)
        }
        _ => false,
    }
}

fn check_owner(uid: u32, path: &Path) -> Result<(), StoreError> {
    if uid == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(StoreError::Refused { path: path.to_owned(), why: Refusal::ForeignOwner })
}
