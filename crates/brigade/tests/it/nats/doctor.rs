//! `brigade doctor` in an engine.

use std::sync::Arc;

use brigade_testkit::nats_server::Engine;

use super::{Far, until};

/// Which checks have found something, each once.
fn found(far: &Far) -> Vec<String> {
    let told = far.run(&["doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let mut checks: Vec<String> =
        findings.iter().map(|finding| finding["check"].as_str().unwrap().to_owned()).collect();
    checks.sort();
    checks.dedup();
    checks
}

#[test]
fn a_well_engine_has_nothing_wrong() {
    let far = Far::with_team();
    // What is wrong with files is another matter.
    far.write("claude/teams/other/config.json", "{");
    let told = far.run(&["doctor"]);
    assert_eq!(told.code, Some(0), "{told}");
    assert!(told.stdout.contains("nothing is wrong"), "{told}");
    assert_eq!(far.run(&["doctor", "--store", "files"]).code, Some(1));
}

#[test]
fn a_stream_that_was_changed_or_deleted_is_found() {
    let far = Far::with_team();
    let info = far.engine.request("$JS.API.STREAM.INFO.BD_0", "");
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    let mut config = info["config"].clone();
    config["max_msgs_per_subject"] = 1.into();
    let changed = far.engine.request("$JS.API.STREAM.UPDATE.BD_0", &config.to_string());
    assert!(!changed.contains("\"error\""), "{changed}");
    assert_eq!(found(&far), ["odd-stream"]);
    far.engine.request("$JS.API.STREAM.DELETE.BD_0", "");
    assert_eq!(found(&far), ["no-stream"]);
}

#[test]
fn a_server_that_takes_only_short_messages_is_found() {
    let engine = Arc::new(Engine::with(1, "max_payload: 1MB"));
    let far = Far::on(&engine, "a");
    assert_eq!(found(&far), ["small-payload"]);
}

#[test]
fn a_server_of_a_cluster_that_is_away_is_found() {
    let mut engine = Engine::cluster(3);
    let far = Far::on(&Arc::new(Engine::single()), "a");
    let store = engine.store();
    let doctor = || far.run_with_env(&["doctor"], &[("BRIGADE_STORE", &store)]);
    // The first look makes the streams, and a copy may be behind for a moment.
    until("all copies to be level", || doctor().code == Some(0));
    engine.stop(2);
    until("the loss", || doctor().stdout.contains("server n2 is away, or is behind"));
    assert!(doctor().stdout.contains("lost-replica"));
}

#[test]
fn members_that_are_not_there_are_found() {
    let far = Far::new();
    far.write_file(&["alice"], "");
    far.done(&["up"]);
    far.done(&["team", "join", "bob"]);
    assert_eq!(found(&far), Vec::<String>::new());
    far.done(&["team", "activity", "bob", "active"]);
    assert_eq!(found(&far), ["unplayed-active"]);
    far.done(&["team", "activity", "bob", "idle"]);
    far.done(&["send", "alice", "FAIL"]);
    until("the failed turn", || found(&far) == ["failed-turn"]);
    far.done(&["send", "alice", "go on"]);
    until("the next one", || found(&far).is_empty());
    let status = far.json(&["status"]);
    let pids = [&status[0]["supervisor"], &status[0]["members"][0]["pid"]];
    for pid in pids {
        let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(killed.unwrap().success());
    }
    until("its end", || far.member("alice")["pid"].is_null());
    assert_eq!(found(&far), ["dead-member", "no-supervisor"]);
    far.run(&["doctor", "--fix"]).code.unwrap();
    until("alice", || far.member("alice")["liveness"] == "idle");
    assert_eq!(found(&far), Vec::<String>::new());
}
