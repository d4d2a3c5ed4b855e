//! Authorization: which role may do what. Every operation on a seat calls this module, so that the CLI, the MCP
//! server and the UI all follow the same rules.
//!
//! ```
//! use brigade_core::authority::Role;
//!
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.for_member("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! assert_eq!(lead.role().await?, Some(Role::Lead));
//! assert_eq!(bob.role().await?, Some(Role::Teammate));
//! assert_eq!(lead.for_member("eve".parse()?).role().await?, None);
//! # Ok(())
//! # }
//! ```

use brigade_wire::name::MemberName;
use brigade_wire::team::Team;
use thiserror::Error;

use crate::seat::{Seat, SeatUser};
use crate::store::StoreError;

/// A member's role in a team, according to `config.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The member that answers plan and permission requests and may delete the team.
    Lead,
    /// Every member other than the lead.
    Teammate,
}

/// Why an operation is not allowed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Denied {
    /// The seat's name is not on the roster.
    #[error("{who} is not a member of team {team}")]
    NotAMember {
        /// The seat's member name.
        who: MemberName,
        /// The name of the team.
        team: String,
        /// The names of all members on the roster.
        members: Vec<String>,
    },
    /// Only the lead may perform the operation.
    #[error("only the lead may {what}; {who} is not the lead of team {team}")]
    LeadOnly {
        /// The operation, as a verb phrase.
        what: &'static str,
        /// The seat's member name.
        who: MemberName,
        /// The name of the team.
        team: String,
    },
    /// Only teammates may perform the operation.
    #[error("the lead cannot {what}; only teammates can")]
    TeammateOnly {
        /// The operation, as a verb phrase.
        what: &'static str,
    },
    /// Only a human in the lead's seat may perform the operation.
    #[error("only a human may {what} in team {team}; its lead is an agent")]
    PersonOnly {
        /// The operation, as a verb phrase.
        what: &'static str,
        /// The name of the team.
        team: String,
    },
    /// Only a person may start a member whose agent is a command.
    #[error("only a person may start a command as a member of team {team}")]
    CommandByAgent {
        /// The name of the team.
        team: String,
    },
    /// Only the lead and the member that the operation affects may perform it.
    #[error("only {about} or the lead may {what}; {who} is neither")]
    NotTheirs {
        /// The operation, as a verb phrase.
        what: &'static str,
        /// The member that the operation affects.
        about: MemberName,
        /// The seat's member name.
        who: MemberName,
    },
}

/// Returns the seat's role in the team; `None` if the seat's name is not on the roster.
pub(crate) fn role(seat: &Seat, team: &Team<'_>) -> Option<Role> {
    team.member(seat.name.as_str())?;
    let leads = team.lead().is_some_and(|lead| lead.is(seat.name.as_str()));
    Some(if leads { Role::Lead } else { Role::Teammate })
}

impl Seat {
    /// Returns the seat's current role in its team; `None` if the seat's name is not on the roster.
    pub async fn role(&self) -> Result<Option<Role>, StoreError> {
        Ok(role(self, &self.roster().await?.team()))
    }

    /// Returns the error for a seat whose name is not on the roster.
    pub async fn not_a_member_error(&self) -> Result<Denied, StoreError> {
        Ok(not_a_member(self, &self.roster().await?.team()))
    }
}

/// Returns the seat's role, or an error if the seat's name is not on the roster.
pub(crate) fn require_member(seat: &Seat, team: &Team<'_>) -> Result<Role, Denied> {
    role(seat, team).ok_or_else(|| not_a_member(seat, team))
}

pub(crate) fn not_a_member(seat: &Seat, team: &Team<'_>) -> Denied {
    let (who, team_name) = (seat.name.clone(), seat.team.to_string());
    Denied::NotAMember { who, team: team_name, members: team.member_names() }
}

/// Fails unless the seat is the lead.
pub(crate) fn require_lead(seat: &Seat, team: &Team<'_>, what: &'static str) -> Result<(), Denied> {
    match require_member(seat, team)? {
        Role::Lead => Ok(()),
        Role::Teammate => {
            Err(Denied::LeadOnly { what, who: seat.name.clone(), team: seat.team.to_string() })
        }
    }
}

/// Fails unless the seat is the lead and the seat's user may answer requests.
pub(crate) fn require_answering_lead(
    seat: &Seat,
    team: &Team<'_>,
    what: &'static str,
) -> Result<(), Denied> {
    require_lead(seat, team, what)?;
    match seat.user {
        SeatUser::Agent { answers: false } => {
            Err(Denied::PersonOnly { what, team: seat.team.to_string() })
        }
        SeatUser::Agent { answers: true }
        | SeatUser::Person
        | SeatUser::WebPerson { .. }
        | SeatUser::Rule { .. }
        | SeatUser::PersonalRule { .. }
        | SeatUser::TurnRule { .. } => Ok(()),
    }
}

/// Fails unless the seat is a teammate.
pub fn require_teammate(seat: &Seat, team: &Team<'_>, what: &'static str) -> Result<(), Denied> {
    match require_member(seat, team)? {
        Role::Lead => Err(Denied::TeammateOnly { what }),
        Role::Teammate => Ok(()),
    }
}

/// Fails unless the seat is the lead or member `about`. Member `about` may already have left the team.
pub(crate) fn require_lead_or(
    seat: &Seat,
    team: &Team<'_>,
    about: &MemberName,
    what: &'static str,
) -> Result<(), Denied> {
    if seat.name == *about || role(seat, team) == Some(Role::Lead) {
        return Ok(());
    }
    Err(Denied::NotTheirs { what, about: about.clone(), who: seat.name.clone() })
}
