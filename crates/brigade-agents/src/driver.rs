//! Drivers. A driver knows how to start one agent CLI, how to prompt it, and how to parse its output.
//!
//! A driver does no I/O. The member passes the program's output to the driver, and calls the driver's methods to
//! prompt or interrupt the agent. The driver returns bytes for the program and [`AgentEvent`]s for the member.
//! [`AGENTS`] has one row for each agent. A new agent needs a new row, and sometimes a new driver.
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
mod login;
mod rpc;
mod text;

pub(crate) use self::agents::IN_PROCESS;
pub use self::agents::{AGENTS, AgentChoice, agent, is_command, known_model, plan_mode_note};
pub use self::change::{ChangedPart, FileChange};
pub use self::event::{
    AgentAsk, AgentEvent, DriverOutput, PermissionAnswer, TurnEnd, Usage, UsageRestarts,
};

pub use self::login::{LoginCheck, LoginProbe, LoginState};

/// One agent CLI.
#[derive(Clone, Copy, Debug)]
pub struct Agent {
    /// The agent's name. To spawn a teammate with this agent, a lead gives this name as the agent type.
    pub name: &'static str,
    /// The agent's display name.
    pub title: &'static str,
    /// The program, found through `PATH`.
    pub program: &'static str,
    /// The npm package that installs the program.
    pub package: &'static str,
    /// The version of the program that the end-to-end tests run.
    pub tested: &'static str,
    /// How a person logs in, if the agent reports that it is not logged in.
    pub login: &'static str,
    /// How to ask the agent's program whether a person has logged in.
    pub login_check: LoginCheck,
    /// Whether the agent itself reads and writes Claude Code's team files. If so, it can be a teammate without a
    /// driver.
    pub native: bool,
    /// The environment variables that the agent's program reads, such as the key of its vendor. `*` at the end of a
    /// name matches any rest.
    pub variables: &'static [&'static str],
    /// The agent's capabilities.
    pub can: AgentCapabilities,
    /// The arguments with which the program continues a session in its own interface. `{session}` stands for the session's id.
    /// Empty if the program cannot do that.
    pub interactive: &'static [&'static str],
    /// Part of the error with which the agent refuses to resume a session that another program has open. Empty if the agent
    /// never refuses.
    pub busy_session: &'static str,
    /// Creates a driver for one conversation with the agent.
    pub driver: fn(LaunchOptions) -> Box<dyn Driver>,
}

/// Capabilities in which agents differ. All agents can be prompted, interrupted and resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// How mail that arrives in the middle of a turn is delivered.
    pub mid_turn: MidTurn,
    /// How the agent is kept from changing anything until its plan is approved.
    pub read_only: ReadOnly,
    /// How the agent reports its model usage.
    pub usage: UsageReporting,
    /// When one of the agent's sessions can be resumed.
    pub resumes: ResumeTiming,
}

/// When a session can be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeTiming {
    /// The session can be resumed at any time.
    AtOnce,
    /// The session cannot be resumed in the clock minute in which it was started. The agent names session files
    /// after the minute, so it would overwrite the session's file.
    NextMinute,
}

/// How mail that arrives in the middle of a turn is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MidTurn {
    /// The mail is added to the running turn.
    Steered,
    /// The mail waits for the end of the turn. If the mail were sent earlier, the agent would end the turn or lose
    /// the mail.
    Held,
}

/// How an agent is kept from changing anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnly {
    /// A sandbox, enforced by the kernel, prevents changes.
    Sandbox,
    /// The agent's own plan mode prevents changes.
    PlanMode,
    /// The agent asks for permission for every tool call, and every request is denied.
    Asking,
}

/// How an agent reports its model usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageReporting {
    /// The agent reports tokens.
    Tokens,
    /// The agent reports tokens and cost.
    TokensAndCost,
    /// The agent does not report usage.
    Nothing,
}

