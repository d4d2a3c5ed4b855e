//! Waits for the lead of a member to resume its session, and adds the member to the lead's team again.

use std::path::Path;
use std::time::Duration;

use brigade_agents::teammate::{Membership, carry_over};
use brigade_core::roster::{self, MemberPlan, RosterError};
use brigade_core::seat::Seat;
use brigade_files::layout;
use brigade_wire::name::{NameError, TeamName};
use brigade_wire::team::Team;
use tokio::time::Instant;

use super::{FollowedLead, Registration, inform_lead, register};
use crate::claude_session::ClaudeSession;
use crate::context::Context;
use crate::error::HostError;

/// How often to look for the lead.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long the lead's team must stay the same before the member joins it. A resumed lead first creates another team, and
/// replaces it after 0.2 to 0.7 s.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// A lead that has resumed its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLead {
    /// The team that the lead leads now.
    pub team: TeamName,
    /// When the team was created, in milliseconds since 1970.
    created: u64,
    /// The present id of the lead's session.
    session: String,
}

/// Returns the lead whose session has one of these ids, if it runs and has a team.
pub fn find_lead(claude_dir: &Path, sessions: &[String]) -> Option<FoundLead> {
    let newest_first = sessions.iter().rev();
    let session = newest_first.filter_map(|id| ClaudeSession::of_id(claude_dir, id)).next()?;
    let folders = std::fs::read_dir(claude_dir.join(layout::TEAMS)).ok()?;
    let names = folders.filter_map(|folder| folder.ok()?.file_name().into_string().ok());
    let (mut led, mut maybe_led) = (Vec::new(), Vec::new());
    for team in names.filter_map(|name| name.parse::<TeamName>().ok()) {
        let config = std::fs::read(layout::config_path(claude_dir, team.as_str()));
        let Some(roster) = config.as_ref().ok().and_then(|config| Team::read(config).ok()) else {
            continue;
        };
        let created = roster.created_at().unwrap_or_default();
        let found = FoundLead { team, created, session: session.session_id.clone() };
        if session.leads(&roster) {
            led.push(found);
        } else if session.may_lead(&roster) {
            maybe_led.push(found);
        }
    }
    // If several teams might be the session's, a member joins none of them.
    led.pop().or(maybe_led.pop().filter(|_| maybe_led.is_empty()))
}

/// Waits until the lead of a member is back. Returns `None` after `limit`.
pub async fn wait_for_lead(
    claude_dir: &Path,
    sessions: &[String],
    limit: Duration,
) -> Option<FoundLead> {
    let began = Instant::now();
    let mut last = None;
    let mut since = began;
    loop {
        let found = find_lead(claude_dir, sessions);
        if found != last {
            (last, since) = (found, Instant::now());
        } else if last.is_some() && since.elapsed() >= SETTLED_AFTER {
            return last;
        }
        if began.elapsed() > limit {
            return None;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The result of joining the team of a resumed lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejoined {
    /// The member is on the roster.
    Joined,
    /// Another member has the name.
    NameTaken,
}

impl Registration {
    /// Adds the member to the team of its lead, which has resumed its session. The member keeps the session of its agent, the
    /// turn that it did not complete, its tasks and its unread mail.
    ///
    /// From now on, messages of the lead are unverified: Claude Code signs only messages to members that it has started in the
    /// same session.
    pub async fn rejoin(
        &mut self,
        context: &Context,
        lead: &FoundLead,
    ) -> Result<Rejoined, HostError> {
        let from = context.seat_of(self.team.clone(), self.spec.name.clone());
        let to = context.seat_of(lead.team.clone(), self.spec.name.clone());
        let followed = self.followed_lead()?;
        let FollowedLead { membership: ended, sessions, .. } = followed.clone();
        // The member may still be on the roster: its process was killed, and its lead was not.
        let has_left = lead.team != self.team || Membership::present(&to).await? != Some(ended);
        if has_left {
            if !self.join(&to, followed).await? {
                return Ok(Rejoined::NameTaken);
            }
            carry_over(&from, ended, &to).await.map_err(HostError::failed)?;
        }
        if lead.team != self.team {
            let new = register(&self.host, &lead.team, self.spec.clone()).await?;
            if Membership::present(&from).await? == Some(ended) {
                // A killed lead of an older version leaves its team behind.
                roster::leave_if_joined_at(&from, &from.name, Some(ended.joined)).await?;
            }
            let earlier = std::mem::replace(self, new);
            earlier.host.registry.add_gone(&earlier.team, &earlier.spec.name)?;
            earlier.remove()?;
        }
        let mut record = FollowedLead { sessions, ..FollowedLead::default() };
        record.add_session(&lead.session);
        self.put_followed_lead(&record)?;
        self.record_lead(&to, None).await?;
        if has_left {
            let name = &to.name;
            let text = format!(
                "{name} has joined the team again. In this session, Claude Code does not sign messages to {name}, so {name} \
                 treats your messages as unverified, and answers in the permission dialog have no effect: a person can use \
                 `brigade approve`, `brigade deny` and `brigade stop` in a terminal."
            );
            inform_lead(&to, &text).await;
        }
        Ok(Rejoined::Joined)
    }

    /// Adds the member to the roster. Returns false if another member has the name.
    async fn join(&self, to: &Seat, followed: FollowedLead) -> Result<bool, HostError> {
        let was_joining = followed.joining.as_ref() == Some(&to.team);
        self.put_followed_lead(&FollowedLead { joining: Some(to.team.clone()), ..followed })?;
        let cwd = self.spec.cwd.to_string_lossy();
        let plan = MemberPlan::new(&self.spec.agent, &cwd);
        let plan = match self.spec.model.as_deref() {
            Some(model) => MemberPlan { model, ..plan },
            None => plan,
        };
        match roster::join(to, &to.name, plan).await {
            Ok(_) => Ok(true),
            // This process was killed before it stored that the member had joined.
            Err(RosterError::Name(NameError::Taken { .. })) if was_joining => {
                let other = self.host.member_process(&to.team, &to.name)?;
                Ok(other.is_none_or(|other| other.pid == std::process::id()))
            }
            Err(RosterError::Name(NameError::Taken { .. })) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
