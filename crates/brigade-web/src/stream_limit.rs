//! Limits the number of streams for each token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::problem::{Problem, ProblemKind};

/// The most streams of one token or login.
const MAX_STREAMS: usize = 512;

/// Counts the open streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamCounts(Arc<Mutex<HashMap<String, usize>>>);

/// The right to keep a stream open. Dropping it ends the stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    counts: StreamCounts,
    name: String,
}

impl StreamCounts {
    /// Counts a new stream. Fails if there are too many.
    pub(crate) fn take(&self, name: &str) -> Result<StreamPermit, Problem> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(name.to_owned()).or_default();
        if *count >= MAX_STREAMS {
            let detail = format!("{name} has {MAX_STREAMS} open streams");
            return Err(Problem::new(ProblemKind::TooMany, detail));
        }
        *count += 1;
        Ok(StreamPermit { counts: self.clone(), name: name.to_owned() })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_has_its_own_limit() {
        let counts = StreamCounts::default();
        let mut open: Vec<_> = (0..MAX_STREAMS).map(|_| counts.take("a").unwrap()).collect();
        assert_eq!(counts.take("a").unwrap_err().status, 429);
        assert!(counts.take("b").is_ok());
        open.pop();
        assert!(counts.take("a").is_ok());
        drop(open);
        assert!(counts.0.lock().unwrap().is_empty());
    }
}
