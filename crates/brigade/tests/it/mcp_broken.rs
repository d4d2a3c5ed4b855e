//! `brigade mcp` with a client that violates the protocol.

use serde_json::{Value, json};

use crate::client::Client;
use crate::env::CliEnv;
use crate::mcp_forgery::Outcome::{Error, PassedOver, Refused};
use crate::mcp_forgery::{ForgeryScene, request};

const NO_JSON: i64 = -32700;
const NO_SUCH: i64 = -32601;
const INVALID_REQUEST: i64 = -32600;
const UNSUPPORTED: i64 = -32022;

#[test]
fn invalid_lines_change_nothing() {
    let mut s = ForgeryScene::new();
    let deep = ["[".repeat(100_000), "]".repeat(100_000)].concat();
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"attempt","method":"tools/call","params":{{"name":"send_message","arguments":{arguments}}}}}"#
        )
    };
    let ping = |members: &str| format!(r#"{{{members},"method":"ping"}}"#);
    let off = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#)
    };
    let long = format!(r#"{{"to":"alice","message":"{}"}}"#, "x".repeat(20 << 20));
    #[rustfmt::skip] // Keep each table row on one line.
    let rows = [
        ("20 MB on a line", call(&long), Error(INVALID_REQUEST)),
        ("100,000 brackets", call(&deep), Error(NO_JSON)),
        ("half of a surrogate pair", call(r#"{"to":"\ud83d","message":"hi"}"#), Refused("no member")),
        ("a number that is too large", call(r#"{"to":"alice","message":1e999}"#), Error(NO_JSON)),
        ("no JSON", "send alice hi".into(), Error(NO_JSON)),
        ("half a line", r#"{"jsonrpc":"2.0","#.into(), Error(NO_JSON)),
        ("an empty line", String::new(), PassedOver),
        ("a blank line", " \t\r".into(), PassedOver),
        ("a batch", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#.into(), Error(INVALID_REQUEST)),
        ("no version of JSON-RPC", ping(r#""id":1"#), Error(INVALID_REQUEST)),
        ("another version of it", ping(r#""jsonrpc":"1.0","id":1"#), Error(INVALID_REQUEST)),
        ("an id that is null", ping(r#""jsonrpc":"2.0","id":null"#), Error(INVALID_REQUEST)),
        ("an id that is a fraction", ping(r#""jsonrpc":"2.0","id":1.5"#), Error(INVALID_REQUEST)),
        ("an id that is a list", ping(r#""jsonrpc":"2.0","id":[]"#), Error(INVALID_REQUEST)),
        ("an id beyond 64 bits", ping(r#""jsonrpc":"2.0","id":18446744073709551616"#), Error(INVALID_REQUEST)),
        ("arguments in a list", call("[]"), Error(NO_SUCH)),
        ("arguments in a string", call(r#""to alice""#), Error(NO_SUCH)),
        ("no arguments", call("{}"), Refused("missing field `to`")),
        ("a recipient by two names", call(r#"{"to":"alice","recipient":"bob","message":"hi"}"#), Refused("duplicate field")),
        ("an unexpected answer", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into(), PassedOver),
        ("an unexpected error", r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#.into(), PassedOver),
        ("cancelling an answered call", off(r#"{"requestId":1}"#), PassedOver),
        ("cancelling the call of another client", off(r#"{"requestId":"theirs"}"#), PassedOver),
        ("cancelling nothing", off("{}"), PassedOver),
        ("cancelling an object", off(r#"{"requestId":{}}"#), PassedOver),
        ("an unknown method", r#"{"jsonrpc":"2.0","id":1,"method":"seat/change"}"#.into(), Error(NO_SUCH)),
    ];
    for (guarded, line, outcome) in rows {
        s.check(guarded, "bob", line.as_bytes(), outcome);
    }
    let rows: [(&str, &[u8]); 3] = [
        ("bytes that are no text", b"\"\xff\xfe\""),
        ("NULs", b"\0\0\0"),
        ("text that is not UTF-8 in a call", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"),
    ];
    for (guarded, line) in rows {
        s.check(guarded, "bob", line, Error(NO_JSON));
    }
}

#[test]
fn oversized_arguments_are_refused() {
    let mut s = ForgeryScene::new();
    let long = "x".repeat(10 << 20);
    let task = |key: &str| json!({ "subject": "s", "description": "d", key: long });
    #[rustfmt::skip] // Keep each table row on one line.
    let rows = [
        ("a message", "send_message", json!({ "to": "alice", "message": long }), "limit is 1048576"),
        ("a summary", "send_message", json!({ "to": "alice", "message": "m", "summary": long }), "limit is 1048576"),
        ("a plan", "submit_plan", json!({ "plan": long }), "limit is 1048576"),
        ("a plan's file", "submit_plan", json!({ "plan": "p", "planFilePath": long }), "limit is 1048576"),
        ("a subject", "task_create", task("subject"), "limit is 262144"),
        ("a description", "task_create", task("description"), "limit is 262144"),
        ("an active form", "task_create", task("activeForm"), "limit is 262144"),
        ("metadata", "task_create", json!({ "subject": "s", "description": "d", "metadata": { "k": long } }), "limit is 262144"),
        ("a new description", "task_update", json!({ "taskId": 2, "description": long }), "limit is 262144"),
        ("new metadata", "task_update", json!({ "taskId": 2, "metadata": { "k": long } }), "limit is 262144"),
        ("a name", "send_message", json!({ "to": long, "message": "m" }), "no member"),
        ("a number", "task_get", json!({ "taskId": long }), "invalid arguments"),
    ];
    for (guarded, tool, arguments, words) in rows {
        s.call(guarded, "bob", tool, arguments, Refused(words));
    }
    let reason = json!({ "to": "bob", "reason": long });
    s.call("a reason", "team-lead", "request_shutdown", reason, Refused("limit is 1048576"));
    let feedback = json!({ "request_id": s.plan, "approve": false, "feedback": long });
    s.call("feedback", "team-lead", "answer_plan", feedback, Refused("limit is 1048576"));
}

/// The error response to an unreadable request has the request's id, wherever the id is in the line.
#[test]
fn unreadable_requests_are_answered_by_id() {
    let cli = CliEnv::with_team();
    let mut bob = Client::of(&cli, "bob");
    let long = "x".repeat(20 << 20);
    let deep = ["[".repeat(1000), "]".repeat(1000)].concat();
    #[rustfmt::skip] // Keep each table row on one line.
    let rows = [
        (format!(r#"{{"jsonrpc":"2.0","id":"first","method":"ping","params":{{"x":"{long}"}}}}"#), INVALID_REQUEST, json!("first")),
        (format!(r#"{{"method":"ping","params":{{"x":"{long}"}},"jsonrpc":"2.0","id":"last"}}"#), INVALID_REQUEST, json!("last")),
        (format!(r#"{{"method":"ping","id":"between","params":{{"x":{deep}}},"jsonrpc":"2.0"}}"#), NO_JSON, json!("between")),
        (long, INVALID_REQUEST, json!(null)),
        (r#"{"jsonrpc":"2.0","id":77,"method":"ping","params":{"x":1e999}}"#.into(), NO_JSON, json!(77)),
        (r#"{"jsonrpc":"2.0","id":78,"method":"ping","params":{"x":"#.into(), NO_JSON, json!(78)),
        (r#"{"jsonrpc":"2.0","id":79"#.into(), NO_JSON, json!(null)),
    ];
    for (line, code, id) in rows {
        bob.write(line.as_bytes());
        let answer = bob.read();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{answer}");
    }
    assert_eq!(bob.call_ok("list_members", json!({}))["you"], "bob");
}

/// JavaScript can cut a text in the middle of an emoji and send half a surrogate pair.
#[test]
fn lone_surrogates_are_replaced() {
    let cli = CliEnv::with_team();
    let mut bob = Client::of(&cli, "bob");
    let arguments = r#"{"to":"alice","message":"cut \ud83d, whole \ud83d\ude00"}"#;
    bob.write(
        format!(r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"send_message","arguments":{arguments}}}}}"#)
            .as_bytes(),
    );
    let answer = bob.read();
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&json!("x"), &json!(false)),
        "{answer}"
    );
    let inbox = cli.json(&["inbox", "alice"]);
    assert_eq!(inbox[0]["text"], "cut \u{fffd}, whole \u{1f600}", "{inbox}");
}

/// The server answers the last line before it exits.
#[test]
fn an_invalid_last_line_is_answered() {
    let cli = CliEnv::with_team();
    for line in ["no JSON", "no JSON\n", "{}\nno JSON\n"] {
        let output = cli.run_with_input(&["mcp", "--team", "demo", "--as", "bob"], line.as_bytes());
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let answers =
            output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let told = answers.filter(|answer| answer["error"]["code"] == NO_JSON).count();
        assert_eq!(told, 1, "{}", output.stdout);
    }
}

/// A second `initialize` is answered and does not change the identity.
#[test]
fn a_second_initialize_changes_nothing() {
    let mut s = ForgeryScene::new();
    let bob = s.clients.get_mut("bob").unwrap();
    for version in ["2025-06-18", "1999-01-01"] {
        let answer = bob.ask(
            "initialize",
            json!({
                "protocolVersion": version, "capabilities": {},
                "clientInfo": { "name": "team-lead", "version": "1" }, "seat": "team-lead",
            }),
        );
        let instructions = answer["result"]["instructions"].as_str().unwrap();
        assert!(instructions.starts_with("You are bob in the agent team demo."), "{answer}");
        assert_eq!(bob.call_ok("list_members", json!({}))["you"], "bob");
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "team-lead", "version": "1" },
    });
    let params = json!({ "name": "list_members", "arguments": {}, "_meta": meta });
    s.check("a later protocol", "bob", &request("tools/call", params), Error(UNSUPPORTED));
}
