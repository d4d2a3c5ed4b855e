//! Malformed and unusual protocol messages.

use brigade_wire::body::Body;
use brigade_wire::protocol::Protocol;

use crate::bodies::s;

#[test]
fn both_spellings_of_a_request_id_are_read() {
    for body in [
        r#"{"type":"shutdown_request","ID":"i","from":"a","timestamp":"t"}"#,
        r#"{"type":"shutdown_approved","ID":"i","from":"a","timestamp":"t"}"#,
        r#"{"type":"shutdown_rejected","ID":"i","from":"a","timestamp":"t"}"#,
        r#"{"type":"plan_approval_request","from":"a","timestamp":"t","planContent":"p","ID":"i"}"#,
        r#"{"type":"plan_approval_response","ID":"i","approved":true,"timestamp":"t"}"#,
        r#"{"type":"permission_request","ID":"i","agent_id":"a","tool_name":"n","tool_use_id":"u","description":"d","input":{}}"#,
        r#"{"type":"permission_response","ID":"i","subtype":"error","error":"e"}"#,
    ] {
        let read = |key: &str| match Body::parse(&body.replace("ID", key)) {
            Body::Protocol(protocol) => protocol,
            other => panic!("{body}: {other:?}"),
        };
        assert_eq!(read("requestId"), read("request_id"));
        let both = body.replace("\"ID\":\"i\"", "\"requestId\":\"i\",\"request_id\":\"j\"");
        assert!(matches!(Body::parse(&both), Body::Malformed { .. }), "{both}");
    }
}

#[test]
fn any_other_text_is_plain_or_unknown() {
    let text = |text: &str| assert_eq!(Body::parse(text), Body::Text, "{text}");
    text("");
    text("plain text");
    text("{not json");
    text(r#"{"type":"idle_notification""#);
    text(r#"{"type":"idle_notification"} and more"#);
    text(r#"{"no":"type"}"#);
    text(r#"{"type":7}"#);
    text(r#"["type"]"#);
    text(r#""{\"type\":\"idle_notification\"}""#);
    let unknown = |text: &str, kind: &str| {
        assert_eq!(Body::parse(text), Body::Unknown { kind: s(kind) }, "{text}");
    };
    unknown(r#"{"type": "totally_new_type", "a": 1}"#, "totally_new_type");
    unknown(r#" {"type":"task_completed","from":"carol"}"#, "task_completed");
    unknown(r#"{"type":"Shutdown_Request"}"#, "Shutdown_Request");
}

#[test]
fn a_known_type_with_wrong_fields_is_malformed() {
    let reason = |text: &str| match Body::parse(text) {
        Body::Malformed { kind, reason } => format!("{kind}: {reason}"),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(
        reason(r#"{"type":"shutdown_request","from":"a","timestamp":"t"}"#),
        "shutdown_request: missing field `requestId` at line 1 column 54"
    );
    let twice = r#"{"type":"plan_approval_response","requestId":"a","request_id":"b","approved":true,"timestamp":"t"}"#;
    assert!(reason(twice).contains("duplicate field `requestId`"));
    let twice = r#"{"type":"plan_approval_response","requestId":"a","approved":false,"approved":true,"timestamp":"t"}"#;
    assert!(reason(twice).contains("duplicate field `approved`"));
    let twice =
        r#"{"type":"x","type":"shutdown_request","requestId":"i","from":"a","timestamp":"t"}"#;
    assert_eq!(reason(twice), "shutdown_request: it has more than one field `type`");
    let string =
        r#"{"type":"plan_approval_response","requestId":"a","approved":"true","timestamp":"t"}"#;
    assert!(reason(string).contains("invalid type: string \"true\", expected a boolean"));
}

#[test]
fn half_a_surrogate_pair_does_not_make_a_request_unreadable() {
    let text = r#"{"type":"shutdown_request","requestId":"i","from":"a","reason":"cut \ud83d","timestamp":"t"}"#;
    let Body::Protocol(Protocol::ShutdownRequest(body)) = Body::parse(text) else {
        panic!("not parsed")
    };
    assert_eq!(body.reason.unwrap(), "cut \u{fffd}");
}

#[test]
fn a_permission_response_must_have_the_exact_form() {
    let answer = |fields: &str| {
        Body::parse(&format!(r#"{{"type":"permission_response","request_id":"i",{fields}}}"#))
    };
    assert!(matches!(answer(r#""subtype":"success","response":{}"#), Body::Protocol(_)));
    assert!(matches!(answer(r#""subtype":"error","error":"no""#), Body::Protocol(_)));
    for fields in [
        r#""subtype":{"success":null},"response":{}"#,
        r#""subtype":"success","response":[{"command":"rm"},[]]"#,
        r#""subtype":"success","response":{},"approved_request":["t","Bash","d"]"#,
        r#""subtype":"success","response":{},"error":"denied""#,
        r#""subtype":"success""#,
        r#""subtype":"success","response":null"#,
        r#""subtype":"error","response":{}"#,
        r#""subtype":"error""#,
        r#""subtype":"Success","response":{}"#,
    ] {
        assert!(matches!(answer(fields), Body::Malformed { .. }), "{fields}");
    }
}

#[test]
fn nested_json_of_other_programs_is_preserved() {
    let text = r#"{"type":"permission_request","request_id":"i","agent_id":"a","tool_name":"n","tool_use_id":"u","description":"cut \ud83d","input":{"x": "cut \ud83d", "n":1.50},"more":1}"#;
    let Body::Protocol(Protocol::PermissionRequest(body)) = Body::parse(text) else {
        panic!("not parsed")
    };
    assert_eq!(body.input.as_str(), r#"{"x": "cut \ud83d", "n":1.50}"#);
    assert_eq!((body.description.as_str(), body.permission_suggestions.len()), ("cut \u{fffd}", 0));
}

#[test]
fn an_unknown_idle_reason_is_preserved() {
    let text = r#"{"type":"idle_notification","from":"a","timestamp":"t","idleReason":"napping"}"#;
    let Body::Protocol(protocol) = Body::parse(text) else { panic!("not parsed") };
    assert_eq!(protocol.to_text(), text);
}
