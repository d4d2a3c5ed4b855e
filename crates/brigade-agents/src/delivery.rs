//! Unread mail becoming turns of an agent, exactly once as its model sees it.
//!
//! A pure state machine: it is told what arrived and what the agent did, and says what is to be
//! done. What is given to the agent is numbered, and written down before it is given. If the agent
//! dies, its own session tells afterwards which numbers it remembers; the others are given again.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::driver::{End, Event, MidTurn, Note};
use brigade_core::event::MessageKey;
use brigade_core::hash::Fnv;

/// How much text goes into one turn. What is more waits for the next.
const MOST: usize = 200_000;

/// The turn that follows a restart in the middle of one.
pub(crate) const GO_ON: &str =
    "Your program was restarted in the middle of a turn. Go on where you were.";

/// Something for the agent to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parcel {
    /// The message it is, unless a person typed it.
    pub key: Option<MessageKey>,
    /// What the agent reads.
    pub text: String,
}

/// Parcels given to the agent in one piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Flight {
    number: u64,
    parcels: Vec<Parcel>,
    #[serde(skip)]
    place: Place,
}

/// Where a flight is. After a crash nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Perhaps with the agent; if it does not say so, it is given again, under the same number.
    #[default]
    Unknown,
    /// On its way to the agent.
    InTheAir,
    /// The agent said it has it, or was found to remember it.
    Arrived,
}

/// What has to be known after a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The agent's own session.
    pub session: Option<String>,
    /// What nobody who writes to the agent can know.
    #[serde(default)]
    secret: u64,
    /// The last number that was given out.
    last: u64,
    /// What was given to the agent in the turn that is on.
    given: Vec<Flight>,
    /// Whether a turn is on.
    turn: bool,
}

impl Memory {
    /// What is known at the very beginning. The caller brings the randomness.
    pub fn new(secret: u64) -> Self {
        Self { secret, ..Self::default() }
    }

    /// The line by which a text is known again. Nobody can write it beforehand, for of two texts
    /// with one line the second would pass for given.
    fn heading(&self, address: &str, number: u64) -> String {
        let secret = Fnv::default().field(&self.secret.to_le_bytes());
        let mark = secret.field(&number.to_le_bytes()).finish() >> 32;
        format!("[mail {number}-{mark:08x} for {address}]")
    }
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write this down; what follows is done afterwards.
    Keep(Memory),
    /// Begin a turn with this text.
    Prompt(Note, String),
    /// Put this text into the turn that is on.
    Steer(Note, String),
    /// The agent has these messages.
    Shown(Vec<MessageKey>),
    /// A turn has begun.
    Busy,
    /// The turn has ended and nothing waits.
    Idle(End),
}

/// What the agent is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It cannot be prompted yet, or not any more.
    Away,
    Idle,
    Busy,
}

/// The delivery of one member.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Who the mail is for, as in `bob@demo`.
    address: String,
    mid_turn: MidTurn,
    phase: Phase,
    memory: Memory,
    waiting: VecDeque<Parcel>,
    /// Whether the agent has got on since it was last steered: a steer cuts short what the model is
    /// saying, and one after the other would never let it speak.
    may_steer: bool,
    /// Whether the turn that is on was begun with what an agent that died may have had already, and
    /// has not begun: then the agent knew it, and takes it for done.
    given_again: bool,
}

impl Delivery {
    /// The delivery for `address`, going on from what was written down.
    pub fn new(address: String, mid_turn: MidTurn, memory: Memory) -> Self {
        let mut delivery = Self {
            address,
            mid_turn,
            phase: Phase::Away,
            memory,
            waiting: VecDeque::new(),
            may_steer: false,
            given_again: false,
        };
        delivery.down();
        delivery
    }

    /// What is written down of it.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Whether something was given to the agent of which it is not known what became of it.
    pub fn is_in_doubt(&self) -> bool {
        self.memory.given.iter().any(|flight| flight.place == Place::Unknown)
    }

    /// Whether the message is on its way to the agent, or was given to it in the turn that is on.
    pub fn has(&self, key: MessageKey) -> bool {
        let given = self.memory.given.iter().flat_map(|flight| &flight.parcels);
        given.chain(&self.waiting).any(|parcel| parcel.key == Some(key))
    }

    /// Something arrived.
    pub fn arrived(&mut self, parcels: impl IntoIterator<Item = Parcel>) -> Vec<Action> {
        for parcel in parcels {
            if parcel.key.is_none_or(|key| !self.has(key)) {
                self.waiting.push_back(parcel);
            }
        }
        let mut actions = Vec::new();
        self.give(&mut actions);
        actions
    }

