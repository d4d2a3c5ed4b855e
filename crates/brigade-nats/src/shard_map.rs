//! The map from teams to shards. It is one document on the server, and each change is a compare-and-set.
//!
//! A team that is not in the map is in the shard that the hash of its name selects. Shards that were added later take no
//! part in that hash, so no team moves when a shard is added. New teams are spread over all shards and are entered in the map.

use std::collections::BTreeMap;

use brigade_wire::name::TeamName;
use serde::{Deserialize, Serialize};

use crate::layout::{self, Subjects};

/// The highest version of the document that this program understands.
pub(crate) const NEWEST_VERSION: u32 = 2;
/// Version of a document without added shards, which earlier programs wrote.
const FIRST_VERSION: u32 = 1;

/// The map from teams to shards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShardMap {
    pub(crate) version: u32,
    /// The number of shards among which the hash distributes teams. Earlier programs know only this number, so it never
    /// changes.
    #[serde(rename = "shards")]
    hashed: u16,
    /// The number of shards that were added. They follow the hashed shards.
    #[serde(default, skip_serializing_if = "is_zero")]
    added: u16,
    /// The teams that have an entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    teams: BTreeMap<TeamName, u16>,
    /// The sequence of the document on the server; 0 if it was not read from a server.
    #[serde(skip)]
    pub(crate) seq: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_zero(count: &u16) -> bool {
    *count == 0
}

impl ShardMap {
    /// Creates the map of a store to which no shard was added.
    pub(crate) fn hashed(shards: u16) -> Self {
        let teams = BTreeMap::new();
        Self { version: FIRST_VERSION, hashed: shards, added: 0, teams, seq: 0 }
    }

    /// Returns the number of all shards.
    pub(crate) fn total(&self) -> u16 {
        self.hashed.saturating_add(self.added)
    }

    /// Whether shards were added.
    pub(crate) fn has_added(&self) -> bool {
        self.added > 0
    }

    /// Returns the shard in the team's entry; `None` if the team has no entry.
    pub(crate) fn entry(&self, team: &TeamName) -> Option<u16> {
        self.teams.get(team).copied()
    }

    /// Returns the shard that the hash selects for a team.
    pub(crate) fn hashed_shard(&self, team: &TeamName) -> u16 {
        layout::shard(team, self.hashed)
    }

    /// Returns the subjects of a team in its shard.
    pub(crate) fn subjects(&self, team: &TeamName) -> Subjects {
        let shard = self.entry(team).unwrap_or_else(|| self.hashed_shard(team));
        Subjects { shard, team: team.clone() }
    }

    /// Returns the shard for a new team. It is the shard with the highest score for the team's name (rendezvous
    /// hashing). If a shard is added, the choice changes only for the teams that go to the new shard.
    pub(crate) fn shard_for_new(&self, team: &TeamName) -> u16 {
        let score = |shard: &u16| scramble(layout::hash(team) ^ scramble(u64::from(*shard) + 1));
        (0..self.total()).max_by_key(score).unwrap_or_default()
    }

    /// Returns the map with an entry for a team.
    pub(crate) fn with_team(mut self, team: &TeamName, shard: u16) -> Self {
        self.version = NEWEST_VERSION;
        self.teams.insert(team.clone(), shard);
        self
    }

    /// Returns the map with one more shard.
    pub(crate) fn with_shard(mut self) -> Self {
        self.version = NEWEST_VERSION;
        self.added = self.added.saturating_add(1);
        self
    }
}

/// Distributes the bits of a number over the whole result (the last step of `SplitMix64`).
fn scramble(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn teams() -> impl Iterator<Item = TeamName> {
        (0..3000).map(|number| format!("team-{number}").parse().unwrap())
    }

    #[test]
    fn a_team_without_an_entry_keeps_its_shard_when_a_shard_is_added() {
        let before = ShardMap::hashed(4);
        let after = before.clone().with_shard().with_shard();
        assert_eq!((before.total(), after.total()), (4, 6));
        assert!(teams().all(|team| before.subjects(&team) == after.subjects(&team)));
        let demo: TeamName = "demo".parse().unwrap();
        assert_eq!(after.with_team(&demo, 5).subjects(&demo).shard, 5);
    }

    #[test]
    fn new_teams_use_all_shards_evenly_and_change_only_to_an_added_shard() {
        let before = ShardMap::hashed(4);
        let after = before.clone().with_shard();
        let mut count = [0; 5];
        for team in teams() {
            let (old, new) = (before.shard_for_new(&team), after.shard_for_new(&team));
            assert!(old == new || new == 4, "{team} went from {old} to {new}");
            count[usize::from(new)] += 1;
        }
        assert!(count.iter().all(|teams| (500..700).contains(teams)), "{count:?}");
    }

    /// Earlier programs read `shards` and use it for their hash.
    #[test]
    fn earlier_programs_read_the_number_of_hashed_shards() {
        let text = |map: &ShardMap| serde_json::to_string(map).unwrap();
        let first = ShardMap::hashed(4);
        assert_eq!(text(&first), r#"{"version":1,"shards":4}"#);
        let demo = "demo".parse().unwrap();
        let later = first.with_shard().with_team(&demo, 4);
        assert_eq!(text(&later), r#"{"version":2,"shards":4,"added":1,"teams":{"demo":4}}"#);
        assert_eq!(serde_json::from_str::<ShardMap>(&text(&later)).unwrap(), later);
    }
}
