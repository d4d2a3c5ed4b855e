//! Creates and deletes the files of a team.

use std::path::PathBuf;

use brigade_wire::name::{TaskId, TeamName};

use super::dir::{self, Dir};
use super::incomplete::{NOT_LOGGED, NOT_SYNCED};
use super::layout::{CONFIG, DECIDED, DELETED, INBOXES, TASKS, TEAMS, task_file};
use super::revision::revision;
use super::team_state::TeamStateDir;
use super::team_state::intent::IntendedDocument;
use super::{FileStore, document};
use brigade_core::store::{Actor, StoreError, Written};

/// The tasks on the board of a new team.
#[derive(Clone, Copy)]
pub(super) enum InitialTasks<'t> {
    /// No tasks. Tasks that are already there, of an earlier team or of another program, are moved to the `aside` folder.
    Empty,
    /// The given tasks. Existing tasks are kept, and a given task is added only if its number is
    /// free.
    Restore(&'t [(TaskId, Vec<u8>)]),
}

impl FileStore {
    /// Creates a team's files.
    pub(super) fn create_team_files(
        &self,
        team: &TeamName,
        config: &[u8],
        initial: InitialTasks<'_>,
        by: &Actor,
    ) -> Written {
        let claude = &self.options.claude_dir;
        for dir in [self.teams_path(), claude.join(TASKS)] {
            dir::create_all(&dir)?;
        }
        let team_state = self.team_state(team)?;
        let missing = || StoreError::NoTeam { team: team.clone() };
        let teams = Dir::open(&self.teams_path())?.ok_or_else(missing)?;
        let dir = teams.open_or_create_child(team.as_str())?;
        if dir.stamp(CONFIG)?.is_some() {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        dir.open_or_create_child(INBOXES)?;
        let leftover = self.leftover_tasks(team)?;
        if let InitialTasks::Restore(tasks) = initial {
            // Restore the tasks before the team exists, so that no process can give their numbers
            // to new tasks.
            let board = self.open_or_create_board(team)?;
            for (id, task) in tasks.iter().filter(|(id, _)| !leftover.contains(id)) {
                if let Some(dir) = board.dir() {
                    document::create(dir, &task_file(*id), task)?;
                }
            }
        }
        // If this process dies before it has recorded that it created the team, the team is still ours.
        team_state.record_creating(config)?;
        if let Some(seen) = team_state.lock_seen()? {
            seen.intend(by, IntendedDocument::Roster, Some(config))?;
        }
        if !document::create(&dir, CONFIG, config)? {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        // The team exists now. A step below that fails does not change that.
        let created = || format!("team {team} was created");
        if let InitialTasks::Empty = initial {
            // Clear the board only after creating the team, and remove only the leftover tasks
            // listed above. Another process may have created the team first and added tasks since.
            let cleared = self.clear_board(team, &team_state, &leftover);
            self.after_commit(cleared, "tasks that were there before remain", created);
        }
        // If this fails, the mark that `record_creating` wrote remains.
        let marked = team_state.record_created(config);
        self.after_commit(marked, "its creation was not recorded", created);
        let recorded = || match team_state.lock_seen()? {
            Some(seen) => seen.record_roster(self.clock.as_ref(), Some(by), Some((&dir, config))),
            None => Ok(()),
        };
        self.after_commit(recorded(), NOT_LOGGED, created);
        self.after_commit(self.sync_if_power_safe(Some(&dir)), NOT_SYNCED, created);
        Ok(revision(config))
    }

    /// Deletes a team's files and the final answers stored for the team.
    pub(super) fn delete_team_files(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        self.team_dir(team)?;
        let team_state = self.team_state(team)?;
        // Hold this lock until the deletion is recorded under the caller's name. Otherwise another
        // process that watches the team could record the deletion first, without a name.
        let seen = team_state.lock_seen()?;
        if let Some(seen) = &seen {
            seen.intend(by, IntendedDocument::Roster, None)?;
        }
        // Rename the folders first, as Claude Code does, so that no process sees half a team.
        let renamed = [self.rename_deleted(TEAMS, team)?, {
            // The team is deleted now. A step below that fails does not change that.
            let board = self.rename_deleted(TASKS, team);
            self.after_commit(board, "its tasks remain", || deleted(team)).flatten()
        }];
        if let Some(seen) = seen {
            let recorded = seen.record_roster(self.clock.as_ref(), Some(by), None);
            self.after_commit(recorded, NOT_LOGGED, || deleted(team));
        }
        for path in renamed.into_iter().flatten() {
            let removed = std::fs::remove_dir_all(&path);
            let removed =
                removed.map_err(|source| StoreError::Io { doing: "delete", path, source });
            self.after_commit(removed, "its files were not all removed", || deleted(team));
        }
        let forgotten = forget_decisions(&team_state);
        self.after_commit(forgotten, "its final answers were not removed", || deleted(team));
        Ok(())
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

    /// Renames a team's folder, so that no program finds it any more. Returns its new path, or `None` if there is
    /// no such folder.
    fn rename_deleted(&self, parent: &str, team: &TeamName) -> Result<Option<PathBuf>, StoreError> {
        let parent = self.options.claude_dir.join(parent);
        let from = parent.join(team.as_str());
        let to = parent.join(format!("{team}{DELETED}{}", uuid::Uuid::new_v4()));
        match std::fs::rename(&from, &to) {
            Ok(()) => Ok(Some(to)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Io { doing: "delete", path: from, source }),
        }
    }
}

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
