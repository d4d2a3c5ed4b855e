//! Decides the next step after the run of a member that Claude Code started has ended.

use std::time::Duration;

use brigade_agents::teammate::Membership;
use brigade_core::roster::{self, RosterError};
use brigade_core::seat::Seat;

use super::{Registration, inform_lead};
use crate::error::HostError;
use crate::signals::StopSignal;

/// How long Claude Code may take to delete its team after it has closed the panes of its teammates. Measured: 60 ms.
const TEAM_DELETED_WITHIN: Duration = Duration::from_millis(500);

/// The next step after the run of a member has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// The member has left the team for good.
    Left,
    /// The session of the lead has ended, or its team was created again. The member waits for the lead.
    LeadAway,
    /// A signal ended the member while its lead is away. `brigade resume` can start it again.
    Ended,
}

impl Registration {
    /// Decides the next step after the member's run has ended: by a signal, or else because the member is no longer on the
    /// roster. If the member leaves, removes it from the roster and informs the lead.
    ///
    /// Claude Code closes the panes of its teammates when its session ends, but also when a person presses Ctrl-C.
    pub async fn part(
        &self,
        seat: &Seat,
        signal: Option<StopSignal>,
    ) -> Result<Parting, HostError> {
        if signal.is_some() {
            tokio::time::sleep(TEAM_DELETED_WITHIN).await;
        }
        let mut record = self.followed_lead()?;
        if record.is_lead_away(&self.host, seat).await? {
            if !self.host.registry.expects(&self.team, &self.spec.name) {
                return Ok(Parting::Left);
            }
            record.waits = true;
            self.put_followed_lead(&record)?;
            return Ok(match signal {
                Some(StopSignal::Requested) => Parting::Ended,
                Some(StopSignal::HungUp) | None => Parting::LeadAway,
            });
        }
        if let Some(signal) = signal
            && seat.find_config().await?.is_some()
        {
            self.leave(seat, &signal.to_string()).await?;
        }
        Ok(Parting::Left)
    }

    /// Informs the lead that the member ends, and removes the member from the roster. Does nothing if a later member has the
    /// name by now.
    pub async fn leave(&self, seat: &Seat, why: &str) -> Result<(), HostError> {
        let membership = self.followed_lead()?.membership;
        if Membership::present(seat).await?.is_some_and(|present| present != membership) {
            return Ok(());
        }
        inform_lead(seat, &format!("{} has left the team: {why}", seat.name)).await;
        match roster::leave_if_joined_at(seat, &seat.name, Some(membership.joined)).await {
            Ok(_) | Err(RosterError::JoinedAgain { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
