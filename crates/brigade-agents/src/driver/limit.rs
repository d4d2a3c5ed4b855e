//! Whether a vendor takes no more for now: by the status it answered with, or, where the agent tells
//! nothing else, by the words with which its program failed. What the model says proves nothing.

use super::End;

/// Whether the status says so: too many requests, or the model is overloaded, in Anthropic's own status.
pub(super) fn is_limit_status(status: u64) -> bool {
    matches!(status, 429 | 529)
}

/// How a turn ended that failed with these words, of which nothing else is known.
pub(super) fn failed(why: String) -> End {
    if is_limit(&why) { End::Limited(why) } else { End::Failed(why) }
}

fn is_limit(why: &str) -> bool {
    const SAID: [&str; 9] = [
        "rate limit",
        "rate_limit",
        "ratelimit",
        "usage limit",
        "too many requests",
        "429",
        "quota",
        "overloaded",
        "resource_exhausted",
    ];
    let why = why.to_lowercase();
    SAID.iter().any(|said| why.contains(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_known_by_the_vendors_words() {
        for said in ["429 Too Many Requests", "You've hit your usage limit", "RESOURCE_EXHAUSTED"] {
            assert_eq!(failed(said.to_owned()), End::Limited(said.to_owned()));
        }
        let other = "the model refused";
        assert_eq!(failed(other.to_owned()), End::Failed(other.to_owned()));
    }
}
