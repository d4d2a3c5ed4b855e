//! Remembers which messages this process has seen, so that the process can reject outdated answers.
//!
//! Any replica may answer a read, and a replica can be behind. An answer is too old if this process has itself
//! written or received a later message.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::layout::matches;

/// The longest time that a replica can be behind. Older entries are not needed.
const MAX_REPLICA_LAG: Duration = Duration::from_secs(60);
/// The number of entries above which old entries are dropped.
const MAX_ENTRIES: usize = 4096;

/// The highest known sequence on each subject. Most reads filter by a prefix of the subject, so the sequence is
/// also stored for each prefix.
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

    /// Returns the highest known sequence on the subjects that match `filter`. An answer with a lower
    /// sequence is outdated.
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
