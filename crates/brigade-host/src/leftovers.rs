//! Files and folders that a killed process leaves behind, and how the next process removes them.
//!
//! A process writes a file under a temporary name and then renames it, and renames a folder before it removes the
//! folder. Both names contain the id of the process, so that other processes recognise what a dead process left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::process;

/// The end of the name of a temporary file.
const TEMP: &str = ".tmp";
/// The start of the name of a folder that is being removed. `@` is not allowed in the names of teams and members.
const REMOVED: &str = "@removed-";

/// Returns the temporary name under which this process writes a file.
pub(crate) fn temp(path: &Path) -> PathBuf {
    path.with_extension(format!("{}{TEMP}", std::process::id()))
}

/// Removes a folder. Other processes see either the whole folder or none. A folder that does not exist is not an error.
pub(crate) fn remove_dir(dir: &Path) -> io::Result<()> {
    let Some((parent, name)) = dir.parent().zip(dir.file_name()) else { return Ok(()) };
    let mut renamed = std::ffi::OsString::from(format!("{REMOVED}{}-", std::process::id()));
    renamed.push(name);
    let renamed = parent.join(renamed);
    sweep(parent);
    match fs::rename(dir, &renamed) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        renamed => renamed?,
    }
    fs::remove_dir_all(renamed)
}

/// Removes what processes that are gone left in a folder. An error is not reported, because what remains is harmless.
pub(crate) fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(creator) = creator_of_temp(name) {
            if !process::has_id(creator) {
                let _best_effort = fs::remove_file(&path);
            }
        } else if let Some(remover) = remover(name)
            && !process::has_id(remover)
        {
            let _best_effort = fs::remove_dir_all(&path);
        }
    }
}

fn creator_of_temp(name: &str) -> Option<u32> {
    name.strip_suffix(TEMP)?.rsplit_once('.')?.1.parse().ok()
}

fn remover(name: &str) -> Option<u32> {
    name.strip_prefix(REMOVED)?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Larger than any process id of Linux.
    const GONE: u32 = 99_999_999;

    #[test]
    fn only_what_dead_processes_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let own = std::process::id();
        let files = ["spec.json".to_owned(), format!("spec.{own}.tmp"), format!("spec.{GONE}.tmp")];
        let folders =
            ["bob".to_owned(), format!("@removed-{own}-bob"), format!("@removed-{GONE}-bob")];
        for name in &files {
            fs::write(path(name), "{}").unwrap();
        }
        for name in &folders {
            fs::create_dir_all(path(name).join("inside")).unwrap();
        }
        sweep(folder.path());
        for ([old, own, gone], what) in [(&files, "files"), (&folders, "folders")] {
            assert!(path(old).exists() && path(own).exists(), "{what}");
            assert!(!path(gone).exists(), "{what}");
        }
        assert_eq!(temp(&path("spec.json")), path(&files[1]));
        remove_dir(&path("bob")).unwrap_err();
        fs::remove_dir_all(path(&folders[1])).unwrap();
        remove_dir(&path("bob")).unwrap();
        assert!(!path("bob").exists() && !path(&folders[1]).exists());
        remove_dir(&path("bob")).unwrap();
    }
}
