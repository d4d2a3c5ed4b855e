//! Tests of `TestServers`, which starts NATS servers for other tests.

use std::path::Path;
use std::time::{Duration, Instant};

use brigade_testkit::nats_server::TestServers;

fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_server_is_killed_when_it_is_dropped() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let pid = engine.pid(0);
    assert!(is_running(pid));
    drop(engine);
    assert!(!is_running(pid));
}

#[test]
fn a_cluster_elects_a_new_leader_and_the_old_one_rejoins() {
    brigade_testkit::needs!(NatsServer);
    let mut engine = TestServers::cluster(3);
    let leader = engine.leader().unwrap();
    engine.stop(leader);
    let since = Instant::now();
    while engine.leader().is_none_or(|now| now == leader) {
        assert!(since.elapsed() < Duration::from_secs(30), "the cluster elected no other leader");
        std::thread::sleep(Duration::from_millis(50));
    }
    engine.start(leader);
    engine.wait_ready();
    assert_eq!(engine.urls.len(), 3);
}
