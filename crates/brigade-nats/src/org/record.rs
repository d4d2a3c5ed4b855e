//! The stored record of an organisation.

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
    /// Number of shards the teams are spread over.
    pub shards: u16,
    /// Replicas per stream; if unset, three in a cluster, else one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<usize>,
    /// How long mail is kept, in seconds.
    pub retention_seconds: u64,
    /// When the seats' account was last changed, in seconds. Increases with every change.
    pub(super) changed: i64,
    /// All credentials ever issued.
    pub seats: Vec<IssuedSeat>,
}

/// Issued credentials.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuedSeat {
    /// The team.
    pub team: TeamName,
    /// The members it may act as.
    pub members: Vec<MemberName>,
    /// The role.
    pub role: CredentialRole,
    /// Whether it may answer requests and give orders.
    pub answers: bool,
    /// The public key.
    pub key: String,
    /// When the credentials were issued.
    pub made: Timestamp,
    /// When the credentials expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When the credentials were revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
    /// The credentials file.
    pub file: PathBuf,
}

impl Organisation {
    /// The stream settings.
    pub fn settings(&self) -> StreamSettings {
        StreamSettings {
            shards: self.shards,
            replicas: self.replicas,
            retention: Duration::from_secs(self.retention_seconds),
        }
    }

    /// Revoked keys, each with a time: credentials issued up to then are refused.
    pub(super) fn revoked(&self) -> BTreeMap<String, i64> {
        let revoked = self.seats.iter().filter_map(|seat| {
            // Each key is used for one file only, so all its credentials can be refused.
            let at = seat.revoked?.max(seat.made).as_second();
            Some((seat.key.clone(), at))
        });
        revoked.collect()
    }
}
