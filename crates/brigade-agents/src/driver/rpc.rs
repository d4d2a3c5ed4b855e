//! JSON-RPC with one message per line, as Codex and ACP agents use it. Matches responses to our requests.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use super::lines::{JsonLines, line};
use super::{AgentEvent, DriverOutput};

/// The JSON-RPC error code for an unknown method.
pub(super) const UNKNOWN_METHOD: i64 = -32601;

/// Our side of a conversation. `P` describes what a pending request is for.
#[derive(Debug)]
pub(super) struct RpcPeer<P> {
    /// Fields that every message must have: `jsonrpc` for ACP, none for Codex.
    frame: Map<String, Value>,
    lines: JsonLines,
    last_id: u64,
    pending: BTreeMap<u64, P>,
    out: VecDeque<DriverOutput>,
}

/// A message from the peer.
#[derive(Debug)]
pub(super) enum RpcMessage<P> {
    /// The response to one of our requests.
    Answer {
        /// The purpose of the request.
        purpose: P,
        /// The result or error.
        result: Result<Value, RpcError>,
    },
    /// A request from the peer. The peer waits for our response.
    Request {
        /// The id that our response must carry.
        id: Value,
        /// The method.
        method: String,
        /// The parameters.
        params: Value,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// The parameters.
        params: Value,
    },
}

/// The error returned for one of our requests.
#[derive(Debug)]
pub(super) struct RpcError {
    /// The error code. Some agents put the vendor's HTTP status here.
    pub(super) code: i64,
    /// The error text, with the additional data of the response.
    pub(super) text: String,
}

impl<P> RpcPeer<P> {
    /// Creates a conversation in which every message we send has the fields of the object `frame`.
    pub(super) fn new(frame: Value) -> Self {
        let frame = match frame {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Self {
            frame,
            lines: JsonLines::default(),
            last_id: 0,
            pending: BTreeMap::new(),
            out: VecDeque::new(),
        }
    }

    /// Appends bytes from the peer. [`RpcPeer::next_message`] then returns the messages that are complete.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// Returns the next valid message. Skips responses that match no pending request.
    pub(super) fn next_message(&mut self) -> Option<RpcMessage<P>> {
        loop {
            let mut message = self.lines.next()?;
            let id = message.get("id").filter(|id| !id.is_null()).cloned();
            let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
            let params = message.get_mut("params").map(Value::take).unwrap_or_default();
            match (id, method) {
                (Some(id), Some(method)) => {
                    return Some(RpcMessage::Request { id, method, params });
                }
                (None, Some(method)) => return Some(RpcMessage::Notification { method, params }),
                // A response has `result` or `error`.
                (Some(id), None) if message.get("result").or(message.get("error")).is_some() => {
                    let purpose = id.as_u64().and_then(|id| self.pending.remove(&id));
                    if let Some(purpose) = purpose {
                        return Some(RpcMessage::Answer { purpose, result: outcome(&mut message) });
                    }
                }
                (_, None) => {}
            }
        }
    }

    /// Sends a request.
    pub(super) fn request(&mut self, method: &str, params: &Value, purpose: P) {
        self.last_id += 1;
        self.pending.insert(self.last_id, purpose);
        self.write(json!({ "id": self.last_id, "method": method, "params": params }));
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.write(json!({ "method": method, "params": params }));
    }

    /// Answers a request from the peer.
    pub(super) fn reply(&mut self, id: &Value, result: &Value) {
        self.write(json!({ "id": id, "result": result }));
    }

    /// Rejects a request from the peer that we do not support.
    pub(super) fn refuse(&mut self, id: &Value, why: &str) {
        self.write(json!({ "id": id, "error": { "code": UNKNOWN_METHOD, "message": why } }));
    }

    /// Emits an event for the member.
    pub(super) fn emit(&mut self, event: AgentEvent) {
        self.out.push_back(DriverOutput::Event(event));
    }

    /// Returns the next output, oldest first.
    pub(super) fn next(&mut self) -> Option<DriverOutput> {
        self.out.pop_front()
    }

    fn write(&mut self, mut message: Value) {
        if let Value::Object(fields) = &mut message {
            fields.extend(self.frame.clone());
        }
        self.out.push_back(DriverOutput::Write(line(&message)));
    }
}

fn outcome(message: &mut Value) -> Result<Value, RpcError> {
    let Some(error) = message.get("error").filter(|error| !error.is_null()) else {
        return Ok(message.get_mut("result").map(Value::take).unwrap_or_default());
    };
    let mut text = match error.get("message") {
        Some(Value::String(text)) => text.clone(),
        _ => error.to_string(),
    };
    // The cause is often only in `data`: some agents always send the message "Internal error".
    match error.get("data") {
        None | Some(Value::Null) => {}
        Some(Value::String(data)) => text = format!("{text}: {data}"),
        Some(data) => text = format!("{text}: {data}"),
    }
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    Err(RpcError { code, text })
}
