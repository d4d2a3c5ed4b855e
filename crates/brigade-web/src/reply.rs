//! The reply to a call.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::access::digest;
use crate::problem::{Problem, ProblemKind};

/// The result of a call.
pub(crate) type ReplyResult = Result<Reply, Problem>;

/// The reply to a call.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    body: Vec<u8>,
    next: Option<String>,
}

impl Reply {
    /// Returns a document.
    pub(crate) fn json(document: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_vec(document)
            .map_err(|error| Problem::new(ProblemKind::Failed, error.to_string()))?;
        Ok(Self::bytes(body))
    }

    /// Returns JSON that is already text.
    pub(crate) fn bytes(body: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, body, next: None }
    }

    /// Returns an empty document.
    pub(crate) fn empty() -> Self {
        Self::bytes(b"{}".to_vec())
    }

    /// Returns a response that was sent before.
    pub(crate) fn stored(status: StatusCode, body: Vec<u8>) -> Self {
        Self { status, body, next: None }
    }

    /// Returns an array of documents that are already JSON.
    pub(crate) fn array<'b>(documents: impl Iterator<Item = &'b [u8]>) -> Self {
        let mut body = vec![b'['];
        for document in documents {
            if body.len() > 1 {
                body.push(b',');
            }
            body.extend_from_slice(document);
        }
        body.push(b']');
        Self::bytes(body)
    }

    /// Says that something was created.
    pub(crate) fn created(self) -> Self {
        Self { status: StatusCode::CREATED, ..self }
    }

    /// Says that the change was sent, but its effect is not confirmed yet.
    pub(crate) fn accepted_unless(self, is_confirmed: bool) -> Self {
        if is_confirmed { self } else { Self { status: StatusCode::ACCEPTED, ..self } }
    }

    /// Adds the cursor of the next entries.
    pub(crate) fn with_next(self, cursor: Option<String>) -> Self {
        Self { next: cursor, ..self }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Makes the response, or a short one if the client has the same document already.
    pub(crate) fn into_response(self, known: Option<&HeaderValue>) -> Response {
        let tag = etag(&self.body);
        let is_known = known
            .and_then(|known| known.to_str().ok())
            .is_some_and(|known| known.split(',').any(|known| known.trim() == tag));
        let mut response = match is_known && self.status == StatusCode::OK {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => (self.status, self.body).into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(header::ETAG, tag);
        }
        let link = self.next.map(|cursor| format!("<?cursor={cursor}>; rel=\"next\""));
        if let Some(link) = link.and_then(|link| HeaderValue::from_str(&link).ok()) {
            headers.insert(header::LINK, link);
        }
        response
    }
}

/// Names a version of a document.
fn etag(body: &[u8]) -> String {
    let whole = digest(&String::from_utf8_lossy(body));
    format!("\"{}\"", whole.get(..32).unwrap_or_default())
}
