//! Where things lie in the engine: streams, subjects, and who writes them.
//!
//! Every subject that a seat writes ends in, or holds, the name of the seat, and its credentials let
//! it write no other. So who wrote something is what the server authenticated.
//!
//! | subject | what | written by |
//! |---|---|---|
//! | `mb.<s>.<team>.<to>.<from>.w` | words, and what any member may tell another | `<from>` |
//! | `mb.<s>.<team>.<to>.<from>.a` | answers and orders: a plan or a leave approved, a mode set | `<from>`, if it may answer |
//! | `mk.<s>.<team>.<of>` | which messages of a mailbox are read and shown | `<of>` |
//! | `ev.<s>.<team>.<by>` | what is in no document | `<by>` |
//! | `wk.<s>.<team>.<by>` | what a member does at its work: much, and who looks for mail need not read it | `<by>` |
//! | `bd.<s>.<team>.<id>.<by>` | a task; the last of any author is the task. `0` is the last number given | `<by>` |
//! | `tm.<s>.<team>.doc.cfg.<by>` | the team's `config.json` | a lead |
//! | `tm.<s>.<team>.doc.m.<name>` | a member's own entry in it, changed by itself | `<name>` |
//! | `tm.<s>.<team>.q.<of>.<question>` | what a seat has decided, once | `<of>` |
//! | `nt.<s>.<team>.<of>.<shelf>` | notes of a member's program | `<of>` |
//! | `lv.<s>.<team>.<of>` | how a member is; gone after a while | `<of>` |
//!
//! `<s>` is the team's shard. Each stream says again what it has stored under `wake.`, and those who
//! wait listen there: a subject itself is heard before what is said on it is safe.
//!
//! ```
//! use brigade_nats::layout::{Place, Weight};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let place = Place::of(&"demo".parse()?, 1);
//! assert_eq!(place.letter(&"bob".parse()?, "alice", Weight::Words), "mb.0.demo.bob.alice.w");
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::time::Duration;

use brigade_wire::name::{MemberName, TaskId, TeamName};

/// How many shards there can be.
pub const SHARDS: [u16; 3] = [1, 4, 16];
/// How long mail is kept, unless the organisation says otherwise.
pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long the server knows a message by its id. Longer than a sender tries.
pub const DEDUP: Duration = Duration::from_secs(2 * 60);
/// How many states of a task or a roster are kept, for the history.
pub const STATES: i64 = 64;
/// How long a pulse is believed.
pub const PULSE: Duration = Duration::from_secs(30);
/// Where it is written how many shards there are. In the stream [`Stream::Team`] of shard 0.
pub const LAYOUT: &str = "tm.0.layout";
/// What the subject of a wake begins with.
pub const WAKE: &str = "wake";

/// A kind of stream. There is one of each in every shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Mail, marks, records and work. What is old goes.
    Mail,
    /// Tasks.
    Board,
    /// Rosters and decisions.
    Team,
    /// Notes, of which only the last is kept.
    Notes,
    /// Pulses.
    Live,
}

impl Stream {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mail, Self::Board, Self::Notes, Self::Live, Self::Team];

    /// Its name in a shard.
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

    /// The subjects it takes in a shard.
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

/// Whether a message asks for more than to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Words.
    Words,
    /// An answer to a request, or an order.
    Answer,
}

impl Weight {
    /// Its token in the subject.
    pub fn token(self) -> &'static str {
        match self {
            Self::Words => "w",
            Self::Answer => "a",
        }
    }
}

/// The subjects of one team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its shard.
    pub shard: u16,
    /// Its name.
    pub team: TeamName,
}

impl Place {
    /// The place of a team where there are so many shards.
    pub fn of(team: &TeamName, shards: u16) -> Self {
        Self { shard: shard(team, shards), team: team.clone() }
    }

    /// The name of a stream of its shard.
    pub fn stream(&self, stream: Stream) -> String {
        stream.name(self.shard)
    }

    fn subject(&self, kind: &str, rest: impl fmt::Display) -> String {
        format!("{kind}.{}.{}.{rest}", self.shard, self.team)
    }

