//! Who may do what. Asked by everything that can be done from a seat, so that no face of the house
//! has rules of its own.
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
//! # let bob = lead.of("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! assert_eq!(lead.role().await?, Some(Role::Lead));
//! assert_eq!(bob.role().await?, Some(Role::Teammate));
//! assert_eq!(lead.of("eve".parse()?).role().await?, None);
//! # Ok(())
//! # }
//! ```

use brigade_wire::name::MemberName;
use brigade_wire::team::Team;
use thiserror::Error;

use crate::mail::member_names;
use crate::seat::{Hand, Seat};
use crate::store::StoreError;

/// What somebody is in a team, as its `config.json` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It answers plans and permissions, and ends the team.
    Lead,
    /// It works.
    Teammate,
}

/// Why somebody may not do a thing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Denied {
    /// The seat is nobody's.
    #[error("{who} is not a member of team {team}")]
    NotAMember {
        /// The seat.
        who: MemberName,
        /// Which team.
        team: String,
        /// Who is there.
        members: Vec<String>,
    },
    /// It is for the lead to do.
    #[error("only the lead may {what}, and {who} is not the lead of team {team}")]
    LeadOnly {
        /// What was to be done.
        what: &'static str,
        /// The seat.
        who: MemberName,
        /// Which team.
        team: String,
    },
    /// It is for a teammate to do.
    #[error("the lead cannot {what}; that is for its teammates")]
    TeammateOnly {
        /// What was to be done.
        what: &'static str,
    },
    /// It is for a person to do, in the lead's seat.
    #[error("only a person may {what} in team {team}, and the agent that leads it is none")]
    PersonOnly {
        /// What was to be done.
        what: &'static str,
        /// Which team.
        team: String,
    },
    /// It is for the lead to do, or for the one it is about.
    #[error("only {about} itself or the lead may {what}, and {who} is neither")]
    NotTheirs {
        /// What was to be done.
        what: &'static str,
        /// Whom it is about.
        about: MemberName,
        /// The seat.
        who: MemberName,
    },
}

/// The seat's role in the team; `None` if it is not a member.
pub(crate) fn role(seat: &Seat, team: &Team<'_>) -> Option<Role> {
    team.member(seat.name.as_str())?;
    let leads = team.lead().is_some_and(|lead| lead.is(seat.name.as_str()));
    Some(if leads { Role::Lead } else { Role::Teammate })
}

impl Seat {
    /// What the seat is in its team now; `None` if it is not a member.
    pub async fn role(&self) -> Result<Option<Role>, StoreError> {
        let config = self.config().await?;
        Ok(role(self, &self.read(&config)?))
    }

    /// That the seat is nobody's, in words.
    pub async fn absent(&self) -> Result<Denied, StoreError> {
        let config = self.config().await?;
        Ok(absent(self, &self.read(&config)?))
    }
}

/// The seat's role, which it must have.
pub(crate) fn member(seat: &Seat, team: &Team<'_>) -> Result<Role, Denied> {
    role(seat, team).ok_or_else(|| absent(seat, team))
}

pub(crate) fn absent(seat: &Seat, team: &Team<'_>) -> Denied {
    let (who, team_name) = (seat.name.clone(), seat.team.to_string());
    Denied::NotAMember { who, team: team_name, members: member_names(team) }
}

/// Lets the lead pass.
pub(crate) fn lead(seat: &Seat, team: &Team<'_>, what: &'static str) -> Result<(), Denied> {
    match member(seat, team)? {
        Role::Lead => Ok(()),
        Role::Teammate => {
            Err(Denied::LeadOnly { what, who: seat.name.clone(), team: seat.team.to_string() })
        }
    }
}

/// Lets the lead pass to answer for the team, unless it is an agent that may not.
pub(crate) fn answering(seat: &Seat, team: &Team<'_>, what: &'static str) -> Result<(), Denied> {
    lead(seat, team, what)?;
    match seat.hand {
        Hand::Agent { answers: false } => {
            Err(Denied::PersonOnly { what, team: seat.team.to_string() })
        }
        Hand::Agent { answers: true } | Hand::Person | Hand::Rule { .. } => Ok(()),
    }
}

/// Lets teammates pass.
pub fn teammate(seat: &Seat, team: &Team<'_>, what: &'static str) -> Result<(), Denied> {
    match member(seat, team)? {
        Role::Lead => Err(Denied::TeammateOnly { what }),
        Role::Teammate => Ok(()),
    }
}

/// Lets the lead pass, and whom it is about: who has left may still clear up behind itself.
pub(crate) fn lead_or(
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
