//! Runs a link, which reacts to events from the files and from the shared store, and regularly
//! checks everything.

use std::collections::BTreeSet;
use std::future::{Future, pending, ready};
use std::pin::pin;

use brigade_wire::name::MemberName;
use tokio::time::{Instant, sleep_until};

use super::connection::{ConnectionChange, ConnectionReport};
use super::pass::PendingSync;
use super::roster::MemberSides;
use super::{Link, LinkError, LinkEvent};
use brigade_core::event::Record;
use brigade_core::store::{EventLog, Watch};

/// How many full passes a one-time synchronization makes.
const PASSES: usize = 3;

/// The event streams of the files and of the shared store.
#[derive(Debug, Default)]
struct SideWatches {
    local: Option<Watch>,
    shared: Option<Watch>,
}

/// Why a link woke up.
enum WakeReason {
    Local(Option<Record>),
    Shared(Option<Record>),
    Time,
    ConnectionCheck,
    Stop,
}

async fn next(watch: &mut Option<Watch>) -> Option<Record> {
    match watch {
        Some(watch) => watch.next().await,
        None => pending().await,
    }
}

/// Returns the next event if it is already available.
async fn ready_now(watch: &mut Option<Watch>) -> Option<Record> {
    let watch = watch.as_mut()?;
    tokio::select! {
        biased;
        record = watch.next() => record,
        () = ready(()) => None,
    }
}

impl Link {
    /// Synchronizes the files and the shared store once.
    pub async fn once(&mut self) -> Result<(), LinkError> {
        // Synchronizing one part may create work for another part.
        for _ in 0..PASSES {
            self.pass(&mut PendingSync::all()).await?;
        }
        Ok(())
    }

    /// Keeps the files and the shared store synchronized until `stop` completes. Fails if the team has ended, after
    /// the link deleted the copies of the team that it had made, and if the store forbids the first synchronization.
    pub async fn run(&mut self, stop: impl Future<Output = ()> + Send) -> Result<(), LinkError> {
        self.keeps_running = true;
        let mut stop = pin!(stop);
        let mut synced = None;
        let mut watches = SideWatches::default();
        let mut work = PendingSync::all();
        let mut retry = self.config.timing.retry;
        let mut connection = ConnectionReport::new(&self.config);
        // While the shared store cannot be reached, the earliest time of the next attempt.
        let mut not_before = Instant::now();
        // The time of the next full check. Events do not postpone the check.
        let mut next_sweep = Instant::now() + self.config.timing.sweep;
        loop {
            if !work.is_empty() && Instant::now() >= not_before {
                let mut passing = Box::pin(self.open_and_pass(&mut work, &mut watches));
                let result = loop {
                    tokio::select! {
                        biased;
                        () = &mut stop => return Ok(()),
                        result = &mut passing => break result,
                        // A call may wait long for an answer, so check the connection meanwhile.
                        () = connection.next_check() => drop(connection.check()),
                    }
                };
                drop(passing);
                match result {
                    Ok(()) => {
                        connection.restored();
                        self.report_synced(&mut synced);
                        retry = self.config.timing.retry;
                        not_before = Instant::now();
                    }
                    Err(error @ LinkError::SavedState(_)) => return Err(error),
                    Err(error) if error.is_final() => return Err(error),
                    // The credentials do not suffice for this team at all.
                    Err(error) if error.is_forbidden() && synced.is_none() => return Err(error),
                    Err(LinkError::MaybeEnded { .. }) => {
                        self.sides = None;
                        work = PendingSync::all();
                        not_before = Instant::now() + self.config.timing.retry;
                    }
                    Err(error) => {
                        if error.is_unreachable() {
                            connection.lost(&error.with_cause());
                        } else {
                            self.report_problem(error.to_string());
                        }
                        // Members may have moved to another host meanwhile. The known state of
                        // mailboxes stays valid, except for a mailbox that was being synchronized:
                        // `inward` and `outward` have discarded its state.
                        self.sides = None;
                        work = PendingSync::all();
                        not_before = Instant::now() + retry;
                        retry = (retry * 2).min(self.config.timing.retry * 5);
                    }
                }
            }
            let time = if work.is_empty() { next_sweep } else { not_before };
            let wake = tokio::select! {
                biased;
                () = &mut stop => WakeReason::Stop,
                record = next(&mut watches.local) => WakeReason::Local(record),
                record = next(&mut watches.shared) => WakeReason::Shared(record),
                () = connection.next_check() => WakeReason::ConnectionCheck,
                () = sleep_until(time) => WakeReason::Time,
            };
            match wake {
                WakeReason::Stop => return Ok(()),
                WakeReason::ConnectionCheck => {
                    if let Some(change) = connection.check() {
                        work = PendingSync::all();
                        not_before = match change {
                            ConnectionChange::Lost => Instant::now() + retry,
                            ConnectionChange::Restored => Instant::now(),
                        };
                    }
                }
                WakeReason::Time => {
                    work = PendingSync::all();
                    next_sweep = Instant::now() + self.config.timing.sweep;
                }
                WakeReason::Local(Some(record)) => self.on_local_event(&record, &mut work),
                WakeReason::Shared(Some(record)) => self.on_shared_event(&record, &mut work),
                // Re-create an event stream that ended, and check everything.
                WakeReason::Local(None) => (watches.local, work) = (None, PendingSync::all()),
                WakeReason::Shared(None) => (watches.shared, work) = (None, PendingSync::all()),
            }
            while let Some(record) = ready_now(&mut watches.local).await {
                self.on_local_event(&record, &mut work);
            }
            while let Some(record) = ready_now(&mut watches.shared).await {
                self.on_shared_event(&record, &mut work);
            }
        }
    }

    /// Reports the members of both sides, if they are not those of the last report.
    fn report_synced(&self, last: &mut Option<MemberSides>) {
        if self.sides.is_none() || self.sides == *last {
            return;
        }
        last.clone_from(&self.sides);
        if let Some(sides) = last {
            let names =
                |names: &BTreeSet<MemberName>| names.iter().map(ToString::to_string).collect();
            let (local, remote) = (names(&sides.local), names(&sides.remote));
            self.emit(&LinkEvent::Synced { local, remote });
        }
    }

    /// Opens missing event streams, then does the pending work.
    async fn open_and_pass(
        &mut self,
        work: &mut PendingSync,
        watches: &mut SideWatches,
    ) -> Result<(), LinkError> {
        if watches.local.is_none() || watches.shared.is_none() {
            self.teams().await?;
            let config = &self.config;
            if watches.local.is_none() {
                let watch = config
                    .local
                    .watch_without_work(&config.team)
                    .await
                    .map_err(LinkError::Local)?;
                watches.local = Some(watch);
                // Rebuild the known state of mailboxes, because local events were missed while
                // there was no stream. Missed events from the shared store are harmless: the link
                // only repeats some work.
                self.mailboxes.clear();
            }
            if watches.shared.is_none() {
                watches.shared =
                    Some(config.call_shared(config.shared.watch_without_work(&config.team)).await?);
            }
            // Check everything, because the new streams do not report earlier events.
            self.sides = None;
            *work = PendingSync::all();
        }
        self.pass(work).await
    }
}