/// The settings of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// The agent's working directory.
    pub cwd: String,
    /// The model; `None` for the agent's own default.
    pub model: Option<String>,
    /// Instructions about the agent's role on the team, valid for the whole conversation.
    pub instructions: String,
    /// The MCP server for the team's tools.
    pub tools: ToolServer,
    /// The agent's level of access.
    pub access: Access,
    /// The id of the session to resume, as assigned by the agent.
    pub resume: Option<String>,
    /// Additional arguments for the program, placed before all other arguments.
    pub arguments: Vec<String>,
    /// Claude Code's configuration folder, if known. It contains Claude Code's session records.
    pub claude_dir: Option<String>,
}

impl LaunchOptions {
    /// Returns the settings of a new conversation in the folder `cwd`, with the access level [`Access::Ask`].
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
    /// The server's program.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The program's environment variables.
    pub env: Vec<(String, String)>,
}

impl ToolServer {
    fn env_object(&self) -> serde_json::Value {
        self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

/// The name of the team's MCP server in the agents' configuration.
pub const TOOL_SERVER_NAME: &str = "team";

/// Why a tool use is denied if the lead changed its input, and the agent's protocol cannot carry the change.
pub(crate) const EDIT_NOT_POSSIBLE: &str = "the lead changed the input of this tool call, and this agent cannot run \
     a changed input; nothing was run; ask again with the input that the lead wants";

/// How much an agent may do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The agent may only read. More access needs an approved plan.
    ReadOnly,
    /// The agent may do everything that its own rules allow, and asks for permission for the rest.
    Ask,
    /// The agent may do everything.
    Full,
}

/// The arguments and environment of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The program's arguments.
    pub args: Vec<String>,
    /// Environment variables, in addition to those that the program inherits.
    pub env: Vec<(String, String)>,
}

/// One conversation with an agent.
///
/// The caller reports each event with a method call, and then calls [`Driver::next`] until it returns
/// `None`.
// ANCHOR: driver
pub trait Driver: Send + std::fmt::Debug {
    /// Returns the arguments and environment with which to start the agent's program.
    fn invocation(&self) -> Invocation;

    /// Begins the protocol's handshake. Called once the program is running.
    fn start(&mut self);

    /// Handles bytes that the program wrote to its standard output. A line may be split over several calls.
    fn on_output(&mut self, bytes: &[u8]);

    /// Handles the exit code of a program that ended by itself. Some agents report failure through the
    /// exit code.
    fn on_exit(&mut self, _code: i32) {}

    /// Starts a turn with this text. Call this only after [`AgentEvent::Ready`], and while no turn is running. The
    /// driver always reports [`AgentEvent::TurnEnded`] later. If the agent refuses the text or already has it, the
    /// driver reports the end of the turn without reporting a start.
    fn prompt(&mut self, note: TextNumber, text: &str);

    /// Adds this text to the running turn. Call this only for agents with [`MidTurn::Steered`]. If the text comes
    /// too late for the turn, the driver reports [`AgentEvent::NotTaken`].
    fn steer(&mut self, note: TextNumber, text: &str);

    /// Sends the agent the answer to one of its permission requests.
    fn answer(&mut self, ask: AskId, verdict: &PermissionAnswer);

    /// Returns whether the agent's protocol has a field for the reason of a denial, so that the model reads it.
    fn passes_on_reasons(&self) -> bool {
        false
    }

    /// Returns whether an answer can change the input of the tool.
    fn accepts_edited_input(&self) -> bool {
        false
    }

    /// Interrupts the running turn.
    fn interrupt(&mut self);

    /// Sets what the agent may do from the next turn on.
    fn set_access(&mut self, access: Access);

    /// Returns the part of a session record that the model sees again after a resume. `record` is the
    /// content of the file named by [`AgentEvent::RemembersIn`].
    fn recalled<'a>(&self, record: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(record)
    }

    /// Returns which counts of [`AgentEvent::Used`] begin at zero again when the program is restarted and resumes its
    /// session.
    fn usage_restarts(&self) -> UsageRestarts {
        UsageRestarts::default()
    }

    /// Returns the driver's next output, oldest first.
    fn next(&mut self) -> Option<DriverOutput>;
}
// ANCHOR_END: driver

/// The number of a text that is sent to an agent, unique within a session. A text that is sent again after a
/// resume keeps its number. Some agents recognize the number, and ignore a text that they already have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextNumber(pub u64);

/// The number that a driver assigns to a permission request of its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);
