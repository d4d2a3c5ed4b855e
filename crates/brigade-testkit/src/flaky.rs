//! A store that fails on demand, before or after an operation has taken effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::store::{
    Actor, BoardSize, BoardStore, Document, EventLog, Mail, MailStore, Mark, NoteKind, Notes,
    Outgoing, Question, Receipt, Revision, Store, StoreError, TeamStore, Watch, Written,
};
use brigade_wire::name::{MemberName, TaskId, TeamName};

/// A wrapper that makes another store fail on demand.
#[derive(Debug)]
pub struct FlakyStore {
    inner: Arc<dyn Store>,
    /// Whether all calls fail.
    cut: AtomicBool,
    /// Whether all calls hang.
    hung: AtomicBool,
    /// If true, every call that records a work event hangs.
    work_hung: AtomicBool,
    /// How many of 1000 calls fail, and the state of the random generator.
    rate: AtomicU64,
    seed: AtomicU64,
    /// How often a caller has read the whole history of a mailbox.
    history_reads: AtomicU64,
}

/// The outcome of one call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOutcome {
    Succeeds,
    FailsBefore,
    FailsAfter,
}

impl FlakyStore {
    /// Wraps a store. All calls work until a test makes them fail.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        let off = || AtomicBool::new(false);
        let zero = || AtomicU64::new(0);
        let [cut, hung, work_hung] = [off(), off(), off()];
        Self { inner, cut, hung, work_hung, rate: zero(), seed: zero(), history_reads: zero() }
    }

    /// Sets whether every call fails immediately.
    pub fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }

    /// Sets whether every new call hangs. Calls that already hang continue to hang.
    pub fn hang(&self, hung: bool) {
        self.hung.store(hung, Ordering::Relaxed);
    }

    /// Makes all further calls that record work events hang.
    pub fn hang_work(&self) {
        self.work_hung.store(true, Ordering::Relaxed);
    }

    /// Returns how often a caller has read the whole history of a mailbox.
    pub fn history_reads(&self) -> u64 {
        self.history_reads.load(Ordering::Relaxed)
    }

    /// From now on, `rate` of every 1000 calls fail. Half of the failing calls take effect first.
    pub fn fail(&self, rate: u64, seed: u64) {
        self.rate.store(rate, Ordering::Relaxed);
        self.seed.store(seed | 1, Ordering::Relaxed);
    }

    async fn outcome(&self) -> CallOutcome {
        // Yield, so that a test can cancel the caller during any call.
        tokio::task::yield_now().await;
        if self.hung.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        if self.cut.load(Ordering::Relaxed) {
            return CallOutcome::FailsBefore;
        }
        let rate = self.rate.load(Ordering::Relaxed);
        if rate == 0 {
            return CallOutcome::Succeeds;
        }
        let mut seed = self.seed.load(Ordering::Relaxed);
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        self.seed.store(seed, Ordering::Relaxed);
        match seed % 2000 {
            n if n < rate => CallOutcome::FailsBefore,
            n if n < rate * 2 => CallOutcome::FailsAfter,
            _ => CallOutcome::Succeeds,
        }
    }
}

fn failure() -> StoreError {
    StoreError::Engine { doing: "reach it".into(), source: "simulated failure".into() }
}

/// Calls the inner store, or fails, as [`FlakyStore::outcome`] chooses.
macro_rules! call {
    ($self:ident, $call:expr) => {{
        let outcome = $self.outcome().await;
        if outcome == CallOutcome::FailsBefore {
            return Err(failure());
        }
        let result = $call.await;
        tokio::task::yield_now().await;
        if outcome == CallOutcome::FailsAfter { Err(failure()) } else { result }
    }};
}

#[async_trait]
impl TeamStore for FlakyStore {
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
}

#[async_trait]
impl MailStore for FlakyStore {
    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError> {
        // A caller must never send a message id twice. A NATS server detects a repeated id only
        // within two minutes. Therefore this store panics if an id is repeated at any time.
        let history = self.inner.mailbox_history(team, to).await?;
        let is_duplicate =
            history.iter().any(|record| record.event.message() == Some(message.key()));
        assert!(!is_duplicate, "{} was sent to {to} twice", message.msg_id);
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

    async fn mailbox_history(
        &self,
        team: &TeamName,
        of: &MemberName,
    ) -> Result<Vec<Record>, StoreError> {
        self.history_reads.fetch_add(1, Ordering::Relaxed);
        call!(self, self.inner.mailbox_history(team, of))
    }
}

#[async_trait]
impl BoardStore for FlakyStore {
    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError> {
        call!(self, self.inner.tasks(team))
    }

    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError> {
        call!(self, self.inner.task(team, id))
    }

    async fn board_size(&self, team: &TeamName) -> Result<BoardSize, StoreError> {
        call!(self, self.inner.board_size(team))
    }

    async fn estimated_task_count(&self, team: &TeamName) -> Result<usize, StoreError> {
        call!(self, self.inner.estimated_task_count(team))
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
}

#[async_trait]
impl Notes for FlakyStore {
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

    async fn put_note(
        &self,
        team: &TeamName,
        of: &MemberName,
        kind: NoteKind,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        call!(self, self.inner.put_note(team, of, kind, note))
    }

    async fn get_note(
        &self,
        team: &TeamName,
        of: &MemberName,
        kind: NoteKind,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        call!(self, self.inner.get_note(team, of, kind))
    }
}

#[async_trait]
impl EventLog for FlakyStore {
    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError> {
        if self.work_hung.load(Ordering::Relaxed) && matches!(event, Event::Worked { .. }) {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        call!(self, self.inner.record(team, event, by))
    }

    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        call!(self, self.inner.history(team))
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        call!(self, self.inner.watch(team))
    }
}

impl Store for FlakyStore {
    fn connection_error(&self) -> Option<String> {
        self.cut.load(Ordering::Relaxed).then(|| failure().to_string())
    }
}
