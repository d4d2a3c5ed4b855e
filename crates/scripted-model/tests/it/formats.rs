//! Tests behaviour that all four wire formats share. Also tests cases for which there is no recorded request.

use scripted_model::conversation::ModelAnswer;
use scripted_model::endpoint::{self, Response};
use scripted_model::wire::ResponseBody;
use serde_json::{Value, json};

const SCRIPT: &str =
    r#"[script][{"tool":"team/get","args":{"id":1}},{"say":"said {result}"}][/script]"#;

fn ask(path: &str, body: &Value) -> Response {
    endpoint::answer("POST", path, body.to_string().as_bytes(), "ID")
}

fn json_answer(path: &str, body: &Value) -> Value {
    match ask(path, body).body {
        ResponseBody::Json(value) => value,
        ResponseBody::Stream(events) => panic!("{path}: {events:?}"),
    }
}

/// Returns the same conversation in the four formats: a prompt with a script, and the results of the script's
/// tools.
fn requests(results: &[&str]) -> [(&'static str, Value); 4] {
    let chat = results.iter().map(|text| json!({"role": "tool", "content": text}));
    let responses =
        results.iter().map(|text| json!({"type": "function_call_output", "output": text}));
    let messages = results.iter().map(|text| {
        json!({"role": "user", "content": [
            {"type": "tool_result", "content": [{"type": "text", "text": text}]}]})
    });
    let gemini = results.iter().map(|text| {
        json!({"role": "user", "parts": [{"functionResponse": {"response": {"output": text}}}]})
    });
    let after = |first: Value, rest: &mut dyn Iterator<Item = Value>| -> Vec<Value> {
        std::iter::once(first).chain(rest).collect()
    };
    let user = json!({"role": "user", "content": SCRIPT});
    let parts = json!({"role": "user", "parts": [{"text": SCRIPT}]});
    let function = json!({"name": "team_get"});
    [
        (
            "/v1/responses",
            json!({"input": after(user.clone(), &mut responses.into_iter()),
                "tools": [{"type": "function", "name": "team_get"}]}),
        ),
        (
            "/v1/chat/completions",
            json!({"messages": after(user.clone(), &mut chat.into_iter()),
                "tools": [{"type": "function", "function": function}]}),
        ),
        (
            "/v1/messages",
            json!({"messages": after(user, &mut messages.into_iter()), "tools": [function]}),
        ),
        (
            "/v1beta/models/m:generateContent",
            json!({"contents": after(parts, &mut gemini.into_iter()),
                "tools": [{"functionDeclarations": [function]}]}),
        ),
    ]
}

#[test]
fn a_complete_answer_is_equal_in_every_format() {
    let calls = [
        ("/output/0/name", "/output/0/arguments"),
        (
            "/choices/0/message/tool_calls/0/function/name",
            "/choices/0/message/tool_calls/0/function/arguments",
        ),
        ("/content/0/name", "/content/0/input"),
        (
            "/candidates/0/content/parts/0/functionCall/name",
            "/candidates/0/content/parts/0/functionCall/args",
        ),
    ];
    for ((path, body), (name, args)) in requests(&[]).into_iter().zip(calls) {
        let answer = json_answer(path, &body);
        assert_eq!(answer.pointer(name), Some(&json!("team_get")), "{answer}");
        let args = answer.pointer(args).unwrap();
        let args = args.as_str().map_or_else(|| args.clone(), |text| text.parse().unwrap());
        assert_eq!(args, json!({"id": 1}), "{path}");
    }
    let texts = [
        "/output/0/content/0/text",
        "/choices/0/message/content",
        "/content/0/text",
        "/candidates/0/content/parts/0/text",
    ];
    for ((path, body), text) in requests(&["ten"]).into_iter().zip(texts) {
        let answer = json_answer(path, &body);
        assert_eq!(answer.pointer(text), Some(&json!("said ten")), "{answer}");
    }
}

#[test]
fn a_stream_contains_the_text_in_parts() {
    let texts =
        ["/delta", "/choices/0/delta/content", "/delta/text", "/candidates/0/content/parts/0/text"];
    for ((path, mut body), text) in requests(&["a b c"]).into_iter().zip(texts) {
        body["stream"] = json!(true);
        let path = path.replace(":generate", ":streamGenerate");
        let ResponseBody::Stream(events) = ask(&path, &body).body else {
            panic!("{path}: no stream")
        };
        let parts: Vec<_> = events
            .iter()
            .filter_map(|event| {
                let sent = event.text();
                let data = sent.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
                let data: Value = serde_json::from_str(data).ok()?;
                Some(data.pointer(text)?.as_str()?.to_owned()).filter(|part| !part.is_empty())
            })
            .collect();
        assert_eq!(parts, ["said ", "a ", "b ", "c"], "{path}");
    }
}

#[test]
fn a_user_message_after_a_tool_result_is_recognised() {
    let text = "done\n\n<system-reminder>\nThe user sent a new message while you were working:\n\
        hello [script][{\"say\":\"fine\"}][/script]\n</system-reminder>";
    let body = json!({"messages": [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "1", "content": text}]}]});
    let asked = ask("/v1/messages", &body).asked.unwrap();
    assert!(asked.heard.starts_with("hello"), "{}", asked.heard);
    assert_eq!(asked.returned.unwrap().text, "done\n\n");
    assert_eq!(asked.answer, ModelAnswer::Say("fine".into()));
}

