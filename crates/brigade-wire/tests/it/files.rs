//! The fixture files and their types.

use std::fs;
use std::path::{Path, PathBuf};

/// The type of a fixture file, derived from its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FileType {
    Team,
    Inbox,
    Task,
    HighWaterMark,
    Lock,
    /// Not a team file, for example a log or a README.
    Other,
}

pub(crate) struct Fixture {
    /// The path below `fixtures/`.
    pub(crate) path: String,
    pub(crate) file_type: FileType,
    pub(crate) bytes: Vec<u8>,
}

/// Returns all fixtures, ordered by path.
pub(crate) fn all() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    paths.sort();
    assert!(paths.len() > 300, "fixtures are missing");
    let fixture = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        let path = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        Fixture { file_type: file_type(&path), path, bytes }
    };
    paths.into_iter().map(fixture).collect()
}

/// Reads one fixture.
pub(crate) fn one(path: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    fs::read(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn collect(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// Derives a file's type from its path. A recording of `teams/x/config.json` is `0008-teams__x__config.json`.
fn file_type(path: &str) -> FileType {
    let path = path.replace("__", "/");
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let json = name.ends_with(".json");
    match name {
        "config.json" => FileType::Team,
        ".lock" => FileType::Lock,
        ".highwatermark" => FileType::HighWaterMark,
        _ if json && dir.ends_with("/inboxes") => FileType::Inbox,
        _ if json && dir.contains("/tasks/") => FileType::Task,
        _ => FileType::Other,
    }
}

/// Returns the bytes as text.
pub(crate) fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}
