//! The rights of the client.

use schemars::JsonSchema;
use serde::Serialize;

use crate::access::TokenKind;
use crate::call::Call;
use crate::reply::{Reply, ReplyResult};

/// The rights of this token or login.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionDocument {
    /// The name of the token or of the login. Changes are recorded with it.
    name: String,
    /// The rights.
    kind: TokenKind,
    /// For a browser: the value of the header `X-Brigade-Csrf` of each change.
    #[serde(skip_serializing_if = "Option::is_none")]
    csrf: Option<String>,
    /// The name of the host that the server runs on.
    host: String,
    /// The version of brigade.
    version: &'static str,
}

pub(crate) async fn show(call: Call) -> ReplyResult {
    Reply::json(&SessionDocument {
        host: call.state.context.host_name().to_owned(),
        name: call.grant.name,
        kind: call.grant.kind,
        csrf: call.grant.csrf,
        version: env!("CARGO_PKG_VERSION"),
    })
}
