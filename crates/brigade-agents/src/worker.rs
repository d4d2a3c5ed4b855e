//! Runs a Rust value as a member of a team, in our own process.
//!
//! A [`Worker`] takes the place of an agent's program: it gets its mail as turns, it can ask its lead for
//! permission, it can be asked to shut down, and it is replaced when it panics. It acts on the team through
//! the seat in its [`WorkerContext`], with the same functions as all other members.
//!
//! A new worker does not inherit its predecessor's state. If the predecessor did not finish a turn, the messages
//! of that turn are sent to the new worker again.
//!
//! ```
//! use brigade_core::handshake::{self, Answer};
//! use brigade_core::mail;
//! use brigade_core::roster::{self, MemberPlan};
//! use brigade_agents::teammate::{self, TeammateConfig};
//! use brigade_core::wire::backend;
//! use brigade_agents::worker::{WorkerContext, Worker, Workers};
//! # use brigade_core::roster::TeamPlan;
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//!
//! struct Echo;
//!
//! impl Worker for Echo {
//!     async fn turn(&mut self, context: &WorkerContext, text: &str) -> Result<String, String> {
//!         // If a member is asked to shut down, it answers yes or no. After a yes, it leaves the team.
//!         for request in handshake::open(&context.seat).await.map_err(|error| error.to_string())? {
//!             let answer = handshake::answer_shutdown(&context.seat, &request.id, Answer::Yes);
//!             answer.await.map_err(|error| error.to_string())?;
//!         }
//!         Ok(format!("{} lines", text.lines().count()))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let store = std::sync::Arc::new(MemoryStore::default());
//! # let lead = Seat::new(store, "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! let echo = lead.for_member("echo".parse()?);
//! roster::join(&lead, &echo.name, MemberPlan::new("echo", "/").with_backend_type(backend::IN_PROCESS)).await?;
//! let at_work = tokio::spawn(teammate::run(TeammateConfig::in_process(echo, Workers::new(|| Echo))));
//!
//! mail::send(&lead, "echo", "hello").await?;
//! handshake::request_shutdown(&lead, "echo", None).await?;
//! at_work.await??;
//! # Ok(())
//! # }
//! ```

mod running_worker;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::running_worker::RunningWorker;
use crate::driver::PermissionAnswer;
use crate::driver::in_process::WorkerOutput;
use brigade_core::seat::Seat;

/// A value that performs a member's turns.
pub trait Worker: Send + 'static {
    /// Performs one turn. `text` is the mail in the form in which a model would read it. Returns the final text,
    /// or the reason why the turn failed. In both cases, the lead receives the returned text. If this method
    /// panics, the worker is dropped, and a new worker gets the messages of this turn again.
    ///
    /// The returned future may be dropped at any await point: when the member leaves the team, when the turn
    /// is interrupted, or when the program that runs the member ends.
    fn turn(
        &mut self,
        context: &WorkerContext,
        text: &str,
    ) -> impl Future<Output = Result<String, String>> + Send;
}

/// An object-safe version of [`Worker`].
#[async_trait]
trait AnyWorker: Send {
    async fn any_turn(&mut self, context: &WorkerContext, text: &str) -> Result<String, String>;
}

#[async_trait]
impl<W: Worker> AnyWorker for W {
    async fn any_turn(&mut self, context: &WorkerContext, text: &str) -> Result<String, String> {
        self.turn(context, text).await
    }
}

/// A factory for workers. It creates a new worker each time the member is started or restarted.
#[derive(Clone)]
pub struct Workers(Arc<dyn Fn() -> Box<dyn AnyWorker> + Send + Sync>);

impl Workers {
    /// Returns a factory that creates each worker with `make`. A panic in `make` counts as a panic of the worker.
    pub fn new<W: Worker>(make: impl Fn() -> W + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || Box::new(make())))
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workers")
    }
}

/// The context of a worker's turn: the worker's seat, and the worker's connection to the lead.
#[derive(Debug)]
pub struct WorkerContext {
    /// The worker's seat on the team.
    pub seat: Seat,
    output: mpsc::UnboundedSender<Vec<u8>>,
    asks: Mutex<PendingAsks>,
}

/// The worker's permission requests that wait for an answer, by number.
#[derive(Debug, Default)]
struct PendingAsks {
    last: u64,
    open: HashMap<u64, oneshot::Sender<PermissionAnswer>>,
}

impl WorkerContext {
    fn new(seat: Seat, output: mpsc::UnboundedSender<Vec<u8>>) -> Self {
        Self { seat, output, asks: Mutex::default() }
    }

    /// Asks the lead for permission to use a tool, and waits for the answer without a time limit.
    /// Dropping the future withdraws the request.
    pub async fn ask_permission(
        &self,
        tool: &str,
        description: &str,
        input: &Value,
    ) -> PermissionAnswer {
        let (answer, verdict) = oneshot::channel();
        let ask = {
            let mut asks = self.asks();
            asks.last += 1;
            let ask = asks.last;
            asks.open.insert(ask, answer);
            ask
        };
        let _withdraw = WithdrawOnDrop { context: self, ask };
        self.send(&WorkerOutput::Asks {
            ask,
            tool: tool.to_owned(),
            description: description.to_owned(),
            input: input.clone(),
        });
        let verdict = verdict.await;
        verdict.unwrap_or_else(|_| {
            PermissionAnswer::Deny("the request can no longer be answered".to_owned())
        })
    }

    /// Passes the lead's answer to the turn that waits for it.
    fn answered(&self, ask: u64, verdict: PermissionAnswer) {
        if let Some(answer) = self.asks().open.remove(&ask) {
            let _no_longer_waiting = answer.send(verdict);
        }
    }

    fn send(&self, output: &WorkerOutput) {
        // Serializing plain data cannot fail.
        let mut line = serde_json::to_vec(output).unwrap_or_default();
        line.push(b'\n');
        // If the receiver is gone, the worker is being stopped and its output is not needed.
        let _receiver_gone = self.output.send(line);
    }

    fn asks(&self) -> MutexGuard<'_, PendingAsks> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Withdraws a permission request if the future that waits for the answer is dropped.
struct WithdrawOnDrop<'d> {
    context: &'d WorkerContext,
    ask: u64,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        let open = self.context.asks().open.remove(&self.ask);
        if open.is_some() {
            self.context.send(&WorkerOutput::AsksNoLonger { ask: self.ask });
        }
    }
}
