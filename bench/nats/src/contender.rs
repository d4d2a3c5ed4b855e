//! Who is in the teams of a proof, what they say, and what each side of a comparison can do.

use std::time::Duration;

use brigade_core::clock::Clock;
use brigade_core::clock::{SystemClock, wire_time};
use brigade_core::store::Outgoing;
use brigade_wire::name::{MemberName, TeamName};
use uuid::Uuid;

/// How many teams are at work side by side, each with a writer and a reader.
pub(crate) const LANES: usize = 8;
/// How many shards a new engine has.
pub(crate) const SHARDS: u16 = 1;
/// Who leads.
pub(crate) const LEAD: &str = "team-lead";
/// Who writes.
pub(crate) const WRITER: &str = "writer";
/// Who reads, marks and claims.
pub(crate) const READER: &str = "reader";
/// Who is written to, and never reads.
pub(crate) const SINK: &str = "sink";

/// One who can do what is compared: the store, or the bare client.
pub(crate) trait Side {
    /// What it is called in a table.
    const NAME: &'static str;

    /// Sends a message to one who does not read, and waits until it is safe.
    async fn send(&self, lane: usize, number: usize);

    /// Sends a message to one who reads on another connection: it wakes, looks, and marks. Tells how
    /// long after the beginning of the send it woke.
    async fn receive(&self, lane: usize, number: usize) -> Duration;

    /// Puts tasks on the board of a lane.
    async fn add_tasks(&self, lane: usize, first: usize, count: usize);

    /// Claims one of them, for the reader.
    async fn claim(&self, lane: usize, number: usize);
}

pub(crate) fn team(of: &str, number: usize) -> TeamName {
    format!("{of}-{number}").parse().unwrap()
}

pub(crate) fn member(name: &str) -> MemberName {
    name.parse().unwrap()
}

/// A text of 500 bytes that tells who sent it and the how manieth it was.
pub(crate) fn text(from: &str, number: usize) -> String {
    format!("{:.<500}", format!("{from}/{number} "))
}

/// A message with such a text.
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
