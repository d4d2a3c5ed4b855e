//! A member to be: its seat, its agent, who plays it.

use std::path::PathBuf;

use super::life::Player;
use crate::brief::{self, Mail};
use crate::driver::{Agent, Choice, IN_PROCESS, Launch, ToolServer};
use crate::program::Brigade;
use crate::worker::Workers;
use brigade_core::authority::Role;
use brigade_core::pulse::Process;
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;

/// A member to be.
#[derive(Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Its seat.
    pub seat: Seat,
    /// Its agent.
    pub agent: Agent,
    /// Who plays it.
    pub player: Player,
    /// What the conversation begins with.
    pub launch: Launch,
    /// The process that plays it, for those who ask.
    pub process: Process,
    /// The host that process is on.
    pub host: String,
}

impl Plan {
    /// A member that is played by this agent in this folder, guarded and given its tools by `brigade`. It is
    /// told who it is on the team, and asks its lead for what its own rules do not allow; both can be changed
    /// in [`Plan::launch`].
    pub async fn agent(
        seat: Seat,
        choice: Choice,
        brigade: &Brigade,
        cwd: impl Into<PathBuf>,
    ) -> Result<Self, StoreError> {
        let cwd = cwd.into();
        let mut launch = Launch::new(cwd.to_string_lossy(), brigade.tools(&seat));
        launch.instructions = match seat.role().await? {
            Some(Role::Lead) => brief::leading(&seat, Mail::Delivered).await?,
            _ => brief::joining(&seat, Mail::Delivered).await?,
        };
        launch.arguments = choice.arguments;
        launch.claude_dir = brigade.claude_dir().map(str::to_owned);
        let player = Player::Program(brigade.start(&choice.program, cwd));
        Ok(Self::new(seat, choice.agent, player, launch))
    }

    /// A member that is played by values in this process.
    pub fn in_process(seat: Seat, workers: Workers) -> Self {
        let launch = Launch::new("", ToolServer::default());
        Self::new(seat, IN_PROCESS, Player::Workers(workers), launch)
    }

    /// A member of all its parts, played by this process.
    pub fn new(seat: Seat, agent: Agent, player: Player, launch: Launch) -> Self {
        let process = Process { pid: std::process::id(), began: String::new() };
        Self { seat, agent, player, launch, process, host: String::new() }
    }
}
