//! What became of the messages of a mailbox, as one small document: which are read, which were shown.
//!
//! The messages of a mailbox stand between those of others, so what is marked is written as spans of
//! numbers in which every message of this mailbox is marked. However many there are, the document is
//! about as long as what is not read.

use brigade_core::event::MessageKey;
use brigade_core::store::Mark;
use serde::{Deserialize, Serialize};

/// How many messages that are read stay in the inbox.
pub(crate) const STAY: usize = 10;
/// How far back they may lie among all the messages of their shard. Who looks into an inbox makes the
/// server go through everything from its oldest message on.
const REACH: u64 = 20_000;

/// The state of a mailbox, with what the last write changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marks {
    /// Up to here all is read, and no longer in the inbox.
    #[serde(default)]
    floor: u64,
    /// Up to here all is read, and some of it still in the inbox.
    #[serde(default)]
    clear: u64,
    /// What is read, from the floor on.
    #[serde(default)]
    read: Spans,
    /// What was shown.
    #[serde(default)]
    shown: Spans,
    /// What this write marked, for the journal.
    #[serde(default)]
    pub(crate) now: Vec<Now>,
}

/// A message that was marked just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Now {
    pub(crate) key: MessageKey,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) read: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) shown: bool,
}

/// Numbers, as spans from the first to the last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Spans(Vec<(u64, u64)>);

