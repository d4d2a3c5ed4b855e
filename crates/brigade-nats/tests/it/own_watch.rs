//! A watch of one member hears what concerns that member, and does not confirm the state of any other mailbox.

use std::sync::Arc;
use std::time::Duration;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::{Event, Record};
use brigade_core::roster;
use brigade_core::store::{EventLog as _, Store, Watch};
use brigade_nats::identity::CredentialRole;
use brigade_nats::{NatsOptions, NatsStore};
use brigade_testkit::env::{TestEnv, member, team};
use brigade_testkit::nats_server::TestServers;
use brigade_wire::name::MemberName;

use crate::forgery;

async fn connect(servers: &TestServers) -> Arc<NatsStore> {
    let options = NatsOptions { servers: servers.urls.clone(), ..NatsOptions::default() };
    Arc::new(NatsStore::connect(options).await.unwrap())
}

/// Waits for the next event that is not about the roster.
async fn next(watch: &mut Watch) -> Record {
    loop {
        let record = tokio::time::timeout(Duration::from_secs(10), watch.next());
        let record = record.await.unwrap().unwrap();
        if !matches!(record.event, Event::Member { .. } | Event::MemberLeft { .. }) {
            return record;
        }
    }
}

async fn check(env: &TestEnv, mut watch: Watch) {
    env.say("alice", "team-lead", "not for bob").await;
    let lead = env.seat("team-lead");
    let id = board::add(&lead, &TaskPlan::new("task")).await.unwrap();
    env.say("bob", "alice", "from bob").await;
    let record = next(&mut watch).await;
    assert!(matches!(&record.event, Event::Sent { to, .. } if to == "alice"), "{record:?}");
    board::claim(&env.seat("bob"), id).await.unwrap();
    let record = next(&mut watch).await;
    assert!(matches!(record.event, Event::Task { .. }), "{record:?}");
    env.say("alice", "bob", "to bob").await;
    let record = next(&mut watch).await;
    assert!(matches!(&record.event, Event::Sent { to, .. } if to == "bob"), "{record:?}");
    roster::leave(&lead, &member("alice")).await.unwrap();
    env.store.delete_team(&team(), &lead.actor()).await.unwrap();
    let record = next(&mut watch).await;
    assert!(matches!(record.event, Event::TeamDeleted {}), "{record:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_hears_only_what_concerns_it() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::single();
    let env = TestEnv::build(connect(&servers).await).await;
    let watch = connect(&servers).await.watch_member(&team(), &member("bob")).await.unwrap();
    check(&env, watch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_hears_only_what_concerns_it() {
    brigade_testkit::needs!(NatsServer);
    let (servers, mut acme, env) = forgery::organisation(1).await;
    let bob = servers.grant(&mut acme, "demo", &["bob"], (CredentialRole::Member, false));
    let store = forgery::store(&servers, &bob.file).await;
    let watch = store.watch_member(&team(), &member("bob")).await.unwrap();
    check(&env, watch).await;
}

/// Another process sends to two members. This process watches only one of them, and reads both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_mailboxes_stay_current() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::single();
    let env = TestEnv::build(connect(&servers).await).await;
    let here: Arc<dyn Store> = connect(&servers).await;
    let count = async |name: &MemberName| here.inbox(&team(), name).await.unwrap().len();
    let (bob, alice) = (member("bob"), member("alice"));
    let watch = here.watch_member(&team(), &bob).await.unwrap();
    for sent in 1..20 {
        env.say("team-lead", "bob", &format!("{sent}")).await;
        env.say("team-lead", "alice", &format!("{sent}")).await;
        assert_eq!((count(&alice).await, count(&bob).await), (sent, sent));
    }
    drop(watch);
}
