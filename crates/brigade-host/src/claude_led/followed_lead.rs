//! The stored facts about the lead of a member that Claude Code started. With them, the member finds its lead again.

use std::time::Duration;

use brigade_agents::teammate::Membership;
use brigade_core::seat::Seat;
use brigade_wire::name::{MemberName, TeamName};
use serde::{Deserialize, Serialize};

use super::{Registration, find_lead};
use crate::claude_session::ClaudeSession;
use crate::error::HostError;
use crate::host::Host;

/// How often to check whether the lead's session has a new id.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The stored facts about the lead of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedLead {
    /// The ids that the lead's session has had, oldest first. `/clear` and `/branch` give a session a new id.
    pub sessions: Vec<String>,
    /// The member's last membership.
    pub membership: Membership,
    /// Whether the lead's session has ended, so that the member waits for it.
    #[serde(default)]
    pub waits: bool,
    /// The team that the member is joining. It stays if the process is killed meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) joining: Option<TeamName>,
}

impl FollowedLead {
    /// Returns the record of a member; `None` if the member was not started by Claude Code on this host.
    pub fn stored(
        host: &Host,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<Option<Self>, HostError> {
        host.claude_led().registry.followed_lead(team, name)
    }

    /// Adds the present id of the lead's session. Returns whether the id is new.
    pub fn add_session(&mut self, id: &str) -> bool {
        let is_new = self.sessions.last().is_none_or(|last| last != id);
        if is_new {
            self.sessions.retain(|session| session != id);
            self.sessions.push(id.to_owned());
        }
        is_new
    }
}

impl FollowedLead {
    /// Adds the id of the session that leads the team now, and the membership, unless one is known.
    async fn update(&mut self, host: &Host, seat: &Seat) -> Result<(), HostError> {
        if let Some(config) = seat.find_config().await?
            && let Some(session) = ClaudeSession::of_lead(&host.claude_dir, &seat.read(&config)?)
        {
            self.add_session(&session.session_id);
        }
        // Later, a member of the same name may be on the roster.
        if self.membership == Membership::default()
            && let Some(membership) = Membership::present(seat).await?
        {
            self.membership = membership;
        }
        Ok(())
    }

    /// Keeps the facts up to date, in memory, while a member runs. Returns when the lead leads another team.
    pub async fn follow(&mut self, host: &Host, seat: &Seat) {
        loop {
            match self.update(host, seat).await {
                Ok(()) if self.leads_elsewhere(host, &seat.team) => return,
                Ok(()) => {}
                Err(error) => warn(seat, &error),
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Returns whether the lead leads another team than this one.
    fn leads_elsewhere(&self, host: &Host, team: &TeamName) -> bool {
        find_lead(&host.claude_dir, &self.sessions).is_some_and(|lead| lead.team != *team)
    }

    /// Returns whether the lead's session has ended, or has created the team again.
    pub async fn is_lead_away(&self, host: &Host, seat: &Seat) -> Result<bool, HostError> {
        if self.sessions.is_empty() {
            return Ok(false);
        }
        let Some(config) = seat.find_config().await? else { return Ok(true) };
        if self.leads_elsewhere(host, &seat.team) {
            return Ok(true);
        }
        let team = seat.read(&config)?;
        let is_known = self.membership != Membership::default();
        let created = team.created_at().unwrap_or_default();
        Ok((is_known && created != self.membership.team_created)
            || (team.lead_process().is_some()
                && ClaudeSession::of_lead(&host.claude_dir, &team).is_none()))
    }
}

fn warn(seat: &Seat, error: &HostError) {
    tracing::warn!(team = %seat.team, member = %seat.name, %error, "cannot follow the lead");
}

impl Registration {
    /// Returns the stored facts about the lead.
    pub fn followed_lead(&self) -> Result<FollowedLead, HostError> {
        let record = self.host.registry.followed_lead(&self.team, &self.spec.name)?;
        Ok(record.unwrap_or_default())
    }

    pub(super) fn put_followed_lead(&self, record: &FollowedLead) -> Result<(), HostError> {
        self.host.registry.put_followed_lead(&self.team, &self.spec.name, record)
    }

    /// Stores the lead's present session and the member's membership. Claude Code passes the id of the session that started
    /// the member as `parent_session`.
    pub async fn record_lead(
        &self,
        seat: &Seat,
        parent_session: Option<&str>,
    ) -> Result<(), HostError> {
        let mut record = self.followed_lead()?;
        let earlier = record.clone();
        if let Some(id) = parent_session {
            record.add_session(id);
        }
        record.update(&self.host, seat).await?;
        if record == earlier { Ok(()) } else { self.put_followed_lead(&record) }
    }

    /// Keeps the stored session of the lead up to date while the member runs. Returns when the lead leads another team.
    pub async fn follow_lead(&self, seat: &Seat) {
        loop {
            let followed = match self.record_lead(seat, None).await {
                Ok(()) => self.followed_lead(),
                Err(error) => Err(error),
            };
            match followed {
                Ok(lead) if lead.leads_elsewhere(&self.host, &self.team) => return,
                Ok(_) => {}
                Err(error) => warn(seat, &error),
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }
}