impl Spans {
    fn has(&self, seq: u64) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&seq))
    }

    /// These and some more. Two spans become one where it is certain that no other message of the
    /// mailbox stands between them: up to `sure` they are all known, and in `all`, which is in order.
    fn with(&self, more: impl Iterator<Item = u64>, all: &[(u64, MessageKey)], sure: u64) -> Self {
        let mut spans = self.0.clone();
        spans.extend(more.map(|seq| (seq, seq)));
        spans.sort_unstable();
        let is_free = |from: u64, to: u64| {
            let next = all.partition_point(|(seq, _)| *seq <= from);
            all.get(next).is_none_or(|(seq, _)| *seq >= to)
        };
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, last) in spans {
            match joined.last_mut() {
                Some(before)
                    if first <= before.1 || (first <= sure && is_free(before.1, first)) =>
                {
                    before.1 = before.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }

    /// Those above a number.
    fn above(self, floor: u64) -> Self {
        let above = self.0.into_iter().filter(|(_, last)| *last > floor);
        Self(above.map(|(first, last)| (first.max(floor + 1), last)).collect())
    }
}

impl Marks {
    /// The same, with nothing newly marked.
    pub(crate) fn unchanged(self) -> Self {
        Self { now: Vec::new(), ..self }
    }

    /// Behind which number the inbox begins, if its newest message has this one. What was read long ago
    /// leaves it with the next that comes.
    pub(crate) fn begins(&self, newest: u64) -> u64 {
        if self.clear + REACH < newest { self.clear.max(self.floor) } else { self.floor }
    }

    pub(crate) fn is_read(&self, seq: u64) -> bool {
        seq <= self.floor || self.read.has(seq)
    }

    /// The state after marking some of `all` messages of the inbox; `None` if they are marked already.
    ///
    /// A process may not know every message: one that was not heard, or that the server it asked did not
    /// have yet. So nothing that was marked is forgotten because it is not in `all`, and nothing counts
    /// as marked because it lies between two that are.
    pub(crate) fn with(
        &self,
        Extent { began, sure }: Extent,
        all: &[(u64, MessageKey)],
        keys: &[MessageKey],
        mark: Mark,
    ) -> Option<Self> {
        let now: Vec<(u64, Now)> = all
            .iter()
            .filter(|(_, key)| keys.contains(key))
            .map(|(seq, key)| {
                let read = !self.is_read(*seq);
                let shown = mark == Mark::Shown && !self.shown.has(*seq);
                (*seq, Now { key: *key, read, shown })
            })
            .filter(|(_, now)| now.read || now.shown)
            .collect();
        if now.is_empty() {
            return None;
        }
        let newly = |which: fn(&Now) -> bool| {
            now.iter().filter(move |(_, now)| which(now)).map(|(seq, _)| *seq)
        };
        let read = self.read.with(newly(|now| now.read), all, sure);
        let shown = self.shown.with(newly(|now| now.shown), all, sure);
        // What is read and far behind leaves the inbox.
        let is_done = |seq: u64| seq <= sure && (seq <= self.floor || read.has(seq));
        let done = all.iter().take_while(|(seq, _)| is_done(*seq)).count();
        let clear = done.checked_sub(1).and_then(|last| all.get(last));
        let clear = clear.map_or(self.clear, |(seq, _)| *seq);
        let newest = all.last().map_or(0, |(seq, _)| *seq);
        let goes = |at: usize, seq: u64| at + STAY < done || seq + REACH < newest;
        let gone = all.iter().take(done).enumerate().take_while(|(at, (seq, _))| goes(*at, *seq));
        let floor = gone.last().map_or(began, |(_, (seq, _))| *seq);
        let now = now.into_iter().map(|(_, now)| now).collect();
        Some(Self { floor, clear, read: read.above(floor), shown: shown.above(floor), now })
    }
}

/// What a process knows of a mailbox: everything behind one number, up to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) began: u64,
    pub(crate) sure: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Extent = Extent { began: 0, sure: u64::MAX };

    fn all(count: u64) -> Vec<(u64, MessageKey)> {
        (1..=count).map(|n| (n * 7, MessageKey::of_id(&n.to_string()))).collect()
    }

    #[test]
    fn marking_everything_is_one_span() {
        let all = all(10);
        let keys: Vec<MessageKey> = all.iter().map(|(_, key)| *key).collect();
        let marks = Marks::default().with(ALL, &all, &keys, Mark::Read).unwrap();
        assert_eq!(marks.read, Spans(vec![(7, 70)]));
        assert_eq!(marks.now.len(), 10);
        assert_eq!(marks.with(ALL, &all, &keys, Mark::Read), None);
        let shown = marks.with(ALL, &all, &keys[..1], Mark::Shown).unwrap();
        assert_eq!(shown.now, [Now { key: keys[0], read: false, shown: true }]);
    }

    /// Guards against what a leader's election brought: a program that had not heard of some messages
    /// marked the next, and so made those before unread again, or took what it had not seen for read.
    #[test]
    fn what_is_not_known_is_neither_forgotten_nor_taken_for_read() {
        let (old, late) = (all(3), (40, MessageKey::of_id("late")));
        let keys: Vec<MessageKey> = old.iter().map(|(_, key)| *key).collect();
        let marks = Marks::default().with(ALL, &old, &keys, Mark::Shown).unwrap();
        // It knows nothing but what it heard last.
        let knows = Extent { began: 0, sure: 0 };
        let marks = marks.with(knows, &[late], &[late.1], Mark::Shown).unwrap();
        assert_eq!(marks.read, Spans(vec![(7, 21), (40, 40)]));
        assert_eq!((marks.floor, marks.clear), (0, 21));
        assert!(!marks.is_read(30), "somebody wrote between, and nobody has read it");
        // Once it has looked, and there was nothing between, they are one.
        let (mut all, next) = (old, (50, MessageKey::of_id("next")));
        all.extend([late, next]);
        let knows = Extent { began: 0, sure: 50 };
        let marks = marks.with(knows, &all, &[next.1], Mark::Read).unwrap();
        assert_eq!((marks.read, marks.shown), (Spans(vec![(7, 50)]), Spans(vec![(7, 40)])));
    }

    #[test]
    fn what_was_read_long_ago_leaves_with_the_next() {
        let mut all = all(3);
        let keys: Vec<MessageKey> = all.iter().map(|(_, key)| *key).collect();
        let marks = Marks::default().with(ALL, &all, &keys, Mark::Read).unwrap();
        let late = (21 + REACH + 1, MessageKey::of_id("late"));
        assert_eq!(marks.begins(late.0), 21);
        all.retain(|(seq, _)| *seq > 21);
        all.push(late);
        let marks =
            marks.with(Extent { began: 21, sure: u64::MAX }, &all, &[late.1], Mark::Read).unwrap();
        assert_eq!((marks.floor, marks.clear), (21, late.0));
        assert!(keys.iter().zip([7, 14, 21]).all(|(_, seq)| marks.is_read(seq)));
    }

    #[test]
    fn what_is_not_read_stays_however_old() {
        let all = all(300);
        let keys: Vec<MessageKey> = all.iter().map(|(_, key)| *key).collect();
        let marks = Marks::default().with(ALL, &all, &keys[1..], Mark::Read).unwrap();
        assert_eq!((marks.floor, marks.read.clone()), (0, Spans(vec![(14, 2100)])));
        assert!(!marks.is_read(7));
        let marks = marks.with(ALL, &all, &keys[..1], Mark::Shown).unwrap();
        assert_eq!((marks.floor, marks.clear), (290 * 7, 2100));
        assert_eq!(marks.begins(2200), marks.floor);
        assert_eq!(marks.begins(2101 + REACH), 2100);
        assert!(all.iter().all(|(seq, _)| marks.is_read(*seq)));
    }
}
