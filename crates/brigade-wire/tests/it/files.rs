//! The fixture files and what they are.

use std::fs;
use std::path::{Path, PathBuf};

/// What a path says a file should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Form {
    Team,
    Inbox,
    Task,
    HighWaterMark,
    Lock,
    /// Not a file of a team: the recorder's log, turns, a README.
    Other,
}

pub(crate) struct Fixture {
    /// The path below `fixtures/`.
    pub(crate) path: String,
    pub(crate) form: Form,
    pub(crate) bytes: Vec<u8>,
}

/// Every fixture, in the order of their paths.
pub(crate) fn all() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut paths = Vec::new();
    walk(&root, &mut paths);
    paths.sort();
    assert!(paths.len() > 300, "the fixtures are not where they should be");
    let fixture = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        let path = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        Fixture { form: form(&path), path, bytes }
    };
    paths.into_iter().map(fixture).collect()
}

/// The bytes of one fixture.
pub(crate) fn one(path: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    fs::read(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn walk(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// The recorder wrote `teams/x/config.json` as `0008-teams__x__config.json`.
fn form(path: &str) -> Form {
    let path = path.replace("__", "/");
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let json = name.ends_with(".json");
    match name {
        "config.json" => Form::Team,
        ".lock" => Form::Lock,
        ".highwatermark" => Form::HighWaterMark,
        _ if json && dir.ends_with("/inboxes") => Form::Inbox,
        _ if json && dir.contains("/tasks/") => Form::Task,
        _ => Form::Other,
    }
}

/// Bytes that must be text.
pub(crate) fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}
