//! Parses results: how a turn ended, the model usage, and the files that a tool changed.

use serde_json::Value;

use super::super::change::{ChangedPart, FileChange, parts_of_hunks};
use super::super::limit::is_limit_status;
use super::super::text::{count, text};
use super::super::{AgentEvent, TurnEnd, Usage};

/// Returns how a turn ended. `interrupted` is true if we interrupted the turn.
pub(super) fn end(result: &Value, interrupted: bool) -> TurnEnd {
    if interrupted || text(result, "/terminal_reason").starts_with("aborted") {
        return TurnEnd::Interrupted;
    }
    if result.get("is_error") != Some(&Value::Bool(true)) {
        return TurnEnd::Done;
    }
    let errors = result.get("errors").and_then(Value::as_array);
    let error = errors.and_then(|errors| errors.first()).and_then(Value::as_str);
    let texts = [text(result, "/result"), error.unwrap_or_default(), text(result, "/subtype")];
    let why =
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or("the turn failed").to_owned();
    if is_limit_status(count(result, "/api_error_status")) {
        TurnEnd::Limited(why)
    } else {
        TurnEnd::Failed(why)
    }
}

/// Returns the event for a retry: Claude Code hit a vendor limit, or cannot reach the vendor.
pub(super) fn retry(retry: &Value) -> AgentEvent {
    let (status, error) = (count(retry, "/error_status"), text(retry, "/error"));
    if is_limit_status(status) {
        return AgentEvent::Limited { why: format!("{status} {error}") };
    }
    let (attempt, max) = (count(retry, "/attempt"), count(retry, "/max_retries"));
    // If the error has no name, the vendor did not respond at all.
    let error = if matches!(error, "" | "unknown") { "no answer from the vendor" } else { error };
    AgentEvent::Retries { why: format!("{error}, attempt {attempt} of {max}") }
}

/// Returns the file change in the result of a tool that edits files.
pub(super) fn change(message: &Value) -> Option<FileChange> {
    let result = message.get("tool_use_result")?;
    let hunks = result.get("structuredPatch")?.as_array()?;
    let parts = match text(result, "/type") {
        // For a new file, `content` is the whole file.
        "create" => {
            vec![ChangedPart { before: String::new(), after: text(result, "/content").to_owned() }]
        }
        _ => parts_of_hunks(hunks),
    };
    Some(FileChange { path: text(result, "/filePath").to_owned(), parts })
}

/// Returns the usage of all models since the program was started.
pub(super) fn usage(result: &Value) -> Usage {
    let models = result.get("modelUsage").and_then(Value::as_object);
    let mut used =
        Usage { cost: result.get("total_cost_usd").and_then(Value::as_f64), ..Usage::default() };
    for model in models.into_iter().flat_map(|models| models.values()) {
        let cached = count(model, "/cacheReadInputTokens");
        let read =
            [count(model, "/inputTokens"), count(model, "/cacheCreationInputTokens"), cached];
        used.input = read.into_iter().fold(used.input, u64::saturating_add);
        used.cached = used.cached.saturating_add(cached);
        used.output = used.output.saturating_add(count(model, "/outputTokens"));
    }
    used
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Claude Code 2.1.325 reported the first of these errors when the vendor responded with status 529, and the
    /// second when the vendor did not respond.
    #[test]
    fn a_limit_is_distinguished_from_an_unreachable_vendor() {
        let event = |status, error: &str| {
            retry(
                &json!({ "error_status": status, "error": error, "attempt": 2, "max_retries": 10 }),
            )
        };
        assert_eq!(
            event(json!(529), "overloaded"),
            AgentEvent::Limited { why: "529 overloaded".into() }
        );
        let silent = "no answer from the vendor, attempt 2 of 10".to_owned();
        assert_eq!(event(json!(null), "unknown"), AgentEvent::Retries { why: silent });
    }
}