#[test]
fn a_failed_tool_is_recognised() {
    let body = json!({"messages": [{"role": "user", "content": [
        {"type": "tool_result", "is_error": true, "content": "denied"}]}]});
    let returned = ask("/v1/messages", &body).asked.unwrap().returned.unwrap();
    assert_eq!((returned.text.as_str(), returned.failed), ("denied", true));
    let body = json!({"contents": [
        {"parts": [{"functionResponse": {"response": {"error": "denied"}}}]}]});
    let returned = ask("/v1beta/models/m:generateContent", &body).asked.unwrap().returned.unwrap();
    assert_eq!((returned.text.as_str(), returned.failed), ("denied", true));
}

#[test]
fn a_custom_tool_receives_plain_text() {
    let body = json!({
        "input": r#"[script][{"tool":"exec","args":"text(1)"}][/script]"#,
        "tools": [{"type": "namespace", "name": "functions",
            "tools": [{"type": "custom", "name": "exec"}]}],
    });
    let item = json_answer("/v1/responses", &body)["output"][0].clone();
    assert_eq!(
        item,
        json!({"type": "custom_tool_call", "id": "ctc_ID", "call_id": "call_ID",
            "namespace": "functions", "name": "exec", "input": "text(1)"}),
    );
}

#[test]
fn deferred_tools_are_recognised() {
    let body = json!({"input": "x", "tools": [
        {"type": "function", "name": "a", "defer_loading": true},
        {"type": "namespace", "name": "n", "defer_loading": true, "tools": [{"name": "b"}]},
        {"type": "web_search"}]});
    let tools = ask("/v1/responses", &body).asked.unwrap().tools;
    let tools: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.deferred)).collect();
    assert_eq!(tools, [("a", true), ("n/b", true), ("web_search", false)]);
}

#[test]
fn other_endpoints_are_answered_or_not_found() {
    let get = |path: &str| endpoint::answer("GET", path, b"", "ID").status;
    assert_eq!(get("/v1/models"), 200);
    assert_eq!(get("/v1beta/models"), 200);
    assert_eq!(endpoint::answer("HEAD", "/", b"", "ID").status, 200);
    assert_eq!(get("/elsewhere"), 404);
    let body = json!({"messages": []});
    assert!(json_answer("/v1/messages/count_tokens", &body)["input_tokens"].is_u64());
    assert!(json_answer("/v1beta/models/m:countTokens", &body)["totalTokens"].is_u64());
    assert_eq!(ask("/v1/embeddings", &body).status, 404);
    assert_eq!(endpoint::answer("POST", "/v1/messages", b"{", "ID").status, 400);
}

/// Gemini CLI repeats tool results in a resumed session.
#[test]
fn a_repeated_result_counts_once() {
    let result = json!({"functionResponse": {"id": "call_1", "response": {"output": "one"}}});
    let contents = json!([
        {"role": "user", "parts": [{"text": SCRIPT}]},
        {"role": "user", "parts": [result, result, result]},
    ]);
    let answer = json_answer("/v1beta/models/m:generateContent", &json!({ "contents": contents }));
    assert_eq!(answer.pointer("/candidates/0/content/parts/0/text"), Some(&json!("said one")));
}
