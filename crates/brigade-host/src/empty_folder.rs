//! A folder in which programs run that must not see the files of a project.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Returns a folder below `parent` that only this user can enter, creating it if needed. Fails if another user has created it.
///
/// The folder is always the same and stays, because other processes may be using it, and because some programs keep a record
/// of each folder in which they were started.
pub(crate) fn private_empty_folder(parent: &Path) -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let path = parent.join(format!("brigade-empty-{user}"));
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(&path)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        let why = format!("{} is not a folder of this user alone", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn the_folder_is_private() {
        let parent = tempfile::tempdir().unwrap();
        let path = private_empty_folder(parent.path()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(private_empty_folder(parent.path()).unwrap(), path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(private_empty_folder(parent.path()).is_err(), "others can enter the folder");
        fs::remove_dir(&path).unwrap();
        symlink("/", &path).unwrap();
        assert!(private_empty_folder(parent.path()).is_err(), "a link to another folder");
    }
}
