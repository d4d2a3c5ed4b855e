//! Backups of files that the doctor moves or changes. The backups are stored in brigade's state folder, each under
//! the original path of its file.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use brigade_files::layout::DELETED;
use serde::Serialize;

use super::anchored::{FileIdentity, FileRemoval, Roots};
use super::snapshot::DoctorSnapshot;
use crate::error::{CliError, Trouble};

/// The file in the backup folder that lists what the doctor did.
const CHANGES: &str = "changes.jsonl";

/// The folder for files that the doctor moved out of the way, and for copies of files that it changed.
#[derive(Debug)]
pub(crate) struct BackupFolder {
    dir: PathBuf,
    claude_dir: PathBuf,
    state_dir: PathBuf,
    roots: Roots,
}

impl BackupFolder {
    /// Chooses a new folder for this run of the doctor. The folder is created with its first file.
    pub(crate) fn new(snapshot: &DoctorSnapshot) -> Self {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ").to_string();
        Self {
            dir: snapshot.state_dir.join("doctor").join(now),
            claude_dir: snapshot.claude_dir.clone(),
            state_dir: snapshot.state_dir.clone(),
            roots: Roots::new(&snapshot.claude_dir, &snapshot.state_dir),
        }
    }

    /// Returns the folders inside which fixes follow no links.
    pub(super) fn roots(&self) -> &Roots {
        &self.roots
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
        let copy = || match self.roots.anchor(path).and_then(|file| file.read()) {
            Ok(bytes) => self.store(path, &bytes).map(drop),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        copy().map_err(|source| failed("back up", path, source))
    }

    /// Stores a copy of a file with these contents, and returns the path of the copy.
    pub(super) fn store(&self, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
        let backup = self.backup_path(path)?;
        fs::write(&backup, bytes)?;
        fs::set_permissions(&backup, Permissions::from_mode(0o600))?;
        Ok(backup)
    }

    /// Moves a file or folder to the backup folder and returns its new path. Returns `None` if it is no longer the
    /// one that was inspected.
    pub(super) fn move_here(
        &self,
        path: &Path,
        inspected: FileIdentity,
    ) -> io::Result<Option<PathBuf>> {
        let anchored = self.roots.anchor(path)?;
        let backup = self.backup_path(path)?;
        let moved = match anchored.move_to(&backup, inspected) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                if !path.symlink_metadata()?.is_dir() {
                    copy_all(path, &backup)?;
                    return Ok(
                        (anchored.remove_file(inspected)? == FileRemoval::Done).then_some(backup)
                    );
                }
                // Rename the folder first, so that no program adds files to it between the copy and the removal.
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let renamed = format!("{name}{DELETED}doctor-{}", std::process::id());
                let renamed = path.with_file_name(renamed);
                if anchored.move_to(&renamed, inspected)? == FileRemoval::NotFound {
                    return Ok(None);
                }
                copy_all(&renamed, &backup)?;
                fs::remove_dir_all(&renamed)?;
                Ok(FileRemoval::Done)
            }
            moved => moved,
        };
        Ok((moved? == FileRemoval::Done).then_some(backup))
    }

    /// Adds a line to the list of changes, so that a person can undo each of them.
    pub(crate) fn note(&self, change: &impl Serialize) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let mut line = serde_json::to_vec(change)?;
        line.push(b'\n');
        let mut options = OpenOptions::new();
        let list = options.append(true).create(true).mode(0o600).open(self.dir.join(CHANGES));
        list?.write_all(&line)
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
