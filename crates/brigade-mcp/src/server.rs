//! The state of the MCP server: the seat that the server acts for, open calls and subscriptions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brigade_agents::instructions::MailDelivery;
use brigade_core::authority::Role;
use brigade_core::clock::Clock;
use brigade_core::seat::{Seat, SeatUser};
use brigade_core::store::Store;
use brigade_host::Context;
use brigade_wire::name::{MemberName, TeamName};
use tokio::sync::Semaphore;

use crate::read_marks::ReadMarks;
use crate::reply::ToolError;
use crate::resources::Subscriptions;

/// How many calls may wait for messages at the same time. A client needs only one such call.
const MAX_WAITS: usize = 8;

/// The seat that this server acts for. The seat is fixed when the server starts, or when an agent without a team
/// creates its team.
#[derive(Debug)]
pub(super) enum ServerIdentity {
    /// A seat in a team.
    Seated(Seat),
    /// The lead of a team that does not exist yet. `named` is the team's name, if the command line sets it.
    Founder {
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        named: Option<TeamName>,
        user: SeatUser,
    },
}

/// The MCP server for one client.
pub(super) struct McpServer {
    identity: Mutex<ServerIdentity>,
    pub(super) mail: MailDelivery,
    /// Makes calls run one after the other in order of arrival, so that messages are sent in the order of the
    /// calls.
    pub(super) call_order: tokio::sync::Mutex<()>,
    pub(super) read_marks: ReadMarks,
    /// Limits the calls that wait for messages. Each of them needs a file watch, and the system allows only a few.
    pub(super) waits: Semaphore,
    pub(super) subscriptions: Subscriptions,
    /// The store and the host, for starting the teammates that the agent asks for.
    pub(super) context: Arc<Context>,
}

impl McpServer {
    pub(super) fn new(identity: ServerIdentity, mail: MailDelivery, context: Arc<Context>) -> Self {
        Self {
            identity: Mutex::new(identity),
            mail,
            call_order: tokio::sync::Mutex::default(),
            read_marks: ReadMarks::default(),
            waits: Semaphore::new(MAX_WAITS),
            subscriptions: Subscriptions::default(),
            context,
        }
    }

    fn identity(&self) -> MutexGuard<'_, ServerIdentity> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the seat that this server acts for, or `None` if the team does not exist yet.
    pub(super) fn seat(&self) -> Option<Seat> {
        match &*self.identity() {
            ServerIdentity::Seated(seat) => Some(seat.clone()),
            ServerIdentity::Founder { .. } => None,
        }
    }

    /// Returns the lead's seat in a team that is about to be created.
    pub(super) fn founder_seat(&self, name: TeamName) -> Result<Seat, ToolError> {
        match &*self.identity() {
            ServerIdentity::Founder { named: Some(named), .. } if *named != name => {
                Err(ToolError::new(format!("your team must be named {named}")))
            }
            ServerIdentity::Founder { store, clock, user, .. } => {
                let lead = Seat::new(Arc::clone(store), name, MemberName::lead());
                Ok(lead.with_clock(Arc::clone(clock)).with_user(user.clone()))
            }
            ServerIdentity::Seated(seat) => {
                Err(ToolError::new(format!("you are already in team {}", seat.team)))
            }
        }
    }

    /// Makes the server act for this seat from now on.
    pub(super) fn set_seat(&self, seat: Seat) {
        *self.identity() = ServerIdentity::Seated(seat);
    }

    /// Returns the seat's role, or `None` if the team does not exist yet. If the role cannot be read, returns
    /// `Teammate`, because a teammate is offered the fewest tools.
    pub(super) async fn role(&self) -> Option<Role> {
        match self.seat()?.role().await {
            Ok(role) => Some(role.unwrap_or(Role::Teammate)),
            Err(error) => {
                tracing::warn!(%error, "cannot read the seat's role");
                Some(Role::Teammate)
            }
        }
    }
}
