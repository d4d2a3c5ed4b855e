//! Who somebody is in which team.

use std::sync::Arc;

use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;

use crate::clock::Clock;
use crate::store::{Actor, Document, Store, StoreError};

/// A place in a team. Everything done through it is done in its name: no argument of a call, and so
/// no word of a model, says who is speaking.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Where the team lives.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Which team.
    pub team: TeamName,
    /// Who.
    pub name: MemberName,
}

impl Seat {
    /// For the record.
    pub(crate) fn actor(&self) -> Actor {
        Actor(self.name.to_string())
    }

    /// The team's `config.json`.
    pub(crate) async fn config(&self) -> Result<Document, StoreError> {
        let config = self.store.team(&self.team).await?;
        config.ok_or_else(|| StoreError::NoTeam { team: self.team.clone() })
    }

    /// The same, read.
    pub(crate) fn read<'d>(&self, config: &'d Document) -> Result<Team<'d>, StoreError> {
        Team::read(&config.bytes).map_err(|damage| StoreError::Damaged {
            place: format!("the configuration of team {}", self.team),
            damage,
        })
    }
}
