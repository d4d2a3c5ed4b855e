//! Records a member's work in the journal.
//!
//! The record may be incomplete. Work events are queued in memory, and a separate task writes them to the journal.
//! If the store is slow, the oldest queued events are dropped, so that the agent never waits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::TeammateEvent;
use crate::driver::{self, TurnEnd, Usage};
use brigade_core::event::Event;
use brigade_core::event::{TurnOutcome, WorkEvent};
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;

/// Maximum number of queued events.
const MAX_QUEUED: usize = 256;
/// Maximum length of the agent's text in one event, in bytes.
const MAX_SPEECH: usize = 8 * 1024;
/// Maximum length of any other field of an event, in bytes.
const MAX_FIELD: usize = 1024;
/// Maximum length of the changed lines in one event, in bytes.
const MAX_DIFF: usize = 4 * 1024;
/// If an agent has written nothing for this long, its text so far is recorded, even if more text follows later.
const SILENCE: Duration = Duration::from_secs(1);
/// How long to wait for queued events to be written when the member stops.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// Records what a member does.
#[derive(Debug)]
pub(super) struct WorkRecorder {
    queue: Arc<RecorderQueue>,
    /// Dropped when the member stops; the writer then writes the queued events and ends.
    member: oneshot::Sender<()>,
    writer: JoinHandle<()>,
}

impl WorkRecorder {
    /// Starts a recorder for the member in this seat.
    pub(super) fn new(seat: Seat) -> Self {
        let queue = Arc::<RecorderQueue>::default();
        let (member, ended) = oneshot::channel();
        let writer = tokio::spawn(write(seat, Arc::clone(&queue), ended));
        Self { queue, member, writer }
    }

    /// Queues an event to be recorded.
    pub(super) fn observe(&self, observed: &TeammateEvent) {
        self.queue.pending().observe(observed);
        self.queue.changed.notify_one();
    }

    /// Stops recording. Waits up to [`FINISH_TIMEOUT`] for the queued events to be written.
    pub(super) async fn finish(self) {
        drop(self.member);
        // The writer has its own time limit. If the writer panicked, there is nothing to wait for.
        let _ended = self.writer.await;
    }
}

/// The queue shared with the writer task, and a signal that the queue has changed.
#[derive(Debug, Default)]
struct RecorderQueue {
    pending: Mutex<PendingWork>,
    changed: Notify,
}

impl RecorderQueue {
    fn pending(&self) -> MutexGuard<'_, PendingWork> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events that are not written yet.
#[derive(Debug, Default)]
struct PendingWork {
    events: VecDeque<WorkEvent>,
    /// The text that the agent is writing, cut to `MAX_SPEECH`.
    speech: String,
    /// Whether `speech` was cut.
    is_cut: bool,
    /// When the agent wrote the last piece of `speech`.
    last_speech: Option<Instant>,
    /// The last recorded problem, so that the same problem is not recorded again when it repeats.
    last_problem: Option<WorkEvent>,
    used: Usage,
    /// The usage that was last recorded.
    recorded_usage: Usage,
    /// How many events were dropped since the last warning.
    lost: usize,
    /// Whether the member has stopped, so that no more events follow.
    finished: bool,
}

impl PendingWork {
    fn observe(&mut self, observed: &TeammateEvent) {
        match observed {
            TeammateEvent::Started => self.note(WorkEvent::Started {}),
            TeammateEvent::Did(event) => self.observe_agent(event),
            TeammateEvent::Waits { .. } => self.end_speech(),
            TeammateEvent::Trouble(why) => {
                self.note_problem(WorkEvent::Trouble { why: truncate(why, MAX_FIELD) });
            }
            TeammateEvent::Given(_) | TeammateEvent::Answered { .. } => {}
        }
    }

