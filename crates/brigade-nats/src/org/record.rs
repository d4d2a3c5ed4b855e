//! What is written down of an organisation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::identity::Role;
use crate::options::Settings;

/// An organisation: its accounts, and who has credentials.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Organisation {
    /// Its name.
    pub name: TeamName,
    /// The public key of the account its streams are in.
    pub account: String,
    /// The public key of the account its seats are in.
    pub seats_account: String,
    /// Over how many shards its teams are spread.
    pub shards: u16,
    /// On how many servers each stream is; unless said, on three where there are as many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<usize>,
    /// How long mail is kept, in seconds.
    pub retention_seconds: u64,
    /// When the seats' account was last changed; each change counts as later than the one before.
    pub(super) changed: i64,
    /// Everybody who was ever given credentials.
    pub seats: Vec<Seat>,
}

/// Somebody who was given credentials.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// The team.
    pub team: TeamName,
    /// For whom it speaks.
    pub members: Vec<MemberName>,
    /// What it may do.
    pub role: Role,
    /// Whether it may answer requests and give orders.
    pub answers: bool,
    /// Its public key.
    pub key: String,
    /// When it was given them.
    pub made: Timestamp,
    /// When they end by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When they were taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
    /// The file they were written to.
    pub file: PathBuf,
}

impl Organisation {
    /// How its streams are.
    pub fn settings(&self) -> Settings {
        Settings {
            shards: self.shards,
            replicas: self.replicas,
            retention: Duration::from_secs(self.retention_seconds),
        }
    }

    /// The keys that no longer count, and of which time their credentials have to be to be refused.
    pub(super) fn revoked(&self) -> BTreeMap<String, i64> {
        let revoked = self.seats.iter().filter_map(|seat| {
            // A key is made for one file and never used again, so it is refused whenever it was signed.
            let at = seat.revoked?.max(seat.made).as_second();
            Some((seat.key.clone(), at))
        });
        revoked.collect()
    }
}
