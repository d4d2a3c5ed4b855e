//! The record of an organisation, stored in `org.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::identity::CredentialRole;
use crate::options::StreamSettings;

/// An organisation: its accounts, settings and issued credentials.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Organisation {
    /// The organisation's name.
    pub name: TeamName,
    /// Public key of the account that holds the streams.
    pub account: String,
    /// Public key of the account that holds the seats.
    pub seats_account: String,
    /// Number of shards with which the organisation was created.
    pub shards: u16,
    /// Whether shards were added, or are being added. The servers then know which shard a team is in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shards_added: bool,
    /// Number of replicas per stream; `None` means three in a cluster, and one on a single server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<usize>,
    /// How long mail is kept, in seconds.
    pub retention_seconds: u64,
    /// When the seats' account was last changed, in seconds since 1970. Increases with every change.
    pub(super) changed: i64,
    /// All credentials ever issued.
    pub seats: Vec<IssuedSeat>,
}

/// Credentials that were issued.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuedSeat {
    /// The team.
    pub team: TeamName,
    /// The members as which the owner of the credentials may act.
    pub members: Vec<MemberName>,
    /// The role.
    pub role: CredentialRole,
    /// Whether the credentials allow their owner to answer requests and to give orders.
    pub answers: bool,
    /// The public key of the credentials' owner.
    pub key: String,
    /// When the credentials were issued.
    pub made: Timestamp,
    /// When the credentials expire; `None` if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When the credentials were revoked; `None` if they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
    /// The credentials file.
    pub file: PathBuf,
}

impl Organisation {
    /// Returns the settings of the organisation's streams.
    pub fn settings(&self) -> StreamSettings {
        StreamSettings {
            shards: self.shards,
            replicas: self.replicas,
            retention: Duration::from_secs(self.retention_seconds),
        }
    }

    /// Returns the teams that have credentials, without repetitions.
    pub fn teams(&self) -> Vec<TeamName> {
        let valid = self.seats.iter().filter(|seat| seat.revoked.is_none());
        let mut teams: Vec<TeamName> = valid.map(|seat| seat.team.clone()).collect();
        teams.sort();
        teams.dedup();
        teams
    }

    /// Maps each revoked key to a time, in seconds since 1970. The server refuses all credentials that were issued
    /// for the key up to that time.
    pub(super) fn revoked(&self) -> BTreeMap<String, i64> {
        let revoked = self.seats.iter().filter_map(|seat| {
            // A key belongs to only one credentials file, so refusing all credentials of the key is correct.
            let at = seat.revoked?.max(seat.made).as_second();
            Some((seat.key.clone(), at))
        });
        revoked.collect()
    }
}
