//! The shards of a store, for operators: lists them, adds one, and assigns a new team to one.
//!
//! ```no_run
//! use brigade_core::store::StoreError;
//! use brigade_nats::NatsStore;
//!
//! async fn grow(store: &NatsStore) -> Result<(), StoreError> {
//!     let added = store.add_shard().await?;
//!     println!("added shard {added}: {:?}", store.shards().await?);
//!     Ok(())
//! }
//! ```

use brigade_core::store::StoreError;
use brigade_wire::name::TeamName;
use serde::Serialize;

use crate::identity::CredentialRole;
use crate::layout::Stream;
use crate::placement::ShardChoice;
use crate::store::NatsStore;

/// The contents of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardUsage {
    /// The shard's number.
    pub shard: u16,
    /// Number of teams.
    pub teams: usize,
    /// Number of messages in all streams of the shard.
    pub messages: u64,
    /// Size of these messages, in bytes.
    pub bytes: u64,
}

impl NatsStore {
    /// Returns the contents of all shards.
    pub async fn shards(&self) -> Result<Vec<ShardUsage>, StoreError> {
        self.check_admin("list the shards")?;
        let mut shards = Vec::new();
        for shard in 0..self.current_map().await?.total() {
            let teams = self.teams_in(shard).await?.len();
            let mut usage = ShardUsage { shard, teams, messages: 0, bytes: 0 };
            for stream in Stream::ALL {
                if let Some(info) = self.connection.info(&stream.name(shard)).await? {
                    usage.messages += info.state.messages;
                    usage.bytes += info.state.bytes;
                }
            }
            shards.push(usage);
        }
        Ok(shards)
    }

    /// Adds a shard, and returns its number. Existing teams stay in their shards; new teams are spread over all shards.
    pub async fn add_shard(&self) -> Result<u16, StoreError> {
        self.check_admin("add a shard")?;
        self.connection.add_shard().await
    }

    /// Fixes the shards of teams whose credentials were issued when there were no added shards. Such a team perhaps does
    /// not exist yet, and must be created in the shard that its credentials name. Call this before the first shard is
    /// added, and before [`record_added_shards`](crate::org::Folder::record_added_shards).
    pub async fn fix_shards(&self, with_credentials: &[TeamName]) -> Result<(), StoreError> {
        self.check_admin("fix the shards of teams")?;
        self.connection.pin_teams(with_credentials).await
    }

    /// Assigns a team to a shard before it is created. Fails if the team has data in another shard, or was assigned to
    /// another one.
    pub async fn assign_shard(&self, team: &TeamName, shard: u16) -> Result<(), StoreError> {
        self.check_admin("assign a team to a shard")?;
        self.assign(team, ShardChoice::Exactly(shard)).await.map(drop)
    }

    /// Returns the shard that the credentials of a team must name. If the team has no shard yet, assigns it to one.
    pub async fn shard_for_credentials(&self, team: &TeamName) -> Result<u16, StoreError> {
        self.check_admin("find the shard of a team")?;
        self.assign(team, ShardChoice::ForCredentials).await.map(|subjects| subjects.shard)
    }

    fn check_admin(&self, doing: &str) -> Result<(), StoreError> {
        if self.connection.identity.role == CredentialRole::Admin {
            return Ok(());
        }
        Err(self.connection.forbidden(doing, "only the admin of the organisation may do it"))
    }
}
