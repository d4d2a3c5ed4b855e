//! The teams of Claude Code sessions that have ended.

use brigade_wire::name::TeamName;

use super::Context;
use crate::error::{HostError, Trouble};
use crate::origin;

/// A Claude Code session that has ended, and whose members wait for it on this host. Claude Code has deleted its team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSession {
    /// The team that the session led.
    pub team: TeamName,
    /// The last id of the session, if it is known.
    pub id: Option<String>,
}

impl EndedSession {
    /// Returns the commands that continue the session and show its members, as a hint.
    pub fn advice(&self) -> String {
        let how = match &self.id {
            Some(id) => format!("`claude --resume {id}`"),
            None => format!("`brigade resume {}`", self.team),
        };
        format!("{how} continues it, `brigade status` shows its members")
    }
}

impl Context {
    /// Returns the Claude Code sessions that have ended, and whose members wait on this host.
    pub async fn ended_sessions(&self) -> Result<Vec<EndedSession>, HostError> {
        if self.home.nats().is_some() {
            return Ok(Vec::new());
        }
        let registry = self.registry().claude_led();
        let mut ended = Vec::new();
        for team in registry.teams()? {
            if !self.team_exists(&team).await? {
                let id = registry.last_lead_session(&team)?;
                ended.push(EndedSession { team, id });
            }
        }
        Ok(ended)
    }

    /// Like [`team`](Self::team), but if there is no team, returns the team of the only Claude Code session that has ended. Its
    /// members and its history are still there.
    pub async fn team_or_ended(&self) -> Result<TeamName, HostError> {
        if self.team.is_none()
            && self.teams().await?.is_empty()
            && origin::folder_team(&self.cwd)?.is_none()
            && let [EndedSession { team, .. }] = self.ended_sessions().await?.as_slice()
        {
            return Ok(team.clone());
        }
        self.team().await
    }

    /// Returns the team whose history a command shows: like [`team_or_ended`](Self::team_or_ended), but the team of the folder's
    /// `brigade.toml` need not exist any more. The history of a deleted team is still available.
    pub async fn team_with_history(&self) -> Result<TeamName, HostError> {
        match (&self.team, origin::folder_team(&self.cwd)?) {
            (Some(team), _) => Ok(team.clone()),
            (None, Some(folder)) if !self.teams().await?.contains(&folder.team) => Ok(folder.team),
            (None, _) => self.team_or_ended().await,
        }
    }

    /// Returns the error for a command that needs a team if there is none, and no `brigade.toml` names one.
    pub(super) async fn no_team_error(&self) -> Result<HostError, HostError> {
        let ended = self.ended_sessions().await?;
        if ended.is_empty() {
            let error = HostError::failed(Trouble::NoTeams);
            return Ok(error.hint(
                "create one with `brigade team create NAME`, or from a file with `brigade new` and `brigade up`",
            ));
        }
        let teams = ended.iter().map(|session| session.team.to_string()).collect();
        let error = HostError::failed(Trouble::SessionEnded { teams });
        Ok(ended.iter().fold(error, |error, session| error.hint(session.advice())))
    }
}
