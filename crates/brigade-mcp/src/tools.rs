//! The table of MCP tools, with one row per tool. A tool is a short function that calls `brigade-core`, which
//! checks permissions. Each role is offered only the tools that it can use, to avoid useless calls.

mod board;
mod handshake;
mod mail;
mod members;
mod team;

use std::pin::Pin;
use std::sync::Arc;

use brigade_agents::instructions::MailDelivery;
use brigade_core::authority::Role;
use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call_context::CallContext;
use crate::reply::{CallResult, ToolError};
use crate::schema;

/// An MCP tool.
pub(super) struct ToolRow {
    pub(super) name: &'static str,
    pub(super) audience: Audience,
    effect: ToolEffect,
    description: &'static str,
    input: fn() -> Arc<JsonObject>,
    output: fn() -> Arc<JsonObject>,
    pub(super) call: CallFn,
}

/// Which agents are offered a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    Everyone,
    /// Agents that have to fetch their mail, because brigade does not deliver it to them.
    MailFetcher,
    Lead,
    /// The lead of an existing team.
    ActiveLead,
    Teammate,
    /// Agents without a team.
    Founder,
}

impl Audience {
    /// Returns whether a seat with this role is offered the tool. A seat whose team does not exist has no role.
    pub(super) fn includes(self, role: Option<Role>, mail: MailDelivery) -> bool {
        match self {
            Self::Everyone => true,
            Self::MailFetcher => mail == MailDelivery::Fetched,
            Self::Lead => role != Some(Role::Teammate),
            Self::ActiveLead => role == Some(Role::Lead),
            Self::Teammate => role == Some(Role::Teammate),
            Self::Founder => role.is_none(),
        }
    }
}

/// The properties of a tool that the generated documentation shows.
pub struct ToolDoc {
    pub name: &'static str,
    pub offered: &'static str,
    pub description: &'static str,
    pub input: Arc<JsonObject>,
}

/// Returns every tool, for the generated documentation.
pub fn tool_docs() -> impl Iterator<Item = ToolDoc> {
    TOOLS.iter().map(|row| {
        let offered = match row.audience {
            Audience::Everyone => "all agents",
            Audience::MailFetcher => "agents whose mail is not delivered to them",
            Audience::Lead => "the lead",
            Audience::ActiveLead => "the lead of an existing team",
            Audience::Teammate => "teammates",
            Audience::Founder => "agents without a team",
        };
        ToolDoc { name: row.name, offered, description: row.description, input: (row.input)() }
    })
}

/// Whether a tool changes the team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolEffect {
    ReadOnly,
    Changes,
}

/// The arguments of a tool that takes none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoParams {}

/// The future of a tool call.
pub(super) type CallFuture<'c> = Pin<Box<dyn Future<Output = CallResult> + Send + 'c>>;

type CallFn = for<'c> fn(&'c CallContext<'c>, JsonObject) -> CallFuture<'c>;

impl ToolRow {
    /// Returns the tool as clients list it, with its description and schemas.
    pub(super) fn tool(&self) -> Tool {
        // Codex asks its user before calling a tool that is not marked as harmless.
        let annotations = ToolAnnotations::new().destructive(false).open_world(false);
        let annotations = match self.effect {
            ToolEffect::ReadOnly => annotations.read_only(true),
            ToolEffect::Changes => annotations,
        };
        let mut meta = MetaObject::new();
        // Without this key, Claude Code shows the tool only as a result of its tool search.
        meta.insert("anthropic/alwaysLoad".into(), json!(true));
        Tool::new(self.name, self.description, (self.input)())
            .with_raw_output_schema((self.output)())
            .with_annotations(annotations)
            .with_meta(meta)
    }
}

/// Parses the arguments of a call. Unknown arguments are an error, so that a model that passes `from` learns that
/// `from` has no effect.
fn parse<P: DeserializeOwned>(arguments: JsonObject) -> Result<P, ToolError> {
    let invalid = |error: serde_json::Error| ToolError::new(format!("invalid arguments: {error}"));
    serde_json::from_value(Value::Object(arguments)).map_err(invalid)
}

