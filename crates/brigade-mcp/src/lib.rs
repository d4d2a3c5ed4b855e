//! `brigade mcp`: serves the team's tools to any agent that speaks the Model Context Protocol.
//!
//! - [`tools`]: one row per tool, each a few lines on top of `brigade-core`;
//! - [`server`]: handles requests; [`desk`]: the context of one call; [`reply`]: its result;
//! - [`resources`], [`prompts`]: what clients can read besides the tools;
//! - [`lines`], [`door`], [`read_marks`]: line framing, transport, and when a message is marked read.

#![forbid(unsafe_code)]

mod call_context;
mod framing;
mod prompts;
mod read_marks;
mod reply;
mod resources;
mod schema;
mod server;
mod team_view;
mod tools;
mod transport;

pub use self::tools::told as tools_told;

use std::sync::Arc;

use brigade_agents::brief::Mail;
use brigade_core::seat::Seat;
use brigade_host::{Context, HostError};
use brigade_wire::name::TeamName;
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use thiserror::Error;

use self::door::GuardedTransport;
use self::server::{McpServer, ServerIdentity};
use crate::context::Context;
use crate::env;
use crate::error::{CliError, Trouble};

/// Serves the seat's tools on standard input and output until the client closes them.
pub(crate) async fn serve(context: &Context, seat: Seat) -> Result<(), CliError> {
    run(context, ServerIdentity::Seated(seat)).await
}

/// Like `serve`, for the lead of a team that does not exist yet.
pub(crate) async fn serve_founder(
    context: &Context,
    named: Option<TeamName>,
    mail: Mail,
) -> Result<(), HostError> {
    let (store, clock) = (Arc::clone(&context.store), Arc::clone(&context.clock));
    run(context, ServerIdentity::Founder { store, clock, named, hand: context.agent() }).await
}

async fn run(context: &Context, identity: ServerIdentity) -> Result<(), CliError> {
    let server = McpServer::new(identity, mail_mode(), context.host()?);
    let (input, output) = stdio_pipes();
    let (valid, rejected) = lines::split(input);
    let inner = AsyncRwTransport::new_server(valid, output);
    let transport = GuardedTransport::new(inner, rejected, server.read_marks.clone());
    let broken = |error: Box<dyn std::error::Error + Send + Sync>| {
        CliError::failed(Trouble::Mcp { source: error })
    };
    let running = match server.serve(transport).await {
        Ok(running) => running,
        // The client disconnected before it initialized.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(broken(Box::new(error))),
    };
    running.waiting().await.map_err(|error| broken(Box::new(error)))?;
    Ok(())
}

/// Whether brigade delivers the member's mail, as the parent process says, or the member fetches it.
fn mail_mode() -> Mail {
    if env::read(env::DELIVERED).is_some() { Mail::Delivered } else { Mail::Fetched }
}
