//! Reads the content of requests.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Method, header};
use http_body_util::{BodyExt as _, Limited};

use crate::problem::{Problem, ProblemKind};

/// The most bytes of a request's content.
const MAX_CONTENT: usize = 2 << 20;
/// How long a client may take to send the content of a request.
const CONTENT_WITHIN: Duration = Duration::from_secs(30);

/// Reads the content of a request, which has to be JSON.
pub(crate) async fn read_content(
    headers: &HeaderMap,
    method: &Method,
    body: Body,
) -> Result<Bytes, Problem> {
    let read = Limited::new(body, MAX_CONTENT).collect();
    let bytes = match tokio::time::timeout(CONTENT_WITHIN, read).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let detail = format!("the content is longer than {MAX_CONTENT} bytes");
            return Err(Problem::new(ProblemKind::TooLong, detail));
        }
        Ok(Err(error)) => return Err(Problem::invalid(format!("cannot read: {error}"))),
        Err(_) => return Err(Problem::invalid("the content did not arrive in time")),
    };
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json")
    });
    // A form of another site cannot have this type.
    if *method != Method::GET && !bytes.is_empty() && !is_json {
        return Err(Problem::invalid("the content has to be application/json"));
    }
    Ok(bytes)
}

/// Reads the content of a request for a page outside of the API.
pub(crate) async fn page_content(request: Request) -> Result<(HeaderMap, Bytes), Problem> {
    let (parts, body) = request.into_parts();
    let body = read_content(&parts.headers, &parts.method, body).await?;
    Ok((parts.headers, body))
}
