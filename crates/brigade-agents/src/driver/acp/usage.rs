//! What the agents tell of their use of the model: each in a place of its own.

use serde_json::Value;

use super::super::Usage;
use super::super::words::count;

/// Where the answer to a prompt says what was used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UsageAt {
    /// In `usage`, for this prompt.
    Prompt,
    /// In `usage`, for the session so far.
    Session,
    /// In `_meta.quota`, for this prompt.
    Quota,
    /// Nowhere.
    Nowhere,
}

impl UsageAt {
    /// What is used after a prompt that was answered so.
    pub(super) fn after(self, before: Usage, result: &Value) -> Option<Usage> {
        let (place, input, cached, output) = match self {
            Self::Prompt | Self::Session => {
                ("/usage", "/inputTokens", "/cachedReadTokens", "/outputTokens")
            }
            Self::Quota => ("/_meta/quota/token_count", "/input_tokens", "", "/output_tokens"),
            Self::Nowhere => return None,
        };
        let told = result.pointer(place)?;
        let told = Usage {
            input: count(told, input),
            cached: if cached.is_empty() { 0 } else { count(told, cached) },
            output: count(told, output),
            cost: before.cost,
        };
        Some(match self {
            Self::Session => told,
            _ => Usage {
                input: before.input.saturating_add(told.input),
                cached: before.cached.saturating_add(told.cached),
                output: before.output.saturating_add(told.output),
                cost: told.cost,
            },
        })
    }
}

/// What the session cost so far, where an update says so.
pub(super) fn cost(update: &Value) -> Option<f64> {
    let cost = update.get("cost")?;
    (cost.get("currency")? == "USD").then(|| cost.get("amount")?.as_f64()).flatten()
}
