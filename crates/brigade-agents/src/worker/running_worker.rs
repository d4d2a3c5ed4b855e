//! Runs a worker in a task, with an input and an output like a program's.

use std::any::Any;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{WorkerContext, Workers};
use crate::driver::PermissionAnswer;
use crate::driver::in_process::{WorkerInput, WorkerOutput};
use brigade_core::seat::Seat;

/// How long a worker that is being stopped may take to finish its turn.
const GRACE: Duration = Duration::from_millis(500);

/// A worker and the task that runs it.
#[derive(Debug)]
pub(crate) struct RunningWorker {
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    output: mpsc::UnboundedReceiver<Vec<u8>>,
    /// Output that the worker wrote and the driver has not read yet.
    unread: Vec<u8>,
    /// `None` once the task has ended.
    task: Option<JoinHandle<()>>,
    last_output: String,
}

impl RunningWorker {
    pub(crate) fn start(workers: &Workers, seat: &Seat) -> Self {
        let (input, lines) = mpsc::unbounded_channel();
        let (sender, output) = mpsc::unbounded_channel();
        let task =
            tokio::spawn(run(workers.clone(), WorkerContext::new(seat.clone(), sender), lines));
        let (input, task) = (Some(input), Some(task));
        Self { input, output, unread: Vec::new(), task, last_output: String::new() }
    }

    /// Sends a line to the worker. Does nothing if the worker has ended.
    pub(crate) fn write(&self, line: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ended = input.send(line);
        }
    }

    /// Reads the worker's output. Returns 0 once the worker has ended.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> usize {
        if self.unread.is_empty() {
            match self.output.recv().await {
                Some(line) => self.unread = line,
                None => self.wait().await,
            }
        }
        let count = self.unread.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(self.unread.drain(..count)) {
            *to = from;
        }
        count
    }

    /// Returns the panic message, or an empty string if the worker did not panic.
    pub(crate) fn last_output(&self) -> String {
        self.last_output.clone()
    }

    /// Stops the worker, and aborts its turn if the turn takes longer than [`GRACE`].
    pub(crate) async fn end(mut self) {
        drop(self.input.take());
        if tokio::time::timeout(GRACE, self.wait()).await.is_err() {
            self.abort();
            self.wait().await;
        }
    }

    async fn wait(&mut self) {
        let Some(task) = &mut self.task else { return };
        let ended = task.await;
        self.task = None;
        if let Err(error) = ended
            && let Ok(panic) = error.try_into_panic()
        {
            self.last_output = format!("it panicked: {}", panic_message(panic.as_ref()));
        }
    }

    fn abort(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        self.abort();
    }
}

/// Extracts the message from a panic's payload.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no panic message")
}

async fn run(
    workers: Workers,
    context: WorkerContext,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    // The worker is created inside this task, so that a panic in its constructor counts as the worker's panic.
    let mut worker = (workers.0)();
    context.send(&WorkerOutput::Ready { session: Uuid::new_v4().to_string() });
    while let Some(line) = lines.recv().await {
        let Ok(WorkerInput::Turn { note, text }) = serde_json::from_slice(&line) else { continue };
        context.send(&WorkerOutput::Began { note });
        let mut turn = worker.any_turn(&context, &text);
        let mut input_open = true;
        let end = loop {
            tokio::select! {
                end = &mut turn => break match end {
                    Ok(text) => WorkerOutput::Done { text },
                    Err(why) => WorkerOutput::Failed { why },
                },
                line = lines.recv(), if input_open => {
                    let input = line.map(|line| serde_json::from_slice(&line));
                    match input {
                        Some(Ok(WorkerInput::Answer { ask, no })) => {
                            context.answered(ask, no.map_or(PermissionAnswer::Allow, PermissionAnswer::Deny));
                        }
                        Some(Ok(WorkerInput::Interrupt {})) => break WorkerOutput::Interrupted {},
                        // Ignore invalid input. Also ignore a second turn, because only one turn runs at a time.
                        Some(Ok(WorkerInput::Turn { .. }) | Err(_)) => {}
                        None => input_open = false,
                    }
                }
            }
        };
        drop(turn);
        context.send(&end);
    }
}
