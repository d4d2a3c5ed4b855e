//! Who somebody is in which team.
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_core::seat::Seat;
//! use brigade_core::store::memory::MemoryStore;
//!
//! # fn main() -> Result<(), brigade_core::wire::name::NameError> {
//! let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! let bob = lead.of("bob".parse()?);
//! assert_eq!((bob.team.as_str(), bob.name.as_str()), ("demo", "bob"));
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::Arc;

use brigade_wire::message::Message;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;

use crate::clock::{Clock, SystemClock};
use crate::signature::{LeadKey, Signer};
use crate::store::{Actor, Document, Store, StoreError};

/// A place in a team. Everything done through it is done in its name: no argument of a call, and so
/// no word of a model, says who is speaking.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seat {
    /// Where the team lives.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Which team.
    pub team: TeamName,
    /// Who.
    pub name: MemberName,
    /// The key by which the seat knows its lead, if it was given one. Then what is not signed with it
    /// is not the lead's.
    pub lead_key: Option<LeadKey>,
    /// By whose hand.
    pub hand: Hand,
    /// Who signs what the lead writes to those who know it by a key.
    pub signer: Option<Arc<dyn Signer>>,
}

/// By whose hand something is done from a seat. Like the seat's name it is said when the program starts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hand {
    /// A person's, on the command line.
    Person,
    /// An agent's, by its tools.
    Agent {
        /// Whether it may answer plans and requests for leave, if it leads.
        answers: bool,
    },
    /// Nobody's: a rule was there before.
    Rule {
        /// Which of the member's rules, counted from 1.
        number: usize,
        /// The member.
        of: MemberName,
    },
}

impl fmt::Display for Hand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.write_str("person"),
            Self::Agent { .. } => f.write_str("agent"),
            Self::Rule { number, of } => write!(f, "rule {number} of {of}"),
        }
    }
}

impl Seat {
    /// A seat in a team of this store, for a person, by the machine's own clock. Nobody has to be in the
    /// team already: what is done from the seat says so if it needs a member.
    pub fn new(store: Arc<dyn Store>, team: TeamName, name: MemberName) -> Self {
        let (clock, hand) = (Arc::new(SystemClock), Hand::Person);
        Self { store, clock, team, name, lead_key: None, hand, signer: None }
    }

    /// Another's seat in the same team, by the same hand.
    pub fn of(&self, name: MemberName) -> Self {
        Self { name, ..self.clone() }
    }

    /// The seat by another clock.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The seat by another's hand.
    pub fn with_hand(self, hand: Hand) -> Self {
        Self { hand, ..self }
    }

    /// The seat of somebody who knows its lead by this key.
    pub fn with_lead_key(self, key: LeadKey) -> Self {
        Self { lead_key: Some(key), ..self }
    }

    /// The seat of a lead who signs.
    pub fn with_signer(self, signer: Arc<dyn Signer>) -> Self {
        Self { signer: Some(signer), ..self }
    }

    /// For the record.
    pub fn actor(&self) -> Actor {
        Actor(self.name.to_string())
    }

    /// The team's `config.json`.
    pub async fn config(&self) -> Result<Document, StoreError> {
        let config = self.store.team(&self.team).await?;
        config.ok_or_else(|| StoreError::NoTeam { team: self.team.clone() })
    }

    /// Whether a message is from whom it says, as far as the seat can tell.
    pub fn vouches_for(&self, team: &Team<'_>, message: &Message<'_>) -> bool {
        let leads = team.lead().is_some_and(|lead| lead.is(&message.from()));
        match &self.lead_key {
            Some(key) if leads => key.verifies(message),
            _ => true,
        }
    }

    /// The same, read.
    pub fn read<'d>(&self, config: &'d Document) -> Result<Team<'d>, StoreError> {
        Team::read(&config.bytes).map_err(|damage| StoreError::Damaged {
            place: format!("the configuration of team {}", self.team),
            damage,
        })
    }
}
