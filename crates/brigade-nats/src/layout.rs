//! Streams and subjects, and who may write to them.
//!
//! Every subject a seat writes contains the seat's name, and its credentials allow no other. The author in the
//! subject is therefore authenticated by the server.
//!
//! | subject | content | written by |
//! |---|---|---|
//! | `mb.<s>.<team>.<to>.<from>.w` | a message | `<from>` |
//! | `mb.<s>.<team>.<to>.<from>.a` | an answer or an order: a plan or permission approved, a mode set | `<from>`, if it may answer |
//! | `mk.<s>.<team>.<member>` | which messages of a mailbox were read and shown | `<member>` |
//! | `ev.<s>.<team>.<by>` | events that are not visible in any document | `<by>` |
//! | `wk.<s>.<team>.<by>` | work events of a member: many, so they have their own subject | `<by>` |
//! | `bd.<s>.<team>.<id>.<by>` | a task: the last message of any author. Task `0` holds the last assigned number | `<by>` |
//! | `tm.<s>.<team>.doc.cfg.<by>` | the team's `config.json` | a lead |
//! | `tm.<s>.<team>.doc.m.<name>` | a member's own change to its entry in `config.json` | `<name>` |
//! | `tm.<s>.<team>.q.<member>.<question>` | a decision of a seat, written once | `<member>` |
//! | `nt.<s>.<team>.<member>.<shelf>` | notes of the process that runs a member | `<member>` |
//! | `lv.<s>.<team>.<member>` | a member's pulse; expires | `<member>` |
//!
//! `<s>` is the team's shard. Each stream republishes what it has stored under `wake.`, and watchers subscribe
//! there: a subscriber to the subject itself would receive a message before it is stored.
//!
//! ```
//! use brigade_nats::layout::{Subjects, MessageClass};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let subjects = Subjects::new(&"demo".parse()?, 1);
//! assert_eq!(subjects.message(&"bob".parse()?, "alice", MessageClass::Text), "mb.0.demo.bob.alice.w");
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::time::Duration;

use brigade_wire::name::{MemberName, TaskId, TeamName};

/// The allowed numbers of shards.
pub const SHARDS: [u16; 3] = [1, 4, 16];
/// How long mail is kept, unless the organisation sets another time.
pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long the server remembers message ids. Longer than a sender retries.
pub const DEDUP: Duration = Duration::from_secs(2 * 60);
/// How many revisions of a task or roster are kept, for the history.
pub const STATES: i64 = 64;
/// How long a pulse is valid.
pub const PULSE: Duration = Duration::from_secs(30);
/// Subject of the stored number of shards, in the stream [`Stream::Team`] of shard 0.
pub const LAYOUT: &str = "tm.0.layout";
/// Prefix of republished messages.
pub const WAKE: &str = "wake";

/// A kind of stream. There is one of each in every shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Mail, marks, events and work events. Old messages expire.
    Mail,
    /// Tasks.
    Board,
    /// Rosters and decisions.
    Team,
    /// Notes; only the last one per subject is kept.
    Notes,
    /// Pulses.
    Live,
}

impl Stream {
    /// All kinds of streams.
    pub const ALL: [Self; 5] = [Self::Mail, Self::Board, Self::Notes, Self::Live, Self::Team];

    /// The stream's name in a shard.
    pub fn name(self, shard: u16) -> String {
        let kind = match self {
            Self::Mail => "MB",
            Self::Board => "BD",
            Self::Team => "TM",
            Self::Notes => "NT",
            Self::Live => "LV",
        };
        format!("{kind}_{shard}")
    }

    /// The subjects the stream stores in a shard.
    pub fn subjects(self, shard: u16) -> Vec<String> {
        let kinds: &[&str] = match self {
            Self::Mail => &["mb", "mk", "ev", "wk"],
            Self::Board => &["bd"],
            Self::Team => &["tm"],
            Self::Notes => &["nt"],
            Self::Live => &["lv"],
        };
        kinds.iter().map(|kind| format!("{kind}.{shard}.>")).collect()
    }
}

/// The shard of a team: FNV-1a of its name, modulo the number of shards.
pub fn shard(team: &TeamName, shards: u16) -> u16 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = team.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, step);
    u16::try_from(hash % u64::from(shards.max(1))).unwrap_or_default()
}

/// Whether a message is plain text or grants something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageClass {
    /// Text, or a protocol message that any member may send.
    Text,
    /// An answer to a request, or an order.
    Answer,
}

impl MessageClass {
    /// The last token of the message's subject.
    pub fn token(self) -> &'static str {
        match self {
            Self::Text => "w",
            Self::Answer => "a",
        }
    }
}

/// The subjects of one team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    /// The team's shard.
    pub shard: u16,
    /// The team's name.
    pub team: TeamName,
}

impl Subjects {
    /// The subjects of a team, given the number of shards.
    pub fn new(team: &TeamName, shards: u16) -> Self {
        Self { shard: shard(team, shards), team: team.clone() }
    }

    /// The name of a stream in the team's shard.
    pub fn stream(&self, stream: Stream) -> String {
        stream.name(self.shard)
    }

