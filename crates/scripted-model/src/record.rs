//! The log of requests. For each request to the model, the log contains the offered tools, the last tool result
//! and the answer.

use serde::Serialize;

use crate::conversation::{Conversation, ModelAnswer, Tool, ToolResult};

/// One request, logged as one line of JSON.
#[derive(Debug, Serialize)]
pub struct RequestLogLine {
    /// The request's number, counted from 1.
    pub number: u64,
    /// When the request was received completely, in microseconds since 1970.
    pub at: u128,
    /// The HTTP method.
    pub method: String,
    /// The path of the URL, without the query.
    pub path: String,
    /// The HTTP status of the response.
    pub status: u16,
    /// Details, if this was a request to the model.
    #[serde(flatten)]
    pub asked: Option<ModelRequestLog>,
}

/// A request to the model, and the answer.
#[derive(Debug, Serialize)]
pub struct ModelRequestLog {
    /// The wire format.
    pub wire: &'static str,
    /// The offered tools, in order.
    pub tools: Vec<Tool>,
    /// The last text from the user.
    pub heard: String,
    /// The last tool result.
    pub returned: Option<ToolResult>,
    /// The number of tool results so far.
    pub results: usize,
    /// The answer.
    pub answer: ModelAnswer,
}

impl ModelRequestLog {
    /// Summarises a conversation for the log.
    pub fn new(wire: &'static str, conversation: &Conversation, answer: &ModelAnswer) -> Self {
        Self {
            wire,
            tools: conversation.tools.clone(),
            heard: conversation.latest_user_text().to_owned(),
            returned: conversation.results().next_back().cloned(),
            results: conversation.results().count(),
            answer: answer.clone(),
        }
    }
}
