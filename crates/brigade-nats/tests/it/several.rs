//! Sends to several members at once.

use std::sync::Arc;

use brigade_core::mail;
use brigade_core::store::{MailStore as _, StoreError};
use brigade_nats::{NatsOptions, NatsStore};
use brigade_testkit::env::{TestEnv, member, team};
use brigade_testkit::nats_server::TestServers;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broadcast_reaches_each_member_once() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::cluster(3);
    let options = NatsOptions { servers: servers.urls.clone(), ..NatsOptions::default() };
    let store = Arc::new(NatsStore::connect(options).await.unwrap());
    let env = TestEnv::build(Arc::clone(&store) as _).await;
    for round in 0..5 {
        let sent = mail::broadcast(&env.seat("team-lead"), &format!("{round}")).await.unwrap();
        let names: Vec<&str> = sent.iter().map(|sent| sent.to.as_str()).collect();
        assert_eq!(names, ["alice", "bob"]);
    }
    for name in ["alice", "bob"] {
        let texts: Vec<String> = env.texts(name).await.into_iter().map(|(text, _)| text).collect();
        assert_eq!(texts, ["0", "1", "2", "3", "4"]);
    }
    let results = store.send_all(&"none".parse().unwrap(), &[]).await;
    assert!(matches!(results.as_slice(), [Err(StoreError::NoTeam { .. })]), "{results:?}");
    assert_eq!(store.inbox(&team(), &member("alice")).await.unwrap().len(), 5);
}