    /// One message from one to another.
    pub fn letter(&self, to: &MemberName, from: &str, weight: Weight) -> String {
        self.subject("mb", format_args!("{to}.{from}.{}", weight.token()))
    }

    /// All of a member's mail.
    pub fn mailbox(&self, of: &MemberName) -> String {
        self.subject("mb", format_args!("{of}.>"))
    }

    /// What one has sent to another.
    pub fn sent(&self, to: &MemberName, from: &MemberName) -> String {
        self.subject("mb", format_args!("{to}.{from}.*"))
    }

    /// What one has sent to anybody.
    pub fn sent_by(&self, from: &MemberName) -> String {
        self.subject("mb", format_args!("*.{from}.*"))
    }

    /// Everybody's mail.
    pub fn mail(&self) -> String {
        self.subject("mb", ">")
    }

    /// The marks of a mailbox.
    pub fn marks(&self, of: &MemberName) -> String {
        self.subject("mk", of)
    }

    /// The marks of all mailboxes.
    pub fn all_marks(&self) -> String {
        self.subject("mk", "*")
    }

    /// What somebody writes down.
    pub fn record(&self, by: &str) -> String {
        self.subject("ev", by)
    }

    /// What everybody writes down.
    pub fn records(&self) -> String {
        self.subject("ev", "*")
    }

    /// What somebody did at its work.
    pub fn work_by(&self, by: &str) -> String {
        self.subject("wk", by)
    }

    /// What everybody did.
    pub fn work(&self) -> String {
        self.subject("wk", "*")
    }

    /// A task as somebody writes it.
    pub fn task_by(&self, id: TaskId, by: &str) -> String {
        self.subject("bd", format_args!("{id}.{by}"))
    }

    /// A task as anybody wrote it.
    pub fn task(&self, id: TaskId) -> String {
        self.subject("bd", format_args!("{id}.*"))
    }

    /// The last number given, as somebody writes it.
    pub fn number_by(&self, by: &str) -> String {
        self.subject("bd", format_args!("0.{by}"))
    }

    /// The last number given.
    pub fn number(&self) -> String {
        self.subject("bd", "0.*")
    }

    /// The board.
    pub fn board(&self) -> String {
        self.subject("bd", ">")
    }

    /// The team's `config.json` as somebody writes it.
    pub fn config_by(&self, by: &str) -> String {
        self.subject("tm", format_args!("doc.cfg.{by}"))
    }

    /// The team's `config.json`.
    pub fn config(&self) -> String {
        self.subject("tm", "doc.cfg.*")
    }

    /// A member's own entry.
    pub fn entry(&self, of: &str) -> String {
        self.subject("tm", format_args!("doc.m.{of}"))
    }

    /// All that makes the roster.
    pub fn roster(&self) -> String {
        self.subject("tm", "doc.>")
    }

    /// A note of a member's program.
    pub fn note(&self, of: &MemberName, shelf: &str) -> String {
        self.subject("nt", format_args!("{of}.{shelf}"))
    }

    /// All notes.
    pub fn notes(&self) -> String {
        self.subject("nt", ">")
    }

    /// What a seat has decided.
    pub fn decision(&self, of: &MemberName, question: &str) -> String {
        self.subject("tm", format_args!("q.{of}.{question}"))
    }

    /// How a member is.
    pub fn pulse(&self, of: &MemberName) -> String {
        self.subject("lv", of)
    }
}

/// Where what was stored under a subject is said again.
pub fn wake(subject: &str) -> String {
    format!("{WAKE}.{subject}")
}

/// Whether a subject is one of those that a subject with wildcards stands for.
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
    use super::{Place, matches};

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
        let shard = |team: &str| Place::of(&team.parse().unwrap(), 16).shard;
        let used: std::collections::HashSet<u16> =
            (0..1000).map(|number| shard(&format!("team-{number}"))).collect();
        assert_eq!(used.len(), 16);
        // Changing this moves every team of every organisation away from its mail.
        assert_eq!((shard("demo"), shard("a")), (6, 12));
    }
}
