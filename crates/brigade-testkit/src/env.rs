//! A test team in any store, with seats for its members and a clock that advances on each call.

use std::sync::Arc;

use brigade_core::clock::{Clock, SteppingClock};
use brigade_core::mail;
use brigade_core::roster::{self, MemberPlan, TeamPlan};
use brigade_core::seat::Seat;
use brigade_core::store::{Actor, Outgoing, Store};
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use uuid::Uuid;

/// Returns a clock that starts at a fixed time and advances by one second on each call.
pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SteppingClock::from("2026-11-15T12:00:00Z".parse().unwrap()))
}

pub(crate) fn actor() -> Actor {
    Actor("team-lead".into())
}

/// A store that contains the team `demo`, whose members are the lead, `alice` and `bob`.
#[derive(Clone, Debug)]
pub struct TestEnv {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The clock that all seats use.
    pub clock: Arc<dyn Clock>,
}

impl TestEnv {
    /// Creates the team in this store.
    pub async fn build(store: Arc<dyn Store>) -> Self {
        let env = Self { store, clock: clock() };
        let lead = env.seat("team-lead");
        roster::create(&lead, team_plan()).await.unwrap();
        for name in ["alice", "bob"] {
            roster::join(&lead, &member(name), member_plan()).await.unwrap();
        }
        env
    }

    /// Returns the seat of a member.
    pub fn seat(&self, name: &str) -> Seat {
        let seat = Seat::new(Arc::clone(&self.store), team(), member(name));
        seat.with_clock(Arc::clone(&self.clock))
    }

    /// Sends a message and returns its id.
    pub async fn say(&self, from: &str, to: &str, text: &str) -> String {
        mail::send(&self.seat(from), to, text).await.unwrap().receipt.msg_id
    }

    /// Returns the texts of the messages in an inbox, and whether each message is marked as read.
    pub async fn texts(&self, name: &str) -> Vec<(String, bool)> {
        let mail = self.store.inbox(&team(), &member(name)).await.unwrap();
        mail.iter().map(|mail| (mail.text(), !mail.is_unread())).collect()
    }
}

/// Returns the name of the test team.
pub fn team() -> TeamName {
    "demo".parse().unwrap()
}

/// Parses the name of a member.
pub fn member(name: &str) -> MemberName {
    name.parse().unwrap()
}

/// Returns a team plan with arbitrary values.
pub fn team_plan() -> TeamPlan<'static> {
    TeamPlan { description: "a test", lead_model: "none", cwd: "/" }
}

/// Returns a member plan with arbitrary values.
pub fn member_plan() -> MemberPlan<'static> {
    MemberPlan {
        agent_type: "general-purpose",
        model: "none",
        prompt: "",
        cwd: "/",
        backend_type: brigade_core::wire::backend::PROCESS,
    }
}

/// Puts a message into an inbox without any checks, as a program other than brigade could.
pub async fn write(env: &TestEnv, from: &str, to: &str, text: &str) {
    let config = env.store.team(&team()).await.unwrap().unwrap();
    let message = Outgoing {
        team_created: Team::read(&config.bytes).unwrap().created_at().unwrap(),
        ..message(&Uuid::new_v4().to_string(), from, text)
    };
    env.store.send(&team(), &member(to), &message).await.unwrap();
}

pub(crate) fn message(id: &str, from: &str, text: &str) -> Outgoing {
    Outgoing {
        msg_id: id.into(),
        from: from.into(),
        text: text.into(),
        summary: None,
        timestamp: "2026-11-15T12:00:00.000Z".into(),
        color: None,
        msg_v: None,
        lead_sig: None,
        team_created: 0,
    }
}
