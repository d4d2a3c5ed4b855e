//! Work events: the activity of a member's agent, as recorded in the journal.

use serde::{Deserialize, Serialize};

/// An event in the work of a member's agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkEvent {
    /// The agent's process was started or restarted.
    Started {},
    /// The agent is ready to accept prompts.
    Ready {},
    /// The agent has started a turn.
    TurnStarted {},
    /// The agent wrote text. One event contains all text that the agent wrote between two other events.
    Said {
        /// The text, possibly truncated.
        text: String,
    },
    /// The agent started to use a tool.
    ToolStarted {
        /// The agent's id for this tool call.
        id: String,
        /// The name that the agent uses for the tool.
        tool: String,
        /// One line that describes the call.
        about: String,
    },
    /// A tool call ended.
    ToolEnded {
        /// The agent's id for this tool call.
        id: String,
        /// Whether the call succeeded.
        ok: bool,
    },
    /// The agent changed a file.
    Changed {
        /// The path of the file.
        path: String,
        /// The number of lines added.
        added: usize,
        /// The number of lines removed.
        removed: usize,
        /// The changed lines, possibly truncated. Each begins with a space, a minus or a plus.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
    },
    /// The agent has reached the vendor's rate limit.
    Limited {
        /// The vendor's message about the limit.
        why: String,
    },
    /// The agent reported its token usage in this conversation so far.
    Used {
        /// The number of tokens that the model has read.
        input: u64,
        /// The number of tokens that the model has written.
        output: u64,
        /// The cost of this conversation in US dollars, if the agent reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// The agent has ended a turn.
    TurnEnded {
        /// How the turn ended.
        end: TurnOutcome,
        /// The reason, unless the turn completed normally.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Something went wrong with the agent.
    Trouble {
        /// The problem, and how brigade reacts to it.
        why: String,
    },
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The turn completed normally.
    Done,
    /// The turn was interrupted.
    Interrupted,
    /// The turn failed.
    Failed,
    /// The vendor's rate limit stopped the turn.
    Limited,
}
