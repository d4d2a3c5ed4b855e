//! The teams and messages of the benchmarks, and the operations that the contenders implement.

use std::time::Duration;

use brigade_core::clock::{Clock, SystemClock, wire_time};
use brigade_core::store::Outgoing;
use brigade_wire::name::TeamName;
use uuid::Uuid;

use crate::fixtures::text;

/// The number of concurrent teams, each with a writer and a reader.
pub(crate) const LANES: usize = 8;
/// The number of shards of a new store.
pub(crate) const SHARDS: u16 = 1;
/// The member that sends.
pub(crate) const WRITER: &str = "writer";
/// The member that reads, marks and claims.
pub(crate) const READER: &str = "reader";
/// A member that receives messages and never reads them.
pub(crate) const SINK: &str = "sink";

/// An implementation of the compared operations: the store, or the bare client.
pub(crate) trait Contender {
    /// Its name in a table.
    const NAME: &'static str;

    /// Sends a message to the sink, and waits for the acknowledgement.
    async fn send(&self, lane: usize, number: usize);

    /// Sends a message to the reader on another connection, which wakes, reads and marks it. Returns the
    /// time from the start of the send until it woke.
    async fn receive(&self, lane: usize, number: usize) -> Duration;

    /// Adds tasks to the board of a lane.
    async fn add_tasks(&self, lane: usize, first: usize, count: usize);

    /// Claims one of them for the reader.
    async fn claim(&self, lane: usize, number: usize);
}

pub(crate) fn team(of: &str, number: usize) -> TeamName {
    format!("{of}-{number}").parse().unwrap()
}

/// A message with a text of 500 bytes.
pub(crate) fn message(from: &str, number: usize) -> Outgoing {
    Outgoing {
        msg_id: Uuid::new_v4().to_string(),
        from: from.to_owned(),
        text: text(from, number),
        summary: None,
        timestamp: wire_time(SystemClock.now()),
        color: None,
        msg_v: None,
        lead_sig: None,
        team_created: 0,
    }
}
