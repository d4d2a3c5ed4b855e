//! The outputs of a driver: bytes for the program, and events.

use serde_json::Value;

use super::{AskId, FileChange, TextNumber};

/// One output of a driver.
#[derive(Clone, Debug, PartialEq)]
pub enum DriverOutput {
    /// Bytes for the program's standard input.
    Write(Vec<u8>),
    /// An event for the member.
    Event(AgentEvent),
}

/// An event of an agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// The agent can be prompted. Comes once, with the session id for a later resume.
    Ready {
        /// The agent's own id of the session.
        session: String,
    },
    /// The resumed session contains this user text. Comes before [`AgentEvent::Ready`].
    Remembers {
        /// The complete text.
        text: String,
    },
    /// The resumed session is recorded in this file. It may contain texts that the agent does not
    /// report; [`Driver::recalled`](super::Driver::recalled) extracts them. Only complete lines count.
    /// Comes before [`AgentEvent::Ready`].
    RemembersIn {
        /// The path. One folder name in it may be `*`.
        path: String,
    },
    /// The agent has received this text and will show it to its model.
    Taken(TextNumber),
    /// The agent has not received this text, and will not.
    NotTaken(TextNumber),
    /// A turn has started.
    TurnStarted,
    /// A piece of the agent's text.
    Said(String),
    /// The agent started to use a tool.
    ToolStarted {
        /// The agent's own id of this tool use.
        id: String,
        /// The tool, as the agent names it.
        tool: String,
        /// The purpose of the tool use, in one line.
        about: String,
    },
    /// The agent changed a file. Comes before the end of the tool use that changed it.
    Changed(FileChange),
    /// The agent finished a tool use.
    ToolEnded {
        /// The agent's own id of this tool use.
        id: String,
        /// Whether it succeeded.
        ok: bool,
    },
    /// The agent asks for permission.
    Asks(AgentAsk),
    /// The agent no longer asks: it withdrew the request, or it was answered elsewhere.
    AsksNoLonger(AskId),
    /// The usage of its model in this conversation so far.
    Used(Usage),
    /// The vendor's limit was hit, and the agent retries by itself. Its next output or action ends this
    /// state.
    Limited {
        /// The reason, as the agent reports it.
        why: String,
    },
    /// The agent cannot reach its vendor and retries by itself. Its next output or action ends this
    /// state.
    Retries {
        /// The reason, as the agent reports it.
        why: String,
    },
    /// The turn has ended.
    TurnEnded(TurnEnd),
    /// The conversation cannot continue. The program must be restarted.
    Broken {
        /// The reason.
        why: String,
    },
}

/// A permission request.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentAsk {
    /// The driver's number of the request.
    pub id: AskId,
    /// The tool, as the agent names it.
    pub tool: String,
    /// The agent's own id of this tool use.
    pub tool_use_id: String,
    /// The purpose of the tool use, in one line.
    pub description: String,
    /// The input of the tool.
    pub input: Value,
    /// The plan to be approved, if the agent asks for that.
    pub plan: Option<String>,
}

/// The answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// Allowed, this once.
    Allow,
    /// Denied, with the reason. The agent continues without it where it can.
    Deny(String),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// It completed.
    Done,
    /// It was interrupted.
    Interrupted,
    /// It failed, for this reason.
    Failed(String),
    /// It failed because of the vendor's limit, as the agent reports it.
    Limited(String),
}

/// Usage of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Cached input tokens.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
    /// Cost in US dollars, if the agent reports it.
    pub cost: Option<f64>,
}
