//! Streams and subjects, and who may write to them.
//!
//! Every subject that a seat writes to contains the seat's name, and the seat's credentials allow no other name.
//! The server therefore authenticates the author named in a subject.
//!
//! | subject | content | written by |
//! |---|---|---|
//! | `mb.<s>.<team>.<to>.<from>.w` | a message | `<from>` |
//! | `mb.<s>.<team>.<to>.<from>.a` | an answer or an order, for example the approval of a plan or a new mode | `<from>`, if it may answer requests |
//! | `mk.<s>.<team>.<member>` | which messages in the mailbox of `<member>` were shown, and which were read | `<member>` |
//! | `ev.<s>.<team>.<to>.<by>.w` | an event that changes no document and is addressed to `<to>` | `<by>` |
//! | `ev.<s>.<team>.<to>.<by>.a` | such an event, if it answers a request or repeats a message that grants something | `<by>`, if it may answer requests |
//! | `ev.<s>.<team>.<by>` | events by earlier versions of brigade; they are still read | `<by>` |
//! | `wk.<s>.<team>.<by>` | a member's work events; there are many, so they have their own subject | `<by>` |
//! | `bd.<s>.<team>.<id>.<by>` | a task. The last message counts, whoever wrote it. Task `0` holds the last assigned number | `<by>` |
//! | `tm.<s>.<team>.doc.cfg.<by>` | the team's `config.json` | a lead |
//! | `tm.<s>.<team>.doc.cfg._shards` | in place of `config.json`: the team was assigned to another shard | an administrator |
//! | `tm.<s>.<team>.doc.m.<name>` | a member's own change to its entry in `config.json` | `<name>` |
//! | `tm.<s>.<team>.q.<member>.<question>` | a seat's decision, which is never overwritten | `<member>` |
//! | `nt.<s>.<team>.<member>.<kind>` | notes written by the process that runs a member | `<member>` |
//! | `lv.<s>.<team>.<member>` | a member's pulse; it expires | `<member>` |
//!
//! `<s>` is the team's shard. The subject [`LAYOUT`] holds the number of shards and the map from teams to shards; only an
//! administrator writes it. Once a stream has stored a message, the server republishes the message on the
//! same subject, with the prefix `wake.`. Watchers subscribe to the prefixed subjects: a subscriber to the subject
//! itself would receive a message before the stream has stored it.
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

/// The numbers of shards with which a store can be created. More can be added later.
pub const SHARDS: [u16; 3] = [1, 4, 16];
/// The highest number of shards of a store.
pub const MAX_SHARDS: u16 = 64;
/// How long mail is kept, unless the organisation has its own setting.
pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long the server remembers message ids. Must be longer than the time for which a sender retries a message.
pub const DEDUP: Duration = Duration::from_secs(2 * 60);
/// How many revisions of a task or roster are kept, for the history.
pub const STATES: i64 = 64;
/// How long a pulse is valid.
pub const PULSE: Duration = Duration::from_secs(30);
/// The subject that holds the number of shards and the map of teams, in the stream [`Stream::Team`] of shard 0.
pub const LAYOUT: &str = "tm.0.layout";
/// Prefix of the subjects on which stored messages are republished.
pub const WAKE: &str = "wake";

/// A kind of stream. Every shard has one stream of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Mail, read marks, events and work events. Old messages expire.
    Mail,
    /// Tasks.
    Board,
    /// Rosters and decisions.
    Team,
    /// Notes. Only the last note on each subject is kept.
    Notes,
    /// Pulses.
    Live,
}

impl Stream {
    /// All kinds of streams.
    pub const ALL: [Self; 5] = [Self::Mail, Self::Board, Self::Notes, Self::Live, Self::Team];

    /// Returns the name of this kind of stream in a shard.
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

    /// Returns the subjects that this kind of stream stores in a shard.
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

/// Returns the shard of a team that has no entry in the map of teams: the hash of the team's name, modulo the number of
/// shards with which the store was created.
pub fn shard(team: &TeamName, shards: u16) -> u16 {
    u16::try_from(hash(team) % u64::from(shards.max(1))).unwrap_or_default()
}

/// Returns the FNV-1a hash of a team's name.
pub(crate) fn hash(team: &TeamName) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    team.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Distinguishes messages that any member may send from those that need the permission to answer requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageClass {
    /// Text, or a protocol message that any member may send.
    Text,
    /// An answer to a request, or an order. The sender needs the permission to answer requests.
    Answer,
}

impl MessageClass {
    /// Returns the last token of the subject for messages of this class.
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
    /// Creates the subjects of a team that has no entry in the map of teams. `shards` is the number of shards with which
    /// the store was created.
    pub fn new(team: &TeamName, shards: u16) -> Self {
        Self { shard: shard(team, shards), team: team.clone() }
    }

    /// Returns the name of a stream in the team's shard.
    pub fn stream(&self, stream: Stream) -> String {
        stream.name(self.shard)
    }

    fn subject(&self, kind: &str, rest: impl fmt::Display) -> String {
        format!("{kind}.{}.{}.{rest}", self.shard, self.team)
    }

    /// Returns the subject for a message from one member to another.
    pub fn message(&self, to: &MemberName, from: &str, weight: MessageClass) -> String {
        self.subject("mb", format_args!("{to}.{from}.{}", weight.token()))
    }

