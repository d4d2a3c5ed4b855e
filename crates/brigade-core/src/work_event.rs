//! What can be seen of a member at work, as it stands in the journal.

use serde::{Deserialize, Serialize};

/// Something a member's agent did, or that became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Act {
    /// Its program was started, or started again.
    Started {},
    /// It can be given something to do.
    Ready {},
    /// A turn has begun.
    TurnStarted {},
    /// It said something: a piece between two other acts, whole.
    Said {
        /// What, as far as it is kept.
        text: String,
    },
    /// It has begun to use a tool.
    ToolStarted {
        /// Which use, by the agent's own id.
        id: String,
        /// The tool, as the agent names it.
        tool: String,
        /// What it is used for, in a line.
        about: String,
    },
    /// It is through with that.
    ToolEnded {
        /// Which use.
        id: String,
        /// Whether it came to what it was to.
        ok: bool,
    },
    /// It has changed a file.
    Changed {
        /// Which.
        path: String,
        /// Lines that are new.
        added: usize,
        /// Lines that are gone.
        removed: usize,
    },
    /// Its vendor takes no more for now.
    Limited {
        /// In the vendor's words.
        why: String,
    },
    /// What it used of its model in this conversation so far.
    Used {
        /// Tokens read.
        input: u64,
        /// Tokens written.
        output: u64,
        /// What that cost in US dollars, where the agent says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// The turn has ended.
    TurnEnded {
        /// How.
        end: Ending,
        /// Why, if not by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Something went wrong, and what is done about it.
    Trouble {
        /// In words.
        why: String,
    },
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// By itself.
    Done,
    /// It was interrupted.
    Interrupted,
    /// It failed.
    Failed,
    /// Its vendor takes no more for now.
    Limited,
}
