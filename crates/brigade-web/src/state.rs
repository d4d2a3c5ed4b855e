//! The state that all requests share, and the check of their senders.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use brigade_host::Context;
use brigade_host::trust::Trust;

use crate::access::{AccessBook, AccessGrant};
use crate::hub::EventHub;
use crate::origin_check::{CSRF_HEADER, HasOrigin, OwnNames};
use crate::problem::{Problem, ProblemKind};
use crate::repeat::RepeatedChanges;
use crate::stream_limit::StreamCounts;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct WebState {
    pub(crate) context: Arc<Context>,
    pub(crate) book: AccessBook,
    pub(crate) names: OwnNames,
    pub(crate) hub: Arc<EventHub>,
    pub(crate) changes: RepeatedChanges,
    pub(crate) streams: StreamCounts,
    pub(crate) trust: Trust,
    /// The name of the cookie, which differs between servers on one host.
    pub(crate) cookie: String,
    pub(crate) is_tls: bool,
}

/// Proves to the server who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    /// The token of a program.
    Token(String),
    /// The session of a browser.
    Session(String),
}

impl WebState {
    /// Returns what this credential allows at the moment.
    pub(crate) fn grant(&self, credential: &Credential) -> Result<AccessGrant, Problem> {
        let found = match credential {
            Credential::Token(secret) => self.book.token(secret),
            Credential::Session(secret) => self.book.session(secret, self.context.clock.now()),
        };
        let found = found.map_err(|error| Problem::new(ProblemKind::Failed, error.to_string()))?;
        found.ok_or_else(|| {
            Problem::new(ProblemKind::NoAccess, "the token or the login is not valid (any more)")
                .hint("`brigade web link` prints a new login link")
        })
    }

    /// Returns the credential in the headers of a request.
    pub(crate) fn credential(&self, headers: &HeaderMap) -> Result<Credential, Problem> {
        let none = || {
            Problem::new(ProblemKind::NoAccess, "the request has no token and no login")
                .hint("send `Authorization: Bearer TOKEN`; `brigade web token add` makes a token")
        };
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        match (given.next(), given.next()) {
            (Some(value), None) => {
                let value = value.to_str().map_err(|_| none())?;
                let token = value.strip_prefix("Bearer ").ok_or_else(none)?;
                return Ok(Credential::Token(token.trim().to_owned()));
            }
            (Some(_), Some(_)) => return Err(none()),
            (None, _) => {}
        }
        self.session_cookie(headers).map(Credential::Session).ok_or_else(none)
    }

    /// Returns the secret in the cookie of this server.
    pub(crate) fn session_cookie(&self, headers: &HeaderMap) -> Option<String> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        let mut own = pairs.filter(|(name, _)| name.trim() == self.cookie);
        own.next().map(|(_, value)| value.trim().to_owned())
    }
}

/// Checks who sent the request and what it may do.
pub(crate) fn authorize(
    state: &WebState,
    headers: &HeaderMap,
    changes: bool,
) -> Result<(Credential, AccessGrant), Problem> {
    let origin = state.names.check_origin(headers)?;
    let credential = state.credential(headers)?;
    let grant = state.grant(&credential)?;
    if changes && let Some(csrf) = &grant.csrf {
        let refused = |why: &str| Err(Problem::new(ProblemKind::Forbidden, why));
        if origin != HasOrigin::Own {
            return refused("the request does not say which page made it");
        }
        let mut given = headers.get_all(CSRF_HEADER).iter();
        if given.next().is_none_or(|given| given.as_bytes() != csrf.as_bytes())
            || given.next().is_some()
        {
            return refused("the request lacks the value that only the page of this server knows");
        }
    }
    Ok((credential, grant))
}
