//! Delivers unread mail to an agent as turns, so that the model sees each message exactly once.
//!
//! This is a pure state machine: the caller reports new mail and the agent's events, and gets back the actions
//! to take. Messages are sent to the agent in batches. Each batch gets a number and is saved before it is sent.
//! After a crash, the agent's own session shows which batches the agent received; the others are sent again with
//! the same numbers.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::driver::{AgentEvent, MidTurn, TextNumber, TurnEnd};
use brigade_core::event::MessageKey;
use brigade_core::hash::Fnv;

/// Maximum length of a batch's text, in bytes. A longer backlog is split into several batches.
const MAX_TURN_TEXT: usize = 200_000;

/// The prompt for an agent whose program was restarted in the middle of a turn.
pub(crate) const RESUME_PROMPT: &str =
    "Your program was restarted in the middle of a turn. Continue where you left off.";

/// A text to show to the agent: a message, or a line that a person typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The key of the message; `None` for a line that a person typed.
    #[serde(rename = "key")]
    pub message: Option<MessageKey>,
    /// The text that the agent reads.
    pub text: String,
}

/// Items that are sent to the agent together. A batch that is sent again after a restart keeps its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MailBatch {
    number: u64,
    #[serde(rename = "parcels")]
    items: Vec<Item>,
    #[serde(skip)]
    state: BatchState,
}

/// Whether the agent has received a batch. Not saved: after a crash, every saved batch is `Unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BatchState {
    /// The agent may or may not have received the batch. If the agent's session does not contain the batch, the
    /// batch is sent again with the same number.
    #[default]
    Unknown,
    /// The batch was sent to the agent, but the agent has not acknowledged it yet.
    Sent,
    /// The agent acknowledged the batch, or the agent's resumed session contains it.
    Received,
}

/// State that must survive a crash. The caller saves this state on each [`Action::Persist`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    /// The session id that the agent assigned, needed to resume the session.
    pub session: Option<String>,
    /// A random number that makes the headings of batches unpredictable; see `heading`.
    #[serde(default, rename = "secret")]
    heading_secret: u64,
    /// The number of the newest batch.
    #[serde(rename = "last")]
    last_number: u64,
    /// The batches of the current turn, and earlier batches that the agent has not acknowledged.
    #[serde(rename = "given")]
    sent: Vec<MailBatch>,
    /// Whether a turn is running.
    #[serde(rename = "turn")]
    in_turn: bool,
}

impl SavedState {
    /// Returns the state of a new member. The caller provides a random `heading_secret`.
    pub fn new(heading_secret: u64) -> Self {
        Self { heading_secret, ..Self::default() }
    }

    /// Returns the messages of the batches that the agent may not have received.
    pub(crate) fn sent_messages(&self) -> Vec<MessageKey> {
        keys(&self.sent)
    }

    /// Returns the first line of a batch's text, which identifies the batch in the agent's session. The line is
    /// unpredictable: otherwise a sender could put the heading of a later batch into a message, and that batch
    /// would count as received before it is sent.
    fn heading(&self, address: &str, number: u64) -> String {
        let secret = Fnv::default().field(&self.heading_secret.to_le_bytes());
        let mark = secret.field(&number.to_le_bytes()).finish() >> 32;
        format!("[mail {number}-{mark:08x} for {address}]")
    }
}

/// An action for the caller. Actions must be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Save this state before carrying out the actions that follow.
    Persist(SavedState),
    /// Start a turn with this text.
    StartTurn(TextNumber, String),
    /// Add this text to the running turn.
    Steer(TextNumber, String),
    /// Mark these messages as shown, because the agent has received them.
    MarkShown(Vec<MessageKey>),
    /// A turn has started.
    TurnStarted,
    /// The turn has ended, and no other turn starts immediately.
    TurnEnded(TurnEnd),
}

/// Whether the agent can receive text now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The agent is not ready yet, or its program has ended.
    NotReady,
    Idle,
    Busy,
}

/// Delivers mail to one member's agent.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The member's address, such as `bob@demo`.
    address: String,
    mid_turn: MidTurn,
    phase: Phase,
    saved: SavedState,
    waiting: VecDeque<Item>,
    /// Whether the agent has made progress since text was last added to its turn. Each added text interrupts
    /// the model's output, so without this check frequent mail would keep the model from ever answering.
    may_steer: bool,
    /// Whether items wait, although the agent could receive them.
    held: bool,
    /// Set when a batch is resent as a new turn, and cleared when the agent reports the start of that turn. If the
    /// turn ends while this is set, the agent's session already contained the batch.
    is_resend: bool,
}

impl Delivery {
    /// Creates the delivery for the member with this address. The delivery continues from the state `saved`.
    pub fn new(address: String, mid_turn: MidTurn, saved: SavedState) -> Self {
        let mut delivery = Self {
            address,
            mid_turn,
            phase: Phase::NotReady,
            saved,
            waiting: VecDeque::new(),
            may_steer: false,
            held: false,
            is_resend: false,
        };
        delivery.agent_exited();
        delivery
    }

