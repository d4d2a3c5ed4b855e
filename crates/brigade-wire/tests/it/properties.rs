//! Checks the invariants in `fuzz/laws.rs` on generated JSON documents in any layout.

use brigade_wire::inbox::{self, EMPTY, Inbox};
use brigade_wire::message::{GenerationFields, NewMessage};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::laws;

/// Generates JSON values of moderate size.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Generates object keys: keys that Claude Code's files use, or any text.
fn key() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "from",
        "text",
        "content",
        "timestamp",
        "read",
        "summary",
        "color",
        "msgV",
        "msg_id",
        "name",
        "teamName",
        "description",
        "createdAt",
        "leadAgentId",
        "leadSessionId",
        "members",
        "leadProcess",
        "agentId",
        "isActive",
        "id",
        "subject",
        "activeForm",
        "owner",
        "status",
        "blocks",
        "blockedBy",
        "metadata",
        "ours",
        "gone",
        "type",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => any::<String>()]
}

/// Generates objects with some of these fields and some other fields.
fn object(fields: &'static [(&'static str, &'static str)]) -> impl Strategy<Value = Value> {
    let known = prop::sample::subsequence(fields, 0..=fields.len());
    (known, prop::collection::vec((key(), value()), 0..4)).prop_map(|(known, unknown)| {
        let known = known.into_iter().map(|(key, json)| {
            (key.to_owned(), serde_json::from_str(json).expect("valid JSON in the table"))
        });
        Value::Object(unknown.into_iter().chain(known).collect::<Map<_, _>>())
    })
}

fn message() -> impl Strategy<Value = Value> {
    object(&[
        ("from", "\"alice\""),
        ("text", "\"hello\""),
        ("content", "\"hello\""),
        ("timestamp", "\"2026-11-15T00:00:29.290Z\""),
        ("read", "false"),
        ("summary", "\"s\""),
    ])
}

fn member() -> impl Strategy<Value = Value> {
    object(&[("name", "\"alice\""), ("agentId", "\"alice@t\""), ("isActive", "true")])
}

/// Generates the text of a document: on several lines, on one line, or with whitespace wherever JSON allows it.
fn formatted(document: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<u8>> {
    let gap = prop::sample::select(vec!["", "", "", " ", "\n", "\r\n", "\t", "\n\n  "]);
    (document, 0..3_u8, prop::collection::vec(gap, 1..8)).prop_map(|(document, layout, gaps)| {
        match layout {
            0 => serde_json::to_vec_pretty(&document).expect("JSON"),
            1 => serde_json::to_vec(&document).expect("JSON"),
            _ => add_gaps(&document.to_string(), &gaps),
        }
    })
}

/// Adds whitespace from `gaps` around each JSON punctuation character outside strings.
fn add_gaps(json: &str, gaps: &[&str]) -> Vec<u8> {
    let mut gaps = gaps.iter().cycle();
    let (mut out, mut in_string, mut escaped) = (String::new(), false, false);
    for c in json.chars() {
        let mark = !in_string && matches!(c, '[' | ']' | '{' | '}' | ',' | ':');
        if mark {
            out.push_str(gaps.next().expect("at least one gap"));
        }
        out.push(c);
        if mark {
            out.push_str(gaps.next().expect("at least one gap"));
        }
        in_string ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
    }
    out.into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changing_an_inbox_preserves_everything_else(
        bytes in formatted(prop::collection::vec(prop_oneof![4 => message(), 1 => value()], 0..6)
            .prop_map(Value::from))
    ) {
        prop_assert!(Inbox::read(&bytes).is_ok());
        laws::inbox(&bytes);
    }

    #[test]
    fn changing_a_team_preserves_everything_else(
        bytes in formatted((
            object(&[("name", "\"t\""), ("createdAt", "1.5e3"), ("leadSessionId", "\"s\"")]),
            prop::collection::vec(prop_oneof![4 => member(), 1 => value()], 0..4),
        ).prop_map(|(mut team, members)| {
            team["members"] = Value::from(members);
            team
        }))
    ) {
        laws::team(&bytes);
    }

    #[test]
    fn changing_a_task_preserves_everything_else(
        bytes in formatted(object(&[
            ("id", "\"1\""),
            ("subject", "\"s\""),
            ("description", "\"d\""),
            ("activeForm", "\"f\""),
            ("owner", "\"alice\""),
            ("status", "\"pending\""),
            ("blocks", "[\"2\"]"),
            ("blockedBy", "[]"),
            ("metadata", "{\"gone\": 1, \"theirs\": [2]}"),
        ]))
    ) {
        laws::task(&bytes);
    }

    #[test]
    fn appending_gives_the_same_bytes_as_writing_all_messages(
        texts in prop::collection::vec((any::<String>(), any::<Option<String>>()), 1..6)
    ) {
        let mut spliced = EMPTY.to_vec();
        let mut all = Vec::new();
        for (text, summary) in &texts {
            let message = NewMessage {
                from: "alice",
                text,
                summary: summary.as_deref(),
                timestamp: "t",
                color: None,
                read: true,
                stamp: GenerationFields::New { msg_id: "i", lead_sig: None },
            };
            inbox::append(&mut spliced, std::slice::from_ref(&message)).expect("an inbox");
            all.push(message);
        }
        prop_assert_eq!(spliced, serde_json::to_vec_pretty(&all).expect("JSON"));
    }

    #[test]
    fn nothing_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        laws::INVARIANTS.iter().for_each(|(_, check)| check(&bytes));
    }

    #[test]
    fn nothing_panics_on_any_text(text in any::<String>()) {
        laws::INVARIANTS.iter().for_each(|(_, check)| check(text.as_bytes()));
        laws::body(json!({"type": "shutdown_request", "requestId": text}).to_string().as_bytes());
    }

    #[test]
    fn any_text_results_in_one_envelope(
        parts in prop::collection::vec(
            prop_oneof![
                any::<String>(),
                prop::sample::select(vec![
                    "</teammate-message>", "<", "&", "&lt;", "&amp;", "#x3c;", "\n", "\r", "\"",
                    "\0", "system", "lt;", "\u{202e}",
                ]).prop_map(str::to_owned),
            ],
            0..12,
        )
    ) {
        laws::envelope(parts.concat().as_bytes());
    }
}
