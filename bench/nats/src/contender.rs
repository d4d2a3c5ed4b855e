//! The teams and messages that the benchmarks use, and the operations that both contenders implement: the NATS
//! store and a bare NATS client.

use std::time::Duration;

use brigade_core::clock::{Clock, SystemClock, wire_time};
use brigade_core::store::Outgoing;
use brigade_wire::name::TeamName;
use uuid::Uuid;

use crate::fixtures::text;

/// The number of lanes. A lane is a team with a writer and a reader; all lanes run concurrently.
pub(crate) const LANES: usize = 8;
/// The number of shards with which a store is created.
pub(crate) const SHARDS: u16 = 1;
/// The name of the member that sends.
pub(crate) const WRITER: &str = "writer";
/// The name of the member that reads messages, marks them as shown, and claims tasks.
pub(crate) const READER: &str = "reader";
/// The name of a member that receives messages but never reads them.
pub(crate) const SINK: &str = "sink";

/// An implementation of the compared operations: the NATS store, or the bare NATS client.
pub(crate) trait Contender {
    /// The contender's name in a table.
    const NAME: &'static str;

    /// Sends a message to [`SINK`], and waits for the acknowledgement.
    async fn send(&self, lane: usize, number: usize);

    /// Sends a message to the reader, which uses another connection. The send wakes the reader, and the reader
    /// reads the message and marks it as shown. Returns the time from the start of the send to the wake-up.
    async fn receive(&self, lane: usize, number: usize) -> Duration;

    /// Adds tasks to the board of a lane.
    async fn add_tasks(&self, lane: usize, first: usize, count: usize);

    /// Claims one of the tasks of a lane for the reader.
    async fn claim(&self, lane: usize, number: usize);
}

pub(crate) fn team(of: &str, number: usize) -> TeamName {
    format!("{of}-{number}").parse().unwrap()
}

/// Returns a message with a text of 500 bytes.
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
