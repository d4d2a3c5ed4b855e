//! Waits until something happens in a team: a task is done, a member is idle, a request or a message arrives.
//!
//! The caller is woken by the events of the team and by changes of this host's registry. A condition is checked only after
//! an event that concerns it. In addition, all conditions are checked at a slow interval: a member on another host that
//! loses its connection causes no event, and a store may lose one.

mod check;
mod member;

use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::{Event, Record, WorkEvent};
use brigade_core::seat::Seat;
use brigade_core::store::Watch;
use brigade_wire::name::{MemberName, TaskId};
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::Instant;

use self::check::Checker;
pub(crate) use self::member::check_member;
use crate::Context;
use crate::error::{HostError, Trouble};
use crate::registry_watch::RegistryWatch;

/// How often all conditions are checked without an event.
const RECHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The same while waiting for a member. A member whose process hangs, or whose host is lost, causes no event.
const MEMBER_RECHECK_INTERVAL: Duration = Duration::from_secs(10);
/// The longest wait: practically forever, but short enough not to overflow an `Instant`.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Something to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitCondition {
    /// The task is completed.
    TaskDone(TaskId),
    /// Every task of the team is completed.
    AllTasksDone,
    /// The member is between turns, has no unread mail and waits for no answer.
    MemberIdle(MemberName),
    /// A plan or permission request waits for the caller's answer.
    ApprovalWaits,
    /// The caller has an unread message, or an unread text with which a member ended its turn.
    MessageArrived {
        /// The sender; `None` for any sender.
        from: Option<MemberName>,
    },
}

/// The conditions of a wait.
#[derive(Clone, Debug)]
pub struct WaitRequest {
    /// The conditions to wait for.
    pub conditions: Vec<WaitCondition>,
    /// Whether one condition is enough. Otherwise all must hold.
    pub any: bool,
    /// How long to wait; `None` to wait for ever.
    pub timeout: Option<Duration>,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitEnd {
    /// The conditions hold.
    Done,
    /// A condition can no longer hold, for example because the task was deleted.
    Failed,
    /// The conditions did not hold in time.
    TimedOut,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionState {
    /// The condition holds.
    Met,
    /// The condition does not hold yet.
    Unmet,
    /// The condition can no longer hold.
    Failed,
}

/// A condition and what was found when it was checked last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckedCondition {
    /// Whether the condition holds.
    pub state: ConditionState,
    /// The finding, as a sentence without a full stop.
    pub detail: String,
}

impl CheckedCondition {
    fn met(detail: impl Into<String>) -> Self {
        Self { state: ConditionState::Met, detail: detail.into() }
    }

    fn unmet(detail: impl Into<String>) -> Self {
        Self { state: ConditionState::Unmet, detail: detail.into() }
    }

