//! Calls of the API do what the commands do.

use std::thread;

use serde_json::{Value, json};

use super::served;
use crate::approvals::with_requests;
use crate::env::CliEnv;

#[test]
fn reads_return_what_commands_print() {
    let (cli, server, token) = served();
    cli.run_ok(&["task", "add", "Write the parser", "--owner", "bob"]);
    cli.run_ok(&["send", "bob", "hello"]);
    let get = |path: &str| server.call(&token, "GET", path, "").json();
    assert_eq!(get("/teams/demo/tasks"), cli.json(&["task", "list"]));
    assert_eq!(get("/teams/demo/tasks/1"), cli.json(&["task", "show", "1", "--brief"]));
    assert_eq!(get("/teams/demo/members/bob/mail"), cli.json(&["inbox", "bob"]));
    assert_eq!(get("/teams/demo/config"), cli.json(&["team", "show"]));
    let teams = get("/teams");
    assert_eq!((&teams[0], teams.as_array().unwrap().len()), (&get("/teams/demo"), 1));
    assert_eq!(teams[0]["team"], "demo");
    let found = get("/search?text=parser");
    assert_eq!(found[0]["team"], "demo", "{found}");
    let log = get("/teams/demo/log?limit=2");
    let printed = cli.run_ok(&["logs", "--json", "-n", "2"]);
    let printed: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(log.as_array().unwrap(), &printed);
}

