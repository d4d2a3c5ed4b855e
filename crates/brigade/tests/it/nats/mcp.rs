//! `brigade mcp` in a NATS store.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{FAKE_AGENT, NatsHost, wait_until};
use crate::client::Client;

#[test]
fn the_tools_work_across_hosts() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::with_team();
    let b = a.another("b");
    let mut lead = Client::of(&a, "team-lead");
    let mut bob = Client::of(&b, "bob");
    let wait = bob.send(
        "tools/call",
        json!({ "name": "wait_for_messages", "arguments": { "timeout_seconds": 20 } }),
    );
    let began = Instant::now();
    lead.call_ok(
        "send_message",
        json!({ "to": "bob", "message": "take task 1", "summary": "work" }),
    );
    let waited = bob.answer(wait);
    assert!(waited.to_string().contains("take task 1"), "{waited}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(bob.call_ok("read_messages", json!({}))["messages"], json!([]));
    let task = json!({ "subject": "Write it", "description": "all of it" });
    assert_eq!(lead.call_ok("task_create", task)["task"]["id"], "1");
    bob.call_ok("task_claim", json!({ "taskId": "1" }));
    assert_eq!(lead.call_ok("task_list", json!({}))["tasks"][0]["owner"], "bob");
    let members = bob.call_ok("list_members", json!({}));
    assert_eq!(members["members"].as_array().unwrap().len(), 3, "{members}");
}

#[test]
fn the_lead_answers_a_plan_from_another_host() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::with_team();
    let b = a.another("b");
    let mut bob = Client::of(&b, "bob");
    bob.call_ok("submit_plan", json!({ "plan": "1. look\n2. write" }));
    assert_eq!(a.json(&["approvals"])[0]["kind"], "plan");
    // Only the lead can approve bob's plan.
    let not_his = b.run(&["--as", "alice", "approve", "1"]);
    assert_ne!(not_his.code, Some(0), "{not_his}");
    a.answer_unconfirmed(&["approve", "1"]);
    let read = bob.call_ok("read_messages", json!({}));
    assert!(read.to_string().contains("approve"), "{read}");
}

#[test]
fn a_lead_starts_and_stops_a_teammate() {
    brigade_testkit::needs!(NatsServer);
    let mut client = NatsHost::with_team();
    client.cli.variables.push(("BRIGADE_OPENCODE", FAKE_AGENT.to_owned()));
    let mut lead = Client::of(&client, "team-lead");
    let carl = json!({ "name": "carl", "agent": "opencode", "prompt": "hello carl" });
    lead.call_ok("spawn_teammate", carl);
    let received = || std::fs::read_to_string(client.path("work/heard")).unwrap_or_default();
    wait_until("the prompt", || received().contains("hello carl"));
    assert_eq!(client.member("carl")["host"], "a");
    lead.call_ok("stop_teammate", json!({ "name": "carl" }));
    assert!(client.member("carl").is_null());
}
