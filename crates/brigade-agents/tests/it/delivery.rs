//! Tests that mail is delivered as turns. Most tests take fixed steps. One test simulates random crashes.

use brigade_agents::delivery::{Action, Delivery, Item, SavedState};
use brigade_agents::driver::{AgentEvent, MidTurn, TextNumber, TurnEnd};
use brigade_core::event::MessageKey;
use proptest::prelude::*;

fn item(number: u64) -> Item {
    let message = Some(MessageKey::from_id(&format!("message {number}")));
    Item { message, text: format!("<message {number}>") }
}

fn delivery(mid_turn: MidTurn) -> Delivery {
    Delivery::new("bob@demo".into(), mid_turn, SavedState::new(7))
}

/// Renders actions as text, except `Persist` actions.
fn rendered(actions: &[Action]) -> Vec<String> {
    let render = |action: &Action| match action {
        Action::Persist(_) => None,
        Action::StartTurn(note, text) => Some(format!("prompt {}: {}", note.0, body(text))),
        Action::Steer(note, text) => Some(format!("steer {}: {}", note.0, body(text))),
        Action::MarkShown(keys) => Some(format!("shown {}", keys.len())),
        Action::TurnStarted => Some("busy".into()),
        Action::TurnEnded(TurnEnd::Done) => Some("idle".into()),
        Action::TurnEnded(end) => Some(format!("idle, {end:?}")),
    };
    actions.iter().filter_map(render).collect()
}

/// Returns a batch's text without its heading, in one line.
fn body(text: &str) -> String {
    text.lines().skip(1).collect::<Vec<_>>().join(" ")
}

fn ready() -> AgentEvent {
    AgentEvent::Ready { session: "s".into() }
}

fn tool() -> AgentEvent {
    AgentEvent::ToolEnded { id: "1".into(), ok: true, why: String::new() }
}

#[test]
fn waiting_items_become_one_turn_in_order() {
    let mut bob = delivery(MidTurn::Held);
    assert!(rendered(&bob.enqueue([item(1)])).is_empty());
    assert!(rendered(&bob.enqueue([item(2), item(1)])).is_empty());
    assert_eq!(rendered(&bob.on_event(&ready())), ["prompt 1: <message 1> <message 2>"]);
    assert_eq!(rendered(&bob.on_event(&AgentEvent::Taken(TextNumber(1)))), ["shown 2"]);
    assert_eq!(rendered(&bob.on_event(&AgentEvent::TurnStarted)), ["busy"]);
    assert!(rendered(&bob.enqueue([item(1), item(2)])).is_empty());
    assert_eq!(rendered(&bob.on_event(&AgentEvent::TurnEnded(TurnEnd::Done))), ["idle"]);
}

#[test]
fn without_steering_mail_waits_for_the_end_of_the_turn() {
    let mut bob = delivery(MidTurn::Held);
    bob.on_event(&ready());
    bob.enqueue([item(1)]);
    bob.on_event(&AgentEvent::Taken(TextNumber(1)));
    bob.on_event(&AgentEvent::TurnStarted);
    assert!(rendered(&bob.enqueue([item(2)])).is_empty());
    assert!(rendered(&bob.on_event(&tool())).is_empty());
    let next = ["prompt 2: <message 2>"];
    assert_eq!(rendered(&bob.on_event(&AgentEvent::TurnEnded(TurnEnd::Interrupted))), next);
}

