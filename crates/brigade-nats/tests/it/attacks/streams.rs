//! Describes the content of all streams, to detect changes.

use std::collections::BTreeMap;

use async_nats::Client;
use serde_json::{Value, json};

pub(crate) async fn request(client: &Client, subject: &str, body: &Value) -> Value {
    let answer = client.request(subject.to_owned(), body.to_string().into()).await;
    let answer = answer.unwrap_or_else(|error| panic!("{subject}: {error}"));
    serde_json::from_slice(&answer.payload).unwrap()
}

/// Returns the settings of each stream, and the number of messages on each subject. Leaves out alice's events,
/// because alice may write them.
pub(crate) async fn state(admin: &Client, organisation: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let names = request(admin, "$JS.API.STREAM.NAMES", &json!({})).await;
    for name in names["streams"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        let subject = format!("$JS.API.STREAM.INFO.{name}");
        let info = request(admin, &subject, &json!({ "subjects_filter": ">" })).await;
        all.insert(format!("{organisation} {name}"), info["config"].to_string());
        for (subject, count) in info["state"]["subjects"].as_object().into_iter().flatten() {
            if subject != "ev.0.demo.bob.alice.w" {
                all.insert(format!("{organisation} {subject}"), count.to_string());
            }
        }
    }
    all
}
