//! Carries the state of a member over to another team, for example when the member's lead has resumed its session.

use std::collections::HashSet;

use brigade_core::revive;
use brigade_core::seat::Seat;
use brigade_core::store::{NoteKind, StoreError};
use serde::{Deserialize, Serialize};

use super::{SavedTeammate, TeammateError};

/// Identifies one membership of a member, also if a team or a member of the same name follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// When the team was created, in milliseconds since 1970.
    pub team_created: u64,
    /// When the member joined the team, in milliseconds since 1970.
    pub joined: u64,
}

impl Membership {
    /// Returns the present membership of the seat's member; `None` if the member is not on the roster.
    pub async fn present(seat: &Seat) -> Result<Option<Self>, StoreError> {
        let Some(roster) = seat.find_roster().await? else { return Ok(None) };
        let team = roster.team();
        let team_created = team.created_at().unwrap_or_default();
        let member = team.member(seat.name.as_str());
        let joined = member.map(|member| member.joined_at().unwrap_or_default());
        Ok(joined.map(|joined| Self { team_created, joined }))
    }
}

/// Carries a member's state from an ended membership over to its new seat: the session of its agent, the turn that was not
/// completed, and the unread mail. Does nothing if that was done before.
pub async fn carry_over(from: &Seat, ended: Membership, to: &Seat) -> Result<(), TeammateError> {
    let Some(new) = Membership::present(to).await? else {
        return Err(to.not_a_member_error().await?.into());
    };
    let note = from.store.get_note(&from.team, &from.name, NoteKind::Memory).await?;
    let saved: Option<SavedTeammate> = note.and_then(|note| serde_json::from_slice(&note).ok());
    let mut known = HashSet::new();
    if let Some(mut saved) = saved {
        known.extend(saved.delivery.sent_messages());
        let its = Membership { team_created: saved.team_created, joined: saved.joined };
        if its == ended {
            (saved.team_created, saved.joined) = (new.team_created, new.joined);
            // Serializing plain data cannot fail.
            let note = serde_json::to_vec(&saved).unwrap_or_default();
            to.store.put_note(&to.team, &to.name, NoteKind::Memory, Some(&note)).await?;
        }
    }
    revive::resend_unread(from, ended.team_created, to, &known).await?;
    Ok(())
}