#[test]
fn an_agent_is_steered_again_only_after_it_made_progress() {
    let mut bob = delivery(MidTurn::Steered);
    bob.on_event(&ready());
    bob.enqueue([item(1)]);
    bob.on_event(&AgentEvent::Taken(TextNumber(1)));
    // The agent is not steered before the turn has started.
    assert!(rendered(&bob.enqueue([item(2)])).is_empty());
    assert_eq!(rendered(&bob.on_event(&AgentEvent::TurnStarted)), ["busy", "steer 2: <message 2>"]);
    assert_eq!(rendered(&bob.on_event(&AgentEvent::Taken(TextNumber(2)))), ["shown 1"]);
    assert!(rendered(&bob.enqueue([item(3)])).is_empty());
    assert_eq!(rendered(&bob.on_event(&tool())), ["steer 3: <message 3>"]);
    // The agent rejects the text, which came too late for this turn. So the message starts the next turn.
    assert!(rendered(&bob.on_event(&AgentEvent::NotTaken(TextNumber(3)))).is_empty());
    let next = ["prompt 4: <message 3>"];
    assert_eq!(rendered(&bob.on_event(&AgentEvent::TurnEnded(TurnEnd::Done))), next);
}

#[test]
fn after_a_crash_batches_in_the_session_are_not_sent_again() {
    let mut bob = delivery(MidTurn::Held);
    bob.on_event(&ready());
    let actions = bob.enqueue([item(1)]);
    let Some(Action::StartTurn(_, text)) = actions.last() else { panic!("{actions:?}") };
    let saved = bob.saved().clone();
    // If the agent's session contains the batch, the agent is asked to continue its turn.
    let mut restarted = Delivery::new("bob@demo".into(), MidTurn::Held, saved.clone());
    restarted.on_event(&AgentEvent::Remembers { text: text.clone() });
    let resume_prompt = "prompt 2: Your program was restarted in the middle of a turn. Continue where you left off.";
    assert_eq!(rendered(&restarted.on_event(&ready())), ["shown 1", resume_prompt]);
    // If the session does not contain the batch, the batch is sent again. A forged heading in the session does not
    // count.
    let mut restarted = Delivery::new("bob@demo".into(), MidTurn::Held, saved);
    restarted.on_event(&AgentEvent::Remembers { text: "[mail 1-00000000 for bob@demo]".into() });
    assert_eq!(rendered(&restarted.on_event(&ready())), ["prompt 1: <message 1>"]);
    // The agent recognizes the batch's number and starts no turn. The driver reports only the end of a turn.
    assert_eq!(rendered(&restarted.on_event(&AgentEvent::Taken(TextNumber(1)))), ["shown 1"]);
    assert_eq!(
        rendered(&restarted.on_event(&AgentEvent::TurnEnded(TurnEnd::Done))),
        [resume_prompt]
    );
}

/// Marking must come first, because the member's process may crash between the two actions.
#[test]
fn remembered_messages_are_marked_before_the_state_is_persisted() {
    let mut bob = delivery(MidTurn::Held);
    bob.on_event(&ready());
    let actions = bob.enqueue([item(1)]);
    let Some(Action::StartTurn(_, text)) = actions.last() else { panic!("{actions:?}") };
    let mut restarted = Delivery::new("bob@demo".into(), MidTurn::Held, bob.saved().clone());
    restarted.on_event(&AgentEvent::Remembers { text: text.clone() });
    let actions = restarted.on_event(&ready());
    assert!(matches!(actions.first(), Some(Action::MarkShown(_))), "{actions:?}");
}

/// Simulates an agent and the member's process. After a crash, only the session and the saved state remain.
struct DeliverySim {
    delivery: Delivery,
    persisted: SavedState,
    /// The texts in the agent's session, in the order in which the model saw them.
    session: Vec<String>,
    /// Texts that the agent has not read yet: number, text, and whether the text starts a turn.
    pending: Vec<(TextNumber, String, bool)>,
    sent: u64,
    shown: Vec<MessageKey>,
    mid_turn: MidTurn,
}

impl DeliverySim {
    fn new(mid_turn: MidTurn) -> Self {
        let persisted = SavedState::new(7);
        let delivery = Delivery::new("bob@demo".into(), mid_turn, persisted.clone());
        let (session, pending, shown) = (Vec::new(), Vec::new(), Vec::new());
        let mut sim = Self { delivery, persisted, session, pending, sent: 0, shown, mid_turn };
        sim.start();
        sim
    }

