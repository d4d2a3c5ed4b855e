//! One life of a worker: a task that is fed and heard as a program is.

use std::any::Any;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{Desk, Workers};
use crate::driver::Verdict;
use crate::driver::in_process::{Tells, Told};
use brigade_core::seat::Seat;

/// How long a worker has to end its turn when it is no longer wanted.
const GRACE: Duration = Duration::from_millis(500);

/// A worker that was made, and is at work.
#[derive(Debug)]
pub(crate) struct Life {
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    output: mpsc::UnboundedReceiver<Vec<u8>>,
    /// What it told and nobody has read yet.
    told: Vec<u8>,
    /// None once it was waited for.
    task: Option<JoinHandle<()>>,
    last_words: String,
}

impl Life {
    pub(crate) fn start(workers: &Workers, seat: &Seat) -> Self {
        let (input, lines) = mpsc::unbounded_channel();
        let (tells, output) = mpsc::unbounded_channel();
        let task = tokio::spawn(live(workers.clone(), Desk::new(seat.clone(), tells), lines));
        let (input, task) = (Some(input), Some(task));
        Self { input, output, told: Vec::new(), task, last_words: String::new() }
    }

    /// Tells it something. If it has ended, nobody hears it.
    pub(crate) fn write(&self, line: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ended = input.send(line);
        }
    }

    /// What it told; nothing once it has ended.
    pub(crate) async fn read(&mut self, room: &mut [u8]) -> usize {
        if self.told.is_empty() {
            match self.output.recv().await {
                Some(line) => self.told = line,
                None => self.wait().await,
            }
        }
        let count = self.told.len().min(room.len());
        for (to, from) in room.iter_mut().zip(self.told.drain(..count)) {
            *to = from;
        }
        count
    }

    /// Why it ended, if it did not mean to.
    pub(crate) fn last_words(&self) -> String {
        self.last_words.clone()
    }

    /// Ends it.
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
            self.last_words = format!("it panicked: {}", words(panic.as_ref()));
        }
    }

    fn abort(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.abort();
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    let word = panic.downcast_ref::<&str>().copied();
    word.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

async fn live(workers: Workers, desk: Desk, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    // Made here, so that a panic in the making is one of the worker's.
    let mut worker = (workers.0)();
    desk.tell(&Tells::Ready { session: Uuid::new_v4().to_string() });
    while let Some(line) = lines.recv().await {
        let Ok(Told::Turn { note, text }) = serde_json::from_slice(&line) else { continue };
        desk.tell(&Tells::Began { note });
        let mut turn = worker.any_turn(&desk, &text);
        let mut wanted = true;
        let end = loop {
            tokio::select! {
                end = &mut turn => break match end {
                    Ok(words) => Tells::Done { words },
                    Err(why) => Tells::Failed { why },
                },
                line = lines.recv(), if wanted => {
                    let told = line.map(|line| serde_json::from_slice(&line));
                    match told {
                        Some(Ok(Told::Answer { ask, no })) => {
                            desk.answered(ask, no.map_or(Verdict::Allow, Verdict::Deny));
                        }
                        Some(Ok(Told::Interrupt {})) => break Tells::Interrupted {},
                        // One turn at a time is all that is ever begun.
                        Some(Ok(Told::Turn { .. }) | Err(_)) => {}
                        None => wanted = false,
                    }
                }
            }
        };
        drop(turn);
        desk.tell(&end);
    }
}
