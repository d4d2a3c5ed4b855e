//! The stream of events.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::{WebServer, served, token};

/// An event of the stream.
#[derive(Debug)]
struct StreamedEvent {
    kind: String,
    id: String,
    data: Value,
}

impl StreamedEvent {
    /// Returns the text of the message that the event is about.
    fn text(&self) -> Option<&str> {
        self.data["record"]["event"]["sent"]["message"]["text"].as_str()
    }
}

/// A client of the stream.
struct EventClient {
    lines: BufReader<TcpStream>,
}

impl EventClient {
    fn connect(server: &WebServer, token: &str, query: &str, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request = format!(
            "GET /api/v1/events{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n{last}\r\n",
            server.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        Self { lines: BufReader::new(stream) }
    }

    /// Waits for the next event; `None` when the stream has ended.
    fn next(&mut self) -> Option<StreamedEvent> {
        let (mut kind, mut id) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            match line.split_once(": ") {
                Some(("event", value)) => kind = value.to_owned(),
                Some(("id", value)) => id = value.to_owned(),
                Some(("data", value)) => {
                    let data = serde_json::from_str(value).unwrap();
                    return Some(StreamedEvent { kind, id, data });
                }
                _ => {}
            }
        }
    }

    /// Returns the texts of messages up to this text, and the id of the last event.
    fn texts_until(&mut self, last: &str, seen: &mut HashSet<String>) -> (Vec<String>, String) {
        let mut texts = Vec::new();
        loop {
            let event = self.next().unwrap();
            if let Some(key) = event.data["key"].as_str()
                && !seen.insert(key.to_owned())
            {
                continue;
            }
            texts.extend(event.text().map(str::to_owned));
            if event.text() == Some(last) {
                return (texts, event.id);
            }
        }
    }
}

#[test]
fn a_client_gets_the_events_since_it_connected() {
    let (cli, server, token) = served();
    cli.run_ok(&["send", "bob", "before"]);
    let mut client = EventClient::connect(&server, &token, "", None);
    assert_eq!(client.next().unwrap().kind, "hello");
    cli.run_ok(&["send", "bob", "after"]);
    let (texts, _) = client.texts_until("after", &mut HashSet::new());
    // The server may learn about an event slightly after it happened.
    assert!(texts == ["after"] || texts == ["before", "after"], "{texts:?}");
    // A team that is created later is watched, too, from its first event on.
    cli.run_ok(&["team", "create", "later"]);
    let event = client.next().unwrap();
    assert_eq!(event.data["team"], "later", "{event:?}");
    assert!(event.data["record"]["event"]["team_created"].is_object(), "{event:?}");
}

#[test]
fn a_client_that_connects_again_misses_nothing() {
    let (cli, mut server, token) = served();
    let mut seen = HashSet::new();
    let mut client = EventClient::connect(&server, &token, "?team=demo", None);
    client.next().unwrap();
    cli.run_ok(&["send", "bob", "one"]);
    let (mut texts, last) = client.texts_until("one", &mut seen);
    drop(client);
    cli.run_ok(&["send", "bob", "two"]);
    cli.run_ok(&["send", "bob", "three"]);
    let mut client = EventClient::connect(&server, &token, "?team=demo", Some(&last));
    // The server still has the events, so none of them comes twice.
    let first = client.next().unwrap();
    assert_eq!(first.text(), Some("two"), "{first:?}");
    texts.push("two".to_owned());
    let (more, last) = client.texts_until("three", &mut seen);
    texts.extend(more);
    let port = server.port().to_owned();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    cli.run_ok(&["send", "bob", "four"]);
    let again = WebServer::start_at(&cli, &port);
    cli.run_ok(&["send", "bob", "five"]);
    let mut client = EventClient::connect(&again, &token, "?team=demo", Some(&last));
    let mut rest = Vec::new();
    while rest.last().map(String::as_str) != Some("five") {
        let event = client.next().unwrap();
        // After a start of the server, a client drops the events that it has, by their keys.
        if seen.insert(event.data["key"].as_str().unwrap().to_owned()) {
            rest.extend(event.text().map(str::to_owned));
        }
    }
    // The client has read "two" above without its key.
    rest.retain(|text| text != "two");
    texts.extend(rest);
    assert_eq!(texts, ["one", "two", "three", "four", "five"]);
}

#[test]
fn a_token_that_only_answers_requests_learns_no_content() {
    let (cli, server, _) = served();
    let approver = token(&cli, "phone", "approve-only");
    let mut client = EventClient::connect(&server, &approver, "", None);
    assert_eq!(client.next().unwrap().kind, "hello");
    cli.run_ok(&["send", "bob", "a secret"]);
    let request = serde_json::json!({
        "type": "permission_request", "request_id": "p", "agent_id": "bob", "tool_name": "Bash",
        "tool_use_id": "t", "description": "d", "input": { "command": "ls" },
        "permission_suggestions": [],
    });
    cli.write_inbox("team-lead", "bob", &request.to_string());
    cli.run_ok(&["approvals"]);
    let event = client.next().unwrap();
    assert_eq!(event.kind, "requests");
    let fields: Vec<&String> = event.data.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["key", "team"]);
}

#[test]
fn the_stream_of_a_revoked_token_ends() {
    let (cli, server, token) = served();
    let mut client = EventClient::connect(&server, &token, "", None);
    client.next().unwrap();
    cli.run_ok(&["web", "token", "revoke", "test"]);
    cli.run_ok(&["send", "bob", "after"]);
    assert!(client.next().is_none(), "the stream has ended");
}
