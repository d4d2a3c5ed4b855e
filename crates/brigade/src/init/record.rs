//! The record of all changes by `brigade init`. The record is written before the first file is changed, so that an
//! interrupted `brigade init` can be undone.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use brigade_wire::settings::SettingPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::InitError;

/// The name of the lock file.
const LOCK: &str = "lock";

/// The record of all changes.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct InitRecord {
    /// The changed files, in the order of the changes.
    pub(crate) files: Vec<ChangedFile>,
    /// The folders that were created for these files, outermost first.
    pub(crate) folders: Vec<PathBuf>,
}

/// A file that was changed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ChangedFile {
    pub(crate) path: PathBuf,
    /// The text without brigade's changes; `None` if the file did not exist.
    pub(crate) before: Option<String>,
    /// The texts that brigade may have written: the newest text, and the text that the newest one replaced.
    pub(crate) left: Vec<String>,
    /// The part that brigade wrote.
    pub(crate) put: OurContent,
    /// The Claude Code folder that was set up with this change. Older versions of brigade do not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claude_dir: Option<PathBuf>,
}

/// The part of a file that brigade wrote.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OurContent {
    Settings {
        settings: Vec<OurSetting>,
        /// The sections that were created for these settings.
        sections: Vec<String>,
    },
    Pieces(Vec<String>),
    Whole,
}

/// A setting that brigade wrote, and its previous value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct OurSetting {
    pub(crate) section: Option<String>,
    pub(crate) key: String,
    pub(crate) was: Option<Value>,
    pub(crate) is: Value,
}

impl OurSetting {
    pub(crate) fn place(&self) -> SettingPath<'_> {
        SettingPath { section: self.section.as_deref(), key: &self.key }
    }
}

impl InitRecord {
    pub(crate) fn file(&self, path: &Path) -> Option<&ChangedFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl ChangedFile {
    /// Returns whether a text is exactly what brigade wrote.
    pub(crate) fn is_as_left(&self, text: &str) -> bool {
        self.left.iter().any(|left| left == text)
    }
}

/// The folder that contains the record. This process holds the folder's lock.
#[derive(Debug)]
pub(crate) struct RecordFolder {
    dir: PathBuf,
    _lock: File,
}

impl RecordFolder {
    /// Opens and locks the folder, and creates it if needed. Only the user may read it, because settings can
    /// contain keys and tokens.
    pub(crate) fn open(dir: &Path) -> Result<Self, InitError> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(dir);
        made.map_err(|source| InitError::io("create the folder", dir, source))?;
        let path = dir.join(LOCK);
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = lock.map_err(|source| InitError::io("open", &path, source))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(InitError::Busy),
            Err(TryLockError::Error(source)) => return Err(InitError::io("lock", &path, source)),
        }
        // The previous lock holder may have removed the lock file after this process opened it.
        let inode =
            |metadata: io::Result<fs::Metadata>| metadata.ok().map(|metadata| metadata.ino());
        if inode(lock.metadata()) != inode(fs::metadata(&path)) {
            return Err(InitError::Busy);
        }
        Ok(Self { dir: dir.to_owned(), _lock: lock })
    }

    /// Reads the record, if there is one.
    pub(crate) fn read(&self) -> Result<Option<InitRecord>, InitError> {
        let path = self.path();
        match fs::read(&path) {
            Ok(bytes) => {
                let record = serde_json::from_slice(&bytes);
                record.map(Some).map_err(|source| InitError::Record { path, source })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(InitError::io("read", &path, source)),
        }
    }

    /// Writes the record and syncs it to disk.
    pub(crate) fn write(&self, record: &InitRecord) -> Result<(), InitError> {
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
        written.map_err(|source| InitError::io("write", &path, source))
    }

    /// Removes the record.
    pub(crate) fn close(self) -> Result<(), InitError> {
        let path = self.path();
        fs::remove_file(&path).map_err(|source| InitError::io("remove", &path, source))
    }

    fn path(&self) -> PathBuf {
        self.dir.join("record.json")
    }
}

impl Drop for RecordFolder {
    /// If there is no record, removes the folder, and also brigade's state folder if that is empty. The lock is
    /// released afterwards.
    fn drop(&mut self) {
        if !self.path().exists() {
            let _ignored = fs::remove_file(self.dir.join(LOCK));
            let _ignored = fs::remove_dir(&self.dir);
            let _ignored = self.dir.parent().map(fs::remove_dir);
        }
    }
}
