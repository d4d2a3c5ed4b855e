//! Reads an agent's model usage. Each agent reports it in a different place.

use serde_json::Value;

use super::super::Usage;
use super::super::text::count;

/// Where the response to a prompt contains the model usage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UsageAt {
    /// The field `usage` counts this prompt only.
    Prompt,
    /// The field `usage` counts the session so far.
    Session,
    /// The field `_meta.quota` counts this prompt only.
    Quota,
    /// The response contains no usage.
    Nowhere,
}

impl UsageAt {
    /// Returns whether the agent reports the usage of each prompt, so that the driver adds it up.
    pub(super) fn counts_prompts(self) -> bool {
        matches!(self, Self::Prompt | Self::Quota)
    }

    /// Returns the total usage after a prompt. `before` is the earlier total, and `result` is the response.
    pub(super) fn after(self, before: Usage, result: &Value) -> Option<Usage> {
        let (pointer, input, cached, output) = match self {
            Self::Prompt | Self::Session => {
                ("/usage", "/inputTokens", "/cachedReadTokens", "/outputTokens")
            }
            Self::Quota => ("/_meta/quota/token_count", "/input_tokens", "", "/output_tokens"),
            Self::Nowhere => return None,
        };
        let reported = result.pointer(pointer)?;
        let reported = Usage {
            input: count(reported, input),
            cached: if cached.is_empty() { 0 } else { count(reported, cached) },
            output: count(reported, output),
            cost: before.cost,
        };
        Some(match self {
            Self::Session => reported,
            _ => Usage {
                input: before.input.saturating_add(reported.input),
                cached: before.cached.saturating_add(reported.cached),
                output: before.output.saturating_add(reported.output),
                cost: reported.cost,
            },
        })
    }
}

/// Returns the session's cost so far in US dollars, if the update contains it.
pub(super) fn cost(update: &Value) -> Option<f64> {
    let cost = update.get("cost")?;
    (cost.get("currency")? == "USD").then(|| cost.get("amount")?.as_f64()).flatten()
}
