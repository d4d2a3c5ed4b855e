//! Finds the shard of a team. A team never leaves its shard, so this process asks the server only until it has seen the
//! team, and when it creates a team.

use brigade_core::store::StoreError;
use brigade_wire::name::TeamName;

use super::{NatsStore, locked};
use crate::identity::CredentialRole;
use crate::layout::Subjects;
use crate::placement::ShardChoice;
use crate::roster::Roster;
use crate::shard_map::ShardMap;

impl NatsStore {
    /// Returns the subjects of a team in the shard that this process knows. The caller must have read the roster, because
    /// the team may be in another shard if this process has not seen it yet.
    pub(super) fn subjects(&self, team: &TeamName) -> Subjects {
        match self.connection.identity.subjects() {
            Some(own) if own.team == *team => own,
            _ => locked(&self.map).subjects(team),
        }
    }

    /// Returns the subjects of a team in its shard. Reads the roster if this process has not seen the team yet.
    pub(super) async fn located(&self, team: &TeamName) -> Result<Subjects, StoreError> {
        let is_seen = |roster: &Roster| roster.document_seq() > 0;
        if !locked(&self.rosters).get(team).is_some_and(is_seen) && self.may_be_elsewhere(team) {
            self.roster(team).await?;
        }
        Ok(self.subjects(team))
    }

    /// Whether another client may have assigned the team to a shard since this process read the map. The credentials of a
    /// seat name the shard.
    fn may_be_elsewhere(&self, team: &TeamName) -> bool {
        self.connection.identity.role == CredentialRole::Admin
            && locked(&self.map).entry(team).is_none()
    }

    /// Reads the current roster.
    pub(super) async fn roster(&self, team: &TeamName) -> Result<Roster, StoreError> {
        let cached = locked(&self.rosters).get(team).cloned().unwrap_or_default();
        let mut roster = self.connection.roster(&self.subjects(team), cached).await?;
        if roster.elsewhere().is_some() && self.may_be_elsewhere(team) {
            self.current_map().await?;
            roster = self.connection.roster(&self.subjects(team), Roster::default()).await?;
        }
        if roster.elsewhere().is_some() {
            // The assignment to another shard was interrupted. There is no team yet.
            return Ok(Roster::default());
        }
        self.remember(team, &roster);
        Ok(roster)
    }

    /// Reads the map of shards again and returns it. A seat does not need it.
    pub(crate) async fn current_map(&self) -> Result<ShardMap, StoreError> {
        if self.connection.identity.role == CredentialRole::Admin {
            let map = self.connection.existing_shard_map().await?;
            self.remember_map(&map);
        }
        Ok(locked(&self.map).clone())
    }

    /// Assigns a team to a shard, unless it has one. Returns its subjects there.
    pub(crate) async fn assign(
        &self,
        team: &TeamName,
        choice: ShardChoice,
    ) -> Result<Subjects, StoreError> {
        if self.connection.identity.role == CredentialRole::Admin {
            let map = self.connection.assign(team, choice).await?;
            self.remember_map(&map);
        }
        Ok(self.subjects(team))
    }

    fn remember_map(&self, map: &ShardMap) {
        let mut known = locked(&self.map);
        if known.seq < map.seq {
            *known = map.clone();
        }
    }
}
