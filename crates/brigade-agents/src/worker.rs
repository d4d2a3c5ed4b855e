//! A Rust value as a member of a team, in our own process.
//!
//! A [`Worker`] is to a team what an agent's program is: its mail becomes turns, it asks its lead for
//! leave, it is asked to stop, and when it dies another takes its place. What it does to the team it
//! does from the seat at its [`Desk`], by the same functions that everybody calls.
//!
//! A worker remembers nothing beyond its own life. What it was given in a turn that it did not end is
//! given again to the one that comes after it.
//!
//! ```
//! use brigade_core::handshake::{self, Answer};
//! use brigade_core::mail;
//! use brigade_core::roster::{self, MemberPlan};
//! use brigade_agents::teammate::{self, Plan};
//! use brigade_agents::worker::{BACKEND, Desk, Worker, Workers};
//! # use brigade_core::roster::TeamPlan;
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//!
//! struct Echo;
//!
//! impl Worker for Echo {
//!     async fn turn(&mut self, desk: &Desk, text: &str) -> Result<String, String> {
//!         // Whoever is asked to stop says yes or no, and leaves if it is yes.
//!         for request in handshake::open(&desk.seat).await.map_err(|error| error.to_string())? {
//!             let answer = handshake::answer_shutdown(&desk.seat, &request.id, Answer::Yes);
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
//! let echo = lead.of("echo".parse()?);
//! roster::join(&lead, &echo.name, MemberPlan::new("echo", "/").in_backend(BACKEND)).await?;
//! let at_work = tokio::spawn(teammate::run(Plan::in_process(echo, Workers::new(|| Echo))));
//!
//! mail::send(&lead, "echo", "hello").await?;
//! handshake::request_shutdown(&lead, "echo", None).await?;
//! at_work.await??;
//! # Ok(())
//! # }
//! ```

mod life;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::life::Life;
use crate::driver::Verdict;
use crate::driver::in_process::Tells;
use brigade_core::seat::Seat;

/// The wire's word for members that run in somebody's own process.
pub const BACKEND: &str = "in-process";

/// A value that does a member's turns.
pub trait Worker: Send + 'static {
    /// Does one turn: `text` is what there is to read, in the form in which a model would read it. Gives
    /// back its last words, or why the turn failed; the lead hears of either. If it panics, that is the
    /// end of this value: a new one is made, and is given again what this one had.
    ///
    /// Between two of its awaits a turn may be ended from outside: when the member has left the team, or
    /// the program that runs it ends.
    fn turn(
        &mut self,
        desk: &Desk,
        text: &str,
    ) -> impl Future<Output = Result<String, String>> + Send;
}

/// The same behind a pointer.
#[async_trait]
trait AnyWorker: Send {
    async fn any_turn(&mut self, desk: &Desk, text: &str) -> Result<String, String>;
}

#[async_trait]
impl<W: Worker> AnyWorker for W {
    async fn any_turn(&mut self, desk: &Desk, text: &str) -> Result<String, String> {
        self.turn(desk, text).await
    }
}

/// Where workers come from: one for each life of the member.
#[derive(Clone)]
pub struct Workers(Arc<dyn Fn() -> Box<dyn AnyWorker> + Send + Sync>);

impl Workers {
    /// Each is made by `make`. If that panics, it is as if the worker did.
    pub fn new<W: Worker>(make: impl Fn() -> W + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || Box::new(make())))
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workers")
    }
}

/// Where a worker sits.
#[derive(Debug)]
pub struct Desk {
    /// Its seat in the team.
    pub seat: Seat,
    tells: mpsc::UnboundedSender<Vec<u8>>,
    asks: Mutex<Asks>,
}

/// Questions that wait for their answer.
#[derive(Debug, Default)]
struct Asks {
    last: u64,
    open: HashMap<u64, oneshot::Sender<Verdict>>,
}

impl Desk {
    fn new(seat: Seat, tells: mpsc::UnboundedSender<Vec<u8>>) -> Self {
        Self { seat, tells, asks: Mutex::default() }
    }

    /// Asks the lead for leave to use a tool, and waits for the answer, however long. Whoever no longer
    /// waits for it no longer asks.
    pub async fn may(&self, tool: &str, description: &str, input: &Value) -> Verdict {
        let (answer, verdict) = oneshot::channel();
        let ask = {
            let mut asks = self.asks();
            asks.last += 1;
            let ask = asks.last;
            asks.open.insert(ask, answer);
            ask
        };
        let _waits = Waits { desk: self, ask };
        self.tell(&Tells::Asks {
            ask,
            tool: tool.to_owned(),
            description: description.to_owned(),
            input: input.clone(),
        });
        let verdict = verdict.await;
        verdict.unwrap_or_else(|_| Verdict::Deny("nobody can be asked any more".to_owned()))
    }

    /// The lead has answered.
    fn answered(&self, ask: u64, verdict: Verdict) {
        if let Some(answer) = self.asks().open.remove(&ask) {
            let _waits_no_longer = answer.send(verdict);
        }
    }

    fn tell(&self, tells: &Tells) {
        // Plain data; this cannot fail.
        let mut line = serde_json::to_vec(tells).unwrap_or_default();
        line.push(b'\n');
        // If nobody hears it, its life is about to be ended.
        let _heard = self.tells.send(line);
    }

    fn asks(&self) -> MutexGuard<'_, Asks> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls the question off when nobody waits for its answer any more.
struct Waits<'d> {
    desk: &'d Desk,
    ask: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let open = self.desk.asks().open.remove(&self.ask);
        if open.is_some() {
            self.desk.tell(&Tells::AsksNoLonger { ask: self.ask });
        }
    }
}
