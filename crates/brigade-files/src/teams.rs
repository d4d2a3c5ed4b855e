//! Creates the files of a team.
//!
//! The file `creating` marks a creation that has begun. If the process dies, the next attempt to create the team
//! completes the creation.

use brigade_wire::name::{TaskId, TeamName};

use super::dir::{self, Dir};
use super::incomplete::{NOT_LOGGED, NOT_SYNCED};
use super::layout::{CONFIG, INBOXES, TASKS, task_file};
use super::revision::revision;
use super::team_state::TeamStateDir;
use super::team_state::intent::IntendedDocument;
use super::{FileStore, document, temp_file};
use brigade_core::store::{Actor, StoreError, Written};

/// The step after which [`TeamStateDir::is_created_by_us`] needs no mark of an unfinished creation.
const NOT_MARKED: &str = "its creation was not recorded";

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
        team_state.sweep()?;
        self.complete_deletion(team)?;
        let missing = || StoreError::NoTeam { team: team.clone() };
        let teams = Dir::open(&self.teams_path())?.ok_or_else(missing)?;
        let dir = teams.open_or_create_child(team.as_str())?;
        temp_file::sweep(&dir, &dir.names()?, |file| file == CONFIG);
        if let Some(existing) = dir.read(CONFIG)? {
            self.complete_creation(team, &team_state, (&dir, &existing.bytes));
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
        let to_clear = match initial {
            InitialTasks::Empty => leftover.as_slice(),
            InitialTasks::Restore(_) => &[],
        };
        team_state.record_creating(config, to_clear)?;
        if let Some(seen) = team_state.lock_seen()? {
            seen.intend(by, IntendedDocument::Roster, Some(config))?;
        }
        if !document::create(&dir, CONFIG, config)? {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        // The team exists now. Clear the board only now, and remove only the tasks listed above: another process may
        // have created the team first and added tasks since.
        self.finish_creation(team, &team_state, (&dir, config), to_clear, Some(by));
        let synced = self.sync_if_power_safe(Some(&dir));
        self.after_commit(synced, NOT_SYNCED, || created(team));
        Ok(revision(config))
    }

    /// If a process died while it created this team, completes the creation.
    fn complete_creation(&self, team: &TeamName, team_state: &TeamStateDir, roster: (&Dir, &[u8])) {
        match team_state.tasks_to_clear(roster.1) {
            Ok(Some(to_clear)) => self.finish_creation(team, team_state, roster, &to_clear, None),
            // The last step may be missing, which the intent shows.
            Ok(None) => self.record_creation(team, team_state, roster, None),
            Err(error) => {
                self.after_commit::<()>(Err(error), NOT_MARKED, || created(team));
            }
        }
    }

    /// Does the steps of a creation that follow the creation of the roster. A step that fails does not change that the
    /// team exists.
    fn finish_creation(
        &self,
        team: &TeamName,
        team_state: &TeamStateDir,
        roster: (&Dir, &[u8]),
        to_clear: &[TaskId],
        by: Option<&Actor>,
    ) {
        let cleared = self.clear_board(team, team_state, to_clear);
        self.after_commit(cleared, "tasks that were there before remain", || created(team));
        // If this fails, the mark that `record_creating` wrote remains.
        self.after_commit(team_state.record_created(roster.1), NOT_MARKED, || created(team));
        self.record_creation(team, team_state, roster, by);
    }

    fn record_creation(
        &self,
        team: &TeamName,
        team_state: &TeamStateDir,
        roster: (&Dir, &[u8]),
        by: Option<&Actor>,
    ) {
        let record = || match team_state.lock_seen()? {
            Some(seen) => seen.record_roster(self.clock.as_ref(), by, Some(roster)),
            None => Ok(()),
        };
        self.after_commit(record(), NOT_LOGGED, || created(team));
    }
}

fn created(team: &TeamName) -> String {
    format!("team {team} was created")
}
