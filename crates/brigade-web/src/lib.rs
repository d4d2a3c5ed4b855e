//! `brigade web`: an HTTP API for programs, and a page for people.
//!
//! The server acts for the person who started it. Everything that changes a team goes through `brigade-host`, as the command line
//! does, and is recorded with the name of the token.
//!
//! # Parts
//!
//! | modules | task |
//! |---|---|
//! | `access` | named tokens, login links that work once, sessions of browsers; which kind may do what |
//! | `origin_check`, `state`, `content` | the checks of each request: host name, page, token, size |
//! | `endpoints`, `api`, `call`, `reply` | one row for each call of the API, the functions behind them, their input and output |
//! | `openapi`, `problem` | the description of the API; errors |
//! | `hub`, `stream`, `stream_limit` | the events of all teams, and the streams of clients |
//! | `repeat` | changes that a client may send again |
//! | `server`, `login`, `pages`, `connections` | routes, logging in, the page, connections |
//!
//! # Limits of this crate
//!
//! - It decides nothing about teams: `brigade-core` and `brigade-host` check what the person may do.
//! - It shows the text of agents as text. Nothing that an agent wrote becomes HTML, a script or an address.
//! - It does not type into an agent's terminal.

#![forbid(unsafe_code)]

pub mod access;
mod api;
mod call;
mod connections;
mod content;
mod endpoints;
mod hub;
mod login;
pub mod openapi;
mod origin_check;
mod pages;
mod problem;
mod repeat;
mod reply;
mod server;
mod state;
mod stream;
mod stream_limit;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use brigade_host::Context;
use brigade_host::trust::Trust;

use self::access::{AccessBook, AccessError};
pub use self::connections::WebListener;
use self::hub::EventHub;
use self::origin_check::OwnNames;
use self::repeat::RepeatedChanges;
use self::state::WebState;
use self::stream_limit::StreamCounts;

/// The settings of the server.
#[derive(Debug)]
pub struct WebSettings<'s> {
    /// Brigade's own folder.
    pub state_dir: &'s Path,
    /// The names under which browsers reach the server, with ports.
    pub hosts: Vec<String>,
    /// Distinguishes the cookie of this server from those of others on the same host.
    pub cookie_suffix: String,
    /// Whether browsers reach the server over TLS.
    pub is_tls: bool,
    /// The team files that the person trusts.
    pub trust: Trust,
}

/// Serves the API and the page until the task is dropped.
pub async fn serve(
    context: Context,
    listener: WebListener,
    settings: WebSettings<'_>,
) -> Result<(), AccessError> {
    let context = Arc::new(context);
    let hub = Arc::new(EventHub::new(access::random_name()?));
    let changes = RepeatedChanges::of_state_dir(settings.state_dir);
    changes.remove_old(SystemTime::now());
    let state = Arc::new(WebState {
        context: Arc::clone(&context),
        book: AccessBook::of_state_dir(settings.state_dir),
        names: OwnNames::new(settings.is_tls, settings.hosts),
        hub: Arc::clone(&hub),
        changes,
        streams: StreamCounts::default(),
        trust: settings.trust,
        cookie: format!("brigade_{}", settings.cookie_suffix),
        is_tls: settings.is_tls,
    });
    let router = server::router(&state);
    tokio::join!(hub::watch_teams(context, hub), connections::serve(listener, router));
    Ok(())
}
