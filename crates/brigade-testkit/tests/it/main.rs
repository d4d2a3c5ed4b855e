//! The engine that tests run on, tried itself.

use std::path::Path;
use std::time::{Duration, Instant};

use brigade_testkit::nats_server::Engine;

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_server_runs_and_is_gone_when_dropped() {
    let engine = Engine::single();
    let pid = engine.pid(0);
    assert!(runs(pid));
    drop(engine);
    assert!(!runs(pid));
}

#[test]
fn a_cluster_elects_another_leader_and_takes_the_old_one_back() {
    let mut engine = Engine::cluster(3);
    let leader = engine.leader().unwrap();
    engine.stop(leader);
    let since = Instant::now();
    while engine.leader().is_none_or(|now| now == leader) {
        assert!(since.elapsed() < Duration::from_secs(30), "no other leader");
        std::thread::sleep(Duration::from_millis(50));
    }
    engine.start(leader);
    engine.wait_ready();
    assert_eq!(engine.urls.len(), 3);
}
