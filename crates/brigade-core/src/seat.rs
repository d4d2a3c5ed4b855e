//! A seat: the identity of a caller, which is one member of one team.
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_core::seat::Seat;
//! use brigade_core::store::memory::MemoryStore;
//!
//! # fn main() -> Result<(), brigade_core::wire::name::NameError> {
//! let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! let bob = lead.for_member("bob".parse()?);
//! assert_eq!((bob.team.as_str(), bob.name.as_str()), ("demo", "bob"));
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::Arc;

use brigade_wire::message::Message;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::{ParsedTeam, Team};

use crate::clock::{Clock, SystemClock};
use crate::event::Record;
use crate::signature::{LeadKey, Signer};
use crate::store::{Actor, Document, Store, StoreError, Watch, damaged_team};

/// One member of one team. Every operation on a seat acts in that member's name. No operation has an argument for
/// the sender, so a model cannot choose another sender.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seat {
    /// Where the team is stored.
    pub store: Arc<dyn Store>,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The name of the team.
    pub team: TeamName,
    /// The name of the member.
    pub name: MemberName,
    /// The lead's public key, if the seat has one. With a key, a message counts as the lead's only if it is signed
    /// with the matching private key.
    pub lead_key: Option<LeadKey>,
    /// The user of the seat: a person, an agent or a rule.
    pub user: SeatUser,
    /// Signs the lead's messages to members that have a key.
    pub signer: Option<Arc<dyn Signer>>,
}

/// The user of a seat. Like the seat's member name, the user is fixed when the program starts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeatUser {
    /// A person who uses the command line.
    Person,
    /// A person who uses the web page, or a program with a token of that person.
    WebPerson {
        /// The name of the token or of the login.
        token: String,
    },
    /// An agent that uses brigade's tools.
    Agent {
        /// Whether the agent may answer plan and permission requests if it leads the team.
        answers: bool,
    },
    /// A rule that answers requests without a person or an agent.
    Rule {
        /// The rule's position among the member's rules, counted from 1.
        number: usize,
        /// The member that the rule applies to.
        of: MemberName,
    },
    /// A rule in the policy file of the person who leads.
    PersonalRule {
        /// The rule's position in that file, counted from 1.
        number: usize,
    },
    /// A rule that a person added for the current turn of a member.
    TurnRule {
        /// The rule's position among the rules for this turn, counted from 1.
        number: usize,
        /// The member that the rule applies to.
        of: MemberName,
    },
}

impl SeatUser {
    /// Returns whether a person uses the seat.
    pub fn is_person(&self) -> bool {
        matches!(self, Self::Person | Self::WebPerson { .. })
    }
}

impl fmt::Display for SeatUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.write_str("person"),
            Self::WebPerson { token } => write!(f, "person by web, token {token}"),
            Self::Agent { .. } => f.write_str("agent"),
            Self::Rule { number, of } => write!(f, "rule {number} of {of}"),
            Self::PersonalRule { number } => write!(f, "personal rule {number}"),
            Self::TurnRule { number, of } => write!(f, "rule {number} for this turn of {of}"),
        }
    }
}

impl Seat {
    /// Creates a seat for a person, with the system clock. The member need not be on the roster yet. Until the
    /// member is on the roster, operations that only members may perform return an error.
    pub fn new(store: Arc<dyn Store>, team: TeamName, name: MemberName) -> Self {
        let (clock, hand) = (Arc::new(SystemClock), SeatUser::Person);
        Self { store, clock, team, name, lead_key: None, user: hand, signer: None }
    }

    /// Returns the seat of another member, for the same team and the same user.
    pub fn for_member(&self, name: MemberName) -> Self {
        Self { name, ..self.clone() }
    }

    /// Returns the seat with another clock.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Returns the seat with another user.
    pub fn with_user(self, hand: SeatUser) -> Self {
        Self { user: hand, ..self }
    }

    /// Returns the seat with a key to verify the lead's messages.
    pub fn with_lead_key(self, key: LeadKey) -> Self {
        Self { lead_key: Some(key), ..self }
    }

    /// Returns the seat with a signer, which signs the lead's messages.
    pub fn with_signer(self, signer: Arc<dyn Signer>) -> Self {
        Self { signer: Some(signer), ..self }
    }

    /// Returns the seat's member name, for the journal.
    pub fn actor(&self) -> Actor {
        Actor(self.name.to_string())
    }

    /// Returns the team's `config.json`; `None` if the team does not exist.
    pub async fn find_config(&self) -> Result<Option<Document>, StoreError> {
        self.store.team(&self.team).await
    }

    /// Returns the team's `config.json`. Fails if the team does not exist.
    pub async fn config(&self) -> Result<Document, StoreError> {
        let config = self.find_config().await?;
        config.ok_or_else(|| StoreError::NoTeam { team: self.team.clone() })
    }

    /// Returns the team's current roster; `None` if the team does not exist.
    pub async fn find_roster(&self) -> Result<Option<Arc<ParsedTeam>>, StoreError> {
        self.store.roster(&self.team).await
    }

    /// Returns the team's current roster. Fails if the team does not exist.
    pub async fn roster(&self) -> Result<Arc<ParsedTeam>, StoreError> {
        let roster = self.find_roster().await?;
        roster.ok_or_else(|| StoreError::NoTeam { team: self.team.clone() })
    }

    /// Returns the names of the team's members.
    pub async fn member_names(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.roster().await?.team().member_names())
    }

    /// Subscribes to the team's events, except work events.
    pub async fn watch_without_work(&self) -> Result<Watch, StoreError> {
        self.store.watch_without_work(&self.team).await
    }

    /// Subscribes to the events that concern the seat's member.
    pub async fn watch_own(&self) -> Result<Watch, StoreError> {
        self.store.watch_member(&self.team, &self.name).await
    }

    /// Returns the team's past events, except work events.
    pub async fn history_without_work(&self) -> Result<Vec<Record>, StoreError> {
        self.store.history_without_work(&self.team).await
    }

    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().as_millisecond()).unwrap_or_default()
    }

    /// Returns whether a message comes from the sender it names, as far as the seat can check.
    pub fn is_authentic(&self, team: &Team<'_>, message: &Message<'_>) -> bool {
        let leads = team.lead().is_some_and(|lead| lead.is(&message.from()));
        match &self.lead_key {
            Some(key) if leads => key.verifies(message),
            _ => true,
        }
    }

    /// Parses the team's `config.json`.
    pub fn read<'d>(&self, config: &'d Document) -> Result<Team<'d>, StoreError> {
        Team::read(&config.bytes).map_err(|damage| damaged_team(&self.team, damage))
    }
}
