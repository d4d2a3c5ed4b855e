//! Makes sure that this process reads its own writes: tracks the lowest sequence that an answer may have.
//!
//! Any replica may answer a read, and a replica can be behind. This process must not use an answer that is older
//! than a message it has itself written or received.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::layout::matches;

/// How long a replica can stay behind. Entries older than this can be dropped.
const MAX_REPLICA_LAG: Duration = Duration::from_secs(60);
/// The number of entries above which old entries are dropped.
const MAX_ENTRIES: usize = 4096;

/// The last known sequence of each subject. Most reads filter by a prefix of the subject, so a sequence is also
/// stored under each prefix.
#[derive(Debug, Default)]
pub(crate) struct ReadFloor {
    last: HashMap<String, (u64, Instant)>,
    /// When old entries were last dropped.
    swept: Option<Instant>,
}

impl ReadFloor {
    /// Records that a message with this sequence exists on a subject.
    pub(crate) fn raise(&mut self, subject: &str, seq: u64) {
        let now = Instant::now();
        let is_due = self.swept.is_none_or(|at| now.duration_since(at) > Duration::from_secs(1));
        if self.last.len() > MAX_ENTRIES && is_due {
            self.last.retain(|_, (_, at)| now.duration_since(*at) < MAX_REPLICA_LAG);
            self.swept = Some(now);
        }
        let ends = subject.match_indices('.').skip(2).map(|(dot, _)| dot + 1);
        for end in ends.chain([subject.len()]) {
            let Some(key) = subject.get(..end) else { continue };
            match self.last.get_mut(key) {
                Some(last) => *last = (last.0.max(seq), now),
                None => drop(self.last.insert(key.to_owned(), (seq, now))),
            }
        }
    }

    /// Returns the lowest sequence that the last message on a subject (wildcards allowed) can have.
    pub(crate) fn get(&self, filter: &str) -> u64 {
        let fresh = |(seq, at): &(u64, Instant)| (at.elapsed() < MAX_REPLICA_LAG).then_some(*seq);
        let Some(wild) = filter.find(['*', '>']) else {
            return self.last.get(filter).and_then(fresh).unwrap_or(0);
        };
        let (begin, rest) = filter.split_at(wild);
        if rest.split('.').all(|token| matches!(token, "*" | ">")) && begin.matches('.').count() > 2
        {
            return self.last.get(begin).and_then(fresh).unwrap_or(0);
        }
        let whole = self.last.iter().filter(|(subject, _)| matches(filter, subject));
        whole.filter_map(|(_, last)| fresh(last)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::ReadFloor;

    #[test]
    fn a_message_raises_the_floor_of_every_matching_filter() {
        let mut floor = ReadFloor::default();
        floor.raise("mb.0.demo.alice.bob.w", 7);
        floor.raise("mb.0.demo.carol.bob.w", 9);
        floor.raise("bd.0.demo.5.alice", 3);
        let check = |filter, seq| assert_eq!(floor.get(filter), seq, "{filter}");
        check("mb.0.demo.alice.bob.w", 7);
        check("mb.0.demo.alice.>", 7);
        check("mb.0.demo.alice.bob.*", 7);
        check("mb.0.demo.>", 9);
        check("mb.0.demo.*.bob.*", 9);
        check("mb.0.demo.*.alice.*", 0);
        check("mb.0.other.>", 0);
        check("bd.0.demo.5.*", 3);
        check("bd.0.demo.50.*", 0);
        check("bd.0.demo.>", 3);
    }

    #[test]
    fn recent_entries_survive_many_others() {
        let mut floor = ReadFloor::default();
        floor.raise("mk.0.demo.alice", 5);
        for number in 0..10_000 {
            floor.raise(&format!("mb.0.demo.bob.{number}.w"), 6);
        }
        assert_eq!(floor.get("mk.0.demo.alice"), 5);
    }
}
