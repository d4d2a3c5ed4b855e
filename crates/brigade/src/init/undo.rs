//! Reverts `brigade init`: restores each file or, if it was edited since, removes only brigade's settings.

use std::path::{Path, PathBuf};

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

/// The configuration folders whose changes are reverted.
#[derive(Debug)]
pub(crate) struct UndoScope {
    /// Claude Code's folder.
    pub(crate) claude_dir: PathBuf,
    /// The folders of other agents.
    pub(crate) others: Vec<PathBuf>,
}

impl UndoScope {
    fn includes(&self, file: &ChangedFile) -> bool {
        // The file itself may be a link to a file in another folder.
        let (parent, name) = (file.path.parent(), file.path.file_name().unwrap_or_default());
        let path = parent.map_or_else(|| file.path.clone(), |parent| real(parent).join(name));
        let is_in = |dir: &PathBuf| path.starts_with(real(dir));
        // The settings of other agents belong to the Claude Code folder for which they were last written.
        let is_for_this = |dir: &PathBuf| real(dir) == real(&self.claude_dir);
        is_in(&self.claude_dir)
            || self.others.iter().any(is_in) && file.claude_dir.as_ref().is_none_or(is_for_this)
    }
}

/// Resolves links in the existing part of a path.
fn real(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|dir| Some((dir, dir.canonicalize().ok()?)));
    let Some((dir, real)) = existing else { return path.to_owned() };
    match path.strip_prefix(dir) {
        Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
        _ => real,
    }
}

/// The outcome for all files.
#[derive(Debug, Default)]
pub(crate) struct UndoReport {
    pub(crate) files: Vec<(PathBuf, UndoOutcome)>,
    /// The Claude Code folders, or files of other agents, for which brigade is still set up.
    pub(crate) still_set_up: Vec<PathBuf>,
    /// The errors for files that could not be reverted. These files stay in the record.
    pub(crate) failed: Vec<InitError>,
}

/// Reverts the changes in the record that are in the scope, starting with the last one.
pub(crate) fn run(
    folder: RecordFolder,
    record: InitRecord,
    scope: &UndoScope,
) -> Result<UndoReport, InitError> {
    let mut report = UndoReport::default();
    let InitRecord { mut files, mut folders } = record;
    let mut rest = Vec::new();
    while let Some(file) = files.pop() {
        if !scope.includes(&file) {
            let folder = file.claude_dir.as_ref().unwrap_or(&file.path);
            if !report.still_set_up.contains(folder) {
                report.still_set_up.push(folder.clone());
            }
            rest.insert(0, file);
            continue;
        }
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
    if let OurContent::Pieces(pieces) = &file.put {
        let keys = codex::moved_keys(now, pieces);
        if !keys.is_empty() {
            return Err(InitError::Mixed { path: file.path.clone(), keys });
        }
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
