//! Creates and deletes the files of a team.

use brigade_wire::name::{TaskId, TeamName};

use super::dir::{self, Dir};
use super::layout::{CONFIG, DECIDED, DELETED, INBOXES, TASKS, TEAMS, task_file};
use super::revision::revision;
use super::{FileStore, document};
use brigade_core::store::{Actor, StoreError, Written};

/// The tasks on the board of a new team.
#[derive(Clone, Copy)]
pub(super) enum InitialTasks<'t> {
    /// No tasks. Tasks left over from an earlier team of the same name are removed.
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
        if !document::create(&dir, CONFIG, config)? {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        if let InitialTasks::Empty = initial {
            // Clear the board only after creating the team, and remove only the leftover tasks
            // listed above. Another process may have created the team first and added tasks since.
            self.clear_board(team, &leftover)?;
        }
        team_state.record_created(config)?;
        if let Some(seen) = team_state.lock_seen()? {
            seen.record_roster(self.clock.as_ref(), Some(by), Some(config))?;
        }
        self.sync_if_power_safe(Some(&dir))?;
        Ok(revision(config))
    }

    /// Deletes a team's files and the final answers stored for the team.
    pub(super) fn delete_team_files(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        self.team_dir(team)?;
        let team_state = self.team_state(team)?;
        // Hold this lock until the deletion is recorded under the caller's name. Otherwise another
        // process that watches the team could record the deletion first, without a name.
        let seen = team_state.lock_seen()?;
        let mut renamed = Vec::new();
        // Rename the folders first, as Claude Code does, so that no process sees half a team.
        for parent in [TEAMS, TASKS] {
            let parent = self.options.claude_dir.join(parent);
            let from = parent.join(team.as_str());
            let to = parent.join(format!("{team}{DELETED}{}", uuid::Uuid::new_v4()));
            match std::fs::rename(&from, &to) {
                Ok(()) => renamed.push(to),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(StoreError::Io { doing: "delete", path: from, source }),
            }
        }
        if let Some(seen) = seen {
            seen.record_roster(self.clock.as_ref(), Some(by), None)?;
        }
        for path in renamed {
            let removed = std::fs::remove_dir_all(&path);
            removed.map_err(|source| StoreError::Io { doing: "delete", path, source })?;
        }
        // Final answers are valid in this team only. A later team of the same name must answer the
        // same questions again.
        if let Some(decided) = team_state.dir.child(DECIDED)? {
            for question in decided.names()? {
                decided.remove_quietly(&question);
            }
            team_state.dir.remove_dir_quietly(DECIDED);
        }
        Ok(())
    }
}
