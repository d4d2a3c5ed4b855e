//! Making a team, and deleting it.

use brigade_wire::name::{TaskId, TeamName};
use rustix::fs::Mode;

use super::dir::Dir;
use super::store::DECIDED;
use super::{FileStore, document};
use brigade_core::store::{Actor, StoreError, Written};

/// What a team's board begins with.
#[derive(Clone, Copy)]
pub(super) enum Board<'t> {
    /// Nothing.
    Empty,
    /// What is there, and these where they are not.
    Of(&'t [(TaskId, Vec<u8>)]),
}

impl FileStore {
    /// Makes a team.
    pub(super) fn make_team(
        &self,
        team: &TeamName,
        config: &[u8],
        board: Board<'_>,
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
        let own = self.own(team)?;
        let gone = || StoreError::NoTeam { team: team.clone() };
        let teams = Dir::open(&self.teams_path())?.ok_or_else(gone)?;
        let native = Mode::from_raw_mode(0o777);
        let dir = teams.child_made(team.as_str(), native)?;
        if dir.stamp("config.json")?.is_some() {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        dir.child_made("inboxes", native)?;
        let left = self.left_tasks(team)?;
        if let Board::Of(tasks) = board {
            // Before the team is there: nobody takes a number meanwhile.
            let made = self.board_made(team)?;
            for (id, task) in tasks.iter().filter(|(id, _)| !left.contains(id)) {
                if let Some(dir) = made.dir() {
                    document::create(dir, &super::board::file(*id), task)?;
                }
            }
        }
        if !document::create(&dir, "config.json", config)? {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        if let Board::Empty = board {
            // Only now, and only those: who else may have made the team has not put them there.
            self.clear_board(team, &left)?;
        }
        own.remember_created(config)?;
        if let Some(seen) = own.seen()? {
            seen.roster(self.clock.as_ref(), Some(by), Some(config))?;
        }
        self.settle(Some(&dir))?;
        Ok(document::revision(config))
    }

    /// Deletes a team, and what was decided in it.
    pub(super) fn unmake_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        self.team_dir(team)?;
        let own = self.own(team)?;
        // Until it is written down whose deed it was, nobody who watches writes that it was somebody's.
        let seen = own.seen()?;
        let mut gone = Vec::new();
        // Out of sight first, as Claude Code does it: nobody sees half a team.
        for parent in ["teams", "tasks"] {
            let parent = self.options.claude_dir.join(parent);
            let from = parent.join(team.as_str());
            let to = parent.join(format!("{team}.deleted-{}", uuid::Uuid::new_v4()));
            match std::fs::rename(&from, &to) {
                Ok(()) => gone.push(to),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(StoreError::Io { doing: "delete", path: from, source }),
            }
        }
        if let Some(seen) = seen {
            seen.roster(self.clock.as_ref(), Some(by), None)?;
        }
        for path in gone {
            let removed = std::fs::remove_dir_all(&path);
            removed.map_err(|source| StoreError::Io { doing: "delete", path, source })?;
        }
        // Each is about this very team; in another of its name the same question is another one.
        if let Some(decided) = own.dir.child(DECIDED)? {
            for question in decided.names()? {
                decided.remove_quietly(&question);
            }
            own.dir.remove_dir_quietly(DECIDED);
        }
        Ok(())
    }
}
