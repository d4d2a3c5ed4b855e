//! Claims in the JWTs of operators, accounts and users.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rights::Permissions;
use crate::identity::{API, SEATS_API};
use crate::layout::WAKE;

/// The first token of each subject that seats write to.
const WRITE_SUBJECTS: [&str; 8] = ["mb", "mk", "ev", "wk", "bd", "tm", "nt", "lv"];
/// The API requests that seats may send. Each of them has exactly one answer. A request with several answers would
/// be unsafe: any client could send an empty message, which would look like the end of the answers.
const API_REQUESTS: [&str; 4] =
    ["DIRECT.GET", "CONSUMER.CREATE", "CONSUMER.MSG.NEXT", "CONSUMER.DELETE"];

/// Returns the claims of the operator.
pub(super) fn operator(system_account: &str) -> Value {
    json!({ "system_account": system_account, "type": "operator", "version": 2 })
}

/// Returns the claims of the system account. Its users may send administrative requests to the servers.
pub(super) fn system() -> Value {
    account(&limits(0), &json!([]), &json!([]), &BTreeMap::new())
}

/// Returns the claims of the account that holds an organisation's streams. The account exports the subjects that
/// seats need.
pub(super) fn streams() -> Value {
    let written = WRITE_SUBJECTS
        .iter()
        .map(|kind| json!({ "name": kind, "subject": format!("{kind}.>"), "type": "service" }));
    let asked = API_REQUESTS.iter().map(
        |request| json!({ "name": request, "subject": format!("{API}.{request}.>"), "type": "service" }),
    );
    let wake = json!({ "name": WAKE, "subject": format!("{WAKE}.>"), "type": "stream" });
    let exports: Vec<Value> = written.chain(asked).chain([wake]).collect();
    account(&limits(-1), &json!([]), &json!(exports), &BTreeMap::new())
}

/// Returns the claims of the account that holds an organisation's seats.
pub(super) fn seats(streams: &str, revoked: &BTreeMap<String, i64>) -> Value {
    let written =
        WRITE_SUBJECTS.iter().map(|kind| (format!("{kind}.>"), format!("{kind}.>"), "service"));
    let asked = API_REQUESTS.iter().map(|request| {
        (format!("{API}.{request}.>"), format!("{SEATS_API}.{request}.>"), "service")
    });
    let wake = (format!("{WAKE}.>"), format!("{WAKE}.>"), "stream");
    let imports = written.chain(asked).chain([wake]).map(|(exported, local, kind)| {
        json!({
            "name": local, "subject": exported, "local_subject": local, "account": streams, "type": kind,
        })
    });
    let imports: Vec<Value> = imports.collect();
    account(&limits(0), &json!(imports), &json!([]), revoked)
}

fn account(
    limits: &Value,
    imports: &Value,
    exports: &Value,
    revoked: &BTreeMap<String, i64>,
) -> Value {
    json!({
        "imports": imports,
        "exports": exports,
        "limits": limits,
        "revocations": revoked,
        "default_permissions": { "pub": {}, "sub": {} },
        "type": "account",
        "version": 2,
    })
}

/// Returns the limits of an account. `streams` limits the streams, the consumers and their storage: 0 allows none,
/// -1 any number.
fn limits(streams: i64) -> Value {
    json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": 0,
        "mem_storage": streams, "disk_storage": streams, "streams": streams, "consumer": streams,
    })
}

/// Returns the claims of a user. If `permissions` is `None`, the user may do everything in its account.
pub(super) fn user(permissions: Option<&Permissions>, tags: &[String]) -> Value {
    let (publish, subscribe) = match permissions {
        Some(allowed) => {
            (json!({ "allow": allowed.publish }), json!({ "allow": allowed.subscribe }))
        }
        None => (json!({}), json!({})),
    };
    json!({
        "pub": publish, "sub": subscribe, "subs": -1, "data": -1, "payload": -1,
        "tags": tags, "type": "user", "version": 2,
    })
}
