//! Reverts `brigade init`: restores each file or, if it was edited since, removes only brigade's settings.

use std::path::PathBuf;

use super::edit;
use super::file::UserFile;
use super::record::{ChangedFile, InitRecord, OurContent, RecordFolder};
use super::{InitError, codex};

/// The outcome for one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UndoOutcome {
    /// The file was restored byte for byte.
    Restored,
    /// The file was removed, because brigade had created it.
    Removed,
    /// The file was edited since, so only brigade's settings were removed from it.
    TakenOut,
    /// The file no longer contained anything from brigade.
    Nothing,
    /// Brigade had created the file, but it was edited since, so it was kept.
    Kept,
}

/// The outcome for all files.
#[derive(Debug, Default)]
pub(crate) struct UndoReport {
    pub(crate) files: Vec<(PathBuf, UndoOutcome)>,
    /// The errors for files that could not be reverted. These files stay in the record.
    pub(crate) failed: Vec<InitError>,
}

/// Reverts the changes in the record, starting with the last one.
pub(crate) fn run(folder: RecordFolder, record: InitRecord) -> Result<UndoReport, InitError> {
    let mut report = UndoReport::default();
    let InitRecord { mut files, mut folders } = record;
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
    // `remove_dir` does not remove folders that contain other files by now.
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
    folders.retain(|folder| std::fs::remove_dir(folder).is_err() && !rest.is_empty());
    folders.reverse();
    if rest.is_empty() {
        folder.close()?;
    } else {
        folder.write(&InitRecord { files: rest, folders })?;
    }
    Ok(report)
}

fn undo(file: &ChangedFile) -> Result<UndoOutcome, InitError> {
    let found = UserFile::read(&file.path)?;
    found.remove_temporary();
    let Some(now) = found.text.as_deref() else { return Ok(UndoOutcome::Nothing) };
    if file.before.as_deref() == Some(now) {
        return Ok(UndoOutcome::Nothing);
    }
    if file.is_as_left(now) {
        return match &file.before {
            Some(before) => found.replace(before).map(|()| UndoOutcome::Restored),
            None => found.remove().map(|()| UndoOutcome::Removed),
        };
    }
    if file.put == OurContent::Whole {
        return Ok(UndoOutcome::Kept);
    }
    let damaged = |source| InitError::Damaged { path: file.path.clone(), source };
    let without = edit::without(&file.put, now).map_err(damaged)?;
    if let OurContent::Pieces(pieces) = &file.put
        && codex::still_contains(&without, pieces)
    {
        return Err(InitError::Reworded { path: file.path.clone() });
    }
    if file.before.is_none() && edit::is_empty(&file.put, &without) {
        return found.remove().map(|()| UndoOutcome::Removed);
    }
    if without == now {
        return Ok(UndoOutcome::Nothing);
    }
    found.replace(&without).map(|()| UndoOutcome::TakenOut)
}
