//! Requests that must not succeed.

use super::http::send;
use super::served;

#[test]
fn no_request_for_another_host_is_answered() {
    let (_cli, server, token) = served();
    let own = server.address.clone();
    let other_port = "127.0.0.1:1".to_owned();
    for (line, host) in [
        ("GET /api/v1/teams HTTP/1.1", "Host: evil.example\r\n".to_owned()),
        ("GET /api/v1/teams HTTP/1.1", format!("Host: {other_port}\r\n")),
        ("GET /api/v1/teams HTTP/1.1", String::new()),
        ("GET /api/v1/teams HTTP/1.1", format!("Host: {own}\r\nHost: evil.example\r\n")),
        ("GET /api/v1/teams HTTP/1.1", format!("Host: {own}.evil.example\r\n")),
        ("GET http://evil.example/api/v1/teams HTTP/1.1", format!("Host: {own}\r\n")),
        ("GET / HTTP/1.1", "Host: evil.example\r\n".to_owned()),
    ] {
        let text =
            format!("{line}\r\n{host}Authorization: Bearer {token}\r\nConnection: close\r\n\r\n");
        let reply = send(&server.address, text.as_bytes());
        assert!(matches!(reply.status, 400 | 403), "{line} {host:?}: {reply:?}");
        assert!(!reply.body.contains("demo"), "{reply:?}");
    }
}

#[test]
fn no_page_of_another_site_reads_anything() {
    let (_cli, server, token) = served();
    let bearer = format!("Bearer {token}");
    for header in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        for path in ["/api/v1/teams", "/api/v1/events"] {
            let headers = [("Authorization", bearer.as_str()), header];
            assert_eq!(server.request("GET", path, &headers, "").status, 403, "{header:?} {path}");
        }
    }
    let reply = server.call(&token, "GET", "/teams", "");
    assert_eq!(reply.header("access-control-allow-origin"), None);
}

#[test]
fn no_secret_is_accepted_in_an_address() {
    let (_cli, server, token) = served();
    for name in ["token", "access_token", "Token", "secret", "login"] {
        let path = format!("/api/v1/teams?{name}={token}");
        let reply = server.request("GET", &path, &[], "");
        assert_eq!(reply.status, 400, "{name}");
        assert!(!reply.body.contains(&token), "{reply:?}");
    }
}

#[test]
fn every_response_tells_browsers_what_pages_may_do() {
    let (_cli, server, token) = served();
    for reply in [
        server.request("GET", "/", &[], ""),
        server.request("GET", "/nothing", &[], ""),
        server.call(&token, "GET", "/teams", ""),
        server.call("wrong", "GET", "/teams", ""),
    ] {
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(reply.header(name), Some(value));
        }
    }
}

#[test]
fn a_page_contains_no_script_of_its_own() {
    let (_cli, server, _) = served();
    let page = server.request("GET", "/", &[], "").body;
    assert!(
        !page.contains("<style") && !page.contains(" style=") && !page.contains(" on"),
        "{page}"
    );
    for script in page.split("<script").skip(1) {
        assert!(script.contains("src=\"/") && script.contains("></script>"), "{script}");
    }
}

#[test]
fn no_path_leaves_the_tree_of_pages() {
    let (_cli, server, token) = served();
    for path in [
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/app.js/../../secret",
        "/api/v1/teams/..%2f..%2f..%2fetc",
        "/api/v1/teams/demo/members/..%2fteam-lead/mail",
        "/api/v1/teams/demo%00/tasks",
        "/api/v1/teams/demo/tasks/..%2f1",
    ] {
        let bearer = format!("Bearer {token}");
        let reply = server.request("GET", path, &[("Authorization", &bearer)], "");
        assert!(matches!(reply.status, 400 | 404), "{path}: {reply:?}");
        assert!(!reply.body.contains("root:"), "{reply:?}");
    }
}

#[test]
fn malformed_and_large_requests_change_nothing() {
    let (cli, server, token) = served();
    let head = format!(
        "POST /api/v1/teams/demo/tasks HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n",
        server.address
    );
    let body = r#"{"subject":"attack"}"#;
    let length = body.len();
    let smuggled = format!(
        "{head}Content-Type: application/json\r\nContent-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{body}"
    );
    let two_lengths = format!(
        "{head}Content-Type: application/json\r\nContent-Length: 2\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let form = format!(
        "{head}Content-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let unknown = r#"{"subject":"x","owner_is_admin":true}"#;
    let unknown = format!(
        "{head}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{unknown}",
        unknown.len()
    );
    let huge = format!(
        "{head}Content-Type: application/json\r\nContent-Length: 1073741824\r\nConnection: close\r\n\r\n{}",
        "x".repeat(3 << 20)
    );
    let long_head = format!("{head}X-Long: {}\r\n\r\n", "x".repeat(200_000));
    for (name, bytes) in [
        ("smuggled", smuggled),
        ("two lengths", two_lengths),
        ("form", form),
        ("unknown field", unknown),
        ("huge", huge),
        ("long head", long_head),
        ("no HTTP", "hello\r\n\r\n".to_owned()),
    ] {
        let reply = send(&server.address, bytes.as_bytes());
        assert!(!(200..300).contains(&reply.status), "{name}: {reply:?}");
    }
    assert_eq!(cli.run(&["task", "list"]).code, Some(4), "there is no task");
    assert_eq!(server.call(&token, "GET", "/teams", "").status, 200, "the server still works");
}
