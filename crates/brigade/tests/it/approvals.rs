//! `brigade approvals`, `brigade approve`, `brigade deny`

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use brigade_testkit::permission_requests::recorded;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::client::Client;
use crate::env::CliEnv;
use crate::host::HostedTeam;
use crate::process::wait_until;

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

/// Returns a team whose lead's inbox has two permission requests from bob and a plan from alice.
pub(crate) fn with_requests() -> CliEnv {
    let cli = CliEnv::with_team();
    let plan = json!({
        "type": "plan_approval_request", "from": "alice", "timestamp": "2026-11-15T12:00:00.000Z",
        "planFilePath": "", "planContent": "# Plan\n1. look\n2. write", "requestId": PLAN,
    });
    let edit = json!({
        "type": "permission_request", "request_id": "perm-2", "agent_id": "bob", "tool_name": "Edit",
        "tool_use_id": "t", "description": "to fix it", "input": { "file_path": "src/a.rs" },
        "permission_suggestions": [],
    });
    let inbox =
        json!([entry("bob", &permission("perm-1")), entry("alice", &plan), entry("bob", &edit)]);
    cli.write("claude/teams/demo/inboxes/team-lead.json", &inbox.to_string());
    cli
}

/// Returns a team whose lead's inbox has these permission requests from bob.
fn with_permissions(requests: &[Value]) -> CliEnv {
    let cli = CliEnv::with_team();
    let entries: Vec<Value> = requests.iter().map(|request| entry("bob", request)).collect();
    cli.write("claude/teams/demo/inboxes/team-lead.json", &Value::Array(entries).to_string());
    cli
}