    fn observe_agent(&mut self, event: &driver::AgentEvent) {
        use driver::AgentEvent;
        match event {
            AgentEvent::Ready { .. } => self.note(WorkEvent::Ready {}),
            AgentEvent::TurnStarted => self.note(WorkEvent::TurnStarted {}),
            AgentEvent::Said(piece) => self.append_speech(piece),
            AgentEvent::ToolStarted { id, tool, about } => self.note(WorkEvent::ToolStarted {
                id: truncate(id, MAX_FIELD),
                tool: truncate(tool, MAX_FIELD),
                about: truncate(about, MAX_FIELD),
            }),
            AgentEvent::ToolEnded { id, ok, .. } => {
                self.note(WorkEvent::ToolEnded { id: truncate(id, MAX_FIELD), ok: *ok });
            }
            AgentEvent::Changed(change) => {
                let (added, removed) = change.lines();
                self.note(WorkEvent::Changed {
                    path: truncate(&change.path, MAX_FIELD),
                    added,
                    removed,
                    diff: change.diff_text(MAX_DIFF),
                });
            }
            AgentEvent::Asks(_) => self.end_speech(),
            AgentEvent::Used(used) => self.used = *used,
            AgentEvent::Limited { why } => {
                self.note_problem(WorkEvent::Limited { why: truncate(why, MAX_FIELD) });
            }
            AgentEvent::TurnEnded(end) => self.end_turn(end),
            // These events are not recorded as work. Most of them are followed by other records in the journal.
            AgentEvent::Remembers { .. }
            | AgentEvent::RemembersIn { .. }
            | AgentEvent::Taken(_)
            | AgentEvent::NotTaken(_)
            | AgentEvent::AsksNoLonger(_)
            | AgentEvent::Retries { .. }
            | AgentEvent::Broken { .. } => {}
        }
    }

    fn append_speech(&mut self, piece: &str) {
        self.last_speech = Some(Instant::now());
        if !self.is_cut {
            let room = MAX_SPEECH - self.speech.len();
            self.is_cut = piece.len() > room;
            self.speech.push_str(&truncate(piece, room));
        }
    }

    fn end_turn(&mut self, end: &TurnEnd) {
        self.end_speech();
        if self.used != self.recorded_usage {
            self.recorded_usage = self.used;
            let Usage { input, output, cost, .. } = self.used;
            self.note(WorkEvent::Used { input, output, cost });
        }
        let (end, why) = match end {
            TurnEnd::Done => (TurnOutcome::Done, None),
            TurnEnd::Interrupted => (TurnOutcome::Interrupted, None),
            TurnEnd::Failed(why) => (TurnOutcome::Failed, Some(truncate(why, MAX_FIELD))),
            TurnEnd::Limited(why) => (TurnOutcome::Limited, Some(truncate(why, MAX_FIELD))),
        };
        self.note(WorkEvent::TurnEnded { end, why });
    }

    /// Queues a problem, unless the previous event was the same problem.
    fn note_problem(&mut self, event: WorkEvent) {
        self.end_speech();
        if self.last_problem.as_ref() != Some(&event) {
            self.note(event.clone());
            self.last_problem = Some(event);
        }
    }

    fn note(&mut self, event: WorkEvent) {
        self.end_speech();
        self.last_problem = None;
        self.put(event);
    }

    /// Queues the text that the agent wrote so far as one event.
    fn end_speech(&mut self) {
        self.last_speech = None;
        self.is_cut = false;
        let text = std::mem::take(&mut self.speech);
        if !text.trim().is_empty() {
            self.last_problem = None;
            self.put(WorkEvent::Said { text });
        }
    }

    fn put(&mut self, event: WorkEvent) {
        if self.events.len() >= MAX_QUEUED {
            // Drop the oldest event: the newest ones show the current state.
            self.events.pop_front();
            self.lost += 1;
        }
        self.events.push_back(event);
    }

