//! The MCP server: handles requests of one client.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brigade_agents::brief::Mail;
use brigade_core::authority::Role;
use brigade_core::clock::Clock;
use brigade_core::seat::{Seat, SeatUser};
use brigade_core::store::Store;
use brigade_host::Context;
use brigade_wire::name::{MemberName, TeamName};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam, ErrorCode,
    ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::Semaphore;

use super::{prompts, resources};
use crate::call_context::Desk;
use crate::read_marks::ReadMarks;
use crate::reply::Refusal;
use crate::resources::Subscriptions;
use crate::tools::{Audience, TOOLS, ToolRow};

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
        hand: SeatUser,
    },
}

/// The server of one client.
pub(super) struct McpServer {
    identity: Mutex<ServerIdentity>,
    mail: Mail,
    /// Calls run one after the other, in the order they arrived: two messages sent in quick succession keep their
    /// order.
    call_order: tokio::sync::Mutex<()>,
    pub(super) read_marks: ReadMarks,
    /// Each waiting call needs a file watch, and the system has few.
    pub(super) waits: Semaphore,
    pub(super) subscriptions: Subscriptions,
    /// Starts the teammates that the agent asks for.
    pub(super) context: Arc<Context>,
}

impl McpServer {
    pub(super) fn new(identity: ServerIdentity, mail: Mail, context: Arc<Context>) -> Self {
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
    pub(super) fn founder_seat(&self, name: TeamName) -> Result<Seat, Refusal> {
        match &*self.identity() {
            ServerIdentity::Founder { named: Some(named), .. } if *named != name => {
                Err(Refusal::new(format!("your team must be named {named}")))
            }
            ServerIdentity::Founder { store, clock, hand, .. } => {
                let lead = Seat::new(Arc::clone(store), name, MemberName::lead());
                Ok(lead.with_clock(Arc::clone(clock)).with_user(hand.clone()))
            }
            ServerIdentity::Seated(seat) => {
                Err(Refusal::new(format!("you are already in team {}", seat.team)))
            }
        }
    }

    /// Acts for this seat from now on.
    pub(super) fn set_seat(&self, seat: Seat) {
        *self.identity() = ServerIdentity::Seated(seat);
    }

    /// The seat's role; `None` if its team does not exist yet. If the role cannot be read, assumes a teammate, which
    /// is offered the fewest tools.
    async fn role(&self) -> Option<Role> {
        match self.seat()?.role().await {
            Ok(role) => Some(role.unwrap_or(Role::Teammate)),
            Err(error) => {
                tracing::warn!(%error, "cannot read the seat's role");
                Some(Role::Teammate)
            }
        }
    }

    async fn tools(&self) -> Vec<Tool> {
        let role = self.role().await;
        TOOLS
            .iter()
            .filter(|row| row.audience.includes(role, self.mail))
            .map(ToolRow::tool)
            .collect()
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(Implementation::new("brigade", env!("CARGO_PKG_VERSION")))
            .with_instructions(prompts::instructions(self.seat().as_ref()))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        const VERSIONS: &[ProtocolVersion] = &[
            ProtocolVersion::V_2024_11_05,
            ProtocolVersion::V_2025_03_26,
            ProtocolVersion::V_2025_06_18,
            ProtocolVersion::V_2025_11_25,
        ];
        Cow::Borrowed(VERSIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools().await))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(row) = TOOLS.iter().find(|row| row.name == request.name) else {
            let text = format!("no tool {:?}", request.name);
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, text, None));
        };
        if row.audience == Audience::MailFetcher && self.mail == Mail::Delivered {
            // Mail is delivered as turns; reading it here as well would show it twice.
            let refusal = Refusal::new("your messages are delivered to you; end your turn");
            return Ok(CallToolResult::from(refusal).into());
        }
        let desk = Desk::new(self, &context);
        // A call that waits for messages must not block other calls.
        let _turn = match row.name {
            "wait_for_messages" => None,
            _ => Some(self.call_order.lock().await),
        };
        let result_of_call = (row.call)(&desk, request.arguments.unwrap_or_default()).await;
        let result: CallToolResult = match result_of_call {
            Ok(reply) => reply.into(),
            Err(refusal) => refusal.into(),
        };
        Ok(result.into())
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        _: NotificationContext<RoleServer>,
    ) {
        if let Some(call) = &notification.request_id {
            self.read_marks.cancelled(call);
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list(self.seat().as_ref())))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self.seat().as_ref(), &request.uri).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::subscribe(self, request.uri, context.peer).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.end(&request.uri);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(self.seat().as_ref(), &request.name).await
    }
}
