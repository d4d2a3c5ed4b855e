//! Reads a user's file and replaces it atomically.
//!
//! Many people keep their settings in a repository and link to them. If the target of a link belongs to the
//! user, brigade changes the target and keeps the link.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::InitError;

/// A file as it was read, or a path where no file exists yet.
#[derive(Debug)]
pub(crate) struct UserFile {
    /// The path as given.
    pub(crate) path: PathBuf,
    /// The content; `None` if the file does not exist.
    pub(crate) text: Option<String>,
    /// The path with links resolved.
    real: PathBuf,
    mode: Option<u32>,
}

impl UserFile {
    /// Reads the file at a path, if it exists.
    pub(crate) fn read(path: &Path) -> Result<Self, InitError> {
        match fs::symlink_metadata(path) {
            Ok(_) => Self::present(path),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::absent(path),
            Err(source) => Err(InitError::io("read", path, source)),
        }
    }

    fn present(path: &Path) -> Result<Self, InitError> {
        let real = real(path)?;
        let metadata = fs::metadata(&real).map_err(|source| InitError::io("read", &real, source));
        let metadata = metadata?;
        check_owner(&metadata, path)?;
        if !metadata.is_file() {
            return Err(InitError::NotAFile { path: path.to_owned() });
        }
        let text = read(&real)?;
        Ok(Self { path: path.to_owned(), text, real, mode: Some(metadata.mode() & 0o7777) })
    }

    fn absent(path: &Path) -> Result<Self, InitError> {
        // Start from the nearest existing parent; a dangling link counts as existing.
        let existing = path.ancestors().skip(1).find(|dir| fs::symlink_metadata(dir).is_ok());
        let existing = existing.unwrap_or(Path::new("/"));
        let dir = real(existing)?;
        if dir != existing {
            let metadata = fs::metadata(&dir).map_err(|e| InitError::io("read", &dir, e));
            check_owner(&metadata?, existing)?;
        }
        let rest = path.strip_prefix(existing).unwrap_or(path);
        Ok(Self { path: path.to_owned(), text: None, real: dir.join(rest), mode: None })
    }

    /// Returns the folders that have to be created for the file, outermost first.
    pub(crate) fn missing_folders(&self) -> Vec<PathBuf> {
        let missing = self.real.ancestors().skip(1).take_while(|dir| !dir.exists());
        let mut folders: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        folders.reverse();
        folders
    }

    /// Replaces the file's content atomically and keeps its mode. Fails if the file has changed since it was read.
    pub(crate) fn replace(&self, text: &str) -> Result<(), InitError> {
        let (temporary, dir) = self.temporary();
        let failed = |doing| move |source| InitError::io(doing, &self.path, source);
        DirBuilder::new().recursive(true).create(dir).map_err(failed("create the folder of"))?;
        self.remove_temporary();
        let written = (|| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(self.mode.unwrap_or(0o666));
            let mut file = options.open(&temporary)?;
            file.write_all(text.as_bytes())?;
            if let Some(mode) = self.mode {
                // The umask may have removed permission bits when the file was created.
                file.set_permissions(Permissions::from_mode(mode))?;
            }
            file.sync_all()
        })();
        let replaced = written.map_err(failed("write")).and_then(|()| {
            if read(&self.real)? != self.text {
                return Err(InitError::Overtaken { path: self.path.clone() });
            }
            fs::rename(&temporary, &self.real).map_err(failed("replace"))
        });
        if replaced.is_err() {
            self.remove_temporary();
        }
        replaced?;
        // Sync the folder, so that the rename is durable. Ignore errors: some file systems cannot sync a folder.
        let _synced = File::open(dir).and_then(|dir| dir.sync_all());
        Ok(())
    }

    /// Removes the file. If `path` is a link to the file, removes the link as well, because it would dangle.
    pub(crate) fn remove(&self) -> Result<(), InitError> {
        if read(&self.real)? != self.text {
            return Err(InitError::Overtaken { path: self.path.clone() });
        }
        let mut removed = fs::remove_file(&self.real);
        if fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.is_symlink()) {
            removed = removed.and_then(|()| fs::remove_file(&self.path));
        }
        removed.map_err(|source| InitError::io("remove", &self.path, source))
    }

    /// Removes the temporary file that a killed process may have left behind.
    pub(crate) fn remove_temporary(&self) {
        let _none = fs::remove_file(self.temporary().0);
    }

    /// Returns the path of the temporary file, and its folder. A fixed name is enough, because the caller holds
    /// the lock of the record folder.
    fn temporary(&self) -> (PathBuf, &Path) {
        let dir = self.real.parent().unwrap_or(Path::new("/"));
        let name = self.real.file_name().unwrap_or_default().to_string_lossy();
        (dir.join(format!(".{name}.brigade")), dir)
    }
}

/// Reads a file; returns `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<String>, InitError> {
    match fs::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes);
            Ok(Some(text.map_err(|_| InitError::NotText { path: path.to_owned() })?))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(InitError::io("read", path, source)),
    }
}

fn real(path: &Path) -> Result<PathBuf, InitError> {
    path.canonicalize().map_err(|source| match source.kind() {
        ErrorKind::NotFound => InitError::Dangling { path: path.to_owned() },
        _ => InitError::io("follow the link", path, source),
    })
}

fn check_owner(metadata: &fs::Metadata, path: &Path) -> Result<(), InitError> {
    if metadata.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(InitError::Foreign { path: path.to_owned() })
}
