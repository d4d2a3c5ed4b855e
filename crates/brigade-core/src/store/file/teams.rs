//! Making a team, and deleting it.

use brigade_wire::name::{TaskId, TeamName};
use rustix::fs::Mode;

use super::dir::Dir;
use super::store::DECIDED;
use super::{FileStore, document};
use crate::store::{Actor, StoreError, Written};

/// What a team's board begins with.
#[derive(Clone, Copy)]
pub(super) enum InitialTasks<'t> {
    /// Nothing.
    Empty,
    /// What is there, and these where they are not.
    Restore(&'t [(TaskId, Vec<u8>)]),
}

impl FileStore {
    /// Makes a team.
    pub(super) fn create_team_files(
        &self,
        team: &TeamName,
        config: &[u8],
        initial: InitialTasks<'_>,
        by: &Actor,
    ) -> Written {
        let claude = &self.options.claude_dir;
        for dir in [self.teams_path(), claude.join("tasks")] {
            std::fs::create_dir_all(&dir).map_err(|source| StoreError::Io {
                doing: "make the directory",
                path: dir.clone(),
                source,
            })?;
        }
        let team_state = self.team_state(team)?;
        let missing = || StoreError::NoTeam { team: team.clone() };
        let teams = Dir::open(&self.teams_path())?.ok_or_else(missing)?;
        let native = Mode::from_raw_mode(0o777);
        let dir = teams.open_or_create_child(team.as_str(), native)?;
        if dir.stamp("config.json")?.is_some() {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        dir.open_or_create_child("inboxes", native)?;
        let leftover = self.leftover_tasks(team)?;
        if let InitialTasks::Restore(tasks) = initial {
            // Before the team is there: nobody takes a number meanwhile.
            let board = self.open_or_create_board(team)?;
            for (id, task) in tasks.iter().filter(|(id, _)| !leftover.contains(id)) {
                if let Some(dir) = board.dir() {
                    document::create(dir, &super::board::task_file(*id), task)?;
                }
            }
        }
        if !document::create(&dir, "config.json", config)? {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        if let InitialTasks::Empty = initial {
            // Only now, and only those: who else may have made the team has not put them there.
            self.clear_board(team, &leftover)?;
        }
        team_state.record_created(config)?;
        if let Some(seen) = team_state.lock_seen()? {
            seen.record_roster(self.clock.as_ref(), Some(by), Some(config))?;
        }
        self.sync_if_power_safe(Some(&dir))?;
        Ok(document::revision(config))
    }

    /// Deletes a team, and what was decided in it.
    pub(super) fn delete_team_files(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        self.team_dir(team)?;
        let team_state = self.team_state(team)?;
        // Until it is written down whose deed it was, nobody who watches writes that it was somebody's.
        let seen = team_state.lock_seen()?;
        let mut renamed = Vec::new();
        // Out of sight first, as Claude Code does it: nobody sees half a team.
        for parent in ["teams", "tasks"] {
            let parent = self.options.claude_dir.join(parent);
            let from = parent.join(team.as_str());
            let to = parent.join(format!("{team}.deleted-{}", uuid::Uuid::new_v4()));
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
        // Each is about this very team; in another of its name the same question is another one.
        if let Some(decided) = team_state.dir.child(DECIDED)? {
            for question in decided.names()? {
                decided.remove_quietly(&question);
            }
            team_state.dir.remove_dir_quietly(DECIDED);
        }
        Ok(())
    }
}
