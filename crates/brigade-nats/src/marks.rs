//! The read marks of a mailbox: a small document that lists which messages were read, and which were shown.
//!
//! A stream holds many mailboxes, so the messages of one mailbox do not have consecutive sequences. The document
//! stores ranges of sequences in which every message of this mailbox is marked. The size of the document
//! depends on the number of unread messages, not on the size of the mailbox.

use brigade_core::event::MessageKey;
use brigade_core::store::Mark;
use serde::{Deserialize, Serialize};

/// How many read messages stay in the inbox.
pub(crate) const READ_KEPT: usize = 10;
/// A read message leaves the inbox if the newest message's sequence is higher by more than this. The reason is
/// speed: to read an inbox, the server scans the whole stream, starting at the oldest message in the inbox.
const MAX_LAG: u64 = 20_000;

/// The read marks of a mailbox, and the messages that the last write marked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MailboxMarks {
    /// All messages up to this sequence were read and have left the inbox.
    #[serde(default)]
    floor: u64,
    /// All messages up to this sequence were read; some are still in the inbox.
    #[serde(default)]
    clear: u64,
    /// The read messages whose sequence is above `floor`.
    #[serde(default)]
    read: SequenceRanges,
    /// The messages above `floor` that were shown to the model.
    #[serde(default)]
    shown: SequenceRanges,
    /// The messages that this write marked. The journal shows them.
    #[serde(default, rename = "now")]
    pub(crate) changes: Vec<NewMark>,
}

/// A message that the last write marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewMark {
    pub(crate) key: MessageKey,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) read: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) shown: bool,
}

/// A set of sequences, stored as inclusive ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SequenceRanges(Vec<(u64, u64)>);

