//! Mail becoming turns: step by step, and under any crash.

use brigade_agents::delivery::{Action, Delivery, Memory, Parcel};
use brigade_agents::driver::{End, Event, MidTurn, Note};
use brigade_core::event::MessageKey;
use proptest::prelude::*;

fn parcel(number: u64) -> Parcel {
    let key = Some(MessageKey::of_id(&format!("message {number}")));
    Parcel { key, text: format!("<message {number}>") }
}

fn delivery(mid_turn: MidTurn) -> Delivery {
    Delivery::new("bob@demo".into(), mid_turn, Memory::new(7))
}

/// Actions as a person reads them; what is only written down is left out.
fn told(actions: &[Action]) -> Vec<String> {
    let tell = |action: &Action| match action {
        Action::Keep(_) => None,
        Action::Prompt(note, text) => Some(format!("prompt {}: {}", note.0, body(text))),
        Action::Steer(note, text) => Some(format!("steer {}: {}", note.0, body(text))),
        Action::Shown(keys) => Some(format!("shown {}", keys.len())),
        Action::Busy => Some("busy".into()),
        Action::Idle(End::Done) => Some("idle".into()),
        Action::Idle(end) => Some(format!("idle, {end:?}")),
    };
    actions.iter().filter_map(tell).collect()
}

/// A text without its heading.
fn body(text: &str) -> String {
    text.lines().skip(1).collect::<Vec<_>>().join(" ")
}

fn ready() -> Event {
    Event::Ready { session: "s".into() }
}

fn tool() -> Event {
    Event::ToolEnded { id: "1".into(), ok: true }
}

#[test]
fn what_waits_becomes_one_turn_in_order() {
    let mut bob = delivery(MidTurn::Held);
    assert!(told(&bob.arrived([parcel(1)])).is_empty());
    assert!(told(&bob.arrived([parcel(2), parcel(1)])).is_empty());
    assert_eq!(told(&bob.heard(&ready())), ["prompt 1: <message 1> <message 2>"]);
    assert_eq!(told(&bob.heard(&Event::Taken(Note(1)))), ["shown 2"]);
    assert_eq!(told(&bob.heard(&Event::TurnStarted)), ["busy"]);
    assert!(told(&bob.arrived([parcel(1), parcel(2)])).is_empty());
    assert_eq!(told(&bob.heard(&Event::TurnEnded(End::Done))), ["idle"]);
}

#[test]
fn a_busy_agent_that_cannot_be_steered_gets_its_mail_afterwards() {
    let mut bob = delivery(MidTurn::Held);
    bob.heard(&ready());
    bob.arrived([parcel(1)]);
    bob.heard(&Event::Taken(Note(1)));
    bob.heard(&Event::TurnStarted);
    assert!(told(&bob.arrived([parcel(2)])).is_empty());
    assert!(told(&bob.heard(&tool())).is_empty());
    let next = ["prompt 2: <message 2>"];
    assert_eq!(told(&bob.heard(&Event::TurnEnded(End::Interrupted))), next);
}

#[test]
fn a_busy_agent_that_can_be_is_steered_and_then_let_get_on() {
    let mut bob = delivery(MidTurn::Steered);
    bob.heard(&ready());
    bob.arrived([parcel(1)]);
    bob.heard(&Event::Taken(Note(1)));
    // Not before the turn has begun.
    assert!(told(&bob.arrived([parcel(2)])).is_empty());
    assert_eq!(told(&bob.heard(&Event::TurnStarted)), ["busy", "steer 2: <message 2>"]);
    assert_eq!(told(&bob.heard(&Event::Taken(Note(2)))), ["shown 1"]);
    assert!(told(&bob.arrived([parcel(3)])).is_empty());
    assert_eq!(told(&bob.heard(&tool())), ["steer 3: <message 3>"]);
    // Too late for the turn: it comes in the next.
    assert!(told(&bob.heard(&Event::NotTaken(Note(3)))).is_empty());
    let next = ["prompt 4: <message 3>"];
    assert_eq!(told(&bob.heard(&Event::TurnEnded(End::Done))), next);
}

#[test]
fn after_a_crash_what_the_session_remembers_is_not_given_again() {
    let mut bob = delivery(MidTurn::Held);
    bob.heard(&ready());
    let actions = bob.arrived([parcel(1)]);
    let Some(Action::Prompt(_, text)) = actions.last() else { panic!("{actions:?}") };
    let memory = bob.memory().clone();
    // The agent has it: it goes on where it was.
    let mut again = Delivery::new("bob@demo".into(), MidTurn::Held, memory.clone());
    again.heard(&Event::Remembers { text: text.clone() });
    let go_on =
        "prompt 2: Your program was restarted in the middle of a turn. Go on where you were.";
    assert_eq!(told(&again.heard(&ready())), ["shown 1", go_on]);
    // It has not, whatever somebody wrote into an earlier message.
    let mut again = Delivery::new("bob@demo".into(), MidTurn::Held, memory);
    again.heard(&Event::Remembers { text: "[mail 1-00000000 for bob@demo]".into() });
    assert_eq!(told(&again.heard(&ready())), ["prompt 1: <message 1>"]);
    // Or it knows it all the same, by its number, and has nothing to do for it.
    assert_eq!(told(&again.heard(&Event::Taken(Note(1)))), ["shown 1"]);
    assert_eq!(told(&again.heard(&Event::TurnEnded(End::Done))), [go_on]);
}

