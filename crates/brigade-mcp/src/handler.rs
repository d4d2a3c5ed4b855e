//! Handles the requests of one client.

use std::borrow::Cow;

use brigade_agents::instructions::MailDelivery;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
    ContentBlock, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation,
    ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SubscribeRequestParams, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};

use crate::call_context::CallContext;
use crate::reply::ToolError;
use crate::server::McpServer;
use crate::tools::{Audience, TOOLS, ToolRow};
use crate::{prompts, resources};

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
        let role = self.role().await;
        let offered = TOOLS.iter().filter(|row| row.audience.includes(role, self.mail));
        let tools = offered.map(ToolRow::tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
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
        if row.audience == Audience::MailFetcher && self.mail == MailDelivery::Delivered {
            // This agent gets its mail as turns. If a tool returned the mail, too, the agent would see it twice.
            let error = ToolError::new("your messages are delivered to you; end your turn");
            return Ok(CallToolResult::from(error).into());
        }
        let call = CallContext::new(self, &context);
        // A call that waits for messages must not block other calls.
        let _turn = match row.name {
            "wait_for_messages" => None,
            _ => Some(self.call_order.lock().await),
        };
        let result_of_call = (row.call)(&call, request.arguments.unwrap_or_default()).await;
        let mut result: CallToolResult = match result_of_call {
            Ok(reply) => reply.into(),
            Err(error) => error.into(),
        };
        for note in self.context.change_notes() {
            result.content.push(ContentBlock::text(format!("note: {note}")));
        }
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
        let seat = self.seat();
        resources::subscribe(seat.as_ref(), &self.subscriptions, request.uri, context.peer).await
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
