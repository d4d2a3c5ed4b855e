//! The page: its files are part of the program.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::state::WebState;

/// A file of the page.
struct PageFile {
    path: &'static str,
    kind: &'static str,
    content: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

const FILES: &[PageFile] = &[
    PageFile { path: "/", kind: HTML, content: include_str!("pages/index.html") },
    PageFile { path: "/style.css", kind: STYLE, content: include_str!("pages/style.css") },
    PageFile { path: "/app.js", kind: SCRIPT, content: include_str!("pages/app.js") },
    PageFile { path: "/api.js", kind: SCRIPT, content: include_str!("pages/api.js") },
    PageFile { path: "/dom.js", kind: SCRIPT, content: include_str!("pages/dom.js") },
    PageFile { path: "/overview.js", kind: SCRIPT, content: include_str!("pages/overview.js") },
    PageFile { path: "/team.js", kind: SCRIPT, content: include_str!("pages/team.js") },
];

/// Returns the routes of the page. Its files contain nothing about teams, so they need no login.
pub(crate) fn routes() -> Router<Arc<WebState>> {
    let mut router = Router::new();
    for file in FILES {
        router = router.route(file.path, get(async || response(file)));
    }
    router
}

fn response(file: &PageFile) -> Response {
    let mut response = file.content.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
