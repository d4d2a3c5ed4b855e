//! Tests the answers to requests of real agent programs. The requests were recorded and then shortened. Each
//! snapshot contains the logged details of a request, and the response.

use std::path::Path;

use scripted_model::endpoint;
use scripted_model::wire::ResponseBody;

/// Returns the logged details of the request, and the response.
fn exchange(name: &str, path: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/recorded/{name}.json"));
    let answer = endpoint::answer("POST", path, &std::fs::read(file).unwrap(), "ID");
    let asked = serde_json::to_string_pretty(&answer.asked.unwrap()).unwrap();
    let body = match answer.body {
        ResponseBody::Json(value) => serde_json::to_string_pretty(&value).unwrap(),
        ResponseBody::Stream(events) => {
            events.iter().map(scripted_model::wire::ServerEvent::text).collect()
        }
    };
    format!("{asked}\n\n{}", body.trim_end())
}

#[test]
fn codex() {
    insta::assert_snapshot!(exchange("codex", "/v1/responses"));
}

#[test]
fn opencode() {
    insta::assert_snapshot!(exchange("opencode", "/v1/chat/completions"));
}

#[test]
fn opencode_asks_for_a_title() {
    insta::assert_snapshot!(exchange("opencode-title", "/v1/chat/completions"));
}

#[test]
fn claude() {
    insta::assert_snapshot!(exchange("claude", "/v1/messages"));
}

#[test]
fn gemini() {
    let path = "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent";
    insta::assert_snapshot!(exchange("gemini", path));
}

#[test]
fn gemini_asks_how_hard_it_is() {
    let path = "/v1beta/models/gemini-3.5-flash-lite:generateContent";
    insta::assert_snapshot!(exchange("gemini-router", path));
}
