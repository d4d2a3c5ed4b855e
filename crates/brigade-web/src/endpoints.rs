//! The table of all calls of the API. The router, the rights, the description for
//! programs and the docs follow from it.

use std::future::Future;
use std::pin::Pin;

use axum::routing::MethodFilter;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::access::Right;
use crate::api::{approvals, log, mail, members, session, tasks, teams};
use crate::call::Call;
use crate::reply::ReplyResult;

/// The path of all calls.
pub(crate) const PREFIX: &str = "/api/v1";

/// The method of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallMethod {
    Get,
    Post,
    Patch,
    Delete,
}

impl CallMethod {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    pub(crate) fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Patch => MethodFilter::PATCH,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// A parameter of the query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Its type in JSON Schema.
    pub(crate) kind: &'static str,
}

const LIMIT: Parameter =
    Parameter { name: "limit", about: "The most entries to return, at most 500.", kind: "integer" };
const CURSOR: Parameter = Parameter {
    name: "cursor",
    about: "The cursor in the `Link` header of the response before this one.",
    kind: "string",
};

type DescribeType = fn(&mut SchemaGenerator) -> Schema;
type RunCall = fn(Call) -> Pin<Box<dyn Future<Output = ReplyResult> + Send>>;

/// One call.
#[derive(Clone, Copy)]
pub(crate) struct Endpoint {
    pub(crate) method: CallMethod,
    /// The path below `/api/v1`.
    pub(crate) path: &'static str,
    /// The name of the call in generated clients.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) right: Right,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) content: Option<DescribeType>,
    pub(crate) reply: DescribeType,
    pub(crate) run: RunCall,
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Makes a row that reads.
macro_rules! get {
    (
        $path:literal, $name:literal, $about:literal,
        $right:ident, [$($parameter:expr),* $(,)?], $reply:ty, $run:path $(,)?
    ) => {
        Endpoint {
            method: CallMethod::Get,
            path: $path,
            name: $name,
            about: $about,
            right: Right::$right,
            parameters: &[$($parameter),*],
            content: None,
            reply: schema_of::<$reply>,
            run: |call| Box::pin($run(call)),
        }
    };
}

/// Makes a row that changes something.
macro_rules! change {
    (
        $method:ident $path:literal, $name:literal, $about:literal,
        $right:ident, $content:ty => $reply:ty, $run:path $(,)?
    ) => {
        Endpoint {
            method: CallMethod::$method,
            path: $path,
            name: $name,
            about: $about,
            right: Right::$right,
            parameters: &[],
            content: Some(schema_of::<$content>),
            reply: schema_of::<$reply>,
            run: |call| Box::pin($run(call)),
        }
    };
}

/// A parameter of the query of one call.
const fn parameter(name: &'static str, kind: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, kind }
}

/// All calls, except the stream of events and the login.
pub(crate) const ENDPOINTS: &[Endpoint] = &[
    get!(
        "/session",
        "getSession",
        "The rights of this token or login.",
        SeeRequests,
        [],
        session::SessionDocument,
        session::show
    ),
    get!(
        "/teams",
        "listTeams",
        "The state of every team, in the form that `brigade status --json` prints.",
        Read,
        [],
        Vec<teams::TeamDocument>,
        teams::list
    ),
    get!(
        "/teams/{team}",
        "getTeam",
        "The state of a team, as `brigade status --json` prints it.",
        Read,
        [],
        teams::TeamDocument,
        teams::show
    ),
    get!(
        "/teams/{team}/config",
        "getTeamConfig",
        "The roster, as `brigade team show --json` prints it.",
        Read,
        [],
        teams::ConfigDocument,
        teams::config
    ),
    change!(
        Post "/teams/{team}/down", "endTeam",
        "Stops every member on this host, as `brigade down` does.",
        Write, members::StopRequest => members::StoppedDocument, members::stop_all,
    ),
    change!(
        Post "/teams/{team}/members", "startMember",
        "Starts a member, as `brigade spawn` does.",
        Write, members::SpawnRequest => members::SpawnedDocument, members::spawn,
    ),
    get!(
        "/teams/{team}/members/{member}/diff",
        "getDiff",
        "The changes of a member in its worktree, as `brigade diff --json` prints it.",
        Read,
        [],
        members::DiffDocument,
        members::diff
    ),
    change!(
        Post "/teams/{team}/members/{member}/interrupt", "interruptMember",
        "Ends the member's turn, as `brigade interrupt` does.",
        Write, members::NoContent => members::EffectDocument, members::interrupt,
    ),
    change!(
        Post "/teams/{team}/members/{member}/pause", "pauseMember",
        "Starts no further turn, as `brigade pause` does.",
        Write, members::NoContent => members::EffectDocument, members::pause,
    ),
    change!(
        Post "/teams/{team}/members/{member}/unpause", "unpauseMember",
        "Continues a paused member, as `brigade unpause` does.",
        Write, members::NoContent => members::EffectDocument, members::unpause,
    ),
    change!(
        Post "/teams/{team}/members/{member}/restart", "restartMember",
        "Starts the member's agent again, as `brigade restart` does.",
        Write, members::RestartRequest => members::EffectDocument, members::restart,
    ),
    change!(
        Post "/teams/{team}/members/{member}/stop", "stopMember",
        "Stops a member, as `brigade stop` does.",
        Write, members::StopRequest => members::StoppedDocument, members::stop,
    ),
    get!(
        "/teams/{team}/members/{member}/mail",
        "listMail",
        "The inbox of a member, oldest first, as `brigade inbox --json` prints it.",
        Read,
        [parameter("unread", "boolean", "Only unread messages."), CURSOR, LIMIT],
        Vec<mail::MailDocument>,
        mail::list
    ),
    change!(
        Post "/teams/{team}/messages", "sendMessage",
        "Sends a message to a member, as `brigade send` does.",
        Write, mail::MessageRequest => mail::SentDocument, mail::send,
    ),
    change!(
        Post "/teams/{team}/broadcasts", "broadcast",
        "Sends a message to every other member, as `brigade broadcast` does.",
        Write, mail::BroadcastRequest => Vec<mail::SentDocument>, mail::broadcast,
    ),
    change!(
        Post "/teams/{team}/mail/read", "markMailRead",
        "Marks messages in the person's own inbox as read.",
        Write, mail::MarkRequest => mail::MarkedDocument, mail::mark_read,
    ),
    get!(
        "/teams/{team}/tasks",
        "listTasks",
        "The tasks, as `brigade task list --json` prints them.",
        Read,
        [CURSOR, LIMIT],
        Vec<tasks::StoredTask>,
        tasks::list
    ),
    change!(
        Post "/teams/{team}/tasks", "addTask",
        "Adds a task, as `brigade task add` does.",
        Write, tasks::TaskRequest => tasks::TaskReference, tasks::add,
    ),
    get!(
        "/teams/{team}/tasks/{task}",
        "getTask",
        "One task.",
        Read,
        [],
        tasks::StoredTask,
        tasks::show
    ),
    change!(
        Patch "/teams/{team}/tasks/{task}", "changeTask",
        "Changes a task, as `brigade task edit` does.",
        Write, tasks::TaskEditRequest => tasks::TaskReference, tasks::change,
    ),
    change!(
        Delete "/teams/{team}/tasks/{task}", "deleteTask",
        "Deletes a task.",
        Write, members::NoContent => tasks::TaskReference, tasks::delete,
    ),
    change!(
        Post "/teams/{team}/tasks/{task}/claim", "claimTask",
        "Claims a task for the person.",
        Write, members::NoContent => tasks::TaskReference, tasks::claim,
    ),
    change!(
        Post "/teams/{team}/tasks/{task}/done", "finishTask",
        "Marks a task as done.",
        Write, members::NoContent => tasks::TaskReference, tasks::done,
    ),
    change!(
        Post "/teams/{team}/tasks/{task}/reopen", "reopenTask",
        "Makes a finished or cancelled task pending again.",
        Write, members::NoContent => tasks::TaskReference, tasks::reopen,
    ),
    change!(
        Post "/teams/{team}/tasks/{task}/cancel", "cancelTask",
        "Cancels a task.",
        Write, tasks::CancelRequest => tasks::TaskReference, tasks::cancel,
    ),
    get!(
        "/teams/{team}/approvals",
        "listRequests",
        "The requests that wait for an answer, as `brigade approvals --json` prints them.",
        SeeRequests,
        [],
        Vec<approvals::RequestDocument>,
        approvals::list
    ),
    get!(
        "/teams/{team}/approvals/{request}",
        "getRequest",
        "One request, answered or not.",
        SeeRequests,
        [],
        approvals::RequestDocument,
        approvals::show
    ),
    change!(
        Post "/teams/{team}/approvals/{request}/approve", "approveRequest",
        "Approves a request, as `brigade approve` does.",
        AnswerRequests, approvals::AnswerRequest => approvals::GivenAnswerDocument, approvals::approve,
    ),
    change!(
        Post "/teams/{team}/approvals/{request}/deny", "denyRequest",
        "Denies a request, as `brigade deny` does.",
        AnswerRequests, approvals::AnswerRequest => approvals::GivenAnswerDocument, approvals::deny,
    ),
    get!(
        "/teams/{team}/log",
        "listEvents",
        "The newest events, oldest first, as `brigade logs --json` prints them.",
        Read,
        [
            parameter("member", "string", "Only events about this member."),
            parameter("since", "string", "Only events after this time."),
            parameter("work", "boolean", "Also the work of agents."),
            LIMIT
        ],
        Vec<log::EventDocument>,
        log::list
    ),
    get!(
        "/search",
        "search",
        "Finds texts in mail, tasks and the work of agents, as `brigade search --json` does.",
        Read,
        [
            parameter("text", "string", "The words to find."),
            parameter("team", "string", "Only this team."),
            parameter("member", "string", "Only this member."),
            LIMIT
        ],
        Vec<log::FoundDocument>,
        log::search
    ),
];
