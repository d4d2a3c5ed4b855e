//! Mail.

use brigade_core::event::MessageKey;
use brigade_core::mail::{self, InboxFilter, MessageText};
use brigade_core::store::Mark;
use brigade_host::claude_led;
use brigade_wire::name::MemberName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::problem::{Problem, ProblemKind};
use crate::reply::{Reply, ReplyResult};

/// A message in an inbox, as Claude Code writes it.
#[derive(JsonSchema)]
pub(crate) struct MailDocument(
    #[expect(dead_code, reason = "only its schema is used")]
    serde_json::Map<String, serde_json::Value>,
);

/// A message to a member.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageRequest {
    /// The recipient.
    to: String,
    /// The text.
    text: String,
    /// A short form of the text.
    summary: Option<String>,
}

/// A message to all members.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BroadcastRequest {
    /// The text.
    text: String,
    /// A short form of the text.
    summary: Option<String>,
}

/// A message that was sent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SentDocument {
    message_id: String,
    to: String,
    /// Why the message is not in the inbox yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
}

/// The messages to mark as read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MarkRequest {
    /// The keys of the messages.
    keys: Vec<String>,
}

/// The number of messages that were marked.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MarkedDocument {
    marked: usize,
}

pub(crate) async fn list(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let of = call.member()?;
    let seat = context.seat_of(team, MemberName::lead());
    let unread = call.parameter::<bool>("unread")?.unwrap_or_default();
    let which = if unread { InboxFilter::Unread } else { InboxFilter::All };
    let mail = mail::inbox(&seat, &of, which).await?;
    let limit = call.limit()?;
    let from = match call.query.get("cursor") {
        None => 0,
        Some(cursor) => {
            let key: MessageKey =
                cursor.parse().map_err(|_| Problem::invalid("the cursor is not valid"))?;
            let at = mail.iter().position(|mail| mail.key == key);
            at.map(|at| at + 1).ok_or_else(|| {
                Problem::new(ProblemKind::NotFound, "the message of the cursor is gone")
            })?
        }
    };
    let rest = mail.get(from..).unwrap_or_default();
    let page = rest.get(..limit).unwrap_or(rest);
    let next = (page.len() < rest.len()).then(|| page.last().map(|mail| mail.key.to_string()));
    Ok(Reply::array(page.iter().map(|mail| mail.json.as_slice())).with_next(next.flatten()))
}

pub(crate) async fn send(call: Call) -> ReplyResult {
    let (context, _) = call.team_context().await?;
    let MessageRequest { to, text, summary } = call.content()?;
    let seat = claude_led::sending_seat(&context, &to).await?;
    let message = MessageText { text: &text, summary: summary.as_deref() };
    let sent = mail::send(&seat, &to, message).await?;
    let document = sent_document(&sent);
    Ok(Reply::json(&document)?.created())
}

pub(crate) async fn broadcast(call: Call) -> ReplyResult {
    let (context, _) = call.team_context().await?;
    let BroadcastRequest { text, summary } = call.content()?;
    let seat = context.seat().await?;
    let message = MessageText { text: &text, summary: summary.as_deref() };
    let sent = mail::broadcast(&seat, message).await?;
    Ok(Reply::json(&sent.iter().map(sent_document).collect::<Vec<_>>())?.created())
}

fn sent_document(sent: &mail::Sent) -> SentDocument {
    SentDocument {
        message_id: sent.receipt.msg_id.clone(),
        to: sent.to.to_string(),
        waits: sent.caveat(),
    }
}

pub(crate) async fn mark_read(call: Call) -> ReplyResult {
    let (context, _) = call.team_context().await?;
    let MarkRequest { keys } = call.content()?;
    let keys: Result<Vec<MessageKey>, _> = keys.iter().map(|key| key.parse()).collect();
    let keys = keys.map_err(|_| Problem::invalid("a key is not valid"))?;
    mail::mark(&context.seat().await?, &keys, Mark::Read).await?;
    Reply::json(&MarkedDocument { marked: keys.len() })
}
