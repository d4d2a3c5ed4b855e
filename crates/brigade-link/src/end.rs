//! Recognizes that a team has ended, and deletes the copy of an ended team in the shared store.
//!
//! A team ends where its lead runs: Claude Code deletes the team's folder when its session ends. The link on that host
//! then asks the members on other hosts to stop, and deletes the team in the shared store. The links on other
//! hosts notice the deletion and delete their mirrors.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use brigade_wire::body::Body;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;
use tokio::time::Instant;

use super::{Link, LinkError, LinkEvent};
use brigade_core::handshake;
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_core::store::{Actor, Document, StoreError};
use brigade_core::wire::inbox::with_message;

/// The beginning of the names that Claude Code gives to the teams of its sessions.
const SESSION_TEAM: &str = "session-";
/// The reason in the request that asks a member on another host to stop.
const STOP_REASON: &str = "the session that led the team has ended";
/// How often to check whether the members on other hosts have stopped.
const STOP_POLL: Duration = Duration::from_millis(300);

/// Where a team was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedSide {
    /// In the files of this host, where the team's lead ran.
    Files,
    /// In the shared store.
    Shared,
    /// In both.
    Both,
}

impl fmt::Display for EndedSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "from the files of this host, where its lead ran",
            Self::Shared => "from the NATS store",
            Self::Both => "from the files of this host and from the NATS store",
        })
    }
}

impl Link {
    /// Returns the error with which the link ends. Fails with [`LinkError::MaybeEnded`] until the team has been gone for
    /// some seconds: Claude Code deletes and re-creates a team when it resumes a session after a crash.
    pub(super) fn confirm_end(&mut self, side: EndedSide) -> Result<LinkError, LinkError> {
        let team = self.config.team.clone();
        if !self.keeps_running {
            return Ok(LinkError::Ended { team, side });
        }
        if side != EndedSide::Shared
            && !self.config.local.has_teams_folder().map_err(LinkError::Local)?
        {
            self.end_sign = None;
            return Err(LinkError::NoTeamsFolder);
        }
        let since = match self.end_sign {
            Some((sign, since)) if sign == side => since,
            _ => Instant::now(),
        };
        self.end_sign = Some((side, since));
        if since.elapsed() < self.config.timing.end_grace {
            return Err(LinkError::MaybeEnded { team, side });
        }
        Ok(LinkError::Ended { team, side })
    }

    /// Returns whether this link synchronized this team of the shared store while the team's lead was local.
    pub(super) fn was_led_here(&self, shared: &Team<'_>) -> bool {
        self.state.lead_here && self.state.created == shared.created_at()
    }

    /// Returns whether the team belongs to a Claude Code session that ran on this host. A folder that the link creates
    /// for such a team would keep Claude Code from resuming the session.
    pub(super) async fn is_own_session(&self) -> Result<bool, LinkError> {
        if !self.config.team.as_str().starts_with(SESSION_TEAM) {
            return Ok(false);
        }
        let home = self.config.member_host(&MemberName::lead()).await?;
        Ok(home.is_some_and(|home| home.host == self.config.host))
    }

    /// Asks the members on other hosts to stop, and deletes the team in the shared store.
    pub(super) async fn end_shared(&mut self, shared: &Document) -> Result<(), LinkError> {
        if !std::mem::replace(&mut self.asked_to_stop, true) {
            let asked = self.ask_to_stop(shared).await;
            self.report_part(asked, "asking the members on other hosts to stop")?;
        }
        let by = Actor(self.lead_name(shared)?.to_string());
        let delete = self.config.shared.delete_team(&self.config.team, &by);
        match self.config.call_shared(delete).await {
            Ok(()) => self.emit(&LinkEvent::Deleted { side: "in the NATS store" }),
            Err(LinkError::Shared(StoreError::NoTeam { .. })) => {}
            Err(error) if error.is_forbidden() => {
                self.report_problem(format!(
                    "cannot delete the ended team in the NATS store: {error}"
                ));
            }
            Err(error) => return Err(error),
        }
        self.asked_to_stop = false;
        Ok(())
    }

    fn lead_name(&self, shared: &Document) -> Result<MemberName, LinkError> {
        let team = self.read(shared)?;
        let lead = team.lead().and_then(|lead| lead.name()?.parse().ok());
        Ok(lead.unwrap_or_else(MemberName::lead))
    }

    /// Asks every member on another host to stop, and waits until each has left or answered.
    async fn ask_to_stop(&mut self, shared: &Document) -> Result<(), LinkError> {
        let config = self.config.clone();
        let lead = self.lead_name(shared)?;
        let seat = Seat::new(Arc::clone(&config.shared), config.team.clone(), lead)
            .with_clock(Arc::clone(&config.clock));
        let mut waiting = BTreeSet::new();
        for name in self.remote_members(shared)? {
            let ask = handshake::request_shutdown(&seat, name.as_str(), Some(STOP_REASON));
            match tokio::time::timeout(config.timing.call_timeout, ask).await {
                Ok(Ok(_)) => {
                    self.emit(&LinkEvent::AskedToStop { member: name.to_string() });
                    waiting.insert(name);
                }
                Ok(Err(error)) => {
                    self.report_problem(format!("cannot ask {name} to stop: {error}"));
                }
                Err(_) => self.report_problem(format!("cannot ask {name} to stop: no answer")),
            }
        }
        let began = Instant::now();
        while !waiting.is_empty() && began.elapsed() < config.timing.stop_wait {
            tokio::time::sleep(STOP_POLL).await;
            let team = config.call_shared(config.shared.team(&config.team)).await?;
            let Some(team) = team else { return Ok(()) };
            let listed: BTreeSet<MemberName> = self.remote_members(&team)?.into_iter().collect();
            waiting.retain(|name| listed.contains(name));
            let answered = answered(&seat).await;
            waiting.retain(|name| !answered.contains(name.as_str()));
        }
        Ok(())
    }

    /// Returns the members on the shared roster that are not the lead and do not run on this host.
    fn remote_members(&self, shared: &Document) -> Result<Vec<MemberName>, LinkError> {
        let team = self.read(shared)?;
        let lead = team.lead().and_then(|lead| Some(lead.name()?.into_owned()));
        let is_remote = |name: &MemberName| {
            let known = self.state.members.get(name.as_str());
            Some(name.as_str()) != lead.as_deref() && !known.is_some_and(|known| known.local)
        };
        let names = team.members().filter_map(|member| member.name()?.parse().ok());
        Ok(names.filter(is_remote).collect())
    }
}

/// Returns the members that have answered a request to stop. If the mailbox cannot be read, returns no member.
async fn answered(lead: &Seat) -> BTreeSet<String> {
    let mut answered = BTreeSet::new();
    let inbox = mail::inbox(lead, &lead.name, InboxFilter::All).await;
    for mail in inbox.unwrap_or_default() {
        let from = with_message(&mail.json, |message| {
            let message = message?;
            let body = message.body();
            let is_answer = matches!(
                body,
                Body::Protocol(Protocol::ShutdownApproved(_) | Protocol::ShutdownRejected(_))
            );
            is_answer.then(|| message.from().into_owned())
        });
        answered.extend(from.ok().flatten());
    }
    answered
}
