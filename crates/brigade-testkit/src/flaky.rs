//! A store that fails on demand: before it did the thing, or after.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::store::{
    Actor, Document, Mail, Mark, Outgoing, Question, Receipt, Revision, Shelf, Store, StoreError,
    Watch, Written,
};
use brigade_wire::name::{MemberName, TaskId, TeamName};

/// A store that fails on demand, around another.
#[derive(Debug)]
pub struct Flaky {
    inner: Arc<dyn Store>,
    /// Nothing gets through.
    cut: AtomicBool,
    /// Nothing gets through, and no answer comes.
    hung: AtomicBool,
    /// What members did is never written down, and no answer comes.
    work_hung: AtomicBool,
    /// Chance of failing, of 1000, and the state of what chooses.
    rate: AtomicU64,
    seed: AtomicU64,
    /// How often the whole past of a mailbox was read.
    pasts: AtomicU64,
}

/// What becomes of one call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    FailsBefore,
    FailsAfter,
}

impl Flaky {
    /// A store that works until it is told to fail.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        let off = || AtomicBool::new(false);
        let zero = || AtomicU64::new(0);
        let [cut, hung, work_hung] = [off(), off(), off()];
        Self { inner, cut, hung, work_hung, rate: zero(), seed: zero(), pasts: zero() }
    }

    /// Every call fails at once, or no longer.
    pub fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }

    /// No call returns, or all return again.
    pub fn hang(&self, hung: bool) {
        self.hung.store(hung, Ordering::Relaxed);
    }

    /// From now on what members do is never written down.
    pub fn hang_work(&self) {
        self.work_hung.store(true, Ordering::Relaxed);
    }

    /// How often the whole past of a mailbox was read.
    pub fn pasts(&self) -> u64 {
        self.pasts.load(Ordering::Relaxed)
    }

    /// From now on so many of a thousand calls fail, half of them after having done the thing.
    pub fn fail(&self, rate: u64, seed: u64) {
        self.rate.store(rate, Ordering::Relaxed);
        self.seed.store(seed | 1, Ordering::Relaxed);
    }

    async fn fate(&self) -> Fate {
        // Every call is a place at which whoever made it may be dropped.
        tokio::task::yield_now().await;
        if self.hung.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        if self.cut.load(Ordering::Relaxed) {
            return Fate::FailsBefore;
        }
        let rate = self.rate.load(Ordering::Relaxed);
        if rate == 0 {
            return Fate::Done;
        }
        let mut seed = self.seed.load(Ordering::Relaxed);
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        self.seed.store(seed, Ordering::Relaxed);
        match seed % 2000 {
            n if n < rate => Fate::FailsBefore,
            n if n < rate * 2 => Fate::FailsAfter,
            _ => Fate::Done,
        }
    }
}

fn failure() -> StoreError {
    StoreError::Engine { doing: "reach it".into(), source: "the test says no".into() }
}

/// One call, with its fate.
macro_rules! call {
    ($self:ident, $call:expr) => {{
        let fate = $self.fate().await;
        if fate == Fate::FailsBefore {
            return Err(failure());
        }
        let done = $call.await;
        tokio::task::yield_now().await;
        if fate == Fate::FailsAfter { Err(failure()) } else { done }
    }};
}

#[async_trait]
impl Store for Flaky {
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        call!(self, self.inner.teams())
    }

    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError> {
        call!(self, self.inner.team(team))
    }

    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written {
        call!(self, self.inner.create_team(team, config, by))
    }

    async fn revive_team(
        &self,
        team: &TeamName,
        config: &[u8],
        tasks: &[(TaskId, Vec<u8>)],
        by: &Actor,
    ) -> Written {
        call!(self, self.inner.revive_team(team, config, tasks, by))
    }

    async fn replace_team(
        &self,
        team: &TeamName,
        config: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        call!(self, self.inner.replace_team(team, config, at, by))
    }

    async fn is_ours(&self, team: &TeamName) -> Result<bool, StoreError> {
        call!(self, self.inner.is_ours(team))
    }

    async fn undo_window(&self, team: &TeamName) -> Result<Duration, StoreError> {
        call!(self, self.inner.undo_window(team))
    }

    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        call!(self, self.inner.delete_team(team, by))
    }

    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError> {
        // An engine knows an id for two minutes only: the test is as if they were over.
        let again = self.inner.mailbox_history(team, to).await?;
        let again = again.iter().any(|record| record.event.message() == Some(message.key()));
        assert!(!again, "{} was sent to {to} twice", message.msg_id);
        call!(self, self.inner.send(team, to, message))
    }

    async fn inbox(&self, team: &TeamName, of: &MemberName) -> Result<Vec<Mail>, StoreError> {
        call!(self, self.inner.inbox(team, of))
    }

    async fn mark(
        &self,
        team: &TeamName,
        of: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError> {
        call!(self, self.inner.mark(team, of, keys, mark))
    }

    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError> {
        call!(self, self.inner.tasks(team))
    }

    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError> {
        call!(self, self.inner.task(team, id))
    }

    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError> {
        call!(self, self.inner.create_task(team, task, by))
    }

    async fn replace_task(
        &self,
        team: &TeamName,
        id: TaskId,
        task: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        call!(self, self.inner.replace_task(team, id, task, at, by))
    }

    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError> {
        call!(self, self.inner.delete_task(team, id, by))
    }

    async fn decide(
        &self,
        team: &TeamName,
        question: &Question,
        answer: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        call!(self, self.inner.decide(team, question, answer))
    }

    async fn decided(
        &self,
        team: &TeamName,
        question: &Question,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        call!(self, self.inner.decided(team, question))
    }

    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError> {
        if self.work_hung.load(Ordering::Relaxed) && matches!(event, Event::Worked { .. }) {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        call!(self, self.inner.record(team, event, by))
    }

    async fn keep(
        &self,
        team: &TeamName,
        of: &MemberName,
        shelf: Shelf,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        call!(self, self.inner.keep(team, of, shelf, note))
    }

    async fn kept(
        &self,
        team: &TeamName,
        of: &MemberName,
        shelf: Shelf,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        call!(self, self.inner.kept(team, of, shelf))
    }

    async fn mailbox_history(
        &self,
        team: &TeamName,
        of: &MemberName,
    ) -> Result<Vec<Record>, StoreError> {
        self.pasts.fetch_add(1, Ordering::Relaxed);
        call!(self, self.inner.mailbox_history(team, of))
    }

    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        call!(self, self.inner.history(team))
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        call!(self, self.inner.watch(team))
    }
}
