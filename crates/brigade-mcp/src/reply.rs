//! The result of a tool call: text for the model, and the same information as structured content.

use brigade_host::HostError;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use serde_json::{Value, json};

/// The result of a successful tool call.
pub(super) struct ToolReply {
    text: String,
    data: Value,
}

/// The result of a tool call, successful or not.
pub(super) type CallResult = Result<ToolReply, ToolError>;

/// Structured content of a call that only reports success.
#[derive(Serialize, JsonSchema)]
pub(super) struct DoneReply {
    success: bool,
    message: String,
}

impl ToolReply {
    /// Creates a result with this text and this structured content.
    pub(super) fn new(text: impl Into<String>, data: &impl Serialize) -> Self {
        // Serializing a reply cannot fail, because replies are plain data.
        Self { text: text.into(), data: serde_json::to_value(data).unwrap_or_default() }
    }

    /// Creates a result that contains only a message.
    pub(super) fn done(message: String) -> Self {
        Self::new(message.clone(), &DoneReply { success: true, message })
    }
}

impl From<ToolReply> for CallToolResult {
    fn from(reply: ToolReply) -> Self {
        let mut result = Self::success(vec![ContentBlock::text(reply.text)]);
        result.structured_content = Some(reply.data);
        result
    }
}

/// Why a tool call failed, written so that the model knows what to do next.
#[derive(Debug)]
pub(super) struct ToolError(String);

impl ToolError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<ToolError> for CallToolResult {
    fn from(error: ToolError) -> Self {
        let data = json!({ "success": false, "message": error.0 });
        let mut result = Self::error(vec![ContentBlock::text(error.0)]);
        result.structured_content = Some(data);
        result
    }
}

impl<E: Into<HostError>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(error.into().to_agent_text())
    }
}
