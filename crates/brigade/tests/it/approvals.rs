//! `brigade approvals`, `brigade approve`, `brigade deny`

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::client::Client;
use crate::env::House;

const PLAN: &str = "plan_approval-1794700000000@alice@demo";

fn permission(id: &str) -> Value {
    json!({
        "type": "permission_request", "request_id": id, "agent_id": "bob", "tool_name": "Bash",
        "tool_use_id": "t", "description": "to see the tests",
        "input": { "command": "cargo test", "description": "to see the tests" },
        "permission_suggestions": [],
        "brigade": {
            "tool": "commandExecution",
            "input": { "command": "/bin/bash -lc 'cargo test \u{1b}[2J'" },
            "cwd": "/src/parser",
        },
    })
}

fn entry(from: &str, body: &Value) -> Value {
    json!({ "from": from, "text": body.to_string(), "timestamp": "2026-11-15T12:00:00.000Z", "read": false })
}

/// A house in which bob asks leave twice and alice has a plan, as other programs would write it.
fn asking() -> House {
    let house = House::with_team();
    let plan = json!({
        "type": "plan_approval_request", "from": "alice", "timestamp": "2026-11-15T12:00:00.000Z",
        "planFilePath": "", "planContent": "# Plan\n1. look\n2. write", "requestId": PLAN,
    });
    let edit = json!({
        "type": "permission_request", "request_id": "perm-2", "agent_id": "bob", "tool_name": "Edit",
        "tool_use_id": "t", "description": "to mend it", "input": { "file_path": "src/a.rs" },
        "permission_suggestions": [],
    });
    let inbox =
        json!([entry("bob", &permission("perm-1")), entry("alice", &plan), entry("bob", &edit)]);
    house.write("claude/teams/demo/inboxes/team-lead.json", &inbox.to_string());
    house
}

/// The age depends on the day, and has a test of its own.
fn without_age(text: &str) -> String {
    let words = |line: &str| match line.split_once(" ago  ") {
        Some((head, id)) => {
            let head = head.rsplit_once("  ").map_or(head, |(head, _)| head);
            format!("{head}  <age>  {id}\n")
        }
        None => format!("{}\n", line.replace("just now", "<age>")),
    };
    text.lines().map(words).collect()
}

