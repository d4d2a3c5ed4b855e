//! The default team that a person chose with `brigade use`.
//!
//! ```text
//! <state>/use/<key of the store>.json     the name of the chosen team
//! ```

use std::path::PathBuf;

use brigade_wire::name::TeamName;

use super::{Context, several_teams, team_names};
use crate::error::{HostError, Trouble};
use crate::origin;
use crate::registry::{self, Registry};
use crate::team_choice::{TeamChoice, TeamSource};

fn path(registry: &Registry) -> PathBuf {
    registry.state_dir().join("use").join(format!("{}.json", registry.key()))
}

impl Context {
    /// Returns the default team that the person chose for this store; `None` if an agent runs the command, because the choice
    /// is the person's. The team might not exist any more.
    pub fn default_team(&self) -> Result<Option<TeamName>, HostError> {
        if !self.is_run_by_person() {
            return Ok(None);
        }
        let chosen = registry::read(&path(&self.registry()));
        chosen.map_err(|error| error.hint("`brigade use --clear` forgets the choice"))
    }

    /// Sets the default team of the person for this store; `None` clears it. Only a person may do this.
    pub fn set_default_team(&self, team: Option<&TeamName>) -> Result<(), HostError> {
        self.require_person("choose the default team")?;
        let path = path(&self.registry());
        let Some(team) = team else { return registry::remove(&path) };
        if let Some(folder) = path.parent() {
            registry::create_dir(folder)?;
        }
        registry::write(&path, team)
    }

    /// Makes a new team the default, if commands without an option would mean another team, or none. Returns why such commands
    /// use the new team; `None` if they do not.
    pub async fn use_created(&self, team: &TeamName) -> Result<Option<TeamSource>, HostError> {
        if let Ok(choice) = self.team_choice().await
            && choice.team == *team
        {
            return Ok(Some(choice.source));
        }
        let is_chosen_here = origin::folder_team(&self.cwd)?.is_some()
            || self.named_team().is_some()
            || self.require_person("choose the default team").is_err();
        if is_chosen_here {
            return Ok(None);
        }
        self.set_default_team(Some(team))?;
        Ok(Some(TeamSource::Chosen))
    }

    /// Returns the person's default team or, if the person chose none, the only one of these teams. Fails if the default team is
    /// gone: a command that was meant for it must not act on another team.
    pub(super) fn default_among(&self, teams: &[TeamName]) -> Result<TeamChoice, HostError> {
        match (self.default_team()?, teams) {
            (Some(team), teams) if teams.contains(&team) => {
                Ok(TeamChoice::new(team, TeamSource::Chosen))
            }
            (Some(team), teams) => {
                let error = HostError::usage(Trouble::DefaultTeamGone { team: team.to_string() });
                let teams = team_names(teams).join("` or `--team ");
                Err(error.hint(format!(
                    "add `--team {teams}`, or forget the choice with `brigade use --clear`"
                )))
            }
            (None, [team]) => Ok(TeamChoice::new(team.clone(), TeamSource::Only)),
            (None, teams) => Err(several_teams(team_names(teams))),
        }
    }

    /// Returns the team of a command about running teams that has no team file: the person's default team among these. Announces
    /// the team.
    pub(crate) fn choose_running(&self, teams: &[TeamName]) -> Result<TeamName, HostError> {
        let choice = self.default_among(teams)?;
        if teams.len() > 1 {
            (self.announce)(&choice);
        }
        Ok(choice.team)
    }

    /// Announces that the team file of the folder chose a team among several.
    pub(crate) fn announce_folder_team(&self, team: &TeamName) {
        (self.announce)(&TeamChoice::new(team.clone(), TeamSource::Folder));
    }
}
