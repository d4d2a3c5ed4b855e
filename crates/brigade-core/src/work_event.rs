//! Work events: the activity of a member's agent, as recorded in the journal.

use serde::{Deserialize, Serialize};

/// An event in the work of a member's agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkEvent {
    /// The agent's process was started or restarted.
    Started {},
    /// The agent accepts prompts.
    Ready {},
    /// A turn has started.
    TurnStarted {},
    /// The agent wrote text: one complete piece between two other events.
    Said {
        /// The text, possibly truncated.
        text: String,
    },
    /// The agent started to use a tool.
    ToolStarted {
        /// The agent's id for this tool call.
        id: String,
        /// The tool, by the agent's own name for it.
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
        /// Path of the file.
        path: String,
        /// Number of lines added.
        added: usize,
        /// Number of lines removed.
        removed: usize,
    },
    /// The vendor's rate limit was reached.
    Limited {
        /// The vendor's message.
        why: String,
    },
    /// Token usage of this conversation so far.
    Used {
        /// Tokens read.
        input: u64,
        /// Tokens written.
        output: u64,
        /// Cost in US dollars, if the agent reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// The turn has ended.
    TurnEnded {
        /// The outcome.
        end: TurnOutcome,
        /// The reason, unless the turn completed normally.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Something went wrong.
    Trouble {
        /// The problem, and how brigade reacts to it.
        why: String,
    },
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// Completed normally.
    Done,
    /// Interrupted.
    Interrupted,
    /// Failed.
    Failed,
    /// Stopped by the vendor's rate limit.
    Limited,
}
