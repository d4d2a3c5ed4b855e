//! Tokens, rights and logins.

use insta::assert_snapshot;
use serde_json::Value;

use super::{WebServer, served, token};
use crate::env::CliEnv;

/// Returns every call of the API that needs a token: method, path with example names, and whether it changes something.
fn all_calls(server: &WebServer) -> Vec<(String, String, bool)> {
    let api = server.request("GET", "/api/v1/openapi.json", &[], "").json();
    let mut calls = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        let path = [("{team}", "demo"), ("{member}", "bob"), ("{task}", "1"), ("{request}", "1")]
            .iter()
            .fold(path.clone(), |path, (name, value)| path.replace(name, value));
        for (method, operation) in methods.as_object().unwrap() {
            let changes = operation["requestBody"].is_object();
            calls.push((method.to_uppercase(), path.clone(), changes));
        }
    }
    assert!(calls.len() > 30, "{calls:?}");
    calls
}

#[test]
fn every_call_needs_a_token_with_the_right_to_make_it() {
    let (cli, server, _) = served();
    let (reader, approver) = (token(&cli, "r", "read-only"), token(&cli, "a", "approve-only"));
    for (method, path, changes) in all_calls(&server) {
        let status = |token: Option<&str>| {
            let bearer = token.map(|token| format!("Bearer {token}"));
            let header = bearer.as_deref().map(|bearer| ("Authorization", bearer));
            let headers: Vec<_> = header.into_iter().collect();
            // A stream does not end; the other calls have to refuse before they read the content.
            server.request(&method, &path, &headers, if changes { "{}" } else { "" }).status
        };
        assert_eq!(status(None), 401, "{method} {path} without a token");
        assert_eq!(status(Some("wrong")), 401, "{method} {path} with a wrong token");
        if path.ends_with("/events") {
            continue;
        }
        let is_request = path.contains("/approvals");
        let is_open = is_request || path.ends_with("/session");
        assert_eq!(status(Some(&reader)) == 403, changes, "{method} {path}, read-only");
        assert_eq!(status(Some(&approver)) == 403, !is_open, "{method} {path}, approve-only");
    }
}

#[test]
fn a_revoked_token_stops_working_at_once() {
    let (cli, server, token) = served();
    assert_eq!(server.call(&token, "GET", "/teams", "").status, 200);
    assert_snapshot!(cli.run(&["web", "token", "revoke", "test"]), @"revoked test");
    let refused = server.call(&token, "GET", "/teams", "");
    assert_eq!(refused.status, 401);
    assert_snapshot!(cli.run(&["web", "token", "revoke", "test"]), @"
    --- stderr
    error: there is no token test
    hint: `brigade web token list` shows them
    --- exit 1
    ");
}

#[test]
fn tokens_are_listed_without_their_secrets() {
    let cli = CliEnv::with_team();
    assert_eq!(cli.run(&["web", "token", "list"]).code, Some(4));
    let phone = token(&cli, "phone", "approve-only");
    token(&cli, "ci", "read-only");
    let listed = cli.run(&["web", "token", "list"]).to_string();
    assert!(!listed.contains(&phone));
    let names: Vec<Value> = cli
        .json(&["web", "token", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["name"].clone())
        .collect();
    assert_eq!(names, ["phone", "ci"]);
    assert_snapshot!(cli.run(&["web", "token", "add", "ci"]), @"
    --- stderr
    error: there is already a token ci
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["web", "token", "add", "a b"]), @"
    --- stderr
    error: the name of a token has 1 to 40 letters, digits, `-`, `_` or `.`
    --- exit 1
    ");
}

#[test]
fn an_agent_gets_no_token_and_starts_no_server() {
    let cli = CliEnv::with_team();
    for args in [&["web"][..], &["web", "link"], &["web", "token", "add", "x"]] {
        let outcome = cli.run_with_env(args, &[("BRIGADE_ANSWERS", "lead")]);
        assert_eq!(outcome.code, Some(1), "{args:?}: {outcome}");
        assert!(outcome.stderr.contains("only a person"), "{outcome}");
    }
}

#[test]
fn the_server_listens_on_this_computer_only() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["web", "--address", "0.0.0.0"]), @"
    --- stderr
    error: 0.0.0.0 is not an address of this computer alone, and the server has no https
    hint: use `--unix FILE` with a proxy that offers https
    --- exit 2
    ");
}

