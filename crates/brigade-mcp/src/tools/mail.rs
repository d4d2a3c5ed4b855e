//! Tools for sending, broadcasting and reading messages, and for waiting for them.

use std::time::Duration;

use brigade_core::event::Event;
use brigade_core::mail::{self, InboxFilter, MessageText};
use brigade_core::protocol_text;
use brigade_core::store::Mail;
use brigade_core::wire::inbox::with_message;
use brigade_wire::body::Body;
use brigade_wire::envelope::{Envelope, Sender};
use brigade_wire::message::Message;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Deserializer, Serialize};
use tokio::time::{Instant, sleep_until};

use crate::call_context::CallContext;
use crate::reply::{CallResult, ToolError, ToolReply};

/// The default time to wait for messages, in seconds. It is short, because clients give up on a call after one or
/// a few minutes.
const DEFAULT_WAIT: u64 = 30;
/// The maximum time to wait for messages, in seconds.
const MAX_WAIT: u64 = 600;
/// How often to send a progress notification to a client that asked for progress notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// How many characters of a sent message the tool repeats in its result.
const MAX_REPEATED: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessageParams {
    /// Member name, or several separated by commas
    #[serde(alias = "recipient", deserialize_with = "one_or_more")]
    #[schemars(with = "String")]
    to: Vec<String>,
    #[serde(alias = "content")]
    message: String,
    /// 5-10 words shown as a preview
    summary: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BroadcastParams {
    #[serde(alias = "content")]
    message: String,
    /// 5-10 words shown as a preview
    summary: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadMessagesParams {
    /// Include read messages that are still in the inbox
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForMessagesParams {
    /// Default 30, at most 600
    timeout_seconds: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SentReply {
    success: bool,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipients: Option<Vec<String>>,
    routing: MessageRouting,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MessageRouting {
    sender: String,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_color: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    content: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct MessagesReply {
    success: bool,
    message: String,
    messages: Vec<MessageView>,
}

#[derive(Serialize, JsonSchema)]
struct MessageView {
    from: String,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    text: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

pub(super) async fn send_message(call: &CallContext<'_>, args: SendMessageParams) -> CallResult {
    let text = MessageText { text: &args.message, summary: args.summary.as_deref() };
    let to: Vec<&str> = args.to.iter().map(String::as_str).collect();
    if to.contains(&"*") {
        return Err(ToolError::new("to write to all members, use broadcast"));
    }
    let sent = mail::send_to(call.seat()?, &to, text).await?;
    let waiting = waiting(&sent);
    let to = names(&sent);
    match to.as_slice() {
        [one] => {
            let line = format!("Message sent to {one}'s inbox{waiting}");
            let color = call.color_of(one).await?;
            let routing =
                MessageRouting { target_color: color, ..routing(call, format!("@{one}"), text)? };
            let data =
                SentReply { success: true, message: line.clone(), recipients: None, routing };
            Ok(ToolReply::new(line, &data))
        }
        _ => {
            let target: Vec<String> = to.iter().map(|name| format!("@{name}")).collect();
            let routing = routing(call, target.join(", "), text)?;
            let line =
                format!("Message sent to {} teammate(s): {}{waiting}", to.len(), to.join(", "));
            Ok(sent_to(to, line, routing))
        }
    }
}

pub(super) async fn broadcast(call: &CallContext<'_>, args: BroadcastParams) -> CallResult {
    let text = MessageText { text: &args.message, summary: args.summary.as_deref() };
    let sent = mail::broadcast(call.seat()?, text).await?;
    let waiting = waiting(&sent);
    let to = names(&sent);
    let line = format!("Message broadcast to {} teammate(s): {}{waiting}", to.len(), to.join(", "));
    Ok(sent_to(to, line, routing(call, "@team".to_owned(), text)?))
}

pub(super) async fn read_messages(call: &CallContext<'_>, args: ReadMessagesParams) -> CallResult {
    let seat = call.seat()?;
    if args.all {
        return Ok(deliver(call, &mail::inbox(seat, &seat.name, InboxFilter::All).await?));
    }
    Ok(deliver(call, &call.unseen().await?))
}

pub(super) async fn wait_for_messages(
    call: &CallContext<'_>,
    args: WaitForMessagesParams,
) -> CallResult {
    let seat = call.seat()?;
    let Ok(_permit) = call.server.waits.try_acquire() else {
        return Err(ToolError::new(
            "too many calls are already waiting for messages; wait until one of them returns",
        ));
    };
    let began = Instant::now();
    let seconds = args.timeout_seconds.unwrap_or(DEFAULT_WAIT).min(MAX_WAIT);
    let end = began + Duration::from_secs(seconds);
    // Start watching before reading the inbox, so that a message that arrives in between is not missed.
    let mut watch = seat.watch_own().await?;
    let mut next_progress = began + PROGRESS_INTERVAL;
    loop {
        let unseen = call.unseen().await?;
        if call.is_cancelled() {
            return Err(ToolError::new("the call was cancelled"));
        }
        if !unseen.is_empty() || Instant::now() >= end {
            return Ok(deliver(call, &unseen));
        }
        loop {
            tokio::select! {
                record = watch.next() => match record.map(|record| record.into_inner().event) {
                    Some(Event::Sent { to, .. } | Event::Seen { to, .. })
                        if to == seat.name.as_str() => break,
                    Some(_) => {}
                    None => return Err(ToolError::new("the team can no longer be watched")),
                },
                () = sleep_until(end) => break,
                () = sleep_until(next_progress) => {
                    call.progress(began.elapsed(), Duration::from_secs(seconds)).await;
                    next_progress += PROGRESS_INTERVAL;
                    // Read the inbox again: the messages of a cancelled call may have to be delivered again.
                    break;
                }
                () = call.cancelled() => break,
            }
        }
    }
}

/// Creates the answer that contains these messages. They are marked as read after the answer was written.
fn deliver(call: &CallContext<'_>, mail: &[Mail]) -> ToolReply {
    let mut messages = Vec::new();
    let mut text = String::new();
    for entry in mail {
        let shown = with_message(&entry.json, |message| {
            message.map(|message| (view(&message), envelope(&message)))
        });
        // Skip an inbox entry that is not a message, as Claude Code does.
        if let Ok(Some((view, envelope))) = shown {
            messages.push(view);
            text.push('\n');
            text.push_str(&envelope);
        }
    }
    call.deliver(mail.iter().map(|entry| entry.key).collect());
    let line = match messages.len() {
        0 => "no new messages".to_owned(),
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    };
    let text = format!("{line}{text}");
    ToolReply::new(text, &MessagesReply { success: true, message: line, messages })
}

fn view(message: &Message<'_>) -> MessageView {
    let (kind, request_id, text) = match message.body() {
        Body::Protocol(protocol) => {
            let request_id = protocol_text::request_id(&protocol).map(str::to_owned);
            (Some(protocol.kind().to_owned()), request_id, protocol_text::render(&protocol))
        }
        _ => (None, None, message.text().into_owned()),
    };
    MessageView {
        from: message.from().into_owned(),
        timestamp: message.timestamp().into_owned(),
        summary: message.summary().map(std::borrow::Cow::into_owned),
        text,
        kind,
        request_id,
    }
}

/// Formats a message in the same envelope that Claude Code shows to models. The text of the message cannot break out of the envelope.
fn envelope(message: &Message<'_>) -> String {
    let (from, summary) = (message.from(), message.summary());
    let text = match message.body() {
        Body::Protocol(protocol) => {
            // The request id comes before the sender's text, so that the text cannot forge an id.
            let id = protocol_text::request_id(&protocol);
            let id = id.map(|id| format!("request_id {id}: ")).unwrap_or_default();
            format!("{id}{from} {}", protocol_text::render(&protocol))
        }
        _ => message.text().into_owned(),
    };
    let envelope = Envelope {
        sender: Sender::Member(&from),
        color: message.color().and_then(|color| color.parse().ok()),
        summary: summary.as_deref(),
        text: &text,
    };
    envelope.to_string()
}

fn names(sent: &[mail::Sent]) -> Vec<String> {
    sent.iter().map(|sent| sent.to.to_string()).collect()
}

/// Explains why a stored message has not reached its inbox yet. Returns an empty text if every message has.
fn waiting(sent: &[mail::Sent]) -> String {
    let why = sent.iter().find_map(mail::Sent::caveat);
    why.map(|why| format!(" (stored; {why})")).unwrap_or_default()
}

fn routing(
    call: &CallContext<'_>,
    target: String,
    text: MessageText<'_>,
) -> Result<MessageRouting, ToolError> {
    let mut content: String = text.text.chars().take(MAX_REPEATED).collect();
    if content.len() < text.text.len() {
        content.push('…');
    }
    Ok(MessageRouting {
        sender: call.seat()?.name.to_string(),
        target,
        target_color: None,
        summary: text.summary.map(str::to_owned),
        content,
    })
}

fn sent_to(to: Vec<String>, line: String, routing: MessageRouting) -> ToolReply {
    let data = SentReply { success: true, message: line.clone(), recipients: Some(to), routing };
    ToolReply::new(line, &data)
}

/// Deserializes one name, several names separated by commas, or a list of names.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a name, or several separated by commas")]
    enum NameArg {
        One(String),
        Several(Vec<String>),
    }
    let names = match NameArg::deserialize(deserializer)? {
        NameArg::One(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        NameArg::Several(names) => names,
    };
    Ok(names)
}

#[cfg(test)]
mod tests {
    use brigade_testkit::permission_requests::recorded;
    use serde_json::json;

    use super::*;

    #[test]
    fn finding_15_a_model_that_leads_sees_the_whole_of_a_request() {
        for request in recorded() {
            let message = json!({
                "from": "bob", "text": request.message("perm-1").to_string(), "timestamp": "t", "read": false,
            });
            let shown = with_message(message.to_string().as_bytes(), |message| {
                message.map(|message| (view(&message).text, envelope(&message)))
            });
            let (text, envelope) = shown.unwrap().unwrap();
            request.assert_shown_in(&text, "the message");
            // The envelope escapes characters that could end it.
            let envelope = envelope.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            request.assert_shown_in(&envelope, "the envelope");
        }
    }
}
