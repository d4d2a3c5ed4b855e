//! The outputs of a driver: bytes for the agent's program, and events for the member.

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

/// An event that an agent's driver reports to the member.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// The agent can be prompted. Reported once for each start of the program.
    Ready {
        /// The session id assigned by the agent, needed to resume the session later.
        session: String,
    },
    /// The resumed session contains this user text. Reported before [`AgentEvent::Ready`].
    Remembers {
        /// The complete user text.
        text: String,
    },
    /// The agent recorded the resumed session in this file. The file may contain texts that the agent does
    /// not report as [`AgentEvent::Remembers`]; [`Driver::recalled`](super::Driver::recalled) extracts them.
    /// An incomplete last line must be ignored. Reported before [`AgentEvent::Ready`].
    RemembersIn {
        /// The file's path. One folder name in the path may be `*`, which matches any name.
        path: String,
    },
    /// The agent has received this text and will show it to its model.
    Taken(TextNumber),
    /// The agent did not accept this text, and its model will not see it.
    NotTaken(TextNumber),
    /// A turn has started.
    TurnStarted,
    /// A piece of the agent's text.
    Said(String),
    /// The agent started to use a tool.
    ToolStarted {
        /// The id that the agent gave this tool use.
        id: String,
        /// The tool, as the agent names it.
        tool: String,
        /// The purpose of the tool use, in one line.
        about: String,
    },
    /// The agent changed a file. Reported before the end of the tool use that changed the file.
    Changed(FileChange),
    /// The agent finished a tool use.
    ToolEnded {
        /// The id that the agent gave this tool use.
        id: String,
        /// Whether the tool use succeeded.
        ok: bool,
        /// Why the tool use failed, in one line; empty if it succeeded or the agent gives no reason.
        why: String,
    },
    /// The agent asks for permission.
    Asks(AgentAsk),
    /// The agent no longer waits for an answer: it withdrew the request, or got the answer in another way.
    AsksNoLonger(AskId),
    /// The agent's model usage in this conversation so far.
    Used(Usage),
    /// The agent hit its vendor's rate or usage limit and retries by itself. The limit is over when the
    /// agent writes text or uses a tool again.
    Limited {
        /// The reason, as the agent reports it.
        why: String,
    },
    /// The agent cannot reach its vendor and retries by itself. The vendor is reachable again when the
    /// agent writes text or uses a tool.
    Retries {
        /// The reason, as the agent reports it.
        why: String,
    },
    /// The turn has ended.
    TurnEnded(TurnEnd),
    /// The conversation cannot continue. The program must be restarted.
    Broken {
        /// Why the conversation cannot continue.
        why: String,
    },
}

/// A permission request.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentAsk {
    /// The number that the driver assigned to the request.
    pub id: AskId,
    /// The tool, as the agent names it.
    pub tool: String,
    /// The id that the agent gave this tool use.
    pub tool_use_id: String,
    /// The purpose of the tool use, in one line.
    pub description: String,
    /// The input of the tool.
    pub input: Value,
    /// The fields of the agent's request outside the tool's input, as an object; null if there are none. Fields that
    /// only identify the request, and offers that brigade never accepts, are left out.
    pub request: Value,
    /// The plan, if the agent asks for approval of a plan.
    pub plan: Option<String>,
}

/// The answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// Allow this tool use, but no later tool uses.
    Allow,
    /// Allow this tool use with this input instead of the input that the agent asked for. Only for drivers whose
    /// [`accepts_edited_input`](super::Driver::accepts_edited_input) is true; the others deny the tool use.
    AllowEdited(Value),
    /// Deny the tool use, for this reason. The agent continues its turn without this tool use if possible.
    Deny(String),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The turn completed.
    Done,
    /// The turn was interrupted.
    Interrupted,
    /// The turn failed, for this reason.
    Failed(String),
    /// The turn failed because of the vendor's rate or usage limit. Contains the agent's error text.
    Limited(String),
}

/// Tokens and cost that an agent used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Input tokens, including cached tokens.
    pub input: u64,
    /// Cached input tokens.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
    /// Cost in US dollars, if the agent reports it.
    pub cost: Option<f64>,
}

impl Usage {
    /// Adds the earlier usage to those counts that began at zero again.
    pub(crate) fn with_earlier(self, earlier: Self, restarts: UsageRestarts) -> Self {
        let add = |count: u64, earlier: u64| match restarts.tokens {
            true => count.saturating_add(earlier),
            false => count,
        };
        let cost = match (self.cost, earlier.cost) {
            (Some(cost), Some(earlier)) if restarts.cost => Some(cost + earlier),
            (cost, earlier) => cost.or(earlier),
        };
        Self {
            input: add(self.input, earlier.input),
            cached: add(self.cached, earlier.cached),
            output: add(self.output, earlier.output),
            cost,
        }
    }
}

/// The counts of [`Usage`] that begin at zero again when the program is restarted and resumes its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageRestarts {
    /// Whether the token counts begin again.
    pub tokens: bool,
    /// Whether the cost begins again.
    pub cost: bool,
}