    fn failed(detail: impl Into<String>) -> Self {
        Self { state: ConditionState::Failed, detail: detail.into() }
    }
}

/// The result of a wait.
#[derive(Clone, Debug, Serialize)]
pub struct WaitReport {
    /// How the wait ended.
    pub outcome: WaitEnd,
    /// The conditions, in the order of the request.
    pub conditions: Vec<CheckedCondition>,
    /// How often conditions were checked. Every check but the first follows an event or the slow interval.
    #[serde(skip)]
    pub checks: u64,
}

impl WaitReport {
    /// Returns what decided the outcome, on one line.
    pub fn summary(&self) -> String {
        let wanted = match self.outcome {
            WaitEnd::Done => ConditionState::Met,
            WaitEnd::Failed => ConditionState::Failed,
            WaitEnd::TimedOut => ConditionState::Unmet,
        };
        let details = self.conditions.iter().filter(|found| found.state == wanted);
        details.map(|found| found.detail.as_str()).collect::<Vec<_>>().join("; ")
    }
}

/// Waits until the conditions hold, until one of them can no longer hold, or until the time is over. Returns at once if they hold
/// already. Fails if there is no such team, task or member.
pub async fn wait_for(context: &Context, request: &WaitRequest) -> Result<WaitReport, HostError> {
    if request.conditions.is_empty() {
        let error = HostError::usage(Trouble::NoCondition);
        return Err(error.hint("for example `brigade wait --task 3` or `brigade wait --idle bob`"));
    }
    let deadline = Instant::now() + request.timeout.unwrap_or(MAX_WAIT).min(MAX_WAIT);
    let seat = context.reader().await?;
    let waits_for_member =
        request.conditions.iter().any(|found| matches!(found, WaitCondition::MemberIdle(_)));
    // Subscribe before the first check, so that no later event is missed.
    let mut signals = TeamSignals::start(context, &seat, waits_for_member).await?;
    let checker = Checker::new(context, seat, &request.conditions).await?;
    let mailboxes = checker.mailboxes();
    let mut found = checker.check_all(&request.conditions).await?;
    let mut checks = 1;
    loop {
        if let Some(outcome) = outcome(&found, request.any) {
            return Ok(WaitReport { outcome, conditions: found, checks });
        }
        let recheck = Instant::now() + signals.recheck_interval;
        let concerns = |record: &Record| {
            request.conditions.iter().any(|condition| condition.is_concerned(record, &mailboxes))
        };
        if !signals.wait(recheck.min(deadline), concerns).await && Instant::now() >= deadline {
            // The conditions may have been met while the machine slept.
            found = checker.check_all(&request.conditions).await?;
            let outcome = outcome(&found, request.any).unwrap_or(WaitEnd::TimedOut);
            return Ok(WaitReport { outcome, conditions: found, checks: checks + 1 });
        }
        found = checker.check_all(&request.conditions).await?;
        checks += 1;
    }
}

/// Returns how the wait ends with these results, or `None` if it goes on.
fn outcome(found: &[CheckedCondition], any: bool) -> Option<WaitEnd> {
    let mut states = found.iter().map(|found| found.state);
    let is = |wanted| move |state| state == wanted;
    if any {
        if states.clone().any(is(ConditionState::Met)) {
            return Some(WaitEnd::Done);
        }
        return states.all(is(ConditionState::Failed)).then_some(WaitEnd::Failed);
    }
    if states.clone().any(is(ConditionState::Failed)) {
        return Some(WaitEnd::Failed);
    }
    states.all(is(ConditionState::Met)).then_some(WaitEnd::Done)
}

/// The members whose inboxes the conditions are about.
struct ConcernedMailboxes {
    /// The member that waits for a message.
    reader: String,
    /// The member that answers requests.
    lead: String,
}

impl WaitCondition {
    /// Returns whether the condition may hold after this event, if it did not before.
    fn is_concerned(&self, record: &Record, mailboxes: &ConcernedMailboxes) -> bool {
        let event = &record.event;
        if matches!(event, Event::TeamDeleted {} | Event::TeamCreated { .. }) {
            return true;
        }
        match self {
            Self::TaskDone(wanted) => match event {
                Event::Task { id, .. } | Event::TaskDeleted { id } => *id == wanted.get(),
                _ => false,
            },
            Self::AllTasksDone => matches!(event, Event::Task { .. } | Event::TaskDeleted { .. }),
            Self::MemberIdle(wanted) => concerns_member(record, wanted.as_str()),
            Self::ApprovalWaits => {
                event.message().is_some() && event.mailbox() == Some(&mailboxes.lead)
            }
            Self::MessageArrived { .. } => {
                event.message().is_some() && event.mailbox() == Some(&mailboxes.reader)
            }
        }
    }
}

/// Returns whether the state of a member may be another after this event.
pub(crate) fn concerns_member(record: &Record, wanted: &str) -> bool {
    match &record.event {
        Event::Worked { name, act } => {
            name == wanted
                && matches!(
                    act,
                    WorkEvent::Ready {}
                        | WorkEvent::Started {}
                        | WorkEvent::TurnEnded { .. }
                        | WorkEvent::Trouble { .. }
                )
        }
        Event::Member { name, .. } | Event::MemberLeft { name } => name == wanted,
        Event::Read { to, .. } | Event::Shown { to, .. } | Event::Answered { to, .. } => {
            to == wanted
        }
        // A message of the member may be its report that it is idle.
        Event::Sent { .. } | Event::Seen { .. } => {
            record.by.as_deref() == Some(wanted) || record.event.sender().as_deref() == Some(wanted)
        }
        _ => false,
    }
}

/// The events of a team and the changes of this host's registry.
pub(crate) struct TeamSignals {
    /// `None` after the watch has ended.
    watch: Option<Watch>,
    registry: Option<(RegistryWatch, Arc<Notify>)>,
    /// How often to check without an event.
    pub(crate) recheck_interval: Duration,
}

impl TeamSignals {
    /// Subscribes to the events of the seat's team. For the state of members, also subscribes to their work and to the registry of
    /// this host.
    pub(crate) async fn start(
        context: &Context,
        seat: &Seat,
        for_members: bool,
    ) -> Result<Self, HostError> {
        let watch = match for_members {
            true => seat.store.watch(&seat.team).await?,
            false => seat.watch_without_work().await?,
        };
        let mut signals = Self {
            watch: Some(watch),
            registry: None,
            recheck_interval: seat.store.recheck_interval().min(RECHECK_INTERVAL),
        };
        if for_members {
            let woken = Arc::new(Notify::new());
            let mut registry = RegistryWatch::start(Arc::clone(&woken));
            registry.watch(&context.registry());
            signals.registry = Some((registry, woken));
            signals.recheck_interval = signals.recheck_interval.min(MEMBER_RECHECK_INTERVAL);
        }
        Ok(signals)
    }

    /// Returns the next event, or `None` if the registry has changed or the time is over.
    pub(crate) async fn next(&mut self, until: Instant) -> Option<Arc<Record>> {
        let registry = self.registry.as_ref().map(|(_, woken)| Arc::clone(woken));
        let record = async {
            match &mut self.watch {
                Some(watch) => watch.next_shared().await,
                None => std::future::pending().await,
            }
        };
        let changed = async {
            match registry {
                Some(woken) => woken.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            record = record => {
                if record.is_none() {
                    self.watch = None;
                }
                record
            }
            () = changed => None,
            () = tokio::time::sleep_until(until) => None,
        }
    }

    /// Waits for an event that `concerns` selects, or a change of the registry. Returns false if the time is over before.
    async fn wait(&mut self, until: Instant, concerns: impl Fn(&Record) -> bool) -> bool {
        loop {
            match self.next(until).await {
                Some(record) if concerns(&record) => break,
                Some(_) => {}
                None => return Instant::now() < until,
            }
        }
        // One check is enough for all events that have arrived.
        while self.watch.as_mut().is_some_and(|watch| watch.try_next().is_some()) {}
        true
    }
}