#[test]
fn what_waits_is_shown_whole() {
    let house = asking();
    let shown = house.run(&["approvals"]).to_string();
    assert_snapshot!(without_age(&shown), @r#"
    1  bob  permission  <age>  perm-1
       commandExecution in /src/parser: to see the tests
       $ cargo test \u{1b}[2J

    2  alice  plan  <age>  plan_approval-<ms>@alice@demo
       # Plan
       1. look
       2. write

    3  bob  permission  <age>  perm-2
       Edit: to mend it
       | {
       |   "file_path": "src/a.rs"
       | }
    "#);
    let json = house.json(&["approvals"]);
    let list = json.as_array().unwrap();
    let kinds: Vec<&str> = list.iter().map(|its| its["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["permission", "plan", "permission"]);
    assert_eq!(list[0]["command"], "cargo test \u{1b}[2J");
    assert_eq!(list[0]["tool"], "commandExecution");
    assert_eq!(list[0]["cwd"], "/src/parser");
    assert!(list[0]["age_seconds"].as_i64().is_some());
    assert_eq!(list[1]["plan"], "# Plan\n1. look\n2. write");
    assert_eq!(list[2]["command"], Value::Null);
    assert_eq!(list[2]["input"], json!({ "file_path": "src/a.rs" }));
}

#[test]
fn each_is_answered_once() {
    let house = asking();
    assert_snapshot!(house.run(&["approve", "1", PLAN]), @"
    approved bob's permission 1
    approved alice's plan 2
    ");
    assert_snapshot!(house.run(&["deny", "3", "--reason", "not on main"]), @"denied bob's permission 3");
    assert_snapshot!(house.run(&["deny", "1", "--reason", "too late"]), @r#"
    --- stderr
    error: the request "perm-1" was answered already
    hint: a person said yes at <timestamp>
    --- exit 1
    "#);
    assert_snapshot!(house.run(&["approve", "3"]), @r#"
    --- stderr
    error: the request "perm-2" was answered already
    hint: a person said no at <timestamp>: not on main
    --- exit 1
    "#);
    assert_snapshot!(house.run(&["approve", "4"]), @r#"
    --- stderr
    error: no request "4" was sent to team-lead
    hint: no request is waiting for an answer
    --- exit 4
    "#);
    assert_snapshot!(house.run(&["approvals"]), @"
    --- stderr
    note: nothing waits for an answer
    --- exit 4
    ");
    assert_eq!(house.run(&["approvals", "--json"]).stdout, "[]\n");
    let answers: Vec<String> = house
        .done(&["log"])
        .lines()
        .filter(|line| line.contains(" answered "))
        .map(|line| line.get(10..).unwrap().to_owned())
        .collect();
    assert_snapshot!(answers.join("\n"), @"
    team-lead           answered yes to bob's permission (by person) [perm-1]
    team-lead           answered yes to alice's plan (by person) [plan_approval-1794700000000@a…
    team-lead           answered no to bob's permission (by person): not on main [perm-2]
    ");
    let told = house.json(&["inbox", "bob"]);
    let told: Vec<Value> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| serde_json::from_str(entry["text"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(told[0]["subtype"], "success");
    assert_eq!(told[1]["error"], "not on main");
}

/// Who mistypes one has answered none; who comes too late for one has answered the others.
#[test]
fn several_at_once() {
    let house = asking();
    assert_snapshot!(house.run(&["approve", "1", "7"]), @r#"
    --- stderr
    error: no request "7" was sent to team-lead
    hint: waiting: 1, 2, 3; see `brigade approvals`
    --- exit 1
    "#);
    assert_eq!(house.json(&["approvals"]).as_array().unwrap().len(), 3);
    house.done(&["approve", "1"]);
    assert_snapshot!(house.run(&["approve", "1", "2", "--json"]), @r#"
    [{"number":2,"request_id":"plan_approval-<ms>@alice@demo","kind":"plan","to":"alice","approved":true}]
    --- stderr
    error: the request "perm-1" was answered already
    hint: a person said yes at <timestamp>
    --- exit 1
    "#);
}

#[test]
fn only_the_lead_answers() {
    let house = asking();
    assert_snapshot!(house.run(&["--as", "bob", "approve", "1"]), @"
    --- stderr
    error: only the lead may see and answer what waits, and bob is not the lead of team demo
    hint: `--as NAME` sets the member you act as
    --- exit 1
    ");
    assert_snapshot!(house.run(&["--as", "alice", "approvals"]), @"
    --- stderr
    error: only the lead may see and answer what waits, and alice is not the lead of team demo
    hint: `--as NAME` sets the member you act as
    --- exit 1
    ");
    assert_eq!(house.json(&["approvals"]).as_array().unwrap().len(), 3);
}

/// Where a person answers, the agent that leads is told so, by its tools and on the command line.
#[test]
fn an_agent_that_may_not_answer_does_not() {
    let house = asking();
    let person = [("BRIGADE_ANSWERS", "person")];
    assert_snapshot!(house.run_with_env(&["approve", "1"], &person), @"
    --- stderr
    error: only a person may answer a permission request in team demo, and the agent that leads it is none
    hint: a person answers it with `brigade approvals`
    --- exit 1
    ");
    assert_snapshot!(house.run_with_env(&["approvals"], &[("BRIGADE_ANSWERS", "me")]), @"
    --- stderr
    error: BRIGADE_ANSWERS is not valid
      caused by: use person or lead
    --- exit 2
    ");
    let arguments = json!({ "request_id": "perm-1", "approve": true });
    let mut bound = Client::of_with_env(&house, "team-lead", &person);
    assert_snapshot!(bound.refused("answer_permission", arguments.clone()), @"only a person may answer a permission request in team demo, and the agent that leads it is none; leave it open, a person answers with `brigade approvals`");
    let mut free = Client::of(&house, "team-lead");
    free.done("answer_permission", arguments.clone());
    let late = free.refused("answer_permission", arguments);
    assert!(late.contains("answered already; an agent said yes at "), "{late}");
    let log = house.done(&["log"]);
    assert!(log.contains("answered yes to bob's permission (by agent) [perm-1]"), "{log}");
}

#[test]
fn follow_tells_of_each_as_it_comes() {
    let house = asking();
    let mut child =
        house.command(&["approvals", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    for number in 1..=3 {
        assert_eq!(next()["asked"]["number"], number);
    }
    house.done(&["approve", "2"]);
    let answered = next();
    assert_eq!(answered["event"]["answered"]["request_id"], PLAN);
    assert_eq!(answered["event"]["answered"]["hand"], "person");
    let inbox = house.path("claude/teams/demo/inboxes/team-lead.json");
    let mut entries: Value = serde_json::from_slice(&std::fs::read(&inbox).unwrap()).unwrap();
    entries.as_array_mut().unwrap().push(entry("bob", &permission("perm-4")));
    std::fs::write(&inbox, entries.to_string()).unwrap();
    assert_eq!(next()["asked"]["request_id"], "perm-4");
    child.kill().unwrap();
    child.wait().unwrap();
}
