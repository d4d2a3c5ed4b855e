//! The state of the server: the seat it acts for, open calls and subscriptions.

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

/// How many calls may wait for messages at once. A client needs only one.
const MAX_WAITS: usize = 8;

/// The seat this server acts for. Fixed when the server starts; changes at most once, when a founder creates its
/// team.
#[derive(Debug)]
pub(super) enum ServerIdentity {
    /// A seat in a team.
    Seated(Seat),
    /// The lead of a team that does not exist yet, with its name if the command line fixes it.
    Founder {
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        named: Option<TeamName>,
        user: SeatUser,
    },
}

/// The server of one client.
pub(super) struct McpServer {
    identity: Mutex<ServerIdentity>,
    pub(super) mail: MailDelivery,
    /// Calls run one after the other, in the order they arrived: two messages sent in quick succession keep their
    /// order.
    pub(super) call_order: tokio::sync::Mutex<()>,
    pub(super) read_marks: ReadMarks,
    /// Each waiting call needs a file watch, and the system has few.
    pub(super) waits: Semaphore,
    pub(super) subscriptions: Subscriptions,
    /// Starts the teammates that the agent asks for.
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

    /// The seat, if there is a team.
    pub(super) fn seat(&self) -> Option<Seat> {
        match &*self.identity() {
            ServerIdentity::Seated(seat) => Some(seat.clone()),
            ServerIdentity::Founder { .. } => None,
        }
    }

    /// The lead's seat in a team that is about to be created.
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

    /// Acts for this seat from now on.
    pub(super) fn set_seat(&self, seat: Seat) {
        *self.identity() = ServerIdentity::Seated(seat);
    }

    /// The seat's role; `None` if its team does not exist yet. If the role cannot be read, assumes a teammate, which
    /// is offered the fewest tools.
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
