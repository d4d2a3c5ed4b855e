//! Drivers: how each agent CLI is started, prompted and understood.
//!
//! A driver does no I/O. It receives the bytes the agent's program wrote and the calls of its member,
//! and returns bytes for the program and [`AgentEvent`]s for the member. [`AGENTS`] has one row for each
//! agent. A new agent is a new row, sometimes with a new file.
//!
//! ```
//! use brigade_agents::driver::{self, AGENTS};
//!
//! assert!(AGENTS.iter().any(|agent| agent.name == "codex"));
//! let own = driver::agent("acp:my-agent --fast").unwrap();
//! assert_eq!((own.program.as_str(), own.arguments), ("my-agent", vec!["--fast".to_owned()]));
//! ```

use std::borrow::Cow;

mod acp;
mod agents;
mod asks;
mod change;
mod claude;
mod codex;
mod event;
pub(crate) mod in_process;
mod limit;
mod lines;
mod rpc;
mod text;

pub(crate) use self::agents::IN_PROCESS;
pub use self::agents::{AGENTS, AgentChoice, agent};
pub use self::change::{ChangedPart, FileChange};
pub use self::event::{AgentAsk, AgentEvent, DriverOutput, PermissionAnswer, TurnEnd, Usage};

/// One agent CLI.
#[derive(Clone, Copy, Debug)]
pub struct Agent {
    /// Its name, which is also the agent type a lead asks for.
    pub name: &'static str,
    /// Its display name.
    pub title: &'static str,
    /// The program, found through `PATH`.
    pub program: &'static str,
    /// The npm package that installs it.
    pub package: &'static str,
    /// The oldest version it was tested with.
    pub tested: &'static str,
    /// Whether it reads and writes Claude Code's team files itself, so that it can be a teammate
    /// without a driver.
    pub native: bool,
    /// Its capabilities.
    pub can: AgentCapabilities,
    /// Creates its driver for one conversation.
    pub driver: fn(LaunchOptions) -> Box<dyn Driver>,
}

/// Capabilities in which agents differ. All agents can be prompted, interrupted and resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// How mail that arrives in the middle of a turn is delivered.
    pub mid_turn: MidTurn,
    /// How it is kept from changing anything until its plan is approved.
    pub read_only: ReadOnly,
    /// How it reports its use of the model.
    pub usage: UsageReporting,
    /// When one of its sessions can be resumed.
    pub resumes: ResumeTiming,
}

/// When a session can be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeTiming {
    /// At any time.
    AtOnce,
    /// Not in the clock minute in which it was started: the agent names its session record after the
    /// minute, and would overwrite it.
    NextMinute,
}

/// How mail that arrives in the middle of a turn is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MidTurn {
    /// It is added to the running turn.
    Steered,
    /// It waits for the end of the turn: the agent would end the turn, or lose the text.
    Held,
}

/// How an agent is kept from changing anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnly {
    /// By a sandbox that the kernel enforces.
    Sandbox,
    /// By the agent's own plan mode.
    PlanMode,
    /// The agent asks for every call, and every request is denied.
    Asking,
}

/// How an agent reports its use of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageReporting {
    /// In tokens.
    Tokens,
    /// In tokens and cost.
    TokensAndCost,
    /// It does not report usage.
    Nothing,
}

/// The settings of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// The agent's working directory.
    pub cwd: String,
    /// The model, unless the agent chooses its own default.
    pub model: Option<String>,
    /// The agent's role on the team, in force for the whole conversation.
    pub instructions: String,
    /// The MCP server for the team's tools.
    pub tools: ToolServer,
    /// The agent's level of access.
    pub access: Access,
    /// The session to resume, by the agent's own id.
    pub resume: Option<String>,
    /// Additional arguments for the program, placed before all others.
    pub arguments: Vec<String>,
    /// Claude Code's configuration folder, which contains its session records, if known.
    pub claude_dir: Option<String>,
}

impl LaunchOptions {
    /// A new conversation in this folder with these tools. The agent asks for permission where its own
    /// rules require it.
    pub fn new(cwd: impl Into<String>, tools: ToolServer) -> Self {
        Self {
            cwd: cwd.into(),
            model: None,
            instructions: String::new(),
            tools,
            access: Access::Ask,
            resume: None,
            arguments: Vec::new(),
            claude_dir: None,
        }
    }
}

/// How the agent starts the MCP server for the team's tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolServer {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment variables.
    pub env: Vec<(String, String)>,
}

/// The name of the team's MCP server in the agents' configuration.
pub const TOOL_SERVER_NAME: &str = "team";

/// How much an agent may do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only. Its plan must be approved first.
    ReadOnly,
    /// Everything its own rules allow. It asks for the rest.
    Ask,
    /// Everything.
    Full,
}

/// The arguments and environment of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables, in addition to those it inherits.
    pub env: Vec<(String, String)>,
}

/// One conversation with an agent.
///
/// The caller reports each event with a method call, and then calls [`Driver::next`] until it returns
/// `None`.
// ANCHOR: driver
pub trait Driver: Send + std::fmt::Debug {
    /// How the agent's program is started for this conversation.
    fn invocation(&self) -> Invocation;

    /// The program is running: begin the protocol's handshake.
    fn start(&mut self);

    /// The program wrote these bytes to its standard output. They may be split anywhere.
    fn on_output(&mut self, bytes: &[u8]);

    /// The program ended by itself with this exit code. Some agents report failure through it.
    fn on_exit(&mut self, _code: i32) {}

    /// Starts a turn with this text. Only after [`AgentEvent::Ready`], and while no turn is running.
    /// [`AgentEvent::TurnEnded`] follows even if the turn never started, because the agent refused the text
    /// or already had it.
    fn prompt(&mut self, note: TextNumber, text: &str);

    /// Adds this text to the running turn. Only for agents with [`MidTurn::Steered`]. A text that comes
    /// too late is reported as [`AgentEvent::NotTaken`].
    fn steer(&mut self, note: TextNumber, text: &str);

    /// Answers a permission request of the agent.
    fn answer(&mut self, ask: AskId, verdict: &PermissionAnswer);

    /// Interrupts the running turn.
    fn interrupt(&mut self);

    /// Sets what the agent may do from the next turn on.
    fn set_access(&mut self, access: Access);

    /// Extracts what the model will see again from the agent's own session record, which
    /// [`AgentEvent::RemembersIn`] names.
    fn recalled<'a>(&self, record: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(record)
    }

    /// Returns the next output, in order.
    fn next(&mut self) -> Option<DriverOutput>;
}
// ANCHOR_END: driver

/// A text sent to an agent, identified by the sender's number. A text sent again to a resumed session
/// keeps its number, and no other text of that session has it, so that an agent that supports it
/// processes the text once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextNumber(pub u64);

/// A permission request of the agent, identified by the driver's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);
