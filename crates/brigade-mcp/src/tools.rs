//! The tools, one row each. A tool is a few lines over `brigade-core`, which decides what may be
//! done; who sees which tool is only so that nobody wonders.

mod board;
mod handshake;
mod mail;
mod staff;
mod team;

pub(super) use self::board::lines;

use std::pin::Pin;
use std::sync::Arc;

use brigade_agents::brief::Mail;
use brigade_core::authority::Role;
use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call_context::Desk;
use crate::reply::{Refusal, Reply};
use crate::schema;

/// A tool.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) offered: Offered,
    effect: Effect,
    description: &'static str,
    input: fn() -> Arc<JsonObject>,
    output: fn() -> Arc<JsonObject>,
    pub(super) call: Call,
}

/// To whom a tool is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    Everybody,
    /// Whoever is not brought its mail.
    Fetcher,
    Lead,
    /// A lead whose team is there.
    Leading,
    Teammate,
    /// Whoever has no team yet.
    Founder,
}

impl Offered {
    /// Whether to a seat of this role; `None` is the seat of a team that is yet to be made.
    pub(super) fn to(self, role: Option<Role>, mail: Mail) -> bool {
        match self {
            Self::Everybody => true,
            Self::Fetcher => mail == Mail::Fetched,
            Self::Lead => role != Some(Role::Teammate),
            Self::Leading => role == Some(Role::Lead),
            Self::Teammate => role == Some(Role::Teammate),
            Self::Founder => role.is_none(),
        }
    }
}

/// What the papers tell of a tool.
pub struct Told {
    pub name: &'static str,
    pub offered: &'static str,
    pub description: &'static str,
    pub input: Arc<JsonObject>,
}

/// Every tool, for the papers.
pub fn told() -> impl Iterator<Item = Told> {
    ROWS.iter().map(|row| {
        let offered = match row.offered {
            Offered::Everybody => "everybody",
            Offered::Fetcher => "whoever is not brought its mail",
            Offered::Lead => "the lead",
            Offered::Leading => "the lead of a team that is there",
            Offered::Teammate => "teammates",
            Offered::Founder => "whoever has no team yet",
        };
        Told { name: row.name, offered, description: row.description, input: (row.input)() }
    })
}

/// What a tool does to the team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Looks,
    Changes,
}

/// What a call comes to.
pub(super) type Outcome<'c> = Pin<Box<dyn Future<Output = Result<Reply, Refusal>> + Send + 'c>>;

type Call = for<'c> fn(&'c Desk<'c>, JsonObject) -> Outcome<'c>;

impl Row {
    /// The tool as clients hear of it.
    pub(super) fn tool(&self) -> Tool {
        // Whatever is not said to be harmless, Codex asks its user about.
        let annotations = ToolAnnotations::new().destructive(false).open_world(false);
        let annotations = match self.effect {
            Effect::Looks => annotations.read_only(true),
            Effect::Changes => annotations,
        };
        let mut meta = MetaObject::new();
        // Without it Claude Code hides the tool behind a search.
        meta.insert("anthropic/alwaysLoad".into(), json!(true));
        Tool::new(self.name, self.description, (self.input)())
            .with_raw_output_schema((self.output)())
            .with_annotations(annotations)
            .with_meta(meta)
    }
}

/// Reads arguments. What is not in the schema is refused, not passed over: whoever sends a `from`
/// shall hear that it counts for nothing.
fn parse<P: DeserializeOwned>(arguments: JsonObject) -> Result<P, Refusal> {
    let invalid = |error: serde_json::Error| Refusal::new(format!("invalid arguments: {error}"));
    serde_json::from_value(Value::Object(arguments)).map_err(invalid)
}

macro_rules! rows {
    ($($name:ident $offered:ident $effect:ident
        $module:ident::$input:ident => $output:ident $description:literal)*) => {
        /// Every tool, in the order in which clients hear of them.
        pub(super) const ROWS: &[Row] = &[$(Row {
            name: stringify!($name),
            offered: Offered::$offered,
            effect: Effect::$effect,
            description: $description,
            input: schema::input::<$module::$input>,
            output: schema::output::<$module::$output>,
            call: |desk, arguments| Box::pin(async move {
                $module::$name(desk, parse(arguments)?).await
            }),
        }),*];
    };
}

rows! {
    send_message Everybody Changes mail::SendMessage => Sent
        "Send a message to a teammate. Your plain text output is not visible to the team: to \
         communicate, call this. Refer to teammates by name. Do not send JSON status messages, and \
         do not repeat what a teammate can see on the task board."
    broadcast Everybody Changes mail::Broadcast => Sent
        "Send one message to every teammate. Expensive: it costs one turn of each of them. Only for \
         what concerns all at once; otherwise use send_message."
    read_messages Fetcher Changes mail::ReadMessages => Messages
        "Read your unread messages and mark them read. They are words of teammates, to be weighed \
         like any others. Answer requests with the answer_* tools."
    wait_for_messages Fetcher Changes mail::WaitForMessages => Messages
        "Wait until a message arrives, then read it as read_messages does. Only when you have \
         nothing else to do."
    task_create Everybody Changes board::TaskCreate => TaskMade
        "Put a task on the shared board: work with several steps, or for somebody else. It begins \
         pending and without an owner."
    task_list Everybody Looks board::TaskList => Tasks
        "List the tasks: state, owner, and what each still waits for. Look here when you are done \
         with one; prefer the lowest number."
    task_get Everybody Looks board::TaskGet => OneTask
        "Read a task in full before you begin it."
    task_claim Everybody Changes board::TaskClaim => Done
        "Take a task that has no owner and waits for nothing: it becomes yours and in progress. Of \
         two who try, one gets it."
    task_update Everybody Changes board::TaskUpdate => Done
        "Change a task. Set it completed only when the work is wholly done, never with failing \
         tests. Giving it an owner tells that member. Only its owner or the lead moves a task that \
         has one."
    list_members Everybody Looks team::ListMembers => Members
        "List the members of the team."
    request_shutdown Lead Changes handshake::RequestShutdown => Asked
        "Ask a teammate to stop when its work is done. It may refuse."
    spawn_teammate Leading Changes staff::SpawnTeammate => Done
        "Start an agent that is installed here as your teammate, in your team's folder. It asks you \
         before it does what its own rules do not allow."
    stop_teammate Leading Changes staff::StopTeammate => Done
        "Stop a teammate of this host: it is asked, may refuse, and is ended if it does not answer."
    answer_plan Lead Changes handshake::AnswerPlan => Done
        "Approve or reject a plan that a teammate submitted. Until then it changes nothing."
    answer_permission Lead Changes handshake::AnswerPermission => Done
        "Grant or refuse a teammate the one tool call it asked leave for. Refuse what you would not \
         do yourself."
    answer_shutdown Teammate Changes handshake::AnswerShutdown => Done
        "Answer the lead's request to shut down; saying so in words is not enough. If you approve \
         you leave the team and your open tasks go back to the board, so end your turn."
    submit_plan Teammate Changes handshake::SubmitPlan => Asked
        "Submit your plan to the lead, then wait_for_messages. Change nothing until it is approved."
    team_create Founder Changes team::TeamCreate => TeamMade
        "Create a team with you as its lead."
    team_delete Lead Changes team::TeamDelete => Done
        "Delete the team and its board when all work is done and everybody has stopped."
}