    fn unread(&self) -> Vec<Item> {
        let all = (1..=self.sent).map(item);
        all.filter(|item| !item.message.is_some_and(|key| self.shown.contains(&key))).collect()
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Persist(saved) => self.persisted = saved,
                Action::StartTurn(note, text) => self.pending.push((note, text, true)),
                Action::Steer(note, text) => self.pending.push((note, text, false)),
                Action::MarkShown(keys) => self.shown.extend(keys),
                Action::TurnStarted | Action::TurnEnded(_) => {}
            }
        }
    }

    fn report(&mut self, event: &AgentEvent) {
        let actions = self.delivery.on_event(event);
        self.carry_out(actions);
    }

    /// Starts the agent, which resumes its session.
    fn start(&mut self) {
        self.pending.clear();
        for text in self.session.clone() {
            self.report(&AgentEvent::Remembers { text });
        }
        self.report(&ready());
        let unread = self.unread();
        let actions = self.delivery.enqueue(unread);
        self.carry_out(actions);
    }

    /// Adds the next pending text to the agent's session. If `acknowledges` is false, the agent dies before it
    /// acknowledges the text.
    fn receive(&mut self, acknowledges: bool) {
        if self.pending.is_empty() {
            return;
        }
        let (note, text, starts_turn) = self.pending.remove(0);
        self.session.push(text);
        if acknowledges {
            self.report(&AgentEvent::Taken(note));
            if starts_turn {
                self.report(&AgentEvent::TurnStarted);
            }
        }
    }

    fn step(&mut self, step: u8) {
        match step % 8 {
            0 | 1 => {
                self.sent += 1;
                let unread = self.unread();
                let actions = self.delivery.enqueue(unread);
                self.carry_out(actions);
            }
            2 => self.receive(true),
            3 => self.report(&tool()),
            4 if self.pending.is_empty() => self.report(&AgentEvent::TurnEnded(TurnEnd::Done)),
            // The agent dies, possibly right after it added a text to its session.
            5 => {
                self.receive(false);
                self.delivery.agent_exited();
                self.start();
            }
            // The member's process and its agent die and are restarted.
            6 => {
                let saved = self.persisted.clone();
                self.delivery = Delivery::new("bob@demo".into(), self.mid_turn, saved);
                self.start();
            }
            // The agent rejects a text that came too late for the running turn.
            7 if self.pending.first().is_some_and(|(_, _, starts_turn)| !starts_turn) => {
                let (note, ..) = self.pending.remove(0);
                self.report(&AgentEvent::NotTaken(note));
            }
            _ => {}
        }
    }

    fn times(&self, number: u64) -> usize {
        let needle = format!("<message {number}>");
        self.session.iter().map(|text| text.matches(&needle).count()).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// No matter which process dies and when, the model sees each message once and in order.
    #[test]
    fn each_message_is_seen_once_and_in_order(
        steps in prop::collection::vec(0u8..8, 0..120),
        steered in any::<bool>(),
    ) {
        let mut sim = DeliverySim::new(if steered { MidTurn::Steered } else { MidTurn::Held });
        for step in steps {
            sim.step(step);
            for number in 1..=sim.sent {
                prop_assert!(sim.times(number) <= 1, "message {number} was seen twice: {:?}", sim.session);
            }
        }
        // Continue without crashes until every message must have arrived.
        for _ in 0..=2 * sim.sent {
            sim.receive(true);
            sim.report(&AgentEvent::TurnEnded(TurnEnd::Done));
        }
        for number in 1..=sim.sent {
            prop_assert_eq!(sim.times(number), 1, "{}", number);
        }
        let all = sim.session.join("\n");
        let positions: Vec<_> =
            (1..=sim.sent).map(|n| all.find(&format!("<message {n}>"))).collect();
        prop_assert!(positions.is_sorted(), "{all}");
    }
}
