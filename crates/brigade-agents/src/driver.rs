//! Which agent CLI, and how it is started, fed and heard.
//!
//! A driver does no I/O. It is given what the agent's program wrote, and what its member wants; it
//! gives back bytes for the program and [`Event`]s for the house. A table has a row for
//! each agent: a new one is a row, or a row and a file.
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
mod words;

pub(crate) use self::agents::IN_PROCESS;
pub use self::agents::{AGENTS, Choice, agent};
pub use self::change::{FileChange, Part};
pub use self::event::{Ask, End, Event, Output, Usage, Verdict};

/// One agent CLI.
#[derive(Clone, Copy, Debug)]
pub struct Agent {
    /// Its name, which is also the agent type a lead asks for.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// The program, found on the path.
    pub program: &'static str,
    /// The npm package that brings it.
    pub package: &'static str,
    /// The oldest version it was seen to work with.
    pub tested: &'static str,
    /// Whether a team's files are its own, so that it is a teammate without any help.
    pub native: bool,
    /// What it can do.
    pub can: Can,
    /// Its driver for one conversation.
    pub driver: fn(Launch) -> Box<dyn Driver>,
}

/// What an agent can do, beside what all can: be prompted, interrupted, asked for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Can {
    /// What becomes of mail that arrives in the middle of a turn.
    pub mid_turn: MidTurn,
    /// What keeps it from changing anything until its plan is approved.
    pub read_only: ReadOnly,
    /// What it tells of its use of the model.
    pub usage: Told,
    /// When a session of its can be gone on with.
    pub resumes: Resumes,
}

/// When a session can be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumes {
    /// Whenever.
    AtOnce,
    /// Not in the minute of the clock in which it was begun: the agent names its record of a session by
    /// the minute it is opened in, and would write over it.
    NextMinute,
}

/// What becomes of mail that arrives in the middle of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MidTurn {
    /// It joins the turn.
    Steered,
    /// It is kept until the turn has ended: the agent would end the turn for it, or lose it.
    Held,
}

/// What keeps an agent from changing anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnly {
    /// The kernel.
    Sandbox,
    /// The agent's own plan mode.
    PlanMode,
    /// Every call is asked for, and nobody says yes.
    Asking,
}

/// What an agent tells of its use of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Tokens.
    Tokens,
    /// Tokens and money.
    TokensAndCost,
    /// Nothing.
    Nothing,
}

/// What a conversation begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launch {
    /// Where the agent works.
    pub cwd: String,
    /// The model, if it is not the agent's own choice.
    pub model: Option<String>,
    /// Who the agent is on the team, beyond any one prompt.
    pub instructions: String,
    /// The team's tools.
    pub tools: ToolServer,
    /// What it may do without asking.
    pub access: Access,
    /// The session to go on with, by the agent's own id.
    pub resume: Option<String>,
    /// More arguments for the program, before all others.
    pub arguments: Vec<String>,
    /// Claude Code's folder, where it records its sessions, if that is known.
    pub claude_dir: Option<String>,
}

impl Launch {
    /// A new conversation in this folder with these tools, in which the agent asks for what its own rules do
    /// not allow.
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

/// The server of the team's tools, as the agent is to start it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolServer {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables it needs.
    pub env: Vec<(String, String)>,
}

/// The name under which agents know the team's tools.
pub const TOOLS: &str = "team";

/// What an agent may do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Look, and change nothing: a plan is wanted first.
    ReadOnly,
    /// What its own rules allow; for the rest it asks.
    Ask,
    /// Everything.
    Full,
}

/// How a program is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set for it, beside those it inherits.
    pub env: Vec<(String, String)>,
}

/// One conversation with an agent.
///
/// Whoever holds a driver calls a method when something happens, and then takes [`Driver::next`]
/// until there is no more.
// ANCHOR: driver
pub trait Driver: Send + std::fmt::Debug {
    /// How the agent's program is started for this conversation.
    fn invocation(&self) -> Invocation;

    /// The program runs: say hello.
    fn start(&mut self);

    /// The program wrote this to its standard output, cut anywhere.
    fn hear(&mut self, bytes: &[u8]);

    /// The program ended by itself, with this code. To some agents that is a word.
    fn ended(&mut self, _code: i32) {}

    /// Begins a turn with this text. Only when [`Event::Ready`] has come and no turn is on. The turn's end
    /// comes even if it never began: the agent refused it, or held the text already.
    fn prompt(&mut self, note: Note, text: &str);

    /// Puts this text into the turn that is on. Only for agents that are [`MidTurn::Steered`]; what
    /// comes too late is [`Event::NotTaken`].
    fn steer(&mut self, note: Note, text: &str);

    /// Answers a question of the agent's.
    fn answer(&mut self, ask: AskId, verdict: &Verdict);

    /// Ends the turn that is on.
    fn interrupt(&mut self);

    /// What the agent may do from the next turn on.
    fn set_access(&mut self, access: Access);

    /// Of the agent's own record of a session, as [`Event::RemembersIn`] names it, what its model will see
    /// again.
    fn recalled<'a>(&self, record: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(record)
    }

    /// What came of it, in order.
    fn next(&mut self) -> Option<Output>;
}
// ANCHOR_END: driver

/// A text that is given to an agent, by its giver's number. A text that is given again to a resumed session
/// bears the number it had, and no other text of that session does: an agent that can, takes it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Note(pub u64);

/// A question of the agent's, by the driver's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);