    /// Returns the state to save.
    pub fn saved(&self) -> &SavedState {
        &self.saved
    }

    /// Returns whether the state of any batch is `Unknown`.
    pub fn has_unknown_batches(&self) -> bool {
        self.saved.sent.iter().any(|batch| batch.state == BatchState::Unknown)
    }

    /// Returns whether the message is queued, or part of a batch in `SavedState::sent`.
    pub fn contains(&self, key: MessageKey) -> bool {
        let sent = self.saved.sent.iter().flat_map(|batch| &batch.items);
        sent.chain(&self.waiting).any(|item| item.message == Some(key))
    }

    /// Queues new items, except messages that are already queued or sent. Sends a batch if possible.
    pub fn enqueue(&mut self, items: impl IntoIterator<Item = Item>) -> Vec<Action> {
        for item in items {
            if item.message.is_none_or(|key| !self.contains(key)) {
                self.waiting.push_back(item);
            }
        }
        let mut actions = Vec::new();
        self.send_next(&mut actions);
        actions
    }

    /// Returns whether a turn was started and has not ended.
    pub fn is_busy(&self) -> bool {
        self.phase == Phase::Busy
    }

    /// Sets whether items wait, although the agent could receive them. A running turn continues.
    pub fn hold(&mut self, held: bool) -> Vec<Action> {
        self.held = held;
        let mut actions = Vec::new();
        self.send_next(&mut actions);
        actions
    }

    /// Returns whether the agent is being started and continues a turn of its last process when it is ready.
    pub fn will_continue_turn(&self) -> bool {
        self.phase == Phase::NotReady && self.saved.in_turn
    }

    /// Forgets that the agent's last process was in a turn, so that the next process does not continue the turn.
    pub fn abandon_turn(&mut self) {
        self.saved.in_turn = false;
    }

    /// Begins a new session with this text. Batches whose turn has not ended follow it. Save the state afterwards.
    pub fn start_new_session(&mut self, text: String) {
        self.saved.session = None;
        self.saved.in_turn = false;
        self.saved.last_number += 1;
        let items = vec![Item { message: None, text }];
        let first = MailBatch { number: self.saved.last_number, items, state: BatchState::Unknown };
        self.saved.sent.insert(0, first);
    }

