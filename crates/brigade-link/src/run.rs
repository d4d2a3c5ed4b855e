//! Runs a link, which reacts to events from the files and from the shared store, and regularly
//! checks everything.

use std::future::{Future, pending, ready};
use std::pin::pin;

use tokio::time::{Instant, sleep_until};

use super::pass::PendingSync;
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

    /// Keeps the files and the shared store synchronized until `stop` completes.
    pub async fn run(&mut self, stop: impl Future<Output = ()> + Send) -> Result<(), LinkError> {
        let mut stop = pin!(stop);
        let mut watches = SideWatches::default();
        let mut work = PendingSync::all();
        let mut retry = self.config.timing.retry;
        let mut unreachable = false;
        // While the shared store cannot be reached, the earliest time of the next attempt.
        let mut not_before = Instant::now();
        // The time of the next full check. Events do not postpone the check.
        let mut next_sweep = Instant::now() + self.config.timing.sweep;
        loop {
            if !work.is_empty() && Instant::now() >= not_before {
                let result = tokio::select! {
                    biased;
                    () = &mut stop => return Ok(()),
                    result = self.open_and_pass(&mut work, &mut watches) => result,
                };
                match result {
                    Ok(()) => {
                        if std::mem::take(&mut unreachable) {
                            self.emit(&LinkEvent::Back);
                        }
                        retry = self.config.timing.retry;
                        not_before = Instant::now();
                    }
                    Err(error @ LinkError::SavedState(_)) => return Err(error),
                    Err(error) => {
                        if error.is_unreachable() {
                            if !std::mem::replace(&mut unreachable, true) {
                                self.emit(&LinkEvent::Cut { why: error.to_string() });
                            }
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
                () = sleep_until(time) => WakeReason::Time,
            };
            match wake {
                WakeReason::Stop => return Ok(()),
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
