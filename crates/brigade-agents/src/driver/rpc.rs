//! JSON-RPC over lines: who asked what, and what came back. Codex and ACP are spoken on it.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use super::lines::{Lines, line};
use super::{Event, Output};

/// The error code for a method one does not have.
pub(super) const UNKNOWN_METHOD: i64 = -32601;

/// Our end of a conversation. `P` says what a pending request was for.
#[derive(Debug)]
pub(super) struct Peer<P> {
    /// What every message has beside its own fields: Codex leaves the `jsonrpc` member away.
    frame: Map<String, Value>,
    lines: Lines,
    last_id: u64,
    pending: BTreeMap<u64, P>,
    out: VecDeque<Output>,
}

/// What the other end wrote.
#[derive(Debug)]
pub(super) enum Heard<P> {
    /// The answer to a request of ours.
    Answer {
        /// What the request was for.
        purpose: P,
        /// What it gave.
        result: Result<Value, Fault>,
    },
    /// A request, which wants an answer.
    Request {
        /// To answer by.
        id: Value,
        /// What it wants.
        method: String,
        /// With what.
        params: Value,
    },
    /// A notification.
    Notice {
        /// What happened.
        method: String,
        /// To what.
        params: Value,
    },
}

/// Why a request of ours failed.
#[derive(Debug)]
pub(super) struct Fault {
    /// By its number. Some put the status of the vendor's answer here.
    pub(super) code: i64,
    /// In words, with what the other end adds to them.
    pub(super) words: String,
}

impl<P> Peer<P> {
    /// A conversation of messages that each have the fields of `frame`, an object.
    pub(super) fn new(frame: Value) -> Self {
        let frame = match frame {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Self {
            frame,
            lines: Lines::default(),
            last_id: 0,
            pending: BTreeMap::new(),
            out: VecDeque::new(),
        }
    }

    /// The other end wrote this; [`Peer::heard`] has what is whole.
    pub(super) fn hear(&mut self, bytes: &[u8]) {
        self.lines.hear(bytes);
    }

    /// The next message that makes sense. An answer to nothing we asked does not.
    pub(super) fn heard(&mut self) -> Option<Heard<P>> {
        loop {
            let mut message = self.lines.next()?;
            let id = message.get("id").filter(|id| !id.is_null()).cloned();
            let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
            let params = message.get_mut("params").map(Value::take).unwrap_or_default();
            match (id, method) {
                (Some(id), Some(method)) => return Some(Heard::Request { id, method, params }),
                (None, Some(method)) => return Some(Heard::Notice { method, params }),
                // An answer says one or the other, or it is none.
                (Some(id), None) if message.get("result").or(message.get("error")).is_some() => {
                    let purpose = id.as_u64().and_then(|id| self.pending.remove(&id));
                    if let Some(purpose) = purpose {
                        return Some(Heard::Answer { purpose, result: outcome(&mut message) });
                    }
                }
                (_, None) => {}
            }
        }
    }

    /// Asks for something.
    pub(super) fn request(&mut self, method: &str, params: &Value, purpose: P) {
        self.last_id += 1;
        self.pending.insert(self.last_id, purpose);
        self.write(json!({ "id": self.last_id, "method": method, "params": params }));
    }

    /// Says something that wants no answer.
    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.write(json!({ "method": method, "params": params }));
    }

    /// Answers a request.
    pub(super) fn reply(&mut self, id: &Value, result: &Value) {
        self.write(json!({ "id": id, "result": result }));
    }

    /// Answers a request that nobody here can fulfil.
    pub(super) fn refuse(&mut self, id: &Value, why: &str) {
        self.write(json!({ "id": id, "error": { "code": UNKNOWN_METHOD, "message": why } }));
    }

    /// Tells the house.
    pub(super) fn tell(&mut self, event: Event) {
        self.out.push_back(Output::Event(event));
    }

    /// What came of it all, in order.
    pub(super) fn next(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn write(&mut self, mut message: Value) {
        if let Value::Object(fields) = &mut message {
            fields.extend(self.frame.clone());
        }
        self.out.push_back(Output::Write(line(&message)));
    }
}

fn outcome(message: &mut Value) -> Result<Value, Fault> {
    let Some(error) = message.get("error").filter(|error| !error.is_null()) else {
        return Ok(message.get_mut("result").map(Value::take).unwrap_or_default());
    };
    let mut words = match error.get("message") {
        Some(Value::String(text)) => text.clone(),
        _ => error.to_string(),
    };
    // What is wrong often stands only here: "Internal error" is a whole message to some.
    match error.get("data") {
        None | Some(Value::Null) => {}
        Some(Value::String(data)) => words = format!("{words}: {data}"),
        Some(data) => words = format!("{words}: {data}"),
    }
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    Err(Fault { code, words })
}