    /// Decides what the writer does next.
    fn next(&mut self, now: Instant) -> WriterStep {
        if self.finished || self.last_speech.is_some_and(|last_speech| now >= last_speech + SILENCE)
        {
            self.end_speech();
        }
        match (self.events.pop_front(), self.last_speech) {
            (Some(event), _) => WriterStep::Write(event, std::mem::take(&mut self.lost)),
            (None, _) if self.finished => WriterStep::End,
            (None, Some(last_speech)) => WriterStep::WaitUntil(last_speech + SILENCE),
            (None, None) => WriterStep::Wait,
        }
    }
}

/// The next step of the writer.
#[derive(Debug, PartialEq)]
enum WriterStep {
    /// Write this event. The number counts the events that were dropped just before this event.
    Write(WorkEvent, usize),
    WaitUntil(Instant),
    Wait,
    End,
}

/// Writes queued events until the member stops. Then writes the rest, for at most [`FINISH_TIMEOUT`].
async fn write(seat: Seat, queue: Arc<RecorderQueue>, ended: oneshot::Receiver<()>) {
    let deadline = async {
        // No value is ever sent on this channel. It closes when the member stops.
        let _closed = ended.await;
        queue.pending().finished = true;
        queue.changed.notify_one();
        sleep(FINISH_TIMEOUT).await;
    };
    tokio::select! {
        () = write_all(&seat, &queue) => {}
        () = deadline => {
            tracing::warn!(team = %seat.team, member = %seat.name, "the member's last work events were not recorded in time");
        }
    }
}

async fn write_all(seat: &Seat, queue: &RecorderQueue) {
    let (team, member) = (&seat.team, &seat.name);
    loop {
        let next = queue.pending().next(Instant::now());
        match next {
            WriterStep::Write(event, lost) => {
                if lost > 0 {
                    tracing::warn!(%team, %member, lost, "the store is slow; some work events were dropped");
                }
                let event = Event::Worked { name: member.to_string(), act: event };
                match seat.store.record(team, event, &seat.actor()).await {
                    // If the team was deleted, there is no journal to write to.
                    Ok(()) | Err(StoreError::NoTeam { .. }) => {}
                    Err(error) => {
                        tracing::warn!(%team, %member, %error, "cannot record a work event");
                    }
                }
            }
            WriterStep::WaitUntil(time) => drop(timeout_at(time, queue.changed.notified()).await),
            WriterStep::Wait => queue.changed.notified().await,
            WriterStep::End => return,
        }
    }
}

/// Returns the first `max` bytes of a text, followed by an ellipsis if the text is longer.
fn truncate(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("{}…", text.get(..text.floor_char_boundary(max)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::AgentEvent;

    fn said(text: &str) -> WorkEvent {
        WorkEvent::Said { text: text.to_owned() }
    }

    fn saying(text: &str) -> TeammateEvent {
        TeammateEvent::Did(AgentEvent::Said(text.to_owned()))
    }

    /// Returns the events that the recorder writes for these observations.
    fn events(observed: impl IntoIterator<Item = TeammateEvent>) -> Vec<WorkEvent> {
        let mut pending = PendingWork::default();
        observed.into_iter().for_each(|observed| pending.observe(&observed));
        pending.finished = true;
        let next = || match pending.next(Instant::now()) {
            WriterStep::Write(event, _) => Some(event),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn uninterrupted_text_is_one_event() {
        let tool =
            || AgentEvent::ToolStarted { id: "1".into(), tool: "Bash".into(), about: "ls".into() };
        let mut observed =
            vec![TeammateEvent::Started, TeammateEvent::Did(AgentEvent::TurnStarted)];
        observed.extend((0..50).map(|number| saying(&format!("{number} "))));
        observed.push(TeammateEvent::Did(tool()));
        observed.push(TeammateEvent::Did(AgentEvent::ToolEnded {
            id: "1".into(),
            ok: false,
            why: String::new(),
        }));
        observed.extend(["Do", "ne."].map(saying));
        observed.push(TeammateEvent::Did(AgentEvent::TurnEnded(TurnEnd::Failed("tired".into()))));
        // Whitespace alone is not recorded.
        observed.push(saying("\n"));
        let counted: String = (0..50).map(|number| format!("{number} ")).collect();
        let expected = [
            WorkEvent::Started {},
            WorkEvent::TurnStarted {},
            said(&counted),
            WorkEvent::ToolStarted { id: "1".into(), tool: "Bash".into(), about: "ls".into() },
            WorkEvent::ToolEnded { id: "1".into(), ok: false },
            said("Done."),
            WorkEvent::TurnEnded { end: TurnOutcome::Failed, why: Some("tired".into()) },
        ];
        assert_eq!(events(observed), expected);
    }

    #[test]
    fn silence_completes_the_text() {
        let mut pending = PendingWork::default();
        pending.observe(&saying("Let me"));
        let last_speech = pending.last_speech.unwrap();
        assert_eq!(pending.next(last_speech), WriterStep::WaitUntil(last_speech + SILENCE));
        pending.observe(&saying(" see."));
        let last_speech = pending.last_speech.unwrap();
        assert_eq!(pending.next(last_speech + SILENCE), WriterStep::Write(said("Let me see."), 0));
        assert_eq!(pending.next(last_speech + SILENCE), WriterStep::Wait);
    }

    /// Tests texts in one or many pieces, with characters of one to four bytes.
    #[test]
    fn long_text_is_cut_between_characters() {
        for character in ["m", "ü", "€", "\u{1f600}"] {
            for pieces in [1, 7, 4096] {
                let piece = character.repeat(3 * MAX_SPEECH / character.len() / pieces + 1);
                let events = events((0..pieces).map(|_| saying(&piece)));
                let [WorkEvent::Said { text }] = events.as_slice() else { panic!("{events:?}") };
                let kept = text.strip_suffix('…').unwrap();
                assert!(kept.len() > MAX_SPEECH - 4 && kept.len() <= MAX_SPEECH, "{}", kept.len());
                assert_eq!(kept.replace(character, ""), "");
            }
        }
        assert_eq!(events([saying(&"m".repeat(MAX_SPEECH))]), [said(&"m".repeat(MAX_SPEECH))]);
    }

    #[test]
    fn usage_is_recorded_at_the_end_of_a_turn_if_it_changed() {
        let used =
            |input| TeammateEvent::Did(AgentEvent::Used(Usage { input, ..Usage::default() }));
        let ended = || TeammateEvent::Did(AgentEvent::TurnEnded(TurnEnd::Done));
        let is = |input| WorkEvent::Used { input, output: 0, cost: None };
        let end = || WorkEvent::TurnEnded { end: TurnOutcome::Done, why: None };
        let events =
            events([used(1), used(2), ended(), ended(), used(2), ended(), used(3), ended()]);
        assert_eq!(events, [is(2), end(), end(), end(), is(3), end()]);
    }

    #[test]
    fn repeated_trouble_is_recorded_once() {
        let trouble = || TeammateEvent::Trouble("no disk".into());
        let is = || WorkEvent::Trouble { why: "no disk".into() };
        assert_eq!(events([trouble(), trouble(), trouble()]), [is()]);
        let events = events([trouble(), saying("I try."), trouble(), trouble()]);
        assert_eq!(events, [is(), said("I try."), is()]);
    }

    #[test]
    fn a_full_queue_keeps_the_newest_events() {
        let mut pending = PendingWork::default();
        for number in 0..MAX_QUEUED + 10 {
            pending.observe(&TeammateEvent::Did(AgentEvent::ToolEnded {
                id: number.to_string(),
                ok: true,
                why: String::new(),
            }));
        }
        let first = WorkEvent::ToolEnded { id: "10".into(), ok: true };
        assert_eq!(pending.next(Instant::now()), WriterStep::Write(first, 10));
        assert_eq!(pending.events.len(), MAX_QUEUED - 1);
    }
}
