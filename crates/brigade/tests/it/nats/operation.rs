//! What an operator does, as `docs/operation.md` says it.

use std::path::Path;
use std::sync::Arc;

use brigade_testkit::nats_server::Engine;
use serde_json::json;

use super::{Far, until};
use crate::env::House;

/// A team in files, with something of everything.
fn furnish(house: &House) {
    house.done(&["team", "create", "demo", "--description", "Ship the parser"]);
    house.done(&["team", "join", "alice"]);
    house.done(&["team", "join", "bob", "--agent-type", "codex"]);
    house.done(&["task", "add", "one"]);
    house.done(&["task", "add", "two", "--blocked-by", "1"]);
    house.done(&["--as", "alice", "task", "claim", "1"]);
    house.done(&["send", "alice", "read this"]);
    house.done(&["--as", "alice", "inbox", "--mark-read"]);
    house.done(&["send", "alice", "and this"]);
    house.done(&["--as", "alice", "send", "bob", "hello"]);
}

#[test]
fn every_command_of_the_page_does_what_it_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operation.md");
    let page = std::fs::read_to_string(page).unwrap();
    let house = House::new();
    furnish(&house);
    let before = house.json(&["team", "show", "demo"]);
    let (first, second) = (Engine::single(), Engine::single());
    let mut done = Vec::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("$ brigade ")) {
        let line = line.replace(" --creds admin.creds", "");
        let line = line.replace("nats://engine", &first.store());
        let line = line.replace("nats://new-engine", &second.store());
        let args: Vec<&str> = line.split(' ').collect();
        done.push((args.join(" "), house.done(&args)));
    }
    let said = |word: &str| {
        let found = done.iter().find(|(command, _)| command.contains(word));
        found.map(|(_, said)| said.clone()).unwrap()
    };
    let how_much = "2 tasks, 3 messages, 2 of them not read";
    assert_eq!(said("export demo demo.team"), format!("team demo is in demo.team: {how_much}\n"));
    assert_eq!(said("import demo.team"), format!("team demo is there: {how_much}\n"));
    assert_eq!(said("import back.team"), format!("team copy is there: {how_much}\n"));
    assert!(said("status --metrics").contains("MB_0"), "{}", said("status --metrics"));
    assert!(said("org backup").contains("saved in backup-monday"));
    assert!(said("org restore").contains("and compared"));
    assert_eq!(said("org retention"), "mail is kept for 14d; it was 30d\n");

    // The same everywhere.
    for (store, team) in
        [(first.store(), "demo"), (second.store(), "demo"), ("files".into(), "copy")]
    {
        let see =
            |args: &[&str]| house.json(&[&["--store", &store, "--team", team], args].concat());
        let texts = |of: &str| -> Vec<(String, bool)> {
            let inbox = see(&["inbox", of]);
            let entry = |e: &serde_json::Value| {
                (e["text"].as_str().unwrap().to_owned(), e["read"].as_bool().unwrap())
            };
            inbox.as_array().unwrap().iter().map(entry).collect()
        };
        assert_eq!(texts("alice"), [("read this".into(), true), ("and this".into(), false)]);
        assert_eq!(texts("bob"), [("hello".into(), false)]);
        let tasks = see(&["task", "list"]);
        assert_eq!((&tasks[0]["owner"], &tasks[1]["subject"]), (&json!("alice"), &json!("two")));
        let shown = see(&["team", "show"]);
        assert_eq!(shown["description"], before["description"]);
        assert_eq!(shown["members"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn metrics_tell_what_waits_and_how_the_engine_is() {
    let far = Far::with_team();
    far.done(&["send", "bob", "one"]);
    far.done(&["send", "bob", "two"]);
    far.done(&["task", "add", "paint"]);
    let metrics = far.json(&["status", "--metrics"]);
    let team = &metrics["teams"][0];
    assert_eq!(team["team"], "demo");
    assert_eq!(team["tasks"], json!({ "pending": 1, "in_progress": 0, "completed": 0 }));
    let mailbox = |name: &str| {
        let all = team["mailboxes"].as_array().unwrap();
        all.iter().find(|mailbox| mailbox["name"] == name).cloned().unwrap()
    };
    assert_eq!((&mailbox("bob")["unread"], &mailbox("alice")["unread"]), (&json!(2), &json!(0)));
    assert!(mailbox("bob")["oldest_unshown_secs"].as_u64().unwrap() < 60);
    assert_eq!(mailbox("bob")["ends_soon"], false);
    assert!(mailbox("alice")["oldest_unshown"].is_null());
    assert_eq!(metrics["engine"]["retention_secs"], 30 * 86_400);
    let streams = metrics["engine"]["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 5);
    assert!(streams.iter().all(|stream| stream["leader"].is_string()), "{streams:?}");
    far.done(&["org", "retention", "12h"]);
    assert_eq!(far.json(&["status", "--metrics"])["engine"]["retention_secs"], 43_200);
    // In files there are mailboxes and boards as well, and no engine.
    far.done(&["--store", "files", "team", "create", "near"]);
    let near = far.json(&["--store", "files", "status", "--metrics"]);
    assert_eq!((&near["engine"], &near["teams"][0]["team"]), (&json!(null), &json!("near")));
}

#[test]
fn members_tell_what_they_had_to_do_twice() {
    let far = Far::new();
    far.write_file(&["alice"], "");
    far.done(&["up"]);
    let strain = || {
        let metrics = far.json(&["status", "--metrics", "--team", "demo"]);
        let all = metrics["teams"][0]["mailboxes"].as_array().unwrap().clone();
        all.iter().find(|mailbox| mailbox["name"] == "alice").map(|one| one["strain"].clone())
    };
    until("its pulse", || strain().is_some_and(|strain| strain["reconnects"] == 0));
    assert!(far.done(&["status"]).contains("OLDEST UNSHOWN"));
}

#[test]
fn nothing_is_overwritten() {
    let house = House::with_team();
    house.done(&["team", "export", "demo", "demo.team"]);
    let again = house.run(&["team", "export", "demo", "demo.team"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("demo.team is there already"), "{again}");
    let there = house.run(&["team", "import", "demo.team"]);
    assert_eq!(there.code, Some(1));
    assert!(there.stderr.contains("a team named \"demo\" already exists"), "{there}");
    assert!(there.stderr.contains("--rename NAME"), "{there}");
    let file = std::fs::read(house.path("work/demo.team")).unwrap();
    let piped = house.run_with_input(&["team", "import", "-", "--rename", "piped"], &file);
    assert_eq!(piped.code, Some(0), "{piped}");
    let half = house.run_with_input(&["team", "import", "-", "--rename", "half"], &file[..700]);
    assert_eq!(half.code, Some(1));
    assert!(half.stderr.contains("the export is truncated"), "{half}");
    let other = house.run_with_input(&["team", "import", "-"], b"[]");
    assert!(other.stderr.contains("this is not a team export"), "{other}");
    let none = house.run(&["team", "export", "nobody", "nobody.team"]);
    assert_eq!(none.code, Some(1));
    assert!(!house.path("work/nobody.team").exists());
    let names: Vec<String> = house
        .json(&["team", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|team| team["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["demo", "piped"]);
    // What is done to an engine is not done to files.
    let which = house.run(&["org", "backup", "somewhere"]);
    assert_eq!(which.code, Some(2), "{which}");
    assert!(which.stderr.contains("--store nats://HOST:PORT"), "{which}");
}

#[test]
fn only_an_empty_engine_is_restored_into() {
    let far = Far::with_team();
    far.done(&["org", "backup", "saved"]);
    let full = far.run(&["org", "restore", "saved"]);
    assert_eq!(full.code, Some(1));
    assert!(full.stderr.contains("restore into an empty NATS server"), "{full}");
    let again = far.run(&["org", "backup", "saved"]);
    assert!(again.stderr.contains("is not empty"), "{again}");
    let other = Arc::new(Engine::single());
    let store = other.store();
    let restored = far.json(&["--store", &store, "org", "restore", "saved"]);
    assert_eq!(restored.as_array().unwrap().len(), 5);
    assert_eq!(far.json(&["--store", &store, "team", "list"])[0]["name"], "demo");
}
