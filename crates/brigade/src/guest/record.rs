//! What was put where. The record is written before the first file is changed, so that whatever happens
//! in between can be undone.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::GuestError;
use super::edit::Put;

/// The name of the file that whoever works here has locked.
const LOCK: &str = "lock";

/// Everything that was changed.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Record {
    /// The files, in the order in which they were changed.
    pub(crate) files: Vec<Touched>,
    /// The folders that were made for them, the outermost first.
    pub(crate) folders: Vec<PathBuf>,
}

/// A file that was changed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Touched {
    pub(crate) path: PathBuf,
    /// What it said without us; `None` if there was no such file.
    pub(crate) before: Option<String>,
    /// What we may have left it saying: the last text, and the one we replaced by it.
    pub(crate) left: Vec<String>,
    /// What of it is ours.
    pub(crate) put: Put,
}

impl Record {
    pub(crate) fn file(&self, path: &Path) -> Option<&Touched> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl Touched {
    /// Whether a text is as we left it.
    pub(crate) fn is_as_left(&self, text: &str) -> bool {
        self.left.iter().any(|left| left == text)
    }
}

/// The folder of the record, ours alone while this is held.
#[derive(Debug)]
pub(crate) struct Book {
    dir: PathBuf,
    _lock: File,
}

impl Book {
    /// Opens the folder, making it if need be. What stands in the record is nobody else's business:
    /// settings have keys and tokens in them.
    pub(crate) fn open(dir: &Path) -> Result<Self, GuestError> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(dir);
        made.map_err(|source| GuestError::io("make the folder", dir, source))?;
        let path = dir.join(LOCK);
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = lock.map_err(|source| GuestError::io("open", &path, source))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(GuestError::Busy),
            Err(TryLockError::Error(source)) => return Err(GuestError::io("lock", &path, source)),
        }
        // Whoever had it may have removed it between our two steps.
        let inode = |looked: io::Result<fs::Metadata>| looked.ok().map(|metadata| metadata.ino());
        if inode(lock.metadata()) != inode(fs::metadata(&path)) {
            return Err(GuestError::Busy);
        }
        Ok(Self { dir: dir.to_owned(), _lock: lock })
    }

    /// The record, if there is one.
    pub(crate) fn read(&self) -> Result<Option<Record>, GuestError> {
        let path = self.path();
        match fs::read(&path) {
            Ok(bytes) => {
                let record = serde_json::from_slice(&bytes);
                record.map(Some).map_err(|source| GuestError::Record { path, source })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(GuestError::io("read", &path, source)),
        }
    }

    /// Writes the record, and waits until it is on the disk.
    pub(crate) fn write(&self, record: &Record) -> Result<(), GuestError> {
        let (path, temporary) = (self.path(), self.dir.join("record.json.new"));
        let written = (|| {
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(&serde_json::to_vec_pretty(record)?)?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            File::open(&self.dir)?.sync_all()
        })();
        written.map_err(|source| GuestError::io("write", &path, source))
    }

    /// Ends the record.
    pub(crate) fn close(self) -> Result<(), GuestError> {
        let path = self.path();
        fs::remove_file(&path).map_err(|source| GuestError::io("remove", &path, source))
    }

    fn path(&self) -> PathBuf {
        self.dir.join("record.json")
    }
}

impl Drop for Book {
    /// Without a record the folder goes, and brigade's own, if this was all there is in it. The lock is
    /// held until then.
    fn drop(&mut self) {
        if !self.path().exists() {
            let _untidy = fs::remove_file(self.dir.join(LOCK));
            let _untidy = fs::remove_dir(&self.dir);
            let _untidy = self.dir.parent().map(fs::remove_dir);
        }
    }
}
