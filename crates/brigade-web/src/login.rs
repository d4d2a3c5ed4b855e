//! Logging in with a link that works once, and logging out.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::content::page_content;
use crate::origin_check::HasOrigin;
use crate::problem::{Problem, ProblemKind};
use crate::reply::Reply;
use crate::state::WebState;

/// How long the browser keeps the cookie. The server decides when the session ends.
const COOKIE_SECONDS: u32 = 60 * 60 * 24 * 30;

/// The content of a login.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginRequest {
    secret: String,
}

/// Exchanges the secret of a login link for a session.
pub(crate) async fn log_in(State(state): State<Arc<WebState>>, request: Request) -> Response {
    let log_in = async {
        let (headers, body) = page_content(request).await?;
        require_own_page(&state, &headers)?;
        let LoginRequest { secret } = serde_json::from_slice(&body)
            .map_err(|error| Problem::invalid(format!("the content is not valid: {error}")))?;
        let failed = |error: crate::access::AccessError| {
            Problem::new(ProblemKind::Failed, error.to_string())
        };
        let session = state.book.log_in(&secret, state.context.clock.now()).map_err(failed)?;
        let session = session.ok_or_else(|| {
            Problem::new(ProblemKind::NoAccess, "the login link was used already, or is too old")
                .hint("`brigade web link` prints a new one")
        })?;
        Ok(cookie(&state, session.secret.expose(), COOKIE_SECONDS))
    };
    log_in.await.unwrap_or_else(|problem: Problem| problem.into_response())
}

/// Ends the session of the browser.
pub(crate) async fn log_out(State(state): State<Arc<WebState>>, request: Request) -> Response {
    let log_out = async {
        let (headers, _) = page_content(request).await?;
        require_own_page(&state, &headers)?;
        if let Some(secret) = state.session_cookie(&headers) {
            let ended = state.book.log_out(&secret, state.context.clock.now());
            ended.map_err(|error| Problem::new(ProblemKind::Failed, error.to_string()))?;
        }
        Ok(cookie(&state, "", 0))
    };
    log_out.await.unwrap_or_else(|problem: Problem| problem.into_response())
}

fn require_own_page(state: &WebState, headers: &HeaderMap) -> Result<(), Problem> {
    match state.names.check_origin(headers)? {
        HasOrigin::Own => Ok(()),
        HasOrigin::No => Err(Problem::new(
            ProblemKind::Forbidden,
            "only the page of this server logs in and out",
        )),
    }
}

/// Returns a response that stores the secret of the session in the browser. Scripts cannot read it, and other sites cannot make the
/// browser send it.
fn cookie(state: &WebState, secret: &str, seconds: u32) -> Response {
    let secure = if state.is_tls { "; Secure" } else { "" };
    let name = &state.cookie;
    let cookie =
        format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut response = Reply::empty().into_response(None);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
