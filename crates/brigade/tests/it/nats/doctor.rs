//! `brigade doctor` with a NATS store.

use std::sync::Arc;

use brigade_testkit::nats_server::TestServers;

use super::{NatsHost, wait_until};
use crate::doctor::names;
use crate::process::{is_alive, kill};

/// Returns the names of the checks that found something, without duplicates.
fn found(client: &NatsHost) -> Vec<String> {
    let told = client.run(&["doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    let mut checks = names(&report);
    checks.sort();
    checks.dedup();
    checks
}

#[test]
fn a_healthy_server_has_no_findings() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    // With a NATS store, `doctor` ignores damaged files of the file store.
    client.write("claude/teams/other/config.json", "{");
    let told = client.run(&["doctor"]);
    assert_eq!(told.code, Some(0), "{told}");
    assert!(told.stdout.contains("no problems found"), "{told}");
    assert_eq!(client.run(&["doctor", "--store", "files"]).code, Some(1));
}

#[test]
fn changed_and_deleted_streams_are_found() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    let info = client.engine.request("$JS.API.STREAM.INFO.BD_0", "");
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    let mut config = info["config"].clone();
    config["max_msgs_per_subject"] = 1.into();
    let changed = client.engine.request("$JS.API.STREAM.UPDATE.BD_0", &config.to_string());
    assert!(!changed.contains("\"error\""), "{changed}");
    assert_eq!(found(&client), ["odd-stream"]);
    client.engine.request("$JS.API.STREAM.DELETE.BD_0", "");
    assert_eq!(found(&client), ["no-stream"]);
}

/// Bob's credentials are used to record that the team was deleted. The event has no effect, and it is reported.
#[test]
fn an_event_that_its_author_may_not_record_is_ignored_and_reported() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    let stored = client.engine.request("ev.0.demo.bob", r#"{"team_deleted":{}}"#);
    assert!(stored.contains("\"seq\""), "{stored}");
    let log = client.run(&["log"]);
    assert!(!log.stdout.contains("deleted"), "{log}");
    let note = "note: ignored 1 event: bob may not record the event \"team_deleted\"";
    assert!(log.stderr.contains(note), "{log}");
    assert_eq!(found(&client), ["forged-event"]);
}

#[test]
fn a_small_max_payload_is_found() {
    brigade_testkit::needs!(NatsServer);
    let engine = Arc::new(TestServers::with(1, "max_payload: 1MB"));
    let client = NatsHost::on(&engine, "a");
    assert_eq!(found(&client), ["small-payload"]);
    let check = client.run(&["store", "check"]);
    assert_eq!(check.code, Some(1), "{check}");
    let said = "the server accepts messages of at most 1048576 bytes; set max_payload to 8MB";
    assert!(check.stdout.contains(said), "{check}");
}

#[test]
fn an_unreachable_cluster_server_is_found() {
    brigade_testkit::needs!(NatsServer);
    let mut engine = TestServers::cluster(3);
    let client = NatsHost::on(&Arc::new(TestServers::single()), "a");
    let store = engine.store();
    let doctor = || client.run_with_env(&["doctor"], &[("BRIGADE_STORE", &store)]);
    // The first command creates the streams, and a replica may be behind at first.
    wait_until("all replicas to be up to date", || doctor().code == Some(0));
    engine.stop(2);
    wait_until("the stopped server to be reported", || {
        doctor().stdout.contains("server n2 is unreachable or behind")
    });
    assert!(doctor().stdout.contains("lost-replica"));
}

#[test]
fn missing_members_are_found() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::new();
    client.write_file(&["alice"], "");
    client.run_ok(&["up"]);
    client.run_ok(&["team", "join", "bob"]);
    assert_eq!(found(&client), Vec::<String>::new());
    client.run_ok(&["team", "activity", "bob", "active"]);
    assert_eq!(found(&client), ["unplayed-active"]);
    client.run_ok(&["team", "activity", "bob", "idle"]);
    client.run_ok(&["send", "alice", "FAIL"]);
    wait_until("the failed turn to be reported", || found(&client) == ["failed-turn"]);
    client.run_ok(&["send", "alice", "go on"]);
    wait_until("the next turn to succeed", || found(&client).is_empty());
    wait_until("the next turn to end", || client.member("alice")["liveness"] == "idle");
    let status = client.json(&["status"]);
    let pids = [&status[0]["supervisor"], &status[0]["members"][0]["pid"]];
    let pids = pids.map(|pid| pid.as_u64().unwrap());
    pids.into_iter().for_each(kill);
    wait_until("the killed processes to end", || !pids.into_iter().any(is_alive));
    wait_until("alice's process to end", || client.member("alice")["pid"].is_null());
    assert_eq!(found(&client), ["dead-member", "no-supervisor"]);
    client.run(&["doctor", "--fix"]).code.unwrap();
    wait_until("alice to be restarted", || client.member("alice")["liveness"] == "idle");
    assert_eq!(found(&client), Vec::<String>::new());
}
