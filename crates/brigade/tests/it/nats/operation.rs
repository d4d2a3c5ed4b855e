//! The operator commands of `docs/operation.md`.

use std::path::Path;
use std::sync::Arc;

use brigade_testkit::nats_server::TestServers;
use serde_json::json;

use super::{NatsHost, wait_until};
use crate::env::CliEnv;

/// Creates a team in the file store, with members, tasks, and read and unread mail.
fn fill_team(cli: &CliEnv) {
    cli.run_ok(&["team", "create", "demo", "--description", "Ship the parser"]);
    cli.run_ok(&["team", "join", "alice"]);
    cli.run_ok(&["team", "join", "bob", "--agent-type", "codex"]);
    cli.run_ok(&["task", "add", "one"]);
    cli.run_ok(&["task", "add", "two", "--blocked-by", "1"]);
    cli.run_ok(&["--as", "alice", "task", "claim", "1"]);
    cli.run_ok(&["send", "alice", "read this"]);
    cli.run_ok(&["--as", "alice", "inbox", "--mark-read"]);
    cli.run_ok(&["send", "alice", "and this"]);
    cli.run_ok(&["--as", "alice", "send", "bob", "hello"]);
}

#[test]
fn every_command_in_operation_md_works() {
    brigade_testkit::needs!(NatsServer);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operation.md");
    let page = std::fs::read_to_string(page).unwrap();
    let cli = CliEnv::new();
    fill_team(&cli);
    let before = cli.json(&["team", "show", "demo"]);
    let (first, second) = (TestServers::single(), TestServers::single());
    let mut done = Vec::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("$ brigade ")) {
        let line = line.replace(" --creds admin.creds", "");
        let line = line.replace("nats://engine", &first.store());
        let line = line.replace("nats://new-engine", &second.store());
        let args: Vec<&str> = line.split(' ').collect();
        done.push((args.join(" "), cli.run_ok(&args)));
    }
    let said = |word: &str| {
        let found = done.iter().find(|(command, _)| command.contains(word));
        found.map(|(_, said)| said.clone()).unwrap()
    };
    let how_much = "2 tasks, 3 messages, 2 unread";
    assert_eq!(
        said("export demo demo.team"),
        format!("exported team demo to demo.team: {how_much}\n")
    );
    assert_eq!(said("import demo.team"), format!("imported team demo: {how_much}\n"));
    assert_eq!(said("import back.team"), format!("imported team copy: {how_much}\n"));
    assert!(said("status --metrics").contains("MB_0"), "{}", said("status --metrics"));
    assert!(said("org backup").contains("saved to backup-monday"));
    assert!(said("org restore").contains("and verified"));
    assert_eq!(said("org retention"), "mail is now kept for 14d (before: 30d)\n");
    let shards = said("org shards");
    assert!(shards.lines().nth(1).is_some_and(|shard| shard.starts_with("0 ")), "{shards}");
    assert_eq!(said("org add-shard"), "added shard 1: new teams are now spread over 2 shards\n");
    assert_eq!(said("org assign-shard"), "team large is assigned to shard 1\n");

    // All three stores have the same content.
    for (store, team) in
        [(first.store(), "demo"), (second.store(), "demo"), ("files".into(), "copy")]
    {
        let see = |args: &[&str]| cli.json(&[&["--store", &store, "--team", team], args].concat());
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
fn metrics_show_backlog_and_server_state() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    client.run_ok(&["send", "bob", "one"]);
    client.run_ok(&["send", "bob", "two"]);
    client.run_ok(&["task", "add", "paint"]);
    let metrics = client.json(&["status", "--metrics"]);
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
    client.run_ok(&["org", "retention", "12h"]);
    assert_eq!(client.json(&["status", "--metrics"])["engine"]["retention_secs"], 43_200);
    // Metrics of a file store include mailboxes and boards, but no NATS server.
    client.run_ok(&["--store", "files", "team", "create", "near"]);
    let near = client.json(&["--store", "files", "status", "--metrics"]);
    assert_eq!((&near["engine"], &near["teams"][0]["team"]), (&json!(null), &json!("near")));
}

#[test]
fn metrics_include_retry_counters() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::new();
    client.write_file(&["alice"], "");
    client.run_ok(&["up"]);
    let strain = || {
        let metrics = client.json(&["status", "--metrics", "--team", "demo"]);
        let all = metrics["teams"][0]["mailboxes"].as_array().unwrap().clone();
        all.iter().find(|mailbox| mailbox["name"] == "alice").map(|one| one["strain"].clone())
    };
    wait_until("alice's heartbeat with retry counters", || {
        strain().is_some_and(|strain| strain["reconnects"] == 0)
    });
    assert!(client.run_ok(&["status"]).contains("OLDEST UNSHOWN"));
}

#[test]
fn existing_data_is_never_overwritten() {
    brigade_testkit::needs!(NatsServer);
    let cli = CliEnv::with_team();
    cli.run_ok(&["team", "export", "demo", "demo.team"]);
    let again = cli.run(&["team", "export", "demo", "demo.team"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("demo.team already exists"), "{again}");
    let there = cli.run(&["team", "import", "demo.team"]);
    assert_eq!(there.code, Some(1));
    assert!(there.stderr.contains("a team named \"demo\" already exists"), "{there}");
    assert!(there.stderr.contains("--rename NAME"), "{there}");
    let file = std::fs::read(cli.path("work/demo.team")).unwrap();
    let piped = cli.run_with_input(&["team", "import", "-", "--rename", "piped"], &file);
    assert_eq!(piped.code, Some(0), "{piped}");
    let half = cli.run_with_input(&["team", "import", "-", "--rename", "half"], &file[..700]);
    assert_eq!(half.code, Some(1));
    assert!(half.stderr.contains("the export is truncated"), "{half}");
    let other = cli.run_with_input(&["team", "import", "-"], b"[]");
    assert!(other.stderr.contains("this is not a team export"), "{other}");
    let none = cli.run(&["team", "export", "nobody", "nobody.team"]);
    assert_eq!(none.code, Some(1));
    assert!(!cli.path("work/nobody.team").exists());
    let names: Vec<String> = cli
        .json(&["team", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|team| team["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["demo", "piped"]);
    // `brigade org backup` needs a NATS server and is refused for the file store.
    let which = cli.run(&["org", "backup", "somewhere"]);
    assert_eq!(which.code, Some(2), "{which}");
    assert!(which.stderr.contains("--store nats://HOST:PORT"), "{which}");
}

#[test]
fn restore_refuses_a_server_with_data() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    client.run_ok(&["org", "backup", "saved"]);
    let full = client.run(&["org", "restore", "saved"]);
    assert_eq!(full.code, Some(1));
    assert!(full.stderr.contains("restore into an empty NATS server"), "{full}");
    let again = client.run(&["org", "backup", "saved"]);
    assert!(again.stderr.contains("is not empty"), "{again}");
    let other = Arc::new(TestServers::single());
    let store = other.store();
    let restored = client.json(&["--store", &store, "org", "restore", "saved"]);
    assert_eq!(restored.as_array().unwrap().len(), 5);
    assert_eq!(client.json(&["--store", &store, "team", "list"])[0]["name"], "demo");
}
