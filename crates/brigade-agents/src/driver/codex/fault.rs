//! Parses the model errors that Codex reports.

use serde_json::Value;

use super::super::TurnEnd;
use super::super::limit::is_limit_status;
use super::super::text::{count, text};

/// Classifies a turn that failed with this error.
pub(super) fn end(error: &Value) -> TurnEnd {
    let why = error_text(error);
    if is_limit(error) { TurnEnd::Limited(why) } else { TurnEnd::Failed(why) }
}

/// Returns whether the error is a vendor limit. Codex reports the kind of an error as a string, or as an
/// object with one field that may contain the vendor's HTTP status.
pub(super) fn is_limit(error: &Value) -> bool {
    match error.get("codexErrorInfo") {
        Some(Value::String(kind)) => {
            matches!(kind.as_str(), "usageLimitExceeded" | "serverOverloaded")
        }
        Some(Value::Object(kind)) => {
            kind.values().any(|details| is_limit_status(count(details, "/httpStatusCode")))
        }
        _ => false,
    }
}

/// Returns the error text, with details if Codex reports them.
pub(super) fn error_text(error: &Value) -> String {
    match (text(error, "/message"), text(error, "/additionalDetails")) {
        ("", _) => "the turn failed".to_owned(),
        (message, "") => message.to_owned(),
        (message, details) => format!("{message}: {details}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Codex 0.166.0 reported these errors when the server of its model responded with status 429, 503 or 500.
    #[test]
    fn the_error_kind_decides_whether_it_is_a_limit() {
        let check = |kind: Value, message: &str, expected: fn(String) -> TurnEnd| {
            let error = json!({
                "message": message, "codexErrorInfo": kind, "additionalDetails": null,
                "misalignment": null,
            });
            assert_eq!(end(&error), expected(message.to_owned()));
        };
        let retries = json!({ "responseTooManyFailedAttempts": { "httpStatusCode": 429 } });
        check(
            retries,
            "exceeded retry limit, last status: 429 Too Many Requests",
            TurnEnd::Limited,
        );
        check(
            json!("usageLimitExceeded"),
            "Quota exceeded. Check your plan and billing details.",
            TurnEnd::Limited,
        );
        check(
            json!("serverOverloaded"),
            "Selected model is at capacity. Please try a different model.",
            TurnEnd::Limited,
        );
        check(
            json!("internalServerError"),
            "We’re currently experiencing high demand",
            TurnEnd::Failed,
        );
        let lost = json!({ "responseStreamDisconnected": { "httpStatusCode": null } });
        check(lost, "429 words", TurnEnd::Failed);
    }
}
