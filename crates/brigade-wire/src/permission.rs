//! The two protocol messages about permissions: a teammate's request to use a tool, and the answer.
//!
//! ```
//! use brigade_wire::permission::{PermissionResponse, PermissionVerdict};
//! use brigade_wire::protocol::Protocol;
//!
//! let no = PermissionResponse {
//!     request_id: "perm-1-abcdefg".into(),
//!     tool_use_id: None,
//!     approved_request: None,
//!     verdict: PermissionVerdict::Error("not today".into()),
//! };
//! assert!(Protocol::from(no).to_text().contains("not today"));
//! ```

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The fields of a `permission_request` message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// The request id exactly as it appears in the message.
    #[serde(alias = "requestId")]
    pub request_id: String,
    /// The member that asks, as a name without the team.
    pub agent_id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The id of the tool call.
    pub tool_use_id: String,
    /// The purpose for which the agent would use the tool.
    pub description: String,
    /// The input that the tool would get.
    pub input: Json,
    /// Permissions that the answer could grant permanently, so that the agent need not ask again.
    #[serde(default)]
    pub permission_suggestions: Vec<Json>,
    /// The agent's original request, if brigade translated it for Claude Code. Claude Code ignores this field.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub brigade: Option<Original>,
}

/// An agent's request before brigade translated it into a form that Claude Code can display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// The name that the agent uses for the tool.
    pub tool: String,
    /// The input that the tool would get.
    pub input: Json,
    /// The agent's working directory.
    pub cwd: String,
    /// The fields of the agent's request outside the tool's input, as an object. Older versions of brigade do not
    /// write this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Json>,
}

/// The fields of a `permission_response` message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PermissionResponseRecord", into = "PermissionResponseRecord")]
pub struct PermissionResponse {
    /// The id of the request that is answered.
    pub request_id: String,
    /// The id of the tool call; only in the new generation.
    pub tool_use_id: Option<String>,
    /// The exact tool call that was approved; only in the new generation.
    pub approved_request: Option<ApprovedRequest>,
    /// Whether the permission is granted.
    pub verdict: PermissionVerdict,
}

/// The answer to a permission request. In JSON: the field `subtype`, and either `response` or `error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionVerdict {
    /// The permission is granted.
    Success(Grant),
    /// The permission is denied. The string is the reason.
    Error(String),
}

/// The JSON form of a permission response. A response is rejected if its `subtype` is unknown, or contradicts its
/// other fields.
#[derive(Serialize, Deserialize)]
struct PermissionResponseRecord {
    #[serde(alias = "requestId")]
    request_id: String,
    subtype: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    approved_request: Option<ApprovedRequest>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    response: Option<Grant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl TryFrom<PermissionResponseRecord> for PermissionResponse {
    type Error = &'static str;

    fn try_from(record: PermissionResponseRecord) -> Result<Self, Self::Error> {
        let verdict = match (record.subtype.as_str(), record.response, record.error) {
            ("success", Some(grant), None) => PermissionVerdict::Success(grant),
            ("error", None, Some(error)) => PermissionVerdict::Error(error),
            ("success" | "error", ..) => return Err("its subtype does not match its other fields"),
            _ => return Err("its subtype is neither success nor error"),
        };
        let PermissionResponseRecord { request_id, tool_use_id, approved_request, .. } = record;
        Ok(Self { request_id, tool_use_id, approved_request, verdict })
    }
}

impl From<PermissionResponse> for PermissionResponseRecord {
    fn from(answer: PermissionResponse) -> Self {
        let (subtype, response, error) = match answer.verdict {
            PermissionVerdict::Success(grant) => ("success".to_owned(), Some(grant), None),
            PermissionVerdict::Error(error) => ("error".to_owned(), None, Some(error)),
        };
        let PermissionResponse { request_id, tool_use_id, approved_request, .. } = answer;
        Self { request_id, subtype, tool_use_id, approved_request, response, error }
    }
}

/// Deserializes a struct only from a JSON object. Serde itself would also accept an array of the struct's fields.
fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: for<'t> Deserialize<'t>,
{
    let json = Json::deserialize(deserializer)?;
    if !json.as_str().starts_with('{') {
        return Err(D::Error::custom("expected an object"));
    }
    serde_json::from_str(json.as_str()).map(Some).map_err(D::Error::custom)
}

/// The tool call that was approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedRequest {
    /// The id of the tool call.
    pub tool_use_id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// A digest of the tool's name and input, in hexadecimal.
    pub input_digest: String,
}

/// A granted permission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The input that the tool must use, if the lead changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Json>,
    /// The permanent permissions that are granted. The new generation omits an empty list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_updates: Option<Vec<Json>>,
}

/// Another program's JSON, kept byte for byte.
#[derive(Clone, Debug)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Parses JSON text.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        // `to_string` returns valid JSON, so this cannot fail.
        Self(RawValue::from_string(value.to_string()).unwrap_or_default())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}
