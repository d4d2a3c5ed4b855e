//! A native teammate agrees to stop, and its lead takes it off the team.

use std::sync::Arc;

use brigade_core::board::{self, TaskPlan};
use brigade_core::clock::SystemClock;
use brigade_core::handshake::{self, farewell};
use brigade_core::roster;
use brigade_core::store::Outgoing;
use brigade_core::store::memory::MemoryStore;
use brigade_testkit::contract::run;
use brigade_testkit::env::{House, member, member_plan, team, team_plan};
use brigade_wire::team::Team;

/// A team whose clock is that of its store.
fn in_time<F: Future<Output = ()>>(test: impl FnOnce(House) -> F) {
    run(async {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        let house = House { store, clock: Arc::new(SystemClock) };
        let lead = house.seat("team-lead");
        roster::create(&lead, team_plan()).await.unwrap();
        for name in ["alice", "bob"] {
            roster::join(&lead, &member(name), member_plan()).await.unwrap();
        }
        test(house).await;
    });
}

/// What a native teammate writes to the lead when it agrees.
async fn agree(house: &House, writer: &str, from: &str, id: &str) {
    let config = house.store.team(&team()).await.unwrap().unwrap();
    let text = format!(
        r#"{{"type":"shutdown_approved","requestId":"{id}","from":"{from}","timestamp":"2026-11-15T10:04:14.758Z"}}"#
    );
    let message = Outgoing {
        msg_id: uuid::Uuid::new_v4().to_string(),
        from: writer.into(),
        text,
        summary: None,
        timestamp: "2026-11-15T10:04:14.758Z".into(),
        color: None,
        msg_v: Some(1),
        lead_sig: None,
        team_created: Team::read(&config.bytes).unwrap().created_at().unwrap(),
    };
    house.store.send(&team(), &member("team-lead"), &message).await.unwrap();
}

#[test]
fn who_agreed_is_gone_once_and_its_tasks_are_free() {
    in_time(async |house| {
        let lead = house.seat("team-lead");
        let plan = TaskPlan { subject: "work".into(), ..TaskPlan::default() };
        let task = board::add(&lead, &plan).await.unwrap();
        board::claim(&house.seat("bob"), task).await.unwrap();
        let asked = handshake::request_shutdown(&lead, "bob", None).await.unwrap();
        assert_eq!(farewell(&lead).await.unwrap(), []);
        agree(&house, "bob", "bob", &asked.request_id).await;
        assert_eq!(farewell(&lead).await.unwrap(), [member("bob")]);
        assert_eq!(house.seat("bob").role().await.unwrap(), None);
        board::claim(&house.seat("alice"), task).await.unwrap();
        assert_eq!(farewell(&lead).await.unwrap(), []);
        // A successor of the same name has agreed to nothing.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        roster::join(&lead, &member("bob"), member_plan()).await.unwrap();
        assert_eq!(farewell(&lead).await.unwrap(), []);
    });
}

#[test]
fn nobody_goes_who_was_not_asked_or_did_not_say_so() {
    in_time(async |house| {
        let lead = house.seat("team-lead");
        agree(&house, "bob", "bob", "shutdown-1@bob").await;
        let asked = handshake::request_shutdown(&lead, "bob", None).await.unwrap();
        agree(&house, "alice", "bob", &asked.request_id).await;
        agree(&house, "alice", "alice", &asked.request_id).await;
        assert_eq!(farewell(&lead).await.unwrap(), []);
        assert!(house.seat("bob").role().await.unwrap().is_some());
        assert!(farewell(&house.seat("alice")).await.is_err(), "only the lead says farewell");
    });
}
