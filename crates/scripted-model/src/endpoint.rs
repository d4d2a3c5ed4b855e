//! Which paths there are, and what each is answered.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::record::Asked;
use crate::wire::chat::Chat;
use crate::wire::gemini::Gemini;
use crate::wire::messages::Messages;
use crate::wire::responses::Responses;
use crate::wire::{Body, Request};

/// An answered request.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// How long the body keeps the client waiting.
    pub wait: Duration,
    /// What is sent.
    pub body: Body,
    /// What was asked of the model, if anything was.
    pub asked: Option<Asked>,
}

impl Response {
    fn plain(status: u16, body: Value) -> Self {
        Self { status, wait: Duration::ZERO, body: Body::Json(body), asked: None }
    }
}

/// What a model that is out of order, or takes no more, answers to every question: a status, and the words
/// of the vendor whose part it plays.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// The HTTP status.
    pub status: u16,
    /// What is sent with it.
    pub body: Value,
}

impl Outage {
    /// What is answered in the place of an answer. What was asked stays known.
    pub fn instead_of(self, response: Response) -> Response {
        Response { asked: response.asked, ..Response::plain(self.status, self.body) }
    }
}

/// Answers a request to `path`, which is without its query. `id` is used for no other request.
pub fn answer(method: &str, path: &str, body: &[u8], id: &str) -> Response {
    if method != "POST" {
        return look(path);
    }
    let body: Value = match serde_json::from_slice(body) {
        Ok(body) => body,
        Err(error) => return Response::plain(400, problem(&format!("no JSON: {error}"))),
    };
    let last = path.rsplit('/').next().unwrap_or_default();
    let method = last.rsplit(':').next().unwrap_or_default();
    match method {
        "responses" => ask("responses", &Responses(body), id),
        "completions" => ask("chat", &Chat(body), id),
        "messages" => ask("messages", &Messages(body), id),
        "generateContent" => ask("gemini", &Gemini { body, stream: false }, id),
        "streamGenerateContent" => ask("gemini", &Gemini { body, stream: true }, id),
        "count_tokens" => Response::plain(200, json!({ "input_tokens": tokens(&body) })),
        "countTokens" => Response::plain(200, json!({ "totalTokens": tokens(&body) })),
        _ => Response::plain(404, problem(&format!("nothing at {path}"))),
    }
}

fn ask(wire: &'static str, request: &dyn Request, id: &str) -> Response {
    let conversation = request.conversation();
    let reply = conversation.reply();
    let asked = Asked::new(wire, &conversation, &reply.answer);
    let body = request.write(&reply.answer, id);
    Response { status: 200, wait: reply.wait, body, asked: Some(asked) }
}

/// What can be looked at: the list of models, in the words of all vendors at once. It names none, for
/// a program that knows its model by a list would want to know more about it than a script can say.
fn look(path: &str) -> Response {
    match path.trim_end_matches('/').rsplit('/').next() {
        Some("models") => {
            Response::plain(200, json!({ "object": "list", "data": [], "models": [] }))
        }
        // Claude Code looks whether anybody is there.
        Some("") => Response::plain(200, json!({})),
        _ => Response::plain(404, problem(&format!("nothing at {path}"))),
    }
}

fn problem(message: &str) -> Value {
    json!({ "error": { "type": "invalid_request_error", "message": message } })
}

/// A guess of the usual kind: four bytes to a token.
fn tokens(body: &Value) -> usize {
    body.to_string().len() / 4
}
