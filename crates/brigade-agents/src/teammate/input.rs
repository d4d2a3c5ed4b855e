//! The input of a running member, in addition to its mail: lines and commands of a person.

use std::ffi::OsString;
use std::path::PathBuf;

use tokio::sync::{mpsc, oneshot};

/// Input for a running member, in addition to its mail.
#[derive(Debug)]
#[non_exhaustive]
pub enum MemberInput {
    /// A line for the agent.
    Line(String),
    /// A command, and the channel for its result.
    Command(MemberCommand, oneshot::Sender<CommandResult>),
}

/// A command for a running member.
#[derive(Debug)]
#[non_exhaustive]
pub enum MemberCommand {
    /// End the turn, and keep the session. Commands that the agent was running are ended.
    Interrupt,
    /// Start no further turn. The current turn continues, and mail waits.
    Pause,
    /// Start turns again.
    Unpause,
    /// End the agent's program and start it again.
    Restart {
        /// The first text of a new session. `None` resumes the session.
        fresh: Option<String>,
        /// The model from now on. `None` keeps the model.
        model: Option<String>,
    },
    /// End the agent's program after its turn, so that a person can continue the session in the agent's own interface. The
    /// member starts the program again when the receiver reports, or when its sender is dropped.
    HandOver(oneshot::Receiver<()>),
}

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandResult {
    /// The command has taken effect.
    Done,
    /// The turn has ended. This many processes that the agent had started were ended, too.
    Interrupted {
        /// The number of processes.
        ended: usize,
    },
    /// The member is not in a turn.
    NotInTurn,
    /// The agent's program has ended, and its session can be continued with this command.
    HandedOver(InteractiveCommand),
    /// The command cannot be carried out, for this reason.
    Failed(String),
}

/// The command that continues an agent's session in the agent's own interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InteractiveCommand {
    /// The program.
    pub program: OsString,
    /// The program's arguments.
    pub args: Vec<OsString>,
    /// All environment variables of the program, except those that describe the terminal.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The id of the session.
    pub session: String,
    /// The display name of the agent.
    pub title: String,
}

/// Waits for the next input. Never returns once the channel is closed.
pub(super) async fn next_input(
    inputs: &mut Option<mpsc::UnboundedReceiver<MemberInput>>,
) -> MemberInput {
    if let Some(channel) = inputs {
        if let Some(input) = channel.recv().await {
            return input;
        }
        *inputs = None;
    }
    std::future::pending().await
}