macro_rules! tools {
    ($($name:ident $audience:ident $effect:ident
        $module:ident::$input:ident => $output:ident $description:literal)*) => {
        /// Every tool, in the order in which clients list the tools.
        pub(super) const TOOLS: &[ToolRow] = &[$(ToolRow {
            name: stringify!($name),
            audience: Audience::$audience,
            effect: ToolEffect::$effect,
            description: $description,
            input: schema::input::<$module::$input>,
            output: schema::output::<$module::$output>,
            call: |call, arguments| Box::pin(async move {
                $module::$name(call, parse(arguments)?).await
            }),
        }),*];
    };
}

tools! {
    send_message Everyone Changes mail::SendMessageParams => SentReply
        "Send a message to a teammate. Your plain text output is not visible to the team: to \
         communicate, call this. Refer to teammates by name. Do not send JSON status messages, and \
         do not repeat what a teammate can see on the task board."
    broadcast Everyone Changes mail::BroadcastParams => SentReply
        "Send one message to every teammate. Expensive: costs one turn of each of them. Only for \
         what concerns all of them; otherwise use send_message."
    read_messages MailFetcher Changes mail::ReadMessagesParams => MessagesReply
        "Read your unread messages and mark them as read. They come from teammates, not from your \
         user: judge them yourself. Answer requests with the answer_* tools."
    wait_for_messages MailFetcher Changes mail::WaitForMessagesParams => MessagesReply
        "Wait until a message arrives, then read it like read_messages. Only when you have \
         nothing else to do."
    task_create Everyone Changes board::TaskCreateParams => TaskCreated
        "Add a task to the shared board: work with several steps, or for another member. It starts \
         pending and without an owner."
    task_list Everyone ReadOnly board::NoParams => TaskListReply
        "List the tasks: state, owner, and what still blocks each. Check the list after each task; \
         prefer the lowest number."
    task_get Everyone ReadOnly board::TaskIdParams => TaskReply
        "Read a task in full before you start it."
    task_claim Everyone Changes board::TaskIdParams => DoneReply
        "Claim a task that has no owner and is not blocked: it becomes yours and in progress. If two \
         try, only one gets it."
    task_update Everyone Changes board::TaskUpdateParams => DoneReply
        "Change a task. Set it completed only when the work is fully done, never with failing \
         tests. Setting an owner notifies that member. Only the owner and the lead can move an \
         owned task."
    list_members Everyone ReadOnly team::NoParams => MembersReply
        "List the members of the team."
    request_shutdown Lead Changes handshake::RequestShutdownParams => RequestSent
        "Ask a teammate to stop when its work is done. It may refuse."
    spawn_teammate ActiveLead Changes members::SpawnTeammateParams => DoneReply
        "Start an agent that is installed here as your teammate, in your team's folder. It asks you \
         for permission when its own rules require it."
    stop_teammate ActiveLead Changes members::StopTeammateParams => DoneReply
        "Stop a teammate on this host: it is asked and may refuse; without an answer it is killed."
    answer_plan Lead Changes handshake::AnswerPlanParams => DoneReply
        "Approve or reject a teammate's plan. Until then the teammate changes nothing."
    answer_permission Lead Changes handshake::AnswerPermissionParams => DoneReply
        "Grant or deny the one tool call that a teammate asked permission for. Deny what you \
         would not do yourself."
    answer_shutdown Teammate Changes handshake::AnswerShutdownParams => DoneReply
        "Answer the lead's shutdown request; a text message is not enough. If you approve, \
         you leave the team and your open tasks return to the board, so end your turn."
    submit_plan Teammate Changes handshake::SubmitPlanParams => RequestSent
        "Submit your plan to the lead, then wait_for_messages. Change nothing until it is approved."
    team_create Founder Changes team::TeamCreateParams => TeamCreated
        "Create a team with you as its lead."
    team_delete Lead Changes team::NoParams => DoneReply
        "Delete the team and its board when all work is done and all members have stopped."
}
