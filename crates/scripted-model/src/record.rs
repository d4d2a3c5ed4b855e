//! What is told of a request: which tools it offered, what it reported, what it was answered.

use serde::Serialize;

use crate::conversation::{Answer, Conversation, Returned, Tool};

/// One request, told in one line of JSON.
#[derive(Debug, Serialize)]
pub struct Record {
    /// The request's number, from 1.
    pub number: u64,
    /// When it had come whole, in microseconds since 1970.
    pub at: u128,
    /// Its method.
    pub method: String,
    /// Its path, without what follows a question mark.
    pub path: String,
    /// The status it was answered with.
    pub status: u16,
    /// What it asked of the model; none if it asked for something else.
    #[serde(flatten)]
    pub asked: Option<Asked>,
}

/// What a request asked of the model, and got.
#[derive(Debug, Serialize)]
pub struct Asked {
    /// The wire format.
    pub wire: &'static str,
    /// The tools on offer, in their order.
    pub tools: Vec<Tool>,
    /// The last text in the user's place.
    pub heard: String,
    /// What the last tool gave back.
    pub returned: Option<Returned>,
    /// How many tools have given something back so far.
    pub results: usize,
    /// The answer.
    pub answer: Answer,
}

impl Asked {
    /// What there is to tell of a conversation.
    pub fn new(wire: &'static str, conversation: &Conversation, answer: &Answer) -> Self {
        Self {
            wire,
            tools: conversation.tools.clone(),
            heard: conversation.latest_words().to_owned(),
            returned: conversation.results().next_back().cloned(),
            results: conversation.results().count(),
            answer: answer.clone(),
        }
    }
}
