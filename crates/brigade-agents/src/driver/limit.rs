//! Detects turns that failed because of the vendor's rate or usage limit. If the agent reports an HTTP status, the
//! status decides; otherwise the text of the program's error decides. The model's own text is never used.

use super::TurnEnd;

/// Returns whether the HTTP status means a limit: 429 (too many requests) or 529 (overloaded, used by Anthropic).
pub(super) fn is_limit_status(status: u64) -> bool {
    matches!(status, 429 | 529)
}

/// Classifies a failed turn by its error text, when nothing else is known about the failure.
pub(super) fn failed(why: String) -> TurnEnd {
    if is_limit(&why) { TurnEnd::Limited(why) } else { TurnEnd::Failed(why) }
}

fn is_limit(why: &str) -> bool {
    const PHRASES: [&str; 9] = [
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
    PHRASES.iter().any(|phrase| why.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_recognized_by_the_error_text() {
        for error in ["429 Too Many Requests", "You've hit your usage limit", "RESOURCE_EXHAUSTED"]
        {
            assert_eq!(failed(error.to_owned()), TurnEnd::Limited(error.to_owned()));
        }
        let other = "the model refused";
        assert_eq!(failed(other.to_owned()), TurnEnd::Failed(other.to_owned()));
    }
}
