//! Errors as problem documents (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use brigade_core::authority::Denied;
use brigade_core::board::BoardError;
use brigade_core::handshake::HandshakeError;
use brigade_core::mail::MailError;
use brigade_core::store::StoreError;
use brigade_host::HostError;
use brigade_host::error::ErrorKind;
use schemars::JsonSchema;
use serde::Serialize;

/// The media type of a problem document.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// An error, as the server sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// Names the kind of problem.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The kind of problem in words.
    pub(crate) title: String,
    /// The status code of the response.
    pub(crate) status: u16,
    /// The failure and its cause.
    pub(crate) detail: String,
    /// Suggested next steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hints: Vec<String>,
}

/// A kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    /// The request cannot be understood.
    Invalid,
    /// The request has no valid token or session.
    NoAccess,
    /// The token or the member may not do this.
    Forbidden,
    /// The team, member, task, request or page does not exist.
    NotFound,
    /// The path has no such method.
    NoSuchMethod,
    /// The state of the team does not allow this.
    Conflict,
    /// The content is too long.
    TooLong,
    /// There are too many requests or streams.
    TooMany,
    /// The store cannot be reached, or a file is locked.
    Unavailable,
    /// Reading or writing failed.
    Failed,
}

impl ProblemKind {
    /// Every kind.
    pub(crate) const ALL: [Self; 10] = [
        Self::Invalid,
        Self::NoAccess,
        Self::Forbidden,
        Self::NotFound,
        Self::NoSuchMethod,
        Self::Conflict,
        Self::TooLong,
        Self::TooMany,
        Self::Unavailable,
        Self::Failed,
    ];

    /// Returns the status, the name and the title.
    pub(crate) fn description(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Invalid => (StatusCode::BAD_REQUEST, "invalid", "The request is not valid"),
            Self::NoAccess => {
                (StatusCode::UNAUTHORIZED, "no-access", "A token or a login is needed")
            }
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "This is not allowed"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is no such thing"),
            Self::NoSuchMethod => {
                (StatusCode::METHOD_NOT_ALLOWED, "no-such-method", "The path has no such method")
            }
            Self::Conflict => {
                (StatusCode::CONFLICT, "conflict", "The state of the team does not allow this")
            }
            Self::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, "too-long", "The content is too long"),
            Self::TooMany => {
                (StatusCode::TOO_MANY_REQUESTS, "too-many", "There are too many requests")
            }
            Self::Unavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The store cannot be used at the moment",
            ),
            Self::Failed => {
                (StatusCode::INTERNAL_SERVER_ERROR, "failed", "Reading or writing failed")
            }
        }
    }
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let (status, name, title) = kind.description();
        Self {
            kind: format!("urn:brigade:problem:{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            hints: Vec::new(),
        }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Invalid, detail)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Self {
        let kind = kind_of(&error);
        let mut detail = error.source.to_string();
        let mut cause = error.source.source();
        while let Some(error) = cause {
            detail = format!("{detail}: {error}");
            cause = error.source();
        }
        Self { hints: error.hints, ..Self::new(kind, detail) }
    }
}

/// Makes a problem of the errors that [`HostError`] can contain.
macro_rules! from_core {
    ($($error:ty),*) => {
        $(impl From<$error> for Problem {
            fn from(error: $error) -> Self {
                HostError::from(error).into()
            }
        })*
    };
}
from_core!(StoreError, MailError, BoardError, HandshakeError);

fn kind_of(error: &HostError) -> ProblemKind {
    let source = &error.source;
    if source.downcast_ref::<Denied>().is_some() {
        return ProblemKind::Forbidden;
    }
    if let Some(error) = source.downcast_ref() {
        return store_kind(error);
    }
    if let Some(error) = source.downcast_ref() {
        return match error {
            MailError::NoMember { .. } => ProblemKind::NotFound,
            MailError::Store(error) => store_kind(error),
            MailError::Denied(_) => ProblemKind::Forbidden,
            MailError::TooLong { .. } => ProblemKind::TooLong,
            _ => ProblemKind::Invalid,
        };
    }
    if let Some(error) = source.downcast_ref() {
        return match error {
            BoardError::NoTask(_) => ProblemKind::NotFound,
            BoardError::Store(error) => store_kind(error),
            BoardError::Denied(_) => ProblemKind::Forbidden,
            _ => ProblemKind::Conflict,
        };
    }
    if let Some(error) = source.downcast_ref() {
        return match error {
            HandshakeError::NoRequest { .. } | HandshakeError::Unknown { .. } => {
                ProblemKind::NotFound
            }
            HandshakeError::Store(error) => store_kind(error),
            HandshakeError::Denied(_) => ProblemKind::Forbidden,
            _ => ProblemKind::Conflict,
        };
    }
    if error.is_unreachable() {
        return ProblemKind::Unavailable;
    }
    match error.kind {
        ErrorKind::Locked => ProblemKind::Unavailable,
        ErrorKind::Usage => ProblemKind::Invalid,
        ErrorKind::Nothing => ProblemKind::NotFound,
        ErrorKind::Failed | ErrorKind::Partly | ErrorKind::BrokenPipe => ProblemKind::Conflict,
    }
}

fn store_kind(error: &StoreError) -> ProblemKind {
    match error {
        StoreError::NoTeam { .. } | StoreError::NoTask { .. } => ProblemKind::NotFound,
        StoreError::Forbidden { .. } => ProblemKind::Forbidden,
        StoreError::TeamExists { .. } | StoreError::Conflict | StoreError::MailboxFull(_) => {
            ProblemKind::Conflict
        }
        StoreError::Locked(_) | StoreError::Engine { .. } => ProblemKind::Unavailable,
        _ => ProblemKind::Failed,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