    fn subject(&self, kind: &str, rest: impl fmt::Display) -> String {
        format!("{kind}.{}.{}.{rest}", self.shard, self.team)
    }

    /// A message from one member to another.
    pub fn message(&self, to: &MemberName, from: &str, weight: MessageClass) -> String {
        self.subject("mb", format_args!("{to}.{from}.{}", weight.token()))
    }

    /// All mail of a member.
    pub fn mailbox(&self, member: &MemberName) -> String {
        self.subject("mb", format_args!("{member}.>"))
    }

    /// All messages from one member to another.
    pub fn sent(&self, to: &MemberName, from: &MemberName) -> String {
        self.subject("mb", format_args!("{to}.{from}.*"))
    }

    /// All messages sent by a member.
    pub fn messages_from(&self, from: &MemberName) -> String {
        self.subject("mb", format_args!("*.{from}.*"))
    }

    /// All mail of the team.
    pub fn mail(&self) -> String {
        self.subject("mb", ">")
    }

    /// The marks of a mailbox.
    pub fn marks(&self, member: &MemberName) -> String {
        self.subject("mk", member)
    }

    /// The marks of all mailboxes.
    pub fn all_marks(&self) -> String {
        self.subject("mk", "*")
    }

    /// Events recorded by one member.
    pub fn record(&self, by: &str) -> String {
        self.subject("ev", by)
    }

    /// Events recorded by any member.
    pub fn records(&self) -> String {
        self.subject("ev", "*")
    }

    /// Work events of one member.
    pub fn work_by(&self, by: &str) -> String {
        self.subject("wk", by)
    }

    /// Work events of all members.
    pub fn work(&self) -> String {
        self.subject("wk", "*")
    }

    /// A task, as written by one author.
    pub fn task_by(&self, id: TaskId, by: &str) -> String {
        self.subject("bd", format_args!("{id}.{by}"))
    }

    /// A task, by any author.
    pub fn task(&self, id: TaskId) -> String {
        self.subject("bd", format_args!("{id}.*"))
    }

    /// The last assigned task number, as written by one author.
    pub fn last_number_by(&self, by: &str) -> String {
        self.subject("bd", format_args!("0.{by}"))
    }

    /// The last assigned task number, by any author.
    pub fn number(&self) -> String {
        self.subject("bd", "0.*")
    }

    /// All tasks.
    pub fn board(&self) -> String {
        self.subject("bd", ">")
    }

    /// The team's `config.json`, as written by one author.
    pub fn config_by(&self, by: &str) -> String {
        self.subject("tm", format_args!("doc.cfg.{by}"))
    }

    /// The team's `config.json`, by any author.
    pub fn config(&self) -> String {
        self.subject("tm", "doc.cfg.*")
    }

    /// A member's own entry in the roster.
    pub fn entry(&self, member: &str) -> String {
        self.subject("tm", format_args!("doc.m.{member}"))
    }

    /// Everything the roster is built from.
    pub fn roster(&self) -> String {
        self.subject("tm", "doc.>")
    }

    /// A note of the process that runs a member.
    pub fn note(&self, member: &MemberName, shelf: &str) -> String {
        self.subject("nt", format_args!("{member}.{shelf}"))
    }

    /// All notes of the team.
    pub fn notes(&self) -> String {
        self.subject("nt", ">")
    }

    /// A decision of a seat.
    pub fn decision(&self, member: &MemberName, question: &str) -> String {
        self.subject("tm", format_args!("q.{member}.{question}"))
    }

    /// A member's pulse.
    pub fn pulse(&self, member: &MemberName) -> String {
        self.subject("lv", member)
    }
}

/// The subject on which a stored message is republished.
pub fn wake(subject: &str) -> String {
    format!("{WAKE}.{subject}")
}

/// Whether a subject matches a filter with wildcards.
pub(crate) fn matches(filter: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for wanted in filter.split('.') {
        match (wanted, tokens.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (wanted, Some(token)) if wanted == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::{Subjects, matches};

    #[test]
    fn wildcards_stand_for_whole_tokens() {
        let check =
            |filter, subject, yes| assert_eq!(matches(filter, subject), yes, "{filter} {subject}");
        check("mb.0.demo.alice.>", "mb.0.demo.alice.bob.w", true);
        check("mb.0.demo.alice.>", "mb.0.demo.alice", false);
        check("mb.0.demo.*.bob.*", "mb.0.demo.alice.bob.w", true);
        check("mb.0.demo.*.bob", "mb.0.demo.alice.bob.w", false);
        check("bd.0.demo.1.*", "bd.0.demo.11.bob", false);
        check("mk.0.demo.alice", "mk.0.demo.alice", true);
    }

    #[test]
    fn a_team_stays_in_its_shard() {
        let shard = |team: &str| Subjects::new(&team.parse().unwrap(), 16).shard;
        let used: std::collections::HashSet<u16> =
            (0..1000).map(|number| shard(&format!("team-{number}"))).collect();
        assert_eq!(used.len(), 16);
        // Changing the hash would separate every team of every organisation from its mail.
        assert_eq!((shard("demo"), shard("a")), (6, 12));
    }
}