#[test]
fn changes_have_the_effect_of_commands() {
    let (cli, server, token) = served();
    let change = |method: &str, path: &str, body: Value| {
        server.call(&token, method, &format!("/teams/demo{path}"), &body.to_string())
    };
    let sent = change("POST", "/messages", json!({ "to": "bob", "text": "from the web" }));
    assert_eq!(sent.status, 201, "{sent:?}");
    assert_eq!(cli.json(&["inbox", "bob"])[0]["text"], "from the web");
    let task = json!({ "subject": "One", "labels": ["a"], "priority": "high" });
    assert_eq!(change("POST", "/tasks", task).json(), json!({ "task_id": "1" }));
    assert_eq!(
        change("POST", "/tasks", json!({ "subject": "Two", "blocked_by": [1] })).status,
        201
    );
    let edit = json!({ "owner": "alice", "subject": "First" });
    assert_eq!(change("PATCH", "/tasks/1", edit).status, 200);
    assert_eq!(change("POST", "/tasks/1/done", json!({})).status, 200);
    assert_eq!(change("POST", "/tasks/1/reopen", json!({})).status, 200);
    assert_eq!(change("POST", "/tasks/2/cancel", json!({ "reason": "later" })).status, 200);
    let tasks = cli.json(&["task", "list"]);
    assert_eq!((&tasks[0]["subject"], &tasks[0]["owner"]), (&json!("First"), &json!("alice")));
    assert_eq!(tasks[0]["status"], "pending");
    assert_eq!(change("DELETE", "/tasks/2", json!({})).status, 200);
    assert_eq!(cli.json(&["task", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn errors_are_problem_documents() {
    let (_cli, server, token) = served();
    for (method, path, body, status, kind) in [
        ("GET", "/teams/nothing", "", 404, "not-found"),
        ("GET", "/teams/demo/tasks/99", "", 404, "not-found"),
        ("GET", "/teams/demo/approvals/99", "", 404, "not-found"),
        ("GET", "/teams/demo/members/zoe/mail", "", 404, "not-found"),
        ("GET", "/teams/demo/tasks?limit=x", "", 400, "invalid"),
        ("GET", "/search", "", 400, "invalid"),
        ("POST", "/teams/demo/messages", "{", 400, "invalid"),
        ("POST", "/teams/demo/messages", r#"{"to":"zoe","text":"x"}"#, 404, "not-found"),
        ("PATCH", "/teams/demo/tasks/99", r#"{"subject":"x"}"#, 404, "not-found"),
        ("POST", "/teams/demo/members/bob/interrupt", "{}", 409, "conflict"),
        ("POST", "/teams/demo", "{}", 405, "no-such-method"),
        ("GET", "/nothing", "", 404, "not-found"),
    ] {
        let reply = server.call(&token, method, path, body);
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
        assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{path}");
        let problem = reply.json();
        assert_eq!(problem["type"], format!("urn:brigade:problem:{kind}"), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
    }
}

#[test]
fn a_known_document_is_not_sent_again() {
    let (cli, server, token) = served();
    let bearer = format!("Bearer {token}");
    let path = "/api/v1/teams/demo/tasks";
    let first = server.request("GET", path, &[("Authorization", &bearer)], "");
    let tag = first.header("etag").unwrap().to_owned();
    let headers = [("Authorization", bearer.as_str()), ("If-None-Match", tag.as_str())];
    let same = server.request("GET", path, &headers, "");
    assert_eq!((same.status, same.body.as_str()), (304, ""));
    cli.run_ok(&["task", "add", "x"]);
    assert_eq!(server.request("GET", path, &headers, "").status, 200);
}

#[test]
fn a_list_comes_in_pages() {
    let (cli, server, token) = served();
    for number in 1..=5 {
        cli.run_ok(&["task", "add", &format!("task {number}")]);
        cli.run_ok(&["send", "bob", &format!("message {number}")]);
    }
    for list in ["/teams/demo/tasks", "/teams/demo/members/bob/mail"] {
        let whole = server.call(&token, "GET", list, "").json();
        let (mut pages, mut query) = (Vec::new(), "?limit=2".to_owned());
        loop {
            let reply = server.call(&token, "GET", &format!("{list}{query}"), "");
            pages.extend(reply.json().as_array().unwrap().iter().cloned());
            let Some(next) = reply.header("link") else { break };
            let cursor = next.split_once("cursor=").unwrap().1.split('>').next().unwrap();
            query = format!("?limit=2&cursor={cursor}");
        }
        assert_eq!(&pages, whole.as_array().unwrap(), "{list}");
    }
}

#[test]
fn a_change_that_is_sent_again_is_made_once() {
    let (cli, server, token) = served();
    let bearer = format!("Bearer {token}");
    let add = |key: &str, subject: &str| {
        let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", key)];
        let body = json!({ "subject": subject }).to_string();
        server.request("POST", "/api/v1/teams/demo/tasks", &headers, &body)
    };
    let replies: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| add("k", "x"))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // While the first request is being carried out, the others get an error.
    assert!(replies.iter().all(|reply| matches!(reply.status, 201 | 409)), "{replies:?}");
    assert_eq!(add("k", "x").json(), json!({ "task_id": "1" }));
    assert_eq!(add("k", "another").status, 409);
    assert_eq!(cli.json(&["task", "list"]).as_array().unwrap().len(), 1);
}

/// Removes the ages of requests, which differ between two calls.
fn without_ages(mut requests: Value) -> Value {
    for request in requests.as_array_mut().unwrap() {
        assert!(request.as_object_mut().unwrap().remove("age_seconds").is_some());
    }
    requests
}

/// Returns who answered, according to the journal.
fn hands(cli: &CliEnv) -> Vec<Value> {
    let log = cli.run_ok(&["logs", "--json"]);
    let records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter_map(|record| record["event"]["answered"].get("hand").cloned()).collect()
}

#[test]
fn a_request_is_answered_once_and_the_second_is_told_by_whom() {
    let cli = with_requests();
    let server = super::WebServer::start(&cli);
    let tokens = ["sofa", "desk"].map(|name| super::token(&cli, name, "approve-only"));
    let waiting = server.call(&tokens[0], "GET", "/teams/demo/approvals", "").json();
    assert_eq!(without_ages(waiting), without_ages(cli.json(&["approvals"])));
    let answer = |token: &str| {
        let body = r#"{"request_id":"perm-1"}"#;
        server.call(token, "POST", "/teams/demo/approvals/1/approve", body)
    };
    let replies: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = tokens.iter().map(|token| scope.spawn(|| answer(token))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // The member does not run, so that no answer is confirmed.
    let (given, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 202);
    assert_eq!((given.len(), refused.len()), (1, 1), "{replies:?}");
    assert_eq!(refused[0].status, 409);
    let hand = &hands(&cli)[0];
    assert!(refused[0].body.contains(hand.as_str().unwrap()), "{hand} {refused:?}");
    assert!(matches!(
        hand.as_str().unwrap(),
        "person by web, token sofa" | "person by web, token desk"
    ));
    for remember in ["turn", "folder", "everywhere"] {
        let body = json!({ "request_id": "perm-2", "remember": remember }).to_string();
        let rule = server.call(&tokens[0], "POST", "/teams/demo/approvals/3/approve", &body);
        assert_eq!(rule.status, 403, "an approve-only token adds no rule: {rule:?}");
    }
    assert_eq!(hands(&cli).len(), 1);
    let other = server.call(
        &tokens[0],
        "POST",
        "/teams/demo/approvals/2/deny",
        r#"{"request_id":"perm-1","reason":"no"}"#,
    );
    assert_eq!(other.status, 400, "request 2 is another one: {other:?}");
}