impl SequenceRanges {
    fn contains(&self, seq: u64) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&seq))
    }

    /// Adds the sequences in `more` to these ranges. Joins two ranges if no message of the mailbox lies between
    /// them. `all` lists the known messages, sorted by sequence. Above `complete_upto`, messages may be missing
    /// from `all`, so ranges there are not joined.
    fn with(
        &self,
        more: impl Iterator<Item = u64>,
        all: &[(u64, MessageKey)],
        complete_upto: u64,
    ) -> Self {
        let mut spans = self.0.clone();
        spans.extend(more.map(|seq| (seq, seq)));
        spans.sort_unstable();
        let is_gap = |from: u64, to: u64| {
            let next = all.partition_point(|(seq, _)| *seq <= from);
            all.get(next).is_none_or(|(seq, _)| *seq >= to)
        };
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, last) in spans {
            match joined.last_mut() {
                Some(before)
                    if first <= before.1 || (first <= complete_upto && is_gap(before.1, first)) =>
                {
                    before.1 = before.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }

    /// Removes all sequences up to `floor` from the ranges.
    fn above(self, floor: u64) -> Self {
        let above = self.0.into_iter().filter(|(_, last)| *last > floor);
        Self(above.map(|(first, last)| (first.max(floor + 1), last)).collect())
    }
}

impl MailboxMarks {
    /// Reads stored marks. They concern only messages that were stored before them, at `seq`.
    pub(crate) fn read(json: &[u8], seq: u64) -> Result<Self, serde_json::Error> {
        let marks: Self = serde_json::from_slice(json)?;
        Ok(Self { floor: marks.floor.min(seq), clear: marks.clear.min(seq), ..marks })
    }

    /// Returns the same marks, with an empty list of changes.
    pub(crate) fn unchanged(self) -> Self {
        Self { changes: Vec::new(), ..self }
    }

    /// Returns the sequence after which the inbox begins. `newest` is the sequence of its newest message. When a
    /// new message arrives, messages that were read long ago leave the inbox.
    pub(crate) fn inbox_start(&self, newest: u64) -> u64 {
        if self.clear + MAX_LAG < newest { self.clear.max(self.floor) } else { self.floor }
    }

    pub(crate) fn is_read(&self, seq: u64) -> bool {
        seq <= self.floor || self.read.contains(seq)
    }

    /// Returns the marks after the messages `keys` were marked; `None` if nothing changes. `all` lists the known
    /// messages of the inbox.
    ///
    /// A process does not always know every message: it may have missed one, or asked a replica that was behind.
    /// The marks of a message that is not in `all` therefore stay unchanged, even if the message lies between two
    /// messages that are marked now.
    pub(crate) fn with(
        &self,
        KnownRange { start, complete_upto }: KnownRange,
        all: &[(u64, MessageKey)],
        keys: &[MessageKey],
        mark: Mark,
    ) -> Option<Self> {
        let marked: Vec<(u64, NewMark)> = all
            .iter()
            .filter(|(_, key)| keys.contains(key))
            .map(|(seq, key)| {
                let read = !self.is_read(*seq);
                let shown = mark == Mark::Shown && !self.shown.contains(*seq);
                (*seq, NewMark { key: *key, read, shown })
            })
            .filter(|(_, marked)| marked.read || marked.shown)
            .collect();
        if marked.is_empty() {
            return None;
        }
        let newly = |which: fn(&NewMark) -> bool| {
            marked.iter().filter(move |(_, marked)| which(marked)).map(|(seq, _)| *seq)
        };
        let read = self.read.with(newly(|marked| marked.read), all, complete_upto);
        let shown = self.shown.with(newly(|marked| marked.shown), all, complete_upto);
        // A read message leaves the inbox if enough later messages were read, or if its sequence is much lower
        // than that of the newest message.
        let is_done = |seq: u64| seq <= complete_upto && (seq <= self.floor || read.contains(seq));
        let done = all.iter().take_while(|(seq, _)| is_done(*seq)).count();
        let clear = done.checked_sub(1).and_then(|last| all.get(last));
        let clear = clear.map_or(self.clear, |(seq, _)| *seq);
        let newest = all.last().map_or(0, |(seq, _)| *seq);
        let leaves = |at: usize, seq: u64| at + READ_KEPT < done || seq + MAX_LAG < newest;
        let leaving =
            all.iter().take(done).enumerate().take_while(|(at, (seq, _))| leaves(*at, *seq));
        let floor = leaving.last().map_or(start, |(_, (seq, _))| *seq);
        let changes = marked.into_iter().map(|(_, change)| change).collect();
        Some(Self { floor, clear, read: read.above(floor), shown: shown.above(floor), changes })
    }
}

/// The part of a mailbox that a process knows completely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownRange {
    pub(crate) start: u64,
    pub(crate) complete_upto: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: KnownRange = KnownRange { start: 0, complete_upto: u64::MAX };

    fn all(count: u64) -> Vec<(u64, MessageKey)> {
        (1..=count).map(|n| (n * 7, MessageKey::from_id(&n.to_string()))).collect()
    }

    #[test]
    fn marking_everything_is_one_span() {
        let all = all(10);
        let keys: Vec<MessageKey> = all.iter().map(|(_, key)| *key).collect();
        let marks = MailboxMarks::default().with(ALL, &all, &keys, Mark::Read).unwrap();
        assert_eq!(marks.read, SequenceRanges(vec![(7, 70)]));
        assert_eq!(marks.changes.len(), 10);
        assert_eq!(marks.with(ALL, &all, &keys, Mark::Read), None);
        let shown = marks.with(ALL, &all, &keys[..1], Mark::Shown).unwrap();
        assert_eq!(shown.changes, [NewMark { key: keys[0], read: false, shown: true }]);
    }

    /// Regression test. After a leader election, a process had missed some messages. When it marked the next
    /// message, earlier messages became unread again, or messages that it had never seen became read.
    #[test]
    fn unknown_messages_keep_their_marks_and_do_not_become_read() {
        let (old, late) = (all(3), (40, MessageKey::from_id("late")));
        let keys: Vec<MessageKey> = old.iter().map(|(_, key)| *key).collect();
        let marks = MailboxMarks::default().with(ALL, &old, &keys, Mark::Shown).unwrap();
        // This process has received only the last message.
        let known = KnownRange { start: 0, complete_upto: 0 };
        let marks = marks.with(known, &[late], &[late.1], Mark::Shown).unwrap();
        assert_eq!(marks.read, SequenceRanges(vec![(7, 21), (40, 40)]));
        assert_eq!((marks.floor, marks.clear), (0, 21));
        assert!(!marks.is_read(30), "an unknown message in the gap must stay unread");
        // Then the process reads the whole mailbox and finds no other message. Now the ranges are joined.
        let (mut all, next) = (old, (50, MessageKey::from_id("next")));
        all.extend([late, next]);
        let known = KnownRange { start: 0, complete_upto: 50 };
        let marks = marks.with(known, &all, &[next.1], Mark::Read).unwrap();
        assert_eq!(
            (marks.read, marks.shown),
            (SequenceRanges(vec![(7, 50)]), SequenceRanges(vec![(7, 40)]))
        );
    }

    #[test]
    fn messages_read_long_ago_leave_the_inbox_with_the_next_message() {
        let mut all = all(3);
        let keys: Vec<MessageKey> = all.iter().map(|(_, key)| *key).collect();
        let marks = MailboxMarks::default().with(ALL, &all, &keys, Mark::Read).unwrap();
        let late = (21 + MAX_LAG + 1, MessageKey::from_id("late"));
        assert_eq!(marks.inbox_start(late.0), 21);
        all.retain(|(seq, _)| *seq > 21);
        all.push(late);
        let marks = marks
            .with(KnownRange { start: 21, complete_upto: u64::MAX }, &all, &[late.1], Mark::Read)
            .unwrap();
        assert_eq!((marks.floor, marks.clear), (21, late.0));
        assert!(keys.iter().zip([7, 14, 21]).all(|(_, seq)| marks.is_read(seq)));
    }

    #[test]
    fn unread_messages_stay_however_old() {
        let all = all(300);
        let keys: Vec<MessageKey> = all.iter().map(|(_, key)| *key).collect();
        let marks = MailboxMarks::default().with(ALL, &all, &keys[1..], Mark::Read).unwrap();
        assert_eq!((marks.floor, marks.read.clone()), (0, SequenceRanges(vec![(14, 2100)])));
        assert!(!marks.is_read(7));
        let marks = marks.with(ALL, &all, &keys[..1], Mark::Shown).unwrap();
        assert_eq!((marks.floor, marks.clear), (290 * 7, 2100));
        assert_eq!(marks.inbox_start(2200), marks.floor);
        assert_eq!(marks.inbox_start(2101 + MAX_LAG), 2100);
        assert!(all.iter().all(|(seq, _)| marks.is_read(*seq)));
    }
}
