//! Parses the attempts in `attempts.txt`.

use serde_json::{Value, json};

/// The action of the client.
pub(super) enum AttemptKind {
    /// Sends a request, or a message to be stored.
    Ask { headers: Vec<(&'static str, &'static str)>, body: String },
    /// Sends a request with a reply subject to which the client is not allowed to write.
    Bounce { body: String, reply: String },
    /// Subscribes to the subject.
    Listen,
}

/// The expected outcome of an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedOutcome {
    /// Nothing changes, and the client learns nothing.
    Refused,
    /// A stream changes. This control shows that an attempt of this kind can succeed.
    Changes,
    /// The client receives the secret. This control shows that an attempt of this kind can succeed.
    Learns,
}

pub(super) struct Attempt {
    pub(super) by: &'static str,
    pub(super) name: &'static str,
    pub(super) subject: String,
    pub(super) kind: AttemptKind,
    pub(super) outcome: ExpectedOutcome,
}

/// Returns all attempts.
pub(super) fn attempts(bobs_inbox: &str) -> Vec<Attempt> {
    let rows = include_str!("attempts.txt").lines();
    let rows = rows.filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.map(|row| attempt(row, bobs_inbox)).collect()
}

fn attempt(row: &'static str, bobs_inbox: &str) -> Attempt {
    let columns: Vec<&str> = row.split('|').map(str::trim).collect();
    let column = |at: usize| columns.get(at).copied().unwrap_or_default();
    let (outcome, kind) = match column(0).split_once(' ') {
        None => (ExpectedOutcome::Refused, column(0)),
        Some(("changes", kind)) => (ExpectedOutcome::Changes, kind),
        Some(("learns", kind)) => (ExpectedOutcome::Learns, kind),
        Some(_) => panic!("{row}"),
    };
    let with_inbox = |text: &str| text.replace("{bobs_inbox}", bobs_inbox);
    let kind = match kind {
        "ask" => AttemptKind::Ask { headers: Vec::new(), body: body(column(4)) },
        "headers" => {
            let headers = column(4).split("; ").map(|header| header.split_once(": ").unwrap());
            AttemptKind::Ask { headers: headers.collect(), body: "x".into() }
        }
        "bounce" => AttemptKind::Bounce { body: body(column(4)), reply: with_inbox(column(5)) },
        "listen" => AttemptKind::Listen,
        _ => panic!("{row}"),
    };
    Attempt { by: column(1), name: column(2), subject: with_inbox(column(3)), kind, outcome }
}

fn body(text: &str) -> String {
    if let Some(fields) = text.strip_prefix("stream ") {
        let config = json!({ "name": "EVIL", "retention": "limits", "storage": "memory",
            "num_replicas": 1, "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0 });
        return with_fields(config, fields).to_string();
    }
    if let Some((stream, fields)) =
        text.strip_prefix("consumer ").and_then(|rest| rest.split_once(' '))
    {
        let config = with_fields(json!({ "name": "evil", "ack_policy": "none" }), fields);
        return json!({ "stream_name": stream, "config": config }).to_string();
    }
    text.replace("{secret}", super::SECRET)
}

fn with_fields(mut config: Value, fields: &str) -> Value {
    let fields: serde_json::Map<String, Value> = serde_json::from_str(fields).unwrap();
    config.as_object_mut().unwrap().extend(fields);
    config
}