/// Between two actions the house may die as well.
#[test]
fn what_the_session_remembers_is_marked_before_it_is_forgotten() {
    let mut bob = delivery(MidTurn::Held);
    bob.heard(&ready());
    let actions = bob.arrived([parcel(1)]);
    let Some(Action::Prompt(_, text)) = actions.last() else { panic!("{actions:?}") };
    let mut again = Delivery::new("bob@demo".into(), MidTurn::Held, bob.memory().clone());
    again.heard(&Event::Remembers { text: text.clone() });
    let actions = again.heard(&ready());
    assert!(matches!(actions.first(), Some(Action::Shown(_))), "{actions:?}");
}

/// An agent and its session, which survives it; and a house that survives nothing but its memory.
struct World {
    delivery: Delivery,
    kept: Memory,
    /// What stands in the session: each text once for each time the model was given it.
    session: Vec<String>,
    /// What the agent was given and has not dealt with.
    hands: Vec<(Note, String, bool)>,
    arrived: u64,
    shown: Vec<MessageKey>,
    mid_turn: MidTurn,
}

impl World {
    fn new(mid_turn: MidTurn) -> Self {
        let kept = Memory::new(7);
        let delivery = Delivery::new("bob@demo".into(), mid_turn, kept.clone());
        let (session, hands, shown) = (Vec::new(), Vec::new(), Vec::new());
        let mut world = Self { delivery, kept, session, hands, arrived: 0, shown, mid_turn };
        world.start();
        world
    }

    fn unread(&self) -> Vec<Parcel> {
        let all = (1..=self.arrived).map(parcel);
        all.filter(|parcel| !parcel.key.is_some_and(|key| self.shown.contains(&key))).collect()
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Keep(memory) => self.kept = memory,
                Action::Prompt(note, text) => self.hands.push((note, text, true)),
                Action::Steer(note, text) => self.hands.push((note, text, false)),
                Action::Shown(keys) => self.shown.extend(keys),
                Action::Busy | Action::Idle(_) => {}
            }
        }
    }

    fn hear(&mut self, event: &Event) {
        let actions = self.delivery.heard(event);
        self.act(actions);
    }

    /// The agent is started, with its session.
    fn start(&mut self) {
        self.hands.clear();
        for text in self.session.clone() {
            self.hear(&Event::Remembers { text });
        }
        self.hear(&ready());
        let unread = self.unread();
        let actions = self.delivery.arrived(unread);
        self.act(actions);
    }

    /// The agent takes what it was given into its session, and says so, unless it dies in between.
    fn take(&mut self, says: bool) {
        if self.hands.is_empty() {
            return;
        }
        let (note, text, begins) = self.hands.remove(0);
        self.session.push(text);
        if says {
            self.hear(&Event::Taken(note));
            if begins {
                self.hear(&Event::TurnStarted);
            }
        }
    }

    fn step(&mut self, step: u8) {
        match step % 8 {
            0 | 1 => {
                self.arrived += 1;
                let unread = self.unread();
                let actions = self.delivery.arrived(unread);
                self.act(actions);
            }
            2 => self.take(true),
            3 => self.hear(&tool()),
            4 if self.hands.is_empty() => self.hear(&Event::TurnEnded(End::Done)),
            // The agent dies, perhaps right after taking something.
            5 => {
                self.take(false);
                self.delivery.down();
                self.start();
            }
            // The house dies and is started again, and the agent with it.
            6 => {
                let memory = self.kept.clone();
                self.delivery = Delivery::new("bob@demo".into(), self.mid_turn, memory);
                self.start();
            }
            // A steer that came too late.
            7 if self.hands.first().is_some_and(|(_, _, begins)| !begins) => {
                let (note, ..) = self.hands.remove(0);
                self.hear(&Event::NotTaken(note));
            }
            _ => {}
        }
    }

    fn times(&self, number: u64) -> usize {
        let what = format!("<message {number}>");
        self.session.iter().map(|text| text.matches(&what).count()).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whoever dies whenever: each message is put before the model once, in order.
    #[test]
    fn each_message_is_seen_once_and_in_order(
        steps in prop::collection::vec(0u8..8, 0..120),
        steered in any::<bool>(),
    ) {
        let mut world = World::new(if steered { MidTurn::Steered } else { MidTurn::Held });
        for step in steps {
            world.step(step);
            for number in 1..=world.arrived {
                prop_assert!(world.times(number) <= 1, "{number} twice: {:?}", world.session);
            }
        }
        // Left in peace, all of it arrives.
        for _ in 0..=2 * world.arrived {
            world.take(true);
            world.hear(&Event::TurnEnded(End::Done));
        }
        for number in 1..=world.arrived {
            prop_assert_eq!(world.times(number), 1, "{}", number);
        }
        let all = world.session.join("\n");
        let places: Vec<_> =
            (1..=world.arrived).map(|n| all.find(&format!("<message {n}>"))).collect();
        prop_assert!(places.is_sorted(), "{all}");
    }
}