#[test]
fn finding_15_no_field_of_a_request_is_hidden() {
    let mut request = permission("perm-1");
    request["brigade"]["input"] = json!({
        "command": "ls", "dangerouslyDisableSandbox": true, "path": "/etc/passwd", "content": "a\nb: c",
    });
    let cli = with_permissions(&[request]);
    assert_snapshot!(without_age(&cli.run(&["approvals"]).to_string()), @r#"
    1  bob  permission  <age>  perm-1
       commandExecution: run a command (to see the tests)
       working directory: /src/parser
       command:
         $ ls
       dangerouslyDisableSandbox: true
       content:
         | a
         | b: c
       path: "/etc/passwd"
    "#);
}

#[test]
fn finding_15_every_vendors_request_is_printed_whole() {
    let requests = recorded();
    let messages = requests.iter().enumerate();
    let messages: Vec<Value> =
        messages.map(|(index, request)| request.message(&format!("perm-{index}"))).collect();
    let cli = with_permissions(&messages);
    let (list, inbox) = (cli.run_ok(&["approvals"]), cli.run_ok(&["inbox"]));
    for (index, request) in requests.iter().enumerate() {
        let shown = cli.run_ok(&["approvals", &(index + 1).to_string()]);
        request.assert_shown_in(&shown, "brigade approvals");
        // None of these requests is long enough to be cut in the list.
        let (_, request_text) = shown.split_once('\n').unwrap();
        assert!(list.contains(request_text), "{list}");
        request.assert_shown_in(&inbox, "brigade inbox");
    }
}

#[test]
fn finding_15_a_long_value_is_cut_in_the_list_and_printed_whole_on_request() {
    let mut request = permission("perm-1");
    let script: String = (1..=60).map(|line| format!("echo {line}\n")).collect();
    request["brigade"]["input"] = json!({ "command": script });
    let cli = with_permissions(&[request]);
    let list = cli.run_ok(&["approvals"]);
    assert!(list.contains("$ echo 40\n") && !list.contains("$ echo 41\n"), "{list}");
    let note = "[140 more characters in 21 more lines; `brigade approvals 1` shows all]";
    assert!(list.contains(note), "{list}");
    assert!(cli.run_ok(&["approvals", "1"]).contains("$ echo 60\n"));
    // An answered request can still be read.
    cli.answer_unconfirmed(&["approve", "1"]);
    assert!(cli.run_ok(&["approvals", "perm-1"]).contains("$ echo 60\n"));
    assert_eq!(cli.json(&["approvals", "1"])[0]["input"]["command"], script.as_str());
}

/// Replaces each request's age, which depends on the current time, with a placeholder.
fn without_age(text: &str) -> String {
    let replace = |line: &str| match line.split_once(" ago  ") {
        Some((head, id)) => {
            let head = head.rsplit_once("  ").map_or(head, |(head, _)| head);
            format!("{head}  <age>  {id}\n")
        }
        None => format!("{}\n", line.replace("just now", "<age>")),
    };
    text.lines().map(replace).collect()
}

#[test]
fn waiting_requests_are_shown_in_full() {
    let cli = with_requests();
    let shown = cli.run(&["approvals"]).to_string();
    assert_snapshot!(without_age(&shown), @r#"
    1  bob  permission  <age>  perm-1
       commandExecution: run a command (to see the tests)
       working directory: /src/parser
       command:
         $ /bin/bash -lc 'cargo test \u{1b}[2J'

    2  alice  plan  <age>  plan_approval-<ms>@alice@demo
       # Plan
       1. look
       2. write

    3  bob  permission  <age>  perm-2
       Edit: edit files (to fix it)
       file_path: "src/a.rs"
    "#);
    let json = cli.json(&["approvals"]);
    let list = json.as_array().unwrap();
    let kinds: Vec<&str> = list.iter().map(|item| item["kind"].as_str().unwrap()).collect();
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
fn each_request_is_answered_once() {
    let cli = with_requests();
    assert_snapshot!(cli.run(&["approve", "1", PLAN]), @r"
    sent, not yet confirmed (bob is not running): approved bob's permission 1: run: /bin/bash -lc 'cargo test \u{1b}[2J'
    sent, not yet confirmed (alice is not running): approved alice's plan 2
    --- exit 5
    ");
    assert_snapshot!(cli.run(&["deny", "3", "--reason", "not on main"]), @r"
    sent, not yet confirmed (bob is not running): denied bob's permission 3: edit src/a.rs with Edit
    --- exit 5
    ");
    assert_snapshot!(cli.run(&["deny", "1", "--reason", "too late"]), @"
    --- stderr
    error: request 1 of bob was already answered
    hint: a person approved it just now
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["approve", "3"]), @"
    --- stderr
    error: request 3 of bob was already answered
    hint: a person denied it just now: not on main
    --- exit 1
    ");
    let shown = cli.run_ok(&["approvals", "3"]);
    assert!(
        shown.ends_with("already answered: a person denied it just now: not on main\n"),
        "{shown}"
    );
    let shown = cli.json(&["approvals", "1"]);
    assert_eq!(shown[0]["answer"]["by"], "person");
    assert_eq!(shown[0]["answer"]["approved"], true);
    assert_snapshot!(cli.run(&["approve", "4"]), @"
    --- stderr
    error: no approval request 4
    hint: no request is waiting for an answer
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["approvals"]), @"
    --- stderr
    note: no requests are waiting
    --- exit 4
    ");
    assert_eq!(cli.run(&["approvals", "--json"]).stdout, "[]\n");
    let answers: Vec<String> = cli
        .run_ok(&["log"])
        .lines()
        .filter(|line| line.contains(" request (by "))
        .map(|line| line.get(10..).unwrap().to_owned())
        .collect();
    assert_snapshot!(answers.join("\n"), @"
    team-lead           approved bob's permission request (by person) [perm-1]
    team-lead           approved alice's plan request (by person) [plan_approval-1794700000000@…
    team-lead           denied bob's permission request (by person): not on main [perm-2]
    ");
    let told = cli.json(&["inbox", "bob"]);
    let told: Vec<Value> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| serde_json::from_str(entry["text"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(told[0]["subtype"], "success");
    assert_eq!(told[1]["error"], "not on main");
}

/// A request in the inbox has the command that approves it, until it is answered.
#[test]
fn a_waiting_request_in_the_inbox_has_its_command() {
    let cli = with_requests();
    let inbox = cli.run_ok(&["inbox"]);
    let wants = "  bob wants to run: /bin/bash -lc 'cargo test \\u{1b}[2J' (brigade approve 1)\n";
    assert!(inbox.contains(wants), "{inbox}");
    assert!(
        inbox.contains("  alice wants its plan approved (brigade approve 2)\n  # Plan\n"),
        "{inbox}"
    );
    assert!(inbox.contains("(brigade approve 3)"), "{inbox}");
    assert!(!inbox.contains("perm-1"), "the number replaces the id: {inbox}");
    cli.answer_unconfirmed(&["approve", "1"]);
    let inbox = cli.run_ok(&["inbox"]);
    assert!(inbox.contains("perm-1") && !inbox.contains("(brigade approve 1)"), "{inbox}");
    assert!(inbox.contains("(brigade approve 2)"), "{inbox}");
    // Without the name of the team, the command would act on another one.
    let inbox = cli.run_ok(&["inbox", "--team", "demo"]);
    assert!(inbox.contains("(brigade approve 2 --team demo)"), "{inbox}");
}

/// If one id is unknown, no request is answered. If one request was answered before, the others are still answered.
#[test]
fn several_requests_are_answered_at_once() {
    let cli = with_requests();
    assert_snapshot!(cli.run(&["approve", "1", "7"]), @"
    --- stderr
    error: no approval request 7
    hint: waiting: 1, 2, 3; see `brigade approvals`
    --- exit 1
    ");
    assert_eq!(cli.json(&["approvals"]).as_array().unwrap().len(), 3);
    cli.answer_unconfirmed(&["approve", "1"]);
    assert_snapshot!(cli.run(&["approve", "1", "2", "--json"]), @r#"
    [{"number":2,"request_id":"plan_approval-<ms>@alice@demo","kind":"plan","to":"alice","approved":true,"confirmed":false,"not_yet":"alice is not running"}]
    --- stderr
    {"error":{"message":"request 1 of bob was already answered","hint":"a person approved it just now","code":1}}
    --- exit 1
    "#);
}

/// `--all` shows what it approves, and needs a yes.
#[test]
fn all_waiting_requests_are_approved_after_a_yes() {
    let cli = with_requests();
    let asked = cli.run(&["approve", "--all"]);
    assert!(asked.stdout.contains("cargo test") && asked.stdout.contains("2. write"), "{asked}");
    assert_snapshot!(asked.stderr, @"
    error: cannot ask for confirmation: standard input is not a terminal
    hint: `--yes` does it without asking
    ");
    assert_eq!(asked.code, Some(2));
    assert_eq!(cli.json(&["approvals"]).as_array().unwrap().len(), 3);
    assert_snapshot!(cli.run(&["approve", "--all", "--json"]), @r#"
    --- stderr
    {"error":{"message":"cannot ask for confirmation: standard input is not a terminal","hint":"`--yes` does it without asking","code":2}}
    --- exit 2
    "#);
    let done = cli.run(&["approve", "--all", "--yes"]);
    assert_eq!(done.code, Some(5), "{done}");
    let answers = done.stdout.lines().filter(|line| line.contains("sent, not yet confirmed"));
    assert_eq!(answers.count(), 3, "{done}");
    assert_snapshot!(cli.run(&["approve", "--all", "--yes"]), @"
    --- stderr
    note: no requests are waiting
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["approve"]), @"
    --- stderr
    error: the following required arguments were not provided:
      <ID>...

    Usage: brigade approve <ID>...

    For more information, try `brigade approve --help`.
    --- exit 2
    ");
}

#[test]
fn several_requests_are_denied_without_a_reason() {
    let cli = with_requests();
    let denied = cli.run(&["deny", "1", "2"]);
    assert_eq!(denied.code, Some(5), "{denied}");
    assert_eq!(denied.stdout.lines().count(), 2, "{denied}");
    assert_eq!(cli.json(&["approvals"]).as_array().unwrap().len(), 1);
    let log = cli.run_ok(&["log"]);
    assert_eq!(log.matches("(by person): no reason given").count(), 2, "{log}");
}

#[test]
fn watch_needs_a_terminal() {
    let cli = with_requests();
    assert_snapshot!(cli.run(&["approvals", "--watch"]), @"
    --- stderr
    error: --watch needs a terminal
    hint: `--follow` prints new requests and answers as lines, also as JSON
    --- exit 2
    ");
}

#[test]
fn only_the_lead_answers() {
    let cli = with_requests();
    assert_snapshot!(cli.run(&["--as", "bob", "approve", "1"]), @"
    --- stderr
    error: only the lead may list and answer approval requests; bob is not the lead of team demo
    hint: `--as NAME` sets the member you act as
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["--as", "alice", "approvals"]), @"
    --- stderr
    error: only the lead may list and answer approval requests; alice is not the lead of team demo
    hint: `--as NAME` sets the member you act as
    --- exit 1
    ");
    assert_eq!(cli.json(&["approvals"]).as_array().unwrap().len(), 3);
}

/// If only a person may answer, a lead that is an agent can answer neither with MCP tools nor on the command line.
#[test]
fn an_agent_without_permission_cannot_answer() {
    let cli = with_requests();
    let person = [("BRIGADE_ANSWERS", "person")];
    assert_snapshot!(cli.run_with_env(&["approve", "1"], &person), @"
    --- stderr
    error: only a human may answer a permission request in team demo; its lead is an agent
    hint: a person answers it with `brigade approvals`
    --- exit 1
    ");
    assert_snapshot!(cli.run_with_env(&["approvals"], &[("BRIGADE_ANSWERS", "me")]), @"
    --- stderr
    error: BRIGADE_ANSWERS is not valid
      caused by: use person or lead
    --- exit 2
    ");
    let arguments = json!({ "request_id": "perm-1", "approve": true });
    let mut bound = Client::of_with_env(&cli, "team-lead", &person);
    assert_snapshot!(bound.refused("answer_permission", arguments.clone()), @"only a human may answer a permission request in team demo; its lead is an agent; leave the request open; a person answers it with `brigade approvals`");
    let mut free = Client::of(&cli, "team-lead");
    free.call_ok("answer_permission", arguments.clone());
    let late = free.refused("answer_permission", arguments);
    assert!(late.contains("already answered; an agent said yes at "), "{late}");
    let log = cli.run_ok(&["log"]);
    assert!(log.contains("approved bob's permission request (by agent) [perm-1]"), "{log}");
}

#[test]
fn follow_prints_requests_and_answers() {
    let cli = with_requests();
    let mut child =
        cli.command(&["approvals", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    for number in 1..=3 {
        assert_eq!(next()["asked"]["number"], number);
    }
    cli.answer_unconfirmed(&["approve", "2"]);
    let answered = next();
    assert_eq!(answered["event"]["answered"]["request_id"], PLAN);
    assert_eq!(answered["event"]["answered"]["hand"], "person");
    let inbox = cli.path("claude/teams/demo/inboxes/team-lead.json");
    let mut entries: Value = serde_json::from_slice(&std::fs::read(&inbox).unwrap()).unwrap();
    entries.as_array_mut().unwrap().push(entry("bob", &permission("perm-4")));
    std::fs::write(&inbox, entries.to_string()).unwrap();
    assert_eq!(next()["asked"]["request_id"], "perm-4");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A full mailbox must not turn a request into a denial: the member waits until the lead has read its mail.
#[test]
fn a_request_that_does_not_fit_into_the_mailbox_is_sent_later() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    wait_until("alice's turn to end", || team.cli.member("alice")["liveness"] == "idle");
    let timestamp = "2026-11-15T12:00:00.000Z";
    let unread: Vec<Value> = (0..20_000)
        .map(|number| json!({ "from": "alice", "text": format!("{number}"), "timestamp": timestamp, "read": false }))
        .collect();
    let inbox = Value::from(unread).to_string();
    team.cli.write("claude/teams/demo/inboxes/team-lead.json", &inbox);
    team.cli.run_ok(&["send", "alice", "ASK"]);
    let evidence = || team.cli.member("alice")["evidence"].as_str().unwrap().to_owned();
    wait_until("alice to wait", || evidence().contains("waiting to ask the lead"));
    assert!(evidence().contains("team-lead has not read"), "{}", evidence());
    assert!(!team.received("a").contains("answered"), "{}", team.received("a"));
    team.cli.run_ok(&["inbox", "--unread", "--mark-read"]);
    wait_until("the request", || team.cli.run(&["approve", "1"]).code == Some(0));
    wait_until("the answer", || team.received("a").contains("allow-it"));
}

/// The Agent Client Protocol has no field for the reason of a denial.
#[test]
fn the_reason_of_a_denial_reaches_the_model_once() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let asks = |number: usize| {
        team.cli.run_ok(&["send", "alice", "please ASK"]);
        wait_until("the request", || team.cli.member("alice")["liveness"] == "waiting");
        number.to_string()
    };
    let is_idle = || team.cli.member("alice")["liveness"] == "idle";
    let reasons = || team.received("a").matches("denies the permission you asked for").count();
    // Without a reason there is nothing to send.
    team.cli.run_ok(&["deny", &asks(1)]);
    wait_until("the answer", || team.received("a").contains("refuse-it") && is_idle());
    team.cli.run_ok(&["deny", &asks(2), "--reason", "use ninja instead"]);
    let text = "denies the permission you asked for: use ninja instead";
    wait_until("the reason", || team.received("a").contains(text) && is_idle());
    assert_eq!(reasons(), 1, "{}", team.received("a"));
    // A paused member reads the reason later, also if its process was killed meanwhile.
    let request = asks(3);
    team.cli.json(&["pause", "alice"]);
    team.cli.run_ok(&["deny", &request, "--reason", "not on Fridays"]);
    wait_until("the end of the turn", || team.cli.member("alice")["liveness"] == "paused");
    let process = team.pid("alice");
    crate::process::kill(process);
    wait_until("a new process", || {
        let alice = team.cli.member("alice");
        alice["pid"].as_u64().is_some_and(|pid| pid != process) && alice["liveness"] == "paused"
    });
    assert_eq!(reasons(), 1, "{}", team.received("a"));
    team.cli.json(&["unpause", "alice"]);
    wait_until("the reason", || team.received("a").contains("not on Fridays") && is_idle());
    team.cli.json(&["restart", "alice"]);
    team.cli.run_ok(&["send", "alice", "one more turn"]);
    wait_until("the turn", || team.received("a").contains("one more turn") && is_idle());
    assert_eq!(reasons(), 2, "{}", team.received("a"));
    // The answers took effect, so none of them came late.
    let inbox = team.cli.run(&["inbox", "--all"]);
    assert!(!inbox.stdout.contains("came late"), "{inbox}");
}
