//! The way back: every file as it was, or, where somebody has changed it since, without what is ours.

use std::path::PathBuf;

use super::edit::{self, Put};
use super::file::Found;
use super::record::{Book, Record, Touched};
use super::{GuestError, codex};

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// It is as it was, byte for byte.
    Restored,
    /// It was made by us, and is gone.
    Removed,
    /// It was changed since; what we put in is out, and the rest is as it stands.
    TakenOut,
    /// There was nothing of ours in it any more.
    Nothing,
    /// It was made by us, and changed since: it is the user's now.
    Kept,
}

/// What came of it all.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) files: Vec<(PathBuf, Undone)>,
    /// What could not be undone; the record keeps it.
    pub(crate) failed: Vec<GuestError>,
}

/// Undoes what the record tells of, the last thing first.
pub(crate) fn run(book: Book, record: Record) -> Result<Report, GuestError> {
    let mut report = Report::default();
    let Record { mut files, mut folders } = record;
    let mut rest = Vec::new();
    while let Some(file) = files.pop() {
        match undo(&file) {
            Ok(undone) => report.files.push((file.path, undone)),
            Err(error) => {
                report.failed.push(error);
                rest.insert(0, file);
            }
        }
    }
    // What somebody else uses by now is not empty, and stays.
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
    folders.retain(|folder| std::fs::remove_dir(folder).is_err() && !rest.is_empty());
    folders.reverse();
    if rest.is_empty() {
        book.close()?;
    } else {
        book.write(&Record { files: rest, folders })?;
    }
    Ok(report)
}

fn undo(file: &Touched) -> Result<Undone, GuestError> {
    let found = Found::at(&file.path)?;
    found.tidy();
    let Some(now) = found.text.as_deref() else { return Ok(Undone::Nothing) };
    if file.before.as_deref() == Some(now) {
        return Ok(Undone::Nothing);
    }
    if file.is_as_left(now) {
        return match &file.before {
            Some(before) => found.replace(before).map(|()| Undone::Restored),
            None => found.remove().map(|()| Undone::Removed),
        };
    }
    if file.put == Put::Whole {
        return Ok(Undone::Kept);
    }
    let damaged = |source| GuestError::Damaged { path: file.path.clone(), source };
    let without = edit::without(&file.put, now).map_err(damaged)?;
    if let Put::Pieces(pieces) = &file.put
        && codex::still_says(&without, pieces)
    {
        return Err(GuestError::Reworded { path: file.path.clone() });
    }
    if file.before.is_none() && edit::says_nothing(&file.put, &without) {
        return found.remove().map(|()| Undone::Removed);
    }
    if without == now {
        return Ok(Undone::Nothing);
    }
    found.replace(&without).map(|()| Undone::TakenOut)
}
