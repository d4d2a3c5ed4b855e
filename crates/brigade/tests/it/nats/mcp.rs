//! `brigade mcp` in an engine.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{FAKE, Far, until};
use crate::client::Client;

#[test]
fn the_tools_work_across_hosts() {
    let a = Far::with_team();
    let b = a.another("b");
    let mut lead = Client::of(&a, "team-lead");
    let mut bob = Client::of(&b, "bob");
    let wait = bob.send(
        "tools/call",
        json!({ "name": "wait_for_messages", "arguments": { "timeout_seconds": 20 } }),
    );
    let began = Instant::now();
    lead.done("send_message", json!({ "to": "bob", "message": "take task 1", "summary": "work" }));
    let waited = bob.answer(wait);
    assert!(waited.to_string().contains("take task 1"), "{waited}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(bob.done("read_messages", json!({}))["messages"], json!([]));
    let task = json!({ "subject": "Write it", "description": "all of it" });
    assert_eq!(lead.done("task_create", task)["task"]["id"], "1");
    bob.done("task_claim", json!({ "taskId": "1" }));
    assert_eq!(lead.done("task_list", json!({}))["tasks"][0]["owner"], "bob");
    let members = bob.done("list_members", json!({}));
    assert_eq!(members["members"].as_array().unwrap().len(), 3, "{members}");
}

#[test]
fn a_plan_is_answered_by_the_lead_on_another_host() {
    let a = Far::with_team();
    let b = a.another("b");
    let mut bob = Client::of(&b, "bob");
    bob.done("submit_plan", json!({ "plan": "1. look\n2. write" }));
    assert_eq!(a.json(&["approvals"])[0]["kind"], "plan");
    // Who is not the lead does not answer.
    let not_his = b.run(&["--as", "alice", "approve", "1"]);
    assert_ne!(not_his.code, Some(0), "{not_his}");
    a.done(&["approve", "1"]);
    let read = bob.done("read_messages", json!({}));
    assert!(read.to_string().contains("approve"), "{read}");
}

#[test]
fn a_lead_starts_and_stops_a_teammate() {
    let mut far = Far::with_team();
    far.house.variables.push(("BRIGADE_OPENCODE", FAKE.to_owned()));
    let mut lead = Client::of(&far, "team-lead");
    let carl = json!({ "name": "carl", "agent": "opencode", "prompt": "hello carl" });
    lead.done("spawn_teammate", carl);
    let heard = || std::fs::read_to_string(far.path("work/heard")).unwrap_or_default();
    until("the prompt", || heard().contains("hello carl"));
    assert_eq!(far.member("carl")["host"], "a");
    lead.done("stop_teammate", json!({ "name": "carl" }));
    assert!(far.member("carl").is_null());
}
