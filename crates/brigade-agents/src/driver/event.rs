//! What comes out of a driver: what an agent does, asks, and comes to.

use serde_json::Value;

use super::{AskId, FileChange, Note};

/// What comes out of a driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// For the program's standard input.
    Write(Vec<u8>),
    /// For the house.
    Event(Event),
}

/// What an agent does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// It can be prompted; this is its session, for another time. Comes once.
    Ready {
        /// The agent's own id for it.
        session: String,
    },
    /// A session that was resumed holds this text of its user's. Before [`Event::Ready`].
    Remembers {
        /// The text, whole.
        text: String,
    },
    /// A session that was resumed is recorded in this file, of which each whole line counts: it may
    /// hold texts that the agent does not tell of. [`Driver::recalled`](super::Driver::recalled) tells
    /// which. Before [`Event::Ready`].
    RemembersIn {
        /// Where it is; in place of one folder's name may stand `*`.
        path: String,
    },
    /// The agent has a text we gave it, and will put it before its model.
    Taken(Note),
    /// It has not, and will not.
    NotTaken(Note),
    /// A turn has begun.
    TurnStarted,
    /// A piece of what it says.
    Said(String),
    /// It has begun to use a tool.
    ToolStarted {
        /// Which use, by the agent's own id.
        id: String,
        /// The tool, as the agent names it.
        tool: String,
        /// What it is used for, in a line.
        about: String,
    },
    /// It has changed a file. Before the end of the tool that did.
    Changed(FileChange),
    /// It is through with that.
    ToolEnded {
        /// Which use.
        id: String,
        /// Whether it came to what it was to.
        ok: bool,
    },
    /// It asks leave.
    Asks(Ask),
    /// It no longer asks: it gave up, or somebody else answered.
    AsksNoLonger(AskId),
    /// What it used of its model in this conversation so far.
    Used(Usage),
    /// Its vendor takes no more for now, and it tries again by itself. What it says or does next
    /// ends that.
    Limited {
        /// In the agent's words.
        why: String,
    },
    /// It does not get through to its vendor, and tries again by itself. What it says or does next ends that.
    Retries {
        /// In the agent's words.
        why: String,
    },
    /// The turn has ended.
    TurnEnded(End),
    /// The conversation cannot go on. The program is to be started again.
    Broken {
        /// Why.
        why: String,
    },
}

/// A question: may I?
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The driver's number for it.
    pub id: AskId,
    /// The tool, as the agent names it.
    pub tool: String,
    /// The agent's own id for this use of it.
    pub tool_use_id: String,
    /// What it is for, in a line.
    pub description: String,
    /// What the tool would be given.
    pub input: Value,
    /// The plan it wants to go on with, if that is what it asks.
    pub plan: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes, this once.
    Allow,
    /// No, and why; the agent goes on without it where it can.
    Deny(String),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Done,
    /// It was interrupted.
    Interrupted,
    /// It failed, for this reason.
    Failed(String),
    /// It failed because its vendor takes no more for now, in the agent's words.
    Limited(String),
}

/// What was used of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Tokens read by the model, those from a cache included.
    pub input: u64,
    /// Of these, from a cache.
    pub cached: u64,
    /// Tokens written by it.
    pub output: u64,
    /// What it cost in US dollars, where the agent says.
    pub cost: Option<f64>,
}
