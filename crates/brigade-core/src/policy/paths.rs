//! Compares paths by their text. This crate does not read the disk, so a symbolic link counts as a folder.

use std::path::{Component, Path, PathBuf};

/// Removes `.` and resolves `..` in a path. `None` if the path is relative.
fn normalized(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            _ => normal.push(component),
        }
    }
    Some(normal)
}

/// Returns whether an absolute path is a folder or something in that folder.
pub(super) fn is_inside(path: &Path, folder: &Path) -> bool {
    match (normalized(path), normalized(folder)) {
        (Some(path), Some(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// Returns whether a path that a command names stays in a folder, if the command runs in that folder or below it.
pub(super) fn stays_inside(path: &str, folder: &Path) -> bool {
    let path = Path::new(path);
    if path.is_absolute() {
        return is_inside(path, folder);
    }
    !path.components().any(|component| component == Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_by_their_parts() {
        let inside = |path: &str| is_inside(Path::new(path), Path::new("/home/ann/project/."));
        for path in [
            "/home/ann/project",
            "/home/ann/project/",
            "/home/ann/x/../project/src",
            "/home/ann/project/a",
        ] {
            assert!(inside(path), "{path}");
        }
        for path in [
            "/",
            "/home/ann",
            "/home/ann/project2",
            "/home/ann/project/..",
            "project",
            "",
            "/../home/ann",
        ] {
            assert!(!inside(path), "{path}");
        }
        let stays = |path: &str| stays_inside(path, Path::new("/home/ann"));
        assert!(stays("a/b") && stays("./a") && stays("/home/ann/a") && stays("a..b"));
        assert!(!stays("../a") && !stays("a/../b") && !stays("/etc/x") && !stays("/home/ann/../x"));
    }
}
