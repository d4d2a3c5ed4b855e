//! `brigade mcp`: the team's tools for any agent that speaks the Model Context Protocol.
//!
//! - [`tools`]: one row for each tool, a few lines over `brigade-core`;
//! - [`server`]: what a client can ask; [`call_context`]: one call; [`reply`]: what it gives;
//! - [`resources`], [`prompts`]: what can be read beside the tools;
//! - [`framing`], [`transport`], [`read_marks`]: the transport, and when a message counts as read.

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

use self::server::{Identity, Server};
use self::transport::Door;

/// Serves the seat's tools on standard input and output until the client closes them.
pub async fn serve(context: Arc<Context>, seat: Seat, mail: Mail) -> Result<(), HostError> {
    run(context, Identity::Seated(seat), mail).await
}

/// The same for the lead of a team that is yet to be made.
pub async fn serve_founder(
    context: Arc<Context>,
    named: Option<TeamName>,
    mail: Mail,
) -> Result<(), HostError> {
    let (store, clock) = (Arc::clone(&context.store), Arc::clone(&context.clock));
    let hand = context.agent();
    run(context, Identity::Founder { store, clock, named, hand }, mail).await
}

async fn run(context: Arc<Context>, identity: Identity, mail: Mail) -> Result<(), HostError> {
    let server = Server::new(identity, mail, context);
    let (input, output) = stdio_pipes();
    let (usable, unusable) = framing::sift(input);
    let transport = AsyncRwTransport::new_server(usable, output);
    let door = Door::new(transport, unusable, server.handed.clone());
    let broken = |error: Box<dyn std::error::Error + Send + Sync>| HostError::failed(Broken(error));
    let running = match server.serve(door).await {
        Ok(running) => running,
        // A client that left without a greeting wanted nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(broken(Box::new(error))),
    };
    running.waiting().await.map_err(|error| broken(Box::new(error)))?;
    Ok(())
}

/// The connection to the client broke.
#[derive(Debug, Error)]
#[error("the connection to the MCP client broke")]
struct Broken(#[source] Box<dyn std::error::Error + Send + Sync>);
