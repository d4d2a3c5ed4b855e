//! The routes, and the checks that every request passes.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, on, post};

use crate::call::Call;
use crate::content::read_content;
use crate::endpoints::{ENDPOINTS, Endpoint, PREFIX};
use crate::login;
use crate::openapi;
use crate::pages;
use crate::problem::{Problem, ProblemKind};
use crate::repeat::KeyedChange;
use crate::reply::ReplyResult;
use crate::state::{WebState, authorize};
use crate::stream;

/// Returns the routes.
pub(crate) fn router(state: &Arc<WebState>) -> Router {
    let mut router = Router::new()
        .route("/login", post(login::log_in))
        .route("/logout", post(login::log_out))
        .route(&format!("{PREFIX}/events"), get(events))
        .route(&format!("{PREFIX}/openapi.json"), get(openapi::serve));
    for endpoint in ENDPOINTS {
        let run = move |State(state): State<Arc<WebState>>,
                        Path(path): Path<HashMap<String, String>>,
                        Query(query): Query<HashMap<String, String>>,
                        request: Request| async move {
            run_endpoint(state, endpoint, path, query, request).await
        };
        router =
            router.route(&format!("{PREFIX}{}", endpoint.path), on(endpoint.method.filter(), run));
    }
    router
        .merge(pages::routes())
        .fallback(async || Problem::new(ProblemKind::NotFound, "there is no such page"))
        .method_not_allowed_fallback(async || {
            Problem::new(ProblemKind::NoSuchMethod, "the path has no such method")
        })
        .layer(middleware::from_fn_with_state(Arc::clone(state), check_and_seal))
        .with_state(Arc::clone(state))
}

/// Refuses requests for other hosts, and adds the headers that tell browsers what pages may do.
async fn check_and_seal(
    State(state): State<Arc<WebState>>,
    request: Request,
    next: Next,
) -> Response {
    let checked = state
        .names
        .check_host(request.uri(), request.headers())
        .and_then(|()| refuse_secret_in_address(request.uri()));
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (
            "content-security-policy",
            "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
             object-src 'none'",
        ),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Addresses are stored in histories and logs, so they must not contain secrets.
fn refuse_secret_in_address(uri: &Uri) -> Result<(), Problem> {
    let names = uri.query().unwrap_or_default().split('&');
    let mut names = names.map(|pair| pair.split('=').next().unwrap_or_default());
    let is_secret = |name: &str| {
        ["token", "access_token", "secret", "login", "key"].contains(&name.to_lowercase().as_str())
    };
    match names.any(is_secret) {
        true => Err(Problem::invalid("a secret must not be part of the address")
            .hint("send `Authorization: Bearer TOKEN`")),
        false => Ok(()),
    }
}

async fn run_endpoint(
    state: Arc<WebState>,
    endpoint: &'static Endpoint,
    path: HashMap<String, String>,
    query: HashMap<String, String>,
    request: Request,
) -> Response {
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    match checked_call(state, endpoint, path, query, request).await {
        Ok(reply) => reply.into_response(known.as_ref()),
        Err(problem) => problem.into_response(),
    }
}

async fn checked_call(
    state: Arc<WebState>,
    endpoint: &'static Endpoint,
    path: HashMap<String, String>,
    query: HashMap<String, String>,
    request: Request,
) -> ReplyResult {
    let (parts, body) = request.into_parts();
    let (_, grant) = authorize(&state, &parts.headers, endpoint.right.changes())?;
    if !grant.kind.has(endpoint.right) {
        let detail = format!("the {} token {} may not do this", grant.kind, grant.name);
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    let body = read_content(&parts.headers, &parts.method, body).await?;
    let header_text = |name: &str| {
        parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let key = header_text("idempotency-key").filter(|_| endpoint.right.changes());
    let begun = match &key {
        None => None,
        Some(key) => {
            let change = format!(
                "{} {}\n{}",
                parts.method,
                parts.uri.path(),
                String::from_utf8_lossy(&body)
            );
            match state.changes.begin(&grant.name, key, &change)? {
                KeyedChange::New(begun) => Some(begun),
                KeyedChange::Done(reply) => return Ok(reply),
            }
        }
    };
    let call = Call { state, grant, path, query, body, last_event_id: None, credential: None };
    // The change is made to its end, also if the client goes away in the meantime.
    let result = tokio::spawn((endpoint.run)(call)).await.unwrap_or_else(|error| {
        Err(Problem::new(ProblemKind::Failed, format!("the call ended early: {error}")))
    });
    if let Some(begun) = begun {
        begun.end(&result);
    }
    result
}

async fn events(
    State(state): State<Arc<WebState>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let open = async {
        let (credential, grant) = authorize(&state, &headers, false)?;
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
        let call = Call {
            grant,
            path: HashMap::new(),
            query,
            body: Bytes::new(),
            last_event_id: last.map(str::to_owned),
            credential: Some(credential),
            state,
        };
        stream::open(&call).await
    };
    open.await.unwrap_or_else(IntoResponse::into_response)
}
