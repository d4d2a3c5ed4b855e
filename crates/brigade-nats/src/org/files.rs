//! Reads and writes files in the operator's folder. Only their owner can read them. Existing files are replaced
//! atomically.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::OrgError;

pub(super) fn failed(doing: &'static str, path: &Path, source: io::Error) -> OrgError {
    OrgError::Io { doing, path: path.to_owned(), source }
}

/// Locks the folder, so that two processes do not overwrite each other's changes.
pub(super) fn lock(dir: &Path) -> Result<File, OrgError> {
    let path = dir.join("lock");
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let file = file.map_err(|source| failed("open", &path, source))?;
    file.lock().map_err(|source| failed("lock", &path, source))?;
    Ok(file)
}

pub(super) fn make_dir(dir: &Path) -> Result<(), OrgError> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    created.map_err(|source| failed("create the folder", dir, source))
}

/// Creates a file that only its owner can read. Fails if the file exists.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), OrgError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = file.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => OrgError::FileExists { path: path.to_owned() },
        _ => failed("write", path, source),
    });
    let written = |mut file: File| file.write_all(bytes).and_then(|()| file.sync_all());
    written(file?).map_err(|source| failed("write", path, source))
}

/// Removes a file. Succeeds if the file does not exist.
pub(super) fn remove(path: &Path) -> Result<(), OrgError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path, error)),
        _ => Ok(()),
    }
}

/// Replaces a file atomically. Only its owner can read the new file.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), OrgError> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    remove(&new)?;
    write_new(&new, bytes)?;
    fs::rename(&new, path).map_err(|source| failed("write", path, source))
}

pub(super) fn replace_json(path: &Path, value: &impl Serialize) -> Result<(), OrgError> {
    let text = serde_json::to_vec_pretty(value)
        .map_err(|source| OrgError::Damaged { path: path.to_owned(), source: source.into() })?;
    replace(path, &text)
}

pub(super) fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, OrgError> {
    let bytes = fs::read(path).map_err(|source| failed("read", path, source))?;
    serde_json::from_slice(&bytes)
        .map_err(|source| OrgError::Damaged { path: path.to_owned(), source: source.into() })
}
