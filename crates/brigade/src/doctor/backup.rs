//! Backups of files that the doctor moves or changes. The backups are stored in brigade's state folder, each under
//! the original path of its file.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::snapshot::DoctorSnapshot;
use crate::error::{CliError, Trouble};

/// The folder for files that the doctor moved out of the way, and for copies of files that it changed.
#[derive(Debug)]
pub(crate) struct BackupFolder {
    dir: PathBuf,
    claude_dir: PathBuf,
    state_dir: PathBuf,
}

impl BackupFolder {
    /// Chooses a new folder for this run of the doctor. The folder is created with its first file.
    pub(crate) fn new(snapshot: &DoctorSnapshot) -> Self {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ").to_string();
        Self {
            dir: snapshot.state_dir.join("doctor").join(now),
            claude_dir: snapshot.claude_dir.clone(),
            state_dir: snapshot.state_dir.clone(),
        }
    }

    /// Returns the backup path of a file, derived from its original path. Appends a number if
    /// the backup path exists already.
    fn backup_path(&self, path: &Path) -> io::Result<PathBuf> {
        let relative =
            path.strip_prefix(&self.claude_dir).or_else(|_| path.strip_prefix(&self.state_dir));
        let relative = relative.unwrap_or_else(|_| Path::new(path.file_name().unwrap_or_default()));
        let mut backup = self.dir.join(relative);
        let name = backup.file_name().unwrap_or_default().to_owned();
        for number in 2.. {
            if backup.symlink_metadata().is_err() {
                break;
            }
            let mut numbered = name.clone();
            numbered.push(format!(".{number}"));
            backup.set_file_name(numbered);
        }
        if let Some(parent) = backup.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        Ok(backup)
    }

    /// Copies a file to the backup folder, if it exists.
    pub(super) fn back_up(&self, path: &Path) -> Result<(), CliError> {
        let copy = || match fs::read(path) {
            Ok(bytes) => {
                let backup = self.backup_path(path)?;
                fs::write(&backup, bytes)?;
                fs::set_permissions(&backup, Permissions::from_mode(0o600))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        copy().map_err(|source| failed("back up", path, source))
    }

    /// Moves a file or folder to the backup folder and returns its new path.
    pub(super) fn move_here(&self, path: &Path) -> io::Result<PathBuf> {
        let backup = self.backup_path(path)?;
        match fs::rename(path, &backup) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                copy_all(path, &backup)?;
                if path.symlink_metadata()?.is_dir() {
                    fs::remove_dir_all(path)?;
                } else {
                    fs::remove_file(path)?;
                }
            }
            other => other?,
        }
        Ok(backup)
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    let meta = from.symlink_metadata()?;
    if meta.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if !meta.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    DirBuilder::new().mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

pub(super) fn failed(doing: &str, path: &Path, source: io::Error) -> CliError {
    CliError::failed(Trouble::Io { doing: format!("{doing} {}", path.display()), source })
}
