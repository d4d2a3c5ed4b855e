//! How to run a member: its seat, its agent, and what runs it.

use std::path::PathBuf;

use super::running_agent::AgentRunner;
use crate::driver::{Agent, AgentChoice, IN_PROCESS, LaunchOptions, ToolServer};
use crate::instructions::{self, MailDelivery};
use crate::program::BrigadeProgram;
use crate::worker::Workers;
use brigade_core::authority::Role;
use brigade_core::pulse::Process;
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;

/// How to run a member.
#[derive(Debug)]
#[non_exhaustive]
pub struct TeammateConfig {
    /// The member's seat.
    pub seat: Seat,
    /// The agent that runs it.
    pub agent: Agent,
    /// The program or worker that runs it.
    pub runner: AgentRunner,
    /// The settings of the conversation.
    pub launch: LaunchOptions,
    /// The process that runs it, published in its pulse.
    pub process: Process,
    /// The host of that process.
    pub host: String,
}

impl TeammateConfig {
    /// A member run by this agent in this folder. `brigade` guards the agent's program and serves its
    /// team tools. The agent's instructions describe its role on the team, and it asks its lead for
    /// permission where its own rules require that; both can be changed in [`TeammateConfig::launch`].
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
        let player = AgentRunner::Program(brigade.start(&choice.program, cwd));
        Ok(Self::new(seat, choice.agent, player, launch))
    }

    /// A member run by workers in this process.
    pub fn in_process(seat: Seat, workers: Workers) -> Self {
        let launch = LaunchOptions::new("", ToolServer::default());
        Self::new(seat, IN_PROCESS, AgentRunner::Workers(workers), launch)
    }

    /// A member with these parts, run by the current process.
    pub fn new(seat: Seat, agent: Agent, player: AgentRunner, launch: LaunchOptions) -> Self {
        let process = Process { pid: std::process::id(), began: String::new() };
        Self { seat, agent, runner: player, launch, process, host: String::new() }
    }
}
