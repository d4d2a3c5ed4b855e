//! Which agent CLI, and how it is started, fed and heard.
//!
//! A driver does no I/O. It is given what the agent's program wrote, and what its member wants; it
//! gives back bytes for the program and [`Event`]s for the house. A table has a row for
//! each agent: a new one is a row, or a row and a file.
//!
//! ```
//! use brigade_core::driver::{self, AGENTS};
//!
//! assert!(AGENTS.iter().any(|agent| agent.name == "codex"));
//! let own = driver::agent("acp:my-agent --fast").unwrap();
//! assert_eq!((own.program.as_str(), own.arguments), ("my-agent", vec!["--fast".to_owned()]));
//! ```

use std::borrow::Cow;

use serde_json::Value;

mod acp;
mod asks;
mod change;
mod claude;
mod codex;
pub(crate) mod in_process;
mod limit;
mod lines;
mod rpc;
mod words;

pub use change::{FileChange, Part};

/// The agents. A row is all there is to know of one outside of its driver.
pub const AGENTS: &[Agent] = &[
    Agent {
        name: "codex",
        title: "Codex",
        program: "codex",
        package: "@openai/codex",
        tested: "0.166.0",
        native: false,
        can: Can {
            mid_turn: MidTurn::Steered,
            read_only: ReadOnly::Sandbox,
            usage: Told::Tokens,
            resumes: Resumes::AtOnce,
        },
        driver: |launch| Box::new(codex::Codex::new(launch)),
    },
    Agent {
        name: "claude",
        title: "Claude Code",
        program: "claude",
        package: "@anthropic-ai/claude-code",
        tested: "2.1.325",
        native: true,
        can: Can {
            mid_turn: MidTurn::Steered,
            read_only: ReadOnly::PlanMode,
            usage: Told::TokensAndCost,
            resumes: Resumes::AtOnce,
        },
        driver: |launch| Box::new(claude::Claude::new(launch)),
    },
    Agent {
        name: "gemini",
        title: "Gemini CLI",
        program: "gemini",
        package: "@google/gemini-cli",
        tested: "0.61.0",
        native: false,
        can: Can {
            mid_turn: MidTurn::Held,
            read_only: ReadOnly::PlanMode,
            usage: Told::Tokens,
            resumes: Resumes::NextMinute,
        },
        driver: |launch| Box::new(acp::Acp::new(&acp::GEMINI, launch)),
    },
    Agent {
        name: "opencode",
        title: "opencode",
        program: "opencode",
        package: "opencode-ai",
        tested: "1.18.33",
        native: false,
        can: Can {
            mid_turn: MidTurn::Held,
            read_only: ReadOnly::PlanMode,
            usage: Told::TokensAndCost,
            resumes: Resumes::AtOnce,
        },
        driver: |launch| Box::new(acp::Acp::new(&acp::OPENCODE, launch)),
    },
    Agent {
        name: "copilot",
        title: "GitHub Copilot CLI",
        program: "copilot",
        package: "@github/copilot",
        tested: "1.0.102",
        native: false,
        can: Can {
            mid_turn: MidTurn::Held,
            read_only: ReadOnly::PlanMode,
            usage: Told::Tokens,
            resumes: Resumes::AtOnce,
        },
        driver: |launch| Box::new(acp::Acp::new(&acp::COPILOT, launch)),
    },
    // ANCHOR: qwen
    Agent {
        name: "qwen",
        title: "Qwen Code",
        program: "qwen",
        package: "@qwen-code/qwen-code",
        tested: "0.24.4",
        native: false,
        can: Can {
            mid_turn: MidTurn::Held,
            read_only: ReadOnly::PlanMode,
            usage: Told::Nothing,
            resumes: Resumes::AtOnce,
        },
        driver: |launch| Box::new(acp::Acp::new(&acp::QWEN, launch)),
    },
    // ANCHOR_END: qwen
];

/// Any other program that speaks the Agent Client Protocol.
const SPEAKS_ACP: Agent = Agent {
    name: "acp",
    title: "an agent that speaks ACP",
    program: "",
    package: "",
    tested: "",
    native: false,
    can: Can {
        mid_turn: MidTurn::Held,
        read_only: ReadOnly::Asking,
        usage: Told::Tokens,
        resumes: Resumes::AtOnce,
    },
    driver: |launch| Box::new(acp::Acp::new(&acp::GENERIC, launch)),
};

/// A value in our own process. No lead can ask for one by name: it is the builder of the program who has it.
pub(crate) const IN_PROCESS: Agent = Agent {
    name: "in-process",
    title: "a worker",
    program: "",
    package: "",
    tested: "",
    native: false,
    can: Can {
        mid_turn: MidTurn::Held,
        read_only: ReadOnly::Asking,
        usage: Told::Nothing,
        resumes: Resumes::AtOnce,
    },
    driver: |launch| Box::new(in_process::InProcess::new(&launch)),
};

/// An agent, and the program it is.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The agent.
    pub agent: Agent,
    /// Its program.
    pub program: String,
    /// The program's arguments, for [`Launch::arguments`].
    pub arguments: Vec<String>,
}

/// The agent of that name: a row of [`AGENTS`], or `acp:COMMAND` for any program that speaks the Agent
/// Client Protocol, its arguments behind it.
pub fn agent(name: &str) -> Option<Choice> {
    if let Some(command) = name.strip_prefix("acp:") {
        let mut words = command.split_whitespace().map(str::to_owned);
        let program = words.next()?;
        return Some(Choice { agent: SPEAKS_ACP, program, arguments: words.collect() });
    }
    let agent = AGENTS.iter().find(|agent| agent.name == name)?;
    Some(Choice { agent: *agent, program: agent.program.to_owned(), arguments: Vec::new() })
}

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
    /// hold texts that the agent does not tell of. [`Driver::recalled`] tells which. Before
    /// [`Event::Ready`].
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
