//! Assigns new teams to shards, and adds shards.
//!
//! A new team may be assigned to another shard than the one that the hash of its name selects. A client with an outdated
//! map would create the team in the hashed shard. So before the team gets its entry in the map, a marker is written there in
//! place of the team's document. The server stores the marker only if there has never been a team of this name in that
//! shard, and refuses the creation of a team if its author has not read the marker. A client that reads the marker reads
//! the map again. If a client stops after it wrote the marker, the next one reads the shard from the marker and completes the
//! assignment.

use brigade_core::store::StoreError;
use brigade_wire::name::TeamName;

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::layout::{MAX_SHARDS, Stream, Subjects};
use crate::options::StreamSettings;
use crate::roster::Roster;
use crate::shard_map::ShardMap;
use crate::write::{ELSEWHERE, OP, PendingWrite};

/// The author in the subject of a marker. No member has this name, because names do not begin with an underscore.
const MARKER_AUTHOR: &str = "_shards";
const DOING: &str = "assign the team to a shard";

/// Which shard a team gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShardChoice {
    /// By the rule for new teams. A team gets an entry in the map only if shards were added.
    ByName,
    /// By the rule for new teams. The team gets an entry in any case, because its credentials will name the shard.
    ForCredentials,
    /// This shard.
    Exactly(u16),
}

impl NatsConnection {
    /// Returns the map of shards, which must exist.
    pub(crate) async fn existing_shard_map(&self) -> Result<ShardMap, StoreError> {
        let map = self.shard_map().await?;
        map.ok_or_else(|| {
            let missing = "the map of shards is missing; run `brigade org apply`";
            NatsError::Server(missing.into()).while_doing("find the team's shard")
        })
    }

    /// Assigns a team to a shard, unless it has one. Returns the current map.
    pub(crate) async fn assign(
        &self,
        team: &TeamName,
        choice: ShardChoice,
    ) -> Result<ShardMap, StoreError> {
        loop {
            let map = self.existing_shard_map().await?;
            if let Some(shard) = map.entry(team) {
                check_choice(choice, shard, "it was assigned to")?;
                return Ok(map);
            }
            if choice == ShardChoice::ByName && !map.has_added() {
                return Ok(map);
            }
            let hashed = Subjects { shard: map.hashed_shard(team), team: team.clone() };
            let roster = self.roster(&hashed, Roster::default()).await?;
            let shard = match (roster.elsewhere(), choice) {
                (Some(shard), _) => shard,
                // There is or was a team of this name. It stays with its history.
                (None, _) if roster.document_seq() > 0 => hashed.shard,
                (None, ShardChoice::Exactly(shard)) if shard < map.total() => shard,
                (None, ShardChoice::Exactly(shard)) => {
                    let error =
                        format!("there is no shard {shard}: the last one is {}", map.total() - 1);
                    return Err(NatsError::Server(error).while_doing(DOING));
                }
                (None, _) => map.shard_for_new(team),
            };
            check_choice(choice, shard, "its data is in")?;
            let is_marked = roster.elsewhere().is_some() || shard == hashed.shard;
            if !is_marked && !self.write_marker(&hashed, shard).await? {
                continue;
            }
            match self.write_shard_map(map.with_team(team, shard)).await {
                Err(StoreError::Conflict) => {}
                written => return written,
            }
        }
    }

    /// Writes a marker into the hashed shard of a team. Returns `false` if there is a team or another marker.
    async fn write_marker(&self, hashed: &Subjects, shard: u16) -> Result<bool, StoreError> {
        let text = shard.to_string();
        let marker = PendingWrite::new(hashed.config_by(MARKER_AUTHOR), text.as_bytes())
            .with_header(OP, ELSEWHERE)
            .expect_last(hashed.config(), 0);
        match self.write(marker, DOING).await {
            Err(StoreError::Conflict) => Ok(false),
            written => written.map(|_| true),
        }
    }

    /// Enters teams without an entry in the map, with their hashed shards, which their credentials name.
    pub(crate) async fn pin_teams(&self, teams: &[TeamName]) -> Result<(), StoreError> {
        loop {
            let map = self.existing_shard_map().await?;
            let mut next = map.clone();
            for team in teams.iter().filter(|team| map.entry(team).is_none()) {
                let hashed = map.hashed_shard(team);
                next = next.with_team(team, hashed);
            }
            if next == map {
                return Ok(());
            }
            match self.write_shard_map(next).await {
                Err(StoreError::Conflict) => {}
                written => return written.map(drop),
            }
        }
    }

    /// Adds a shard, with the settings of the first one. Returns the number of the new shard.
    pub(crate) async fn add_shard(&self) -> Result<u16, StoreError> {
        let doing = "add a shard";
        loop {
            let map = self.existing_shard_map().await?;
            let shard = map.total();
            if shard >= MAX_SHARDS {
                let error = format!("there are {shard} shards already");
                return Err(NatsError::Server(error).while_doing(doing));
            }
            let name = Stream::Mail.name(0);
            let Some(first) = self.info(&name).await? else {
                let error = format!("the stream {name} is missing");
                return Err(NatsError::Server(error).while_doing(doing));
            };
            let settings =
                StreamSettings { retention: first.max_age(), ..StreamSettings::default() };
            // An attempt that was interrupted may have created the streams already.
            self.create_shard(shard, &settings, first.replicas()).await?;
            match self.write_shard_map(map.with_shard()).await {
                Err(StoreError::Conflict) => {}
                written => return written.map(|_| shard),
            }
        }
    }
}

fn check_choice(choice: ShardChoice, shard: u16, why: &str) -> Result<(), StoreError> {
    match choice {
        ShardChoice::Exactly(wanted) if wanted != shard => {
            let error = format!("{why} shard {shard}, and a team cannot be moved");
            Err(NatsError::Server(error).while_doing(DOING))
        }
        _ => Ok(()),
    }
}
