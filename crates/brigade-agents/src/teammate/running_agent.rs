//! A common interface for the program or worker that runs a member.

use std::io;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::program::{ProgramCommand, RunningProgram};
use crate::worker::{self, Workers};

/// The program or worker that runs a member.
#[derive(Clone, Debug)]
pub enum AgentRunner {
    /// An agent's program. The driver supplies the program's arguments.
    Program(ProgramCommand),
    /// Workers in the current process.
    Workers(Workers),
}

/// A running program or worker.
#[derive(Debug)]
pub(super) enum RunningAgent {
    Program(Box<RunningProgram>),
    Worker(worker::RunningWorker),
}

impl RunningAgent {
    /// Queues input for the program or worker.
    pub(super) fn write(&self, bytes: Vec<u8>) {
        match self {
            Self::Program(program) => program.write(bytes),
            Self::Worker(worker) => worker.write(bytes),
        }
    }

    /// Reads output of the program or worker. Returns 0 at the end of the output.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Program(program) => program.read(buffer).await,
            Self::Worker(worker) => Ok(worker.read(buffer).await),
        }
    }

    /// Returns an error message for the end of the output.
    pub(super) fn end_message(&self) -> &'static str {
        match self {
            Self::Program(_) => "the program exited",
            Self::Worker(_) => "the worker ended",
        }
    }

    /// Returns the last lines of the program's standard error, or the worker's panic message.
    pub(super) async fn last_output(&mut self) -> String {
        match self {
            Self::Program(program) => program.last_output().await,
            Self::Worker(worker) => worker.last_output(),
        }
    }

    /// Ends the processes that the program started during the last `age`. Returns the task that does so, whose result is the number of
    /// processes.
    pub(super) fn end_commands(&self, age: Duration) -> Option<JoinHandle<usize>> {
        match self {
            Self::Program(program) => program.end_commands(age),
            Self::Worker(_) => None,
        }
    }

    /// Ends the worker, or the program and all processes that the program started. Returns the exit code of a
    /// program that exited by itself.
    pub(super) async fn end(self) -> io::Result<Option<i32>> {
        match self {
            Self::Program(program) => program.end().await,
            Self::Worker(worker) => {
                worker.end().await;
                Ok(None)
            }
        }
    }
}