    /// The agent did something.
    pub fn heard(&mut self, event: &Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Remembers { text } => self.remembered(text),
            Event::Ready { session } => self.ready(session, &mut actions),
            Event::Taken(note) => self.taken(*note, &mut actions),
            Event::NotTaken(note) => self.not_taken(*note, &mut actions),
            Event::TurnStarted => {
                self.phase = Phase::Busy;
                self.may_steer = true;
                self.given_again = false;
                actions.push(Action::Busy);
            }
            Event::ToolStarted { .. } | Event::ToolEnded { .. } => self.may_steer = true,
            Event::TurnEnded(end) => {
                self.phase = Phase::Idle;
                if std::mem::take(&mut self.given_again) {
                    self.waiting.push_front(go_on());
                }
                self.turn_ended(&mut actions);
                // What failed would most likely fail again at once; it is tried with the next look.
                if !matches!(end, End::Failed(_) | End::Limited(_)) {
                    self.give(&mut actions);
                }
                if self.phase == Phase::Idle {
                    actions.push(Action::Idle(end.clone()));
                }
                return actions;
            }
            Event::Broken { .. } => self.phase = Phase::Away,
            _ => {}
        }
        self.give(&mut actions);
        actions
    }

    /// The agent's program has ended.
    pub fn down(&mut self) {
        self.phase = Phase::Away;
        for flight in &mut self.memory.given {
            flight.place = Place::Unknown;
        }
    }

    /// The agent's session is no more. What it was given in it is given again; whether there was one.
    pub fn forget_session(&mut self) -> bool {
        self.memory.session.take().is_some()
    }

    /// A session that is resumed holds this text.
    fn remembered(&mut self, text: &str) {
        let memory = &self.memory;
        let remembered: Vec<bool> = memory
            .given
            .iter()
            .map(|flight| text.contains(&memory.heading(&self.address, flight.number)))
            .collect();
        for (flight, remembered) in self.memory.given.iter_mut().zip(remembered) {
            if remembered {
                flight.place = Place::Arrived;
            }
        }
    }

    /// The agent can be prompted. What it does not remember is given again, before all else.
    fn ready(&mut self, session: &str, actions: &mut Vec<Action>) {
        let given = std::mem::take(&mut self.memory.given);
        let (there, lost): (Vec<Flight>, Vec<Flight>) =
            given.into_iter().partition(|flight| flight.place == Place::Arrived);
        self.memory.given = lost;
        if !there.is_empty() && self.memory.turn {
            self.waiting.push_front(go_on());
        }
        self.memory.turn = false;
        self.memory.session = Some(session.to_owned());
        self.phase = Phase::Idle;
        // Before what was given is forgotten: whoever dies in between would find them unread, and
        // give them once more.
        let shown = keys(&there);
        if !shown.is_empty() {
            actions.push(Action::Shown(shown));
        }
        actions.push(Action::Keep(self.memory.clone()));
    }

    fn taken(&mut self, note: Note, actions: &mut Vec<Action>) {
        let found = self.memory.given.iter_mut().find(|flight| flight.number == note.0);
        if let Some(flight) = found.filter(|flight| flight.place != Place::Arrived) {
            flight.place = Place::Arrived;
            let shown = keys(std::slice::from_ref(flight));
            if !shown.is_empty() {
                actions.push(Action::Shown(shown));
            }
        }
    }

    fn not_taken(&mut self, note: Note, actions: &mut Vec<Action>) {
        let Some(at) = self.memory.given.iter().position(|flight| flight.number == note.0) else {
            return;
        };
        let flight = self.memory.given.remove(at);
        for parcel in flight.parcels.into_iter().rev() {
            self.waiting.push_front(parcel);
        }
        actions.push(Action::Keep(self.memory.clone()));
    }

    fn turn_ended(&mut self, actions: &mut Vec<Action>) {
        // What was given and not yet said to be taken may have come too late for the turn; the
        // agent says which.
        self.memory.given.retain(|flight| flight.place != Place::Arrived);
        self.memory.turn = false;
        actions.push(Action::Keep(self.memory.clone()));
    }

    /// Gives the agent what waits, if it can have it now.
    fn give(&mut self, actions: &mut Vec<Action>) {
        // One at a time: two that cross could change their order.
        let in_the_air = self.memory.given.iter().any(|flight| flight.place == Place::InTheAir);
        let steer = self.mid_turn == MidTurn::Steered && self.may_steer;
        let now = match self.phase {
            Phase::Idle => true,
            Phase::Busy => steer,
            Phase::Away => false,
        };
        if !now || in_the_air {
            return;
        }
        let again = self.memory.given.iter().position(|flight| flight.place == Place::Unknown);
        let at = match again {
            Some(at) => at,
            None if self.waiting.is_empty() => return,
            None => {
                self.memory.last += 1;
                let number = self.memory.last;
                let flight = Flight { number, parcels: self.load(), place: Place::Unknown };
                self.memory.given.push(flight);
                self.memory.given.len() - 1
            }
        };
        let Some(flight) = self.memory.given.get_mut(at) else { return };
        flight.place = Place::InTheAir;
        let flight = flight.clone();
        let (note, text) = (Note(flight.number), self.text(&flight));
        let begins = self.phase == Phase::Idle;
        if begins {
            self.given_again = again.is_some();
            self.memory.turn = true;
            self.phase = Phase::Busy;
            self.may_steer = false;
        }
        actions.push(Action::Keep(self.memory.clone()));
        if begins {
            actions.push(Action::Prompt(note, text));
        } else {
            self.may_steer = false;
            actions.push(Action::Steer(note, text));
        }
    }

    /// As much of what waits as goes into one turn, in order.
    fn load(&mut self) -> Vec<Parcel> {
        let mut parcels = Vec::new();
        let mut size = 0;
        while let Some(next) = self.waiting.front() {
            size += next.text.len();
            if size > MOST && !parcels.is_empty() {
                break;
            }
            parcels.extend(self.waiting.pop_front());
        }
        parcels
    }

    fn text(&self, flight: &Flight) -> String {
        let texts: Vec<&str> = flight.parcels.iter().map(|parcel| parcel.text.as_str()).collect();
        let heading = self.memory.heading(&self.address, flight.number);
        format!("{heading}\n{}", texts.join("\n"))
    }
}

fn go_on() -> Parcel {
    Parcel { key: None, text: GO_ON.to_owned() }
}

fn keys(flights: &[Flight]) -> Vec<MessageKey> {
    let parcels = flights.iter().flat_map(|flight| &flight.parcels);
    parcels.filter_map(|parcel| parcel.key).collect()
}