    /// Returns the filter for all mail to a member.
    pub fn mailbox(&self, member: &MemberName) -> String {
        self.subject("mb", format_args!("{member}.>"))
    }

    /// Returns the filter for all messages from one member to another.
    pub fn sent(&self, to: &MemberName, from: &MemberName) -> String {
        self.subject("mb", format_args!("{to}.{from}.*"))
    }

    /// Returns the filter for all messages sent by a member.
    pub fn messages_from(&self, from: &MemberName) -> String {
        self.subject("mb", format_args!("*.{from}.*"))
    }

    /// Returns the filter for all mail in the team.
    pub fn mail(&self) -> String {
        self.subject("mb", ">")
    }

    /// Returns the subject for the read marks of a mailbox.
    pub fn marks(&self, member: &MemberName) -> String {
        self.subject("mk", member)
    }

    /// Returns the filter for the read marks of all mailboxes.
    pub fn all_marks(&self) -> String {
        self.subject("mk", "*")
    }

    /// Returns the subject for an event that one member recorded and that is addressed to another.
    pub fn event(&self, to: &str, by: &str, class: MessageClass) -> String {
        self.subject("ev", format_args!("{to}.{by}.{}", class.token()))
    }

    /// Returns the filter for events addressed to a member.
    pub fn events_to(&self, member: &MemberName) -> String {
        self.subject("ev", format_args!("{member}.>"))
    }

    /// Returns the filter for events that one member recorded and that are addressed to another.
    pub fn events_between(&self, to: &MemberName, by: &MemberName) -> String {
        self.subject("ev", format_args!("{to}.{by}.*"))
    }

    /// Returns the filter for events recorded by a member.
    pub fn events_by(&self, member: &MemberName) -> String {
        self.subject("ev", format_args!("*.{member}.*"))
    }

    /// Returns the filter for all events.
    pub fn events(&self) -> String {
        self.subject("ev", ">")
    }

    /// Returns the subject for work events of one member.
    pub fn work_by(&self, by: &str) -> String {
        self.subject("wk", by)
    }

    /// Returns the filter for work events of all members.
    pub fn work(&self) -> String {
        self.subject("wk", "*")
    }

    /// Returns the subject on which one author writes a task.
    pub fn task_by(&self, id: TaskId, by: &str) -> String {
        self.subject("bd", format_args!("{id}.{by}"))
    }

    /// Returns the filter for the messages of all authors about a task.
    pub fn task(&self, id: TaskId) -> String {
        self.subject("bd", format_args!("{id}.*"))
    }

    /// Returns the filter for all tasks that one author wrote.
    pub fn tasks_by(&self, by: &MemberName) -> String {
        self.subject("bd", format_args!("*.{by}"))
    }

    /// Returns the subject on which one author writes the last assigned task number.
    pub fn last_number_by(&self, by: &str) -> String {
        self.subject("bd", format_args!("0.{by}"))
    }

    /// Returns the filter for the last assigned task number, whoever wrote it.
    pub fn number(&self) -> String {
        self.subject("bd", "0.*")
    }

    /// Returns the filter for all tasks.
    pub fn board(&self) -> String {
        self.subject("bd", ">")
    }

    /// Returns the subject on which one author writes the team's `config.json`.
    pub fn config_by(&self, by: &str) -> String {
        self.subject("tm", format_args!("doc.cfg.{by}"))
    }

    /// Returns the filter for the team's `config.json`, whoever wrote it.
    pub fn config(&self) -> String {
        self.subject("tm", "doc.cfg.*")
    }

    /// Returns the subject on which a member changes its own entry in the roster.
    pub fn entry(&self, member: &str) -> String {
        self.subject("tm", format_args!("doc.m.{member}"))
    }

    /// Returns the filter for all messages that the roster is built from.
    pub fn roster(&self) -> String {
        self.subject("tm", "doc.>")
    }

    /// Returns the subject for a note written by the process that runs a member.
    pub fn note(&self, member: &MemberName, kind: &str) -> String {
        self.subject("nt", format_args!("{member}.{kind}"))
    }

    /// Returns the filter for all notes in the team.
    pub fn notes(&self) -> String {
        self.subject("nt", ">")
    }

    /// Returns the subject for a seat's decision.
    pub fn decision(&self, member: &MemberName, question: &str) -> String {
        self.subject("tm", format_args!("q.{member}.{question}"))
    }

    /// Returns the filters for a member's mail, its messages, its read marks, and the events to and by it.
    pub(crate) fn own_mail(&self, me: &MemberName) -> [String; 5] {
        [
            self.mailbox(me),
            self.messages_from(me),
            self.marks(me),
            self.events_to(me),
            self.events_by(me),
        ]
    }

    /// Returns the filters for the messages that concern one member: its mail and its own actions, except its work,
    /// and the roster.
    pub(crate) fn member_filters(&self, me: &MemberName) -> Vec<(Stream, String)> {
        let mut filters = self.own_mail(me).map(|filter| (Stream::Mail, filter)).to_vec();
        filters.push((Stream::Board, self.tasks_by(me)));
        filters.push((Stream::Team, self.roster()));
        filters
    }

    /// Returns the subject for a member's pulse.
    pub fn pulse(&self, member: &MemberName) -> String {
        self.subject("lv", member)
    }
}

/// Returns the subject on which a message stored on `subject` is republished.
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
        // If the hash function changed, existing teams could no longer find their mail.
        assert_eq!((shard("demo"), shard("a")), (6, 12));
    }
}
