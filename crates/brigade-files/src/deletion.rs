//! Deletes the files of a team.
//!
//! The file `deleting` marks a deletion that has begun. If the process dies, the next attempt to delete or to create a
//! team of this name completes the deletion.

use std::path::{Path, PathBuf};

use brigade_wire::name::TeamName;

use super::FileStore;
use super::incomplete::NOT_LOGGED;
use super::layout::{DECIDED, DELETED, TASKS, TEAMS};
use super::team_state::TeamStateDir;
use super::team_state::intent::IntendedDocument;
use super::team_state::seen::SeenGuard;
use brigade_core::store::{Actor, StoreError};

impl FileStore {
    /// Deletes a team's files and the final answers stored for the team. If the team does not exist because an earlier
    /// deletion was interrupted, completes that deletion.
    pub(super) fn delete_team_files(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        let was_interrupted = self.complete_deletion(team)?;
        match self.team_dir(team) {
            Err(StoreError::NoTeam { .. }) if was_interrupted => return Ok(()),
            dir => drop(dir?),
        }
        let team_state = self.team_state(team)?;
        team_state.sweep()?;
        // Hold this lock until the deletion is complete. Otherwise another process that watches the team could
        // record the deletion first, without a name.
        let seen = team_state.lock_seen()?;
        if let Some(seen) = &seen {
            seen.intend(by, IntendedDocument::Roster, None)?;
        }
        let id = uuid::Uuid::new_v4().to_string();
        team_state.record_deleting(&id)?;
        // Rename the folders first, as Claude Code does, so that no process sees half a team.
        self.rename_deleted(TEAMS, team, &id)?;
        // The team is deleted now. A step below that fails does not change that.
        self.finish_deletion(team, &team_state, seen.as_ref(), &id, Some(by));
        Ok(())
    }

    /// If a process died while it deleted a team of this name, completes the deletion. Returns whether the team is
    /// deleted now because of that.
    pub(super) fn complete_deletion(&self, team: &TeamName) -> Result<bool, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(false) };
        // While another process deletes the team, that process holds this lock.
        let Some(seen) = team_state.lock_seen()? else { return Ok(false) };
        let Some(id) = team_state.deleting()? else { return Ok(false) };
        if self.team_dir(team).is_ok() {
            // The process died before it renamed the folder, or another team of this name was created since.
            let removed = self.remove_deleted(team, &id);
            let removed = removed.and_then(|()| team_state.clear_deleting());
            self.after_commit(removed, NOT_REMOVED, || deleted(team));
            return Ok(false);
        }
        self.finish_deletion(team, &team_state, Some(&seen), &id, None);
        Ok(true)
    }

    /// Does the steps of a deletion that follow the renaming of the team's folder.
    fn finish_deletion(
        &self,
        team: &TeamName,
        team_state: &TeamStateDir,
        seen: Option<&SeenGuard<'_>>,
        id: &str,
        by: Option<&Actor>,
    ) {
        let board = self.rename_deleted(TASKS, team, id);
        let renamed = self.after_commit(board, "its tasks remain", || deleted(team));
        let recorded = match seen {
            Some(seen) => seen.record_roster(self.clock.as_ref(), by, None),
            None => Ok(()),
        };
        let recorded = self.after_commit(recorded, NOT_LOGGED, || deleted(team));
        let removed =
            self.after_commit(self.remove_deleted(team, id), NOT_REMOVED, || deleted(team));
        let forgotten = self.after_commit(
            forget_decisions(team_state),
            "its final answers were not removed",
            || deleted(team),
        );
        // If a step failed, the next attempt to delete the team repeats it.
        if renamed.and(recorded).and(removed).and(forgotten).is_some() {
            let cleared = team_state.clear_deleting();
            self.after_commit(cleared, "its deletion is still marked as unfinished", || {
                deleted(team)
            });
        }
    }

    /// Records that a team was deleted, if the brigade process that deleted it did not record it, for example because
    /// the disk was full.
    pub(super) fn record_missed_deletion(&self, team: &TeamName) -> Result<(), StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(()) };
        let Some(seen) = team_state.lock_seen()? else { return Ok(()) };
        match self.team_dir(team) {
            Err(StoreError::NoTeam { .. }) if seen.intends_to_delete_team() => {
                seen.record_roster(self.clock.as_ref(), None, None)
            }
            _ => Ok(()),
        }
    }

    /// Renames a team's folder, so that no program finds it any more. There may be no such folder.
    fn rename_deleted(&self, parent: &str, team: &TeamName, id: &str) -> Result<(), StoreError> {
        let from = self.options.claude_dir.join(parent).join(team.as_str());
        match std::fs::rename(&from, self.deleted_path(parent, team, id)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::Io { doing: "delete", path: from, source: error })
            }
            _ => Ok(()),
        }
    }

    /// Removes the renamed folders of a deleted team.
    fn remove_deleted(&self, team: &TeamName, id: &str) -> Result<(), StoreError> {
        for parent in [TEAMS, TASKS] {
            let path = self.deleted_path(parent, team, id);
            match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::Io { doing: "delete", path, source: error });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn deleted_path(&self, parent: &str, team: &TeamName, id: &str) -> PathBuf {
        let parent: &Path = &self.options.claude_dir.join(parent);
        parent.join(format!("{team}{DELETED}{id}"))
    }
}

/// The step that removes the renamed folders.
const NOT_REMOVED: &str = "its files were not all removed";

fn deleted(team: &TeamName) -> String {
    format!("team {team} was deleted")
}

/// Removes the final answers of a deleted team. A later team of the same name must answer the same questions again.
fn forget_decisions(team_state: &TeamStateDir) -> Result<(), StoreError> {
    let Some(decided) = team_state.dir.child(DECIDED)? else { return Ok(()) };
    for question in decided.names()? {
        decided.remove_quietly(&question);
    }
    team_state.dir.remove_dir_quietly(DECIDED);
    Ok(())
}
