//! Where things are put that are in the way, and copies of what is changed: in a folder of brigade's own,
//! by the path they had.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::snapshot::House;
use crate::error::{CliError, Trouble};

/// Where things are put that are not needed any more, and copies of what is changed.
#[derive(Debug)]
pub(crate) struct Aside {
    dir: PathBuf,
    claude_dir: PathBuf,
    state_dir: PathBuf,
}

impl Aside {
    /// A folder of its own for each run, made when something is put there.
    pub(crate) fn new(house: &House) -> Self {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ").to_string();
        Self {
            dir: house.state_dir.join("doctor").join(now),
            claude_dir: house.claude_dir.clone(),
            state_dir: house.state_dir.clone(),
        }
    }

    /// Where something would be put: by the path it had. One that is taken gets a number.
    fn place(&self, path: &Path) -> io::Result<PathBuf> {
        let inside =
            path.strip_prefix(&self.claude_dir).or_else(|_| path.strip_prefix(&self.state_dir));
        let inside = inside.unwrap_or_else(|_| Path::new(path.file_name().unwrap_or_default()));
        let mut place = self.dir.join(inside);
        let name = place.file_name().unwrap_or_default().to_owned();
        for number in 2.. {
            if place.symlink_metadata().is_err() {
                break;
            }
            let mut numbered = name.clone();
            numbered.push(format!(".{number}"));
            place.set_file_name(numbered);
        }
        if let Some(parent) = place.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        Ok(place)
    }

    /// Keeps a copy of a file, if it is there.
    pub(super) fn keep(&self, path: &Path) -> Result<(), CliError> {
        let copy = || match fs::read(path) {
            Ok(bytes) => {
                let place = self.place(path)?;
                fs::write(&place, bytes)?;
                fs::set_permissions(&place, Permissions::from_mode(0o600))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        copy().map_err(|source| failed("copy aside", path, source))
    }

    /// Moves a file or a folder; where it is then.
    pub(super) fn take(&self, path: &Path) -> io::Result<PathBuf> {
        let place = self.place(path)?;
        match fs::rename(path, &place) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                copy_all(path, &place)?;
                if path.symlink_metadata()?.is_dir() {
                    fs::remove_dir_all(path)?;
                } else {
                    fs::remove_file(path)?;
                }
            }
            other => other?,
        }
        Ok(place)
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
