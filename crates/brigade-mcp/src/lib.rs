//! `brigade mcp`: serves the team's tools to any agent that speaks the Model Context Protocol.
//!
//! - `tools`: one row per tool, each a few lines on top of `brigade-core`;
//! - `server`: handles requests; `call_context`: the context of one call; `reply`: its result;
//! - `resources`, `prompts`: what clients can read besides the tools;
//! - `framing`, `transport`, `read_marks`: line framing, transport, and when a message is marked read.

#![forbid(unsafe_code)]

mod board_view;
mod call_context;
mod framing;
mod handler;
mod prompts;
mod read_marks;
mod reply;
mod resources;
mod schema;
mod server;
mod team_view;
mod tools;
mod transport;

pub use self::tools::tool_docs;

use std::sync::Arc;

use brigade_agents::brief::Mail;
use brigade_core::seat::Seat;
use brigade_host::{Context, HostError};
use brigade_wire::name::TeamName;
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use thiserror::Error;

use self::server::{McpServer, ServerIdentity};
use self::transport::GuardedTransport;

/// Serves the seat's tools on standard input and output until the client closes them.
pub async fn serve(context: Arc<Context>, seat: Seat, mail: Mail) -> Result<(), HostError> {
    run(context, ServerIdentity::Seated(seat), mail).await
}

/// Like `serve`, for the lead of a team that does not exist yet.
pub async fn serve_without_team(
    context: Arc<Context>,
    named: Option<TeamName>,
    mail: Mail,
) -> Result<(), HostError> {
    let (store, clock) = (Arc::clone(&context.store), Arc::clone(&context.clock));
    let user = context.agent();
    run(context, ServerIdentity::Founder { store, clock, named, user }, mail).await
}

async fn run(context: Arc<Context>, identity: ServerIdentity, mail: Mail) -> Result<(), HostError> {
    let server = McpServer::new(identity, mail, context);
    let (input, output) = stdio_pipes();
    let (valid, rejected) = framing::split(input);
    let inner = AsyncRwTransport::new_server(valid, output);
    let transport = GuardedTransport::new(inner, rejected, server.read_marks.clone());
    let broken = |error: Box<dyn std::error::Error + Send + Sync>| {
        HostError::failed(ConnectionBroken(error))
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

/// The connection to the client broke.
#[derive(Debug, Error)]
#[error("the connection to the MCP client broke")]
struct ConnectionBroken(#[source] Box<dyn std::error::Error + Send + Sync>);
