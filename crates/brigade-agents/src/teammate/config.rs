//! The settings with which a member is run.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::running_agent::AgentRunner;
use crate::driver::{Agent, AgentChoice, IN_PROCESS, LaunchOptions, ToolServer};
use crate::instructions::{self, MailDelivery};
use crate::program::BrigadeProgram;
use crate::worker::Workers;
use brigade_core::authority::Role;
use brigade_core::pulse::Process;
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;

/// Checks whether another program has the agent's session open, for example because a person continues the session in a
/// terminal. The member starts its agent only when that program has ended.
#[derive(Clone)]
pub struct SessionUse(Arc<dyn Fn() -> bool + Send + Sync>);

impl SessionUse {
    /// Uses this function to check.
    pub fn new(is_used: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_used))
    }

    pub(super) fn is_used(&self) -> bool {
        (self.0)()
    }
}

impl Default for SessionUse {
    /// No other program uses the session.
    fn default() -> Self {
        Self::new(|| false)
    }
}

impl fmt::Debug for SessionUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionUse").finish_non_exhaustive()
    }
}

/// The settings with which a member is run.
#[derive(Debug)]
#[non_exhaustive]
pub struct TeammateConfig {
    /// The member's seat.
    pub seat: Seat,
    /// The agent that runs the member.
    pub agent: Agent,
    /// The agent's program, or the workers that take its place.
    pub runner: AgentRunner,
    /// The settings of the conversation with the agent.
    pub launch: LaunchOptions,
    /// The process that runs the member, published in the member's pulse.
    pub process: Process,
    /// The host on which `process` runs.
    pub host: String,
    /// Whether a person has paused the member, so that it starts no turn.
    pub paused: bool,
    /// Whether another program has the agent's session open.
    pub session_use: SessionUse,
}

impl TeammateConfig {
    /// Returns the settings for a member that is run by this agent in the folder `cwd`. `brigade` guards the
    /// agent's program and serves the team's tools. By default, the instructions describe the agent's role on
    /// the team, and the agent asks its lead for permission where its own rules require that. Both can be
    /// changed in [`TeammateConfig::launch`].
    pub async fn agent(
        seat: Seat,
        choice: AgentChoice,
        brigade: &BrigadeProgram,
        cwd: impl Into<PathBuf>,
    ) -> Result<Self, StoreError> {
        let cwd = cwd.into();
        let mut launch = LaunchOptions::new(cwd.to_string_lossy(), brigade.tools(&seat));
        launch.instructions = match seat.role().await? {
            Some(Role::Lead) => {
                instructions::lead_instructions(&seat, MailDelivery::Delivered).await?
            }
            _ => instructions::teammate_instructions(&seat, MailDelivery::Delivered).await?,
        };
        launch.arguments = choice.arguments;
        launch.claude_dir = brigade.claude_dir().map(str::to_owned);
        let runner = AgentRunner::Program(brigade.start(&choice.program, cwd));
        Ok(Self::new(seat, choice.agent, runner, launch))
    }

    /// Returns the settings for a member that is run by workers in the current process.
    pub fn in_process(seat: Seat, workers: Workers) -> Self {
        let launch = LaunchOptions::new("", ToolServer::default());
        Self::new(seat, IN_PROCESS, AgentRunner::Workers(workers), launch)
    }

    /// Returns these settings, with the current process as `process`.
    pub fn new(seat: Seat, agent: Agent, runner: AgentRunner, launch: LaunchOptions) -> Self {
        let process = Process { pid: std::process::id(), began: String::new() };
        let session_use = SessionUse::default();
        Self {
            seat,
            agent,
            runner,
            launch,
            process,
            host: String::new(),
            paused: false,
            session_use,
        }
    }
}