    /// Handles an event reported by the agent's driver.
    pub fn on_event(&mut self, event: &AgentEvent) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            AgentEvent::Remembers { text } => self.mark_remembered(text),
            AgentEvent::Ready { session } => self.ready(session, &mut actions),
            AgentEvent::Taken(note) => self.on_received(*note, &mut actions),
            AgentEvent::NotTaken(note) => self.on_rejected(*note, &mut actions),
            AgentEvent::TurnStarted => {
                self.phase = Phase::Busy;
                self.may_steer = true;
                self.is_resend = false;
                actions.push(Action::TurnStarted);
            }
            AgentEvent::ToolStarted { .. } | AgentEvent::ToolEnded { .. } => self.may_steer = true,
            AgentEvent::TurnEnded(end) => {
                self.phase = Phase::Idle;
                if std::mem::take(&mut self.is_resend) {
                    self.waiting.push_front(resume_item());
                }
                self.turn_ended(&mut actions);
                // After a failed turn, an immediate new turn would most likely fail as well. The next turn starts
                // when the inbox is checked again.
                if !matches!(end, TurnEnd::Failed(_) | TurnEnd::Limited(_)) {
                    self.send_next(&mut actions);
                }
                if self.phase == Phase::Idle {
                    actions.push(Action::TurnEnded(end.clone()));
                }
                return actions;
            }
            AgentEvent::Broken { .. } => self.phase = Phase::NotReady,
            _ => {}
        }
        self.send_next(&mut actions);
        actions
    }

    /// Handles the end of the agent's program. From now on, it is unknown which batches the agent received.
    pub fn agent_exited(&mut self) {
        self.phase = Phase::NotReady;
        for batch in &mut self.saved.sent {
            batch.state = BatchState::Unknown;
        }
    }

    /// Forgets a session that cannot be resumed, so that the batches are sent again, to the next session. Returns
    /// whether there was a session.
    pub fn forget_session(&mut self) -> bool {
        self.saved.session.take().is_some()
    }

    /// Marks the batches whose headings appear in `text` as received. `text` is part of the resumed session.
    fn mark_remembered(&mut self, text: &str) {
        let saved = &self.saved;
        let remembered: Vec<bool> = saved
            .sent
            .iter()
            .map(|batch| text.contains(&saved.heading(&self.address, batch.number)))
            .collect();
        for (batch, remembered) in self.saved.sent.iter_mut().zip(remembered) {
            if remembered {
                batch.state = BatchState::Received;
            }
        }
    }

    /// Handles [`AgentEvent::Ready`]. Batches that the agent's session does not contain stay in `saved.sent`, and
    /// are sent again before new mail.
    fn ready(&mut self, session: &str, actions: &mut Vec<Action>) {
        let sent = std::mem::take(&mut self.saved.sent);
        let (received, lost): (Vec<MailBatch>, Vec<MailBatch>) =
            sent.into_iter().partition(|batch| batch.state == BatchState::Received);
        self.saved.sent = lost;
        if !received.is_empty() && self.saved.in_turn {
            self.waiting.push_front(resume_item());
        }
        self.saved.in_turn = false;
        self.saved.session = Some(session.to_owned());
        self.phase = Phase::Idle;
        // Mark the messages as shown before this state is saved. If the state were saved first, a crash could
        // leave messages that are unread but no longer in the saved state, and they would be sent again.
        let shown = keys(&received);
        if !shown.is_empty() {
            actions.push(Action::MarkShown(shown));
        }
        actions.push(Action::Persist(self.saved.clone()));
    }

    fn on_received(&mut self, note: TextNumber, actions: &mut Vec<Action>) {
        let found = self.saved.sent.iter_mut().find(|batch| batch.number == note.0);
        if let Some(batch) = found.filter(|batch| batch.state != BatchState::Received) {
            batch.state = BatchState::Received;
            let shown = keys(std::slice::from_ref(batch));
            if !shown.is_empty() {
                actions.push(Action::MarkShown(shown));
            }
        }
    }

    fn on_rejected(&mut self, note: TextNumber, actions: &mut Vec<Action>) {
        let Some(at) = self.saved.sent.iter().position(|batch| batch.number == note.0) else {
            return;
        };
        let batch = self.saved.sent.remove(at);
        for item in batch.items.into_iter().rev() {
            self.waiting.push_front(item);
        }
        actions.push(Action::Persist(self.saved.clone()));
    }

    fn turn_ended(&mut self, actions: &mut Vec<Action>) {
        // Keep the batches that the agent has not acknowledged: they may have come too late for this turn. The
        // agent will report whether it received them.
        self.saved.sent.retain(|batch| batch.state != BatchState::Received);
        self.saved.in_turn = false;
        actions.push(Action::Persist(self.saved.clone()));
    }

    /// Sends the next batch, if the agent can receive one now.
    fn send_next(&mut self, actions: &mut Vec<Action>) {
        // Wait for the acknowledgement of the previous batch: the agent could reorder unacknowledged batches.
        let is_sending = self.saved.sent.iter().any(|batch| batch.state == BatchState::Sent);
        let can_steer = self.mid_turn == MidTurn::Steered && self.may_steer;
        let can_send = match self.phase {
            Phase::Idle => true,
            Phase::Busy => can_steer,
            Phase::NotReady => false,
        };
        if !can_send || is_sending || self.held {
            return;
        }
        let resend = self.saved.sent.iter().position(|batch| batch.state == BatchState::Unknown);
        let at = match resend {
            Some(at) => at,
            None if self.waiting.is_empty() => return,
            None => {
                self.saved.last_number += 1;
                let number = self.saved.last_number;
                let batch =
                    MailBatch { number, items: self.take_items(), state: BatchState::Unknown };
                self.saved.sent.push(batch);
                self.saved.sent.len() - 1
            }
        };
        let Some(batch) = self.saved.sent.get_mut(at) else { return };
        batch.state = BatchState::Sent;
        let batch = batch.clone();
        let (note, text) = (TextNumber(batch.number), self.render(&batch));
        let starts_turn = self.phase == Phase::Idle;
        if starts_turn {
            self.is_resend = resend.is_some();
            self.saved.in_turn = true;
            self.phase = Phase::Busy;
            self.may_steer = false;
        }
        actions.push(Action::Persist(self.saved.clone()));
        if starts_turn {
            actions.push(Action::StartTurn(note, text));
        } else {
            self.may_steer = false;
            actions.push(Action::Steer(note, text));
        }
    }

    /// Takes as many queued items as fit into one batch, oldest first.
    fn take_items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let mut size = 0;
        while let Some(next) = self.waiting.front() {
            size += next.text.len();
            if size > MAX_TURN_TEXT && !items.is_empty() {
                break;
            }
            items.extend(self.waiting.pop_front());
        }
        items
    }

    fn render(&self, batch: &MailBatch) -> String {
        let texts: Vec<&str> = batch.items.iter().map(|item| item.text.as_str()).collect();
        let heading = self.saved.heading(&self.address, batch.number);
        format!("{heading}\n{}", texts.join("\n"))
    }
}

fn resume_item() -> Item {
    Item { message: None, text: RESUME_PROMPT.to_owned() }
}

fn keys(batches: &[MailBatch]) -> Vec<MessageKey> {
    let items = batches.iter().flat_map(|batch| &batch.items);
    items.filter_map(|item| item.message).collect()
}