#[test]
fn a_login_link_works_once_and_only_on_the_page() {
    let (_cli, server, _) = served();
    let origin = server.origin();
    let body = format!("{{\"secret\":\"{}\"}}", server.login);
    for headers in [&[][..], &[("Origin", "http://evil.example")], &[("Origin", "null")]] {
        assert_eq!(server.request("POST", "/login", headers, &body).status, 403, "{headers:?}");
    }
    let wrong = server.request("POST", "/login", &[("Origin", &origin)], r#"{"secret":"wrong"}"#);
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, None));
    let done = server.request("POST", "/login", &[("Origin", &origin)], &body);
    assert_eq!(done.status, 200, "{done:?}");
    let cookie = done.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!done.body.contains(cookie.split([';', '=']).nth(1).unwrap()));
    assert_eq!(server.request("POST", "/login", &[("Origin", &origin)], &body).status, 401);
}

/// Logs a browser in. Returns its cookie and the value that the page sends with each change.
fn log_in(server: &WebServer) -> (String, String) {
    let body = format!("{{\"secret\":\"{}\"}}", server.login);
    let done = server.request("POST", "/login", &[("Origin", &server.origin())], &body);
    let cookie = done.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let session = server.request("GET", "/api/v1/session", &[("Cookie", &cookie)], "").json();
    assert_eq!((&session["name"], &session["kind"]), (&"browser".into(), &"full".into()));
    (cookie, session["csrf"].as_str().unwrap().to_owned())
}

#[test]
fn a_change_by_a_browser_needs_the_page_and_its_value() {
    let (cli, server, _) = served();
    let (cookie, csrf) = log_in(&server);
    let (origin, path) = (server.origin(), "/api/v1/teams/demo/tasks");
    let add = |headers: &[(&str, &str)]| {
        let headers = [&[("Cookie", cookie.as_str())], headers].concat();
        server.request("POST", path, &headers, r#"{"subject":"x"}"#).status
    };
    let own = ("Origin", origin.as_str());
    for (headers, expected) in [
        (&[][..], 403),
        (&[own], 403),
        (&[("X-Brigade-Csrf", csrf.as_str())], 403),
        (&[own, ("X-Brigade-Csrf", "wrong")], 403),
        (&[own, ("X-Brigade-Csrf", csrf.as_str()), ("X-Brigade-Csrf", "x")], 403),
        (&[("Origin", "http://evil.example"), ("X-Brigade-Csrf", csrf.as_str())], 403),
        (&[own, ("X-Brigade-Csrf", csrf.as_str()), ("Sec-Fetch-Site", "cross-site")], 403),
        (&[own, ("X-Brigade-Csrf", csrf.as_str()), ("Sec-Fetch-Site", "same-origin")], 201),
    ] {
        assert_eq!(add(headers), expected, "{headers:?}");
    }
    assert_eq!(cli.json(&["task", "list"]).as_array().unwrap().len(), 1);
    let headers = [("Cookie", cookie.as_str()), own];
    assert_eq!(server.request("POST", "/logout", &headers, "{}").status, 200);
    let session = server.request("GET", "/api/v1/session", &[("Cookie", &cookie)], "");
    assert_eq!(session.status, 401, "the session has ended");
}

#[test]
fn a_login_survives_a_kill_of_the_server() {
    let (cli, mut server, _) = served();
    let (cookie, _) = log_in(&server);
    let port = server.port().to_owned();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let again = WebServer::start_at(&cli, &port);
    let session = again.request("GET", "/api/v1/session", &[("Cookie", &cookie)], "");
    assert_eq!(session.status, 200, "{session:?}");
}
