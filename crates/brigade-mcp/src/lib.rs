//! `brigade mcp`: gives the tools of a team to any agent that speaks the Model Context Protocol.
//!
//! The agent starts the server as a child process and talks to it on standard input and output. The server acts
//! for one seat, that is, one member of one team. It offers the tools that the member's role can use. It also
//! offers the board, the roster and the log as resources, and instructions as prompts.
//!
//! # Parts
//!
//! | modules | task |
//! |---|---|
//! | `tools` | one row per tool: the agents that see the tool, its description, and a short function |
//! | `schema` | short JSON Schemas of arguments and results |
//! | `handler` | dispatches the client's requests |
//! | `server`, `call_context` | the state of the server, and the context of one tool call |
//! | `reply` | the result of a call, or its error with a hint for the model |
//! | `resources`, `prompts`, `board_view`, `team_view` | the resources and prompts that clients can read |
//! | `framing`, `transport` | checks that the SDK lacks: lines that are not JSON, duplicate ids, request limits |
//! | `read_marks` | marks messages as read once the answer that contains them was written |
//!
//! # Limits of this crate
//!
//! - No tool argument chooses the member to act as. The seat is fixed when the server starts, because a model
//!   writes the arguments.
//! - It does not decide what a member may do. `brigade-core` checks permissions; `brigade-host` checks whether a
//!   member can be started or stopped.
//! - It writes only protocol messages to standard output.
//! - It never marks a message as read before the client has received it. If the server is killed before that, the
//!   message must be delivered again.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_agents::instructions::MailDelivery;
//! use brigade_host::{Context, HostError};
//!
//! /// Serves the member that the context names. The agent fetches its mail with a tool.
//! async fn serve_member(context: Context) -> Result<(), HostError> {
//!     let context = Arc::new(context);
//!     let seat = context.seat().await?.with_user(context.agent());
//!     brigade_mcp::serve(context, seat, MailDelivery::Fetched).await
//! }
//! ```

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

use brigade_agents::instructions::MailDelivery;
use brigade_core::seat::Seat;
use brigade_host::{Context, HostError};
use brigade_wire::name::TeamName;
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use thiserror::Error;

use self::server::{McpServer, ServerIdentity};
use self::transport::GuardedTransport;

/// Serves the seat's tools on standard input and output until the client disconnects.
pub async fn serve(context: Arc<Context>, seat: Seat, mail: MailDelivery) -> Result<(), HostError> {
    run(context, ServerIdentity::Seated(seat), mail).await
}

/// Like `serve`, for the lead of a team that does not exist yet.
pub async fn serve_without_team(
    context: Arc<Context>,
    named: Option<TeamName>,
    mail: MailDelivery,
) -> Result<(), HostError> {
    let (store, clock) = (Arc::clone(&context.store), Arc::clone(&context.clock));
    let user = context.agent();
    run(context, ServerIdentity::Founder { store, clock, named, user }, mail).await
}

async fn run(
    context: Arc<Context>,
    identity: ServerIdentity,
    mail: MailDelivery,
) -> Result<(), HostError> {
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
        // The client disconnected before it had sent `initialize`.
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
