//! Answers requests. The path of a request determines its wire format.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::record::ModelRequestLog;
use crate::wire::chat::Chat;
use crate::wire::gemini::Gemini;
use crate::wire::messages::Messages;
use crate::wire::responses::Responses;
use crate::wire::{ResponseBody, WireRequest};

/// The response to a request.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// How long to wait before sending the body.
    pub wait: Duration,
    /// How long to wait after each event of a streamed body.
    pub pace: Duration,
    /// The body.
    pub body: ResponseBody,
    /// Details for the log, if this was a request to the model.
    pub asked: Option<ModelRequestLog>,
}

impl Response {
    fn plain(status: u16, body: Value) -> Self {
        let body = ResponseBody::Json(body);
        Self { status, wait: Duration::ZERO, pace: Duration::ZERO, body, asked: None }
    }
}

/// The response to every model request during a simulated outage or rate limit. The body has the form that the
/// simulated vendor uses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Value,
}

impl Outage {
    /// Replaces the status and body of a response with those of the outage. Keeps the details for the log.
    pub fn replace(self, response: Response) -> Response {
        Response { asked: response.asked, ..Response::plain(self.status, self.body) }
    }
}

/// Answers a request. `path` does not include the query, and `id` is unique to the request.
pub fn answer(method: &str, path: &str, body: &[u8], id: &str) -> Response {
    if method != "POST" {
        return answer_get(path);
    }
    let body: Value = match serde_json::from_slice(body) {
        Ok(body) => body,
        Err(error) => return Response::plain(400, error_body(&format!("not JSON: {error}"))),
    };
    let last = path.rsplit('/').next().unwrap_or_default();
    let method = last.rsplit(':').next().unwrap_or_default();
    match method {
        "responses" => ask("responses", &Responses(body), id),
        "completions" => ask("chat", &Chat(body), id),
        "messages" => ask("messages", &Messages(body), id),
        "generateContent" => ask("gemini", &Gemini { body, stream: false }, id),
        "streamGenerateContent" => ask("gemini", &Gemini { body, stream: true }, id),
        "count_tokens" => Response::plain(200, json!({ "input_tokens": estimate_tokens(&body) })),
        "countTokens" => Response::plain(200, json!({ "totalTokens": estimate_tokens(&body) })),
        _ => Response::plain(404, error_body(&format!("unknown path {path}"))),
    }
}

fn ask(wire: &'static str, request: &dyn WireRequest, id: &str) -> Response {
    let conversation = request.conversation();
    let reply = conversation.reply();
    let asked = ModelRequestLog::new(wire, &conversation, &reply.answer);
    let body = request.write(&reply.answer, id);
    Response { status: 200, wait: reply.wait, pace: reply.pace, body, asked: Some(asked) }
}

/// Answers GET and HEAD requests. The list of models has the fields of all vendors. The list is empty: if a client
/// found its model there, the client would request more details.
fn answer_get(path: &str) -> Response {
    match path.trim_end_matches('/').rsplit('/').next() {
        Some("models") => {
            Response::plain(200, json!({ "object": "list", "data": [], "models": [] }))
        }
        // Claude Code sends this request to check whether the server responds.
        Some("") => Response::plain(200, json!({})),
        _ => Response::plain(404, error_body(&format!("unknown path {path}"))),
    }
}

fn error_body(message: &str) -> Value {
    json!({ "error": { "type": "invalid_request_error", "message": message } })
}

/// Estimates the number of tokens: four bytes per token.
fn estimate_tokens(body: &Value) -> usize {
    body.to_string().len() / 4
}
