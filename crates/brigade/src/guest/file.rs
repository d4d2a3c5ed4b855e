//! A file of the user's: read with care, replaced in one step.
//!
//! Many people keep their settings in a repository and link to them. A link is followed if what it
//! leads to is the user's own, and stays a link.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::GuestError;

/// A file as it was found, or the place where it would be.
#[derive(Debug)]
pub(crate) struct Found {
    /// The path as it was asked for.
    pub(crate) path: PathBuf,
    /// What it says; `None` if there is no such file.
    pub(crate) text: Option<String>,
    /// The same path without links.
    real: PathBuf,
    mode: Option<u32>,
}

impl Found {
    /// Looks for a file.
    pub(crate) fn at(path: &Path) -> Result<Self, GuestError> {
        match fs::symlink_metadata(path) {
            Ok(_) => Self::present(path),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::absent(path),
            Err(source) => Err(GuestError::io("look at", path, source)),
        }
    }

    fn present(path: &Path) -> Result<Self, GuestError> {
        let real = real(path)?;
        let looked = fs::metadata(&real).map_err(|source| GuestError::io("look at", &real, source));
        let metadata = looked?;
        check_owner(&metadata, path)?;
        if !metadata.is_file() {
            return Err(GuestError::NotAFile { path: path.to_owned() });
        }
        let text = read(&real)?;
        Ok(Self { path: path.to_owned(), text, real, mode: Some(metadata.mode() & 0o7777) })
    }

    fn absent(path: &Path) -> Result<Self, GuestError> {
        // From the nearest folder that is there; a link that leads nowhere is there too.
        let there = path.ancestors().skip(1).find(|dir| fs::symlink_metadata(dir).is_ok());
        let there = there.unwrap_or(Path::new("/"));
        let dir = real(there)?;
        if dir != there {
            let looked = fs::metadata(&dir).map_err(|e| GuestError::io("look at", &dir, e));
            check_owner(&looked?, there)?;
        }
        let rest = path.strip_prefix(there).unwrap_or(path);
        Ok(Self { path: path.to_owned(), text: None, real: dir.join(rest), mode: None })
    }

    /// The folders that have to be made for it, the outermost first.
    pub(crate) fn missing_folders(&self) -> Vec<PathBuf> {
        let missing = self.real.ancestors().skip(1).take_while(|dir| !dir.exists());
        let mut folders: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        folders.reverse();
        folders
    }

    /// Gives the file this text, in one step, with the mode it had. Refused if it no longer says what
    /// was found.
    pub(crate) fn replace(&self, text: &str) -> Result<(), GuestError> {
        let (temporary, dir) = self.temporary();
        let failed = |doing| move |source| GuestError::io(doing, &self.path, source);
        DirBuilder::new().recursive(true).create(dir).map_err(failed("make the folder of"))?;
        self.tidy();
        let written = (|| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(self.mode.unwrap_or(0o666));
            let mut file = options.open(&temporary)?;
            file.write_all(text.as_bytes())?;
            if let Some(mode) = self.mode {
                // The umask may have taken something away.
                file.set_permissions(Permissions::from_mode(mode))?;
            }
            file.sync_all()
        })();
        let replaced = written.map_err(failed("write")).and_then(|()| {
            if read(&self.real)? != self.text {
                return Err(GuestError::Overtaken { path: self.path.clone() });
            }
            fs::rename(&temporary, &self.real).map_err(failed("replace"))
        });
        if replaced.is_err() {
            self.tidy();
        }
        replaced?;
        // The name is on the disk too; where a folder cannot be synced it is as good as it gets.
        let _synced = File::open(dir).and_then(|dir| dir.sync_all());
        Ok(())
    }

    /// Removes the file. A link to it is removed as well: it would lead nowhere.
    pub(crate) fn remove(&self) -> Result<(), GuestError> {
        if read(&self.real)? != self.text {
            return Err(GuestError::Overtaken { path: self.path.clone() });
        }
        let mut removed = fs::remove_file(&self.real);
        if fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.is_symlink()) {
            removed = removed.and_then(|()| fs::remove_file(&self.path));
        }
        removed.map_err(|source| GuestError::io("remove", &self.path, source))
    }

    /// Removes what a killed process left half written.
    pub(crate) fn tidy(&self) {
        let _none = fs::remove_file(self.temporary().0);
    }

    /// Where the new text is written first, and the folder. One name for all: whoever writes holds the
    /// lock of the record.
    fn temporary(&self) -> (PathBuf, &Path) {
        let dir = self.real.parent().unwrap_or(Path::new("/"));
        let name = self.real.file_name().unwrap_or_default().to_string_lossy();
        (dir.join(format!(".{name}.brigade")), dir)
    }
}

/// The text of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, GuestError> {
    match fs::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes);
            Ok(Some(text.map_err(|_| GuestError::NotText { path: path.to_owned() })?))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(GuestError::io("read", path, source)),
    }
}

fn real(path: &Path) -> Result<PathBuf, GuestError> {
    path.canonicalize().map_err(|source| match source.kind() {
        ErrorKind::NotFound => GuestError::Dangling { path: path.to_owned() },
        _ => GuestError::io("follow the link", path, source),
    })
}

fn check_owner(metadata: &fs::Metadata, path: &Path) -> Result<(), GuestError> {
    if metadata.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(GuestError::Foreign { path: path.to_owned() })
}
