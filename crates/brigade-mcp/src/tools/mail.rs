//! Messages: send, broadcast, read, wait.

use std::time::Duration;

use brigade_core::event::Event;
use brigade_core::mail::{self, Which, Words};
use brigade_core::protocol_text;
use brigade_core::store::Mail;
use brigade_wire::body::Body;
use brigade_wire::envelope::{Envelope, Sender};
use brigade_wire::message::Message;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Deserializer, Serialize};
use tokio::time::{Instant, sleep_until};

use crate::call_context::Desk;
use crate::reply::{Refusal, Reply};

/// How long a wait is if nobody says, and how long it may be. Clients give up on a call after a
/// minute or a few.
const WAIT: u64 = 30;
const LONGEST_WAIT: u64 = 600;
/// How often a client that asked for it hears that the wait goes on.
const PROGRESS: Duration = Duration::from_secs(5);
/// How much of a text is repeated to its sender.
const REPEATED: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessage {
    /// Member name; several separated by commas
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
pub(super) struct Broadcast {
    #[serde(alias = "content")]
    message: String,
    /// 5-10 words shown as a preview
    summary: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadMessages {
    /// Also those read before, as far as they are still there
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForMessages {
    /// Default 30, at most 600
    timeout_seconds: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Sent {
    success: bool,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipients: Option<Vec<String>>,
    routing: Routing,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Routing {
    sender: String,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_color: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    content: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Messages {
    success: bool,
    message: String,
    messages: Vec<Letter>,
}

#[derive(Serialize, JsonSchema)]
struct Letter {
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

pub(super) async fn send_message(desk: &Desk<'_>, asked: SendMessage) -> Result<Reply, Refusal> {
    let words = Words { text: &asked.message, summary: asked.summary.as_deref() };
    let to: Vec<&str> = asked.to.iter().map(String::as_str).collect();
    if to.contains(&"*") {
        return Err(Refusal::new("to write to everybody, use broadcast"));
    }
    let sent = mail::send_to(desk.seat()?, &to, words).await?;
    let waiting = waiting(&sent);
    let to = names(&sent);
    match to.as_slice() {
        [one] => {
            let line = format!("Message sent to {one}'s inbox{waiting}");
            let color = desk.color_of(one).await?;
            let routing =
                Routing { target_color: color, ..routing(desk, format!("@{one}"), words)? };
            let data = Sent { success: true, message: line.clone(), recipients: None, routing };
            Ok(Reply::new(line, &data))
        }
        _ => {
            let target: Vec<String> = to.iter().map(|name| format!("@{name}")).collect();
            let routing = routing(desk, target.join(", "), words)?;
            let line =
                format!("Message sent to {} teammate(s): {}{waiting}", to.len(), to.join(", "));
            Ok(sent_to(to, line, routing))
        }
    }
}

pub(super) async fn broadcast(desk: &Desk<'_>, asked: Broadcast) -> Result<Reply, Refusal> {
    let words = Words { text: &asked.message, summary: asked.summary.as_deref() };
    let sent = mail::broadcast(desk.seat()?, words).await?;
    let waiting = waiting(&sent);
    let to = names(&sent);
    let line = format!("Message broadcast to {} teammate(s): {}{waiting}", to.len(), to.join(", "));
    Ok(sent_to(to, line, routing(desk, "@team".to_owned(), words)?))
}

pub(super) async fn read_messages(desk: &Desk<'_>, asked: ReadMessages) -> Result<Reply, Refusal> {
    let seat = desk.seat()?;
    if asked.all {
        return Ok(hand_out(desk, &mail::inbox(seat, &seat.name, Which::All).await?));
    }
    Ok(hand_out(desk, &desk.unseen().await?))
}

pub(super) async fn wait_for_messages(
    desk: &Desk<'_>,
    asked: WaitForMessages,
) -> Result<Reply, Refusal> {
    let seat = desk.seat()?;
    let Ok(_place) = desk.server.waits.try_acquire() else {
        return Err(Refusal::new("you wait for messages already; wait for an answer to that"));
    };
    let began = Instant::now();
    let seconds = asked.timeout_seconds.unwrap_or(WAIT).min(LONGEST_WAIT);
    let end = began + Duration::from_secs(seconds);
    // First the watch, then the look: what comes in between wakes us.
    let mut watch = seat.store.watch_proceedings(&seat.team).await?;
    let mut tell = began + PROGRESS;
    loop {
        let unseen = desk.unseen().await?;
        if desk.is_called_off() {
            return Err(Refusal::new("called off"));
        }
        if !unseen.is_empty() || Instant::now() >= end {
            return Ok(hand_out(desk, &unseen));
        }
        loop {
            tokio::select! {
                record = watch.next() => match record.map(|record| record.event) {
                    Some(Event::Sent { to, .. } | Event::Seen { to, .. })
                        if to == seat.name.as_str() => break,
                    Some(_) => {}
                    None => return Err(Refusal::new("the team can no longer be watched")),
                },
                () = sleep_until(end) => break,
                () = sleep_until(tell) => {
                    desk.progress(began.elapsed(), Duration::from_secs(seconds)).await;
                    tell += PROGRESS;
                    // A look now and then, in case another call gave back what it had taken.
                    break;
                }
                () = desk.called_off() => break,
            }
        }
    }
}

/// Gives the messages out. They are marked read when the answer has been written.
fn hand_out(desk: &Desk<'_>, mail: &[Mail]) -> Reply {
    let mut messages = Vec::new();
    let mut text = String::new();
    for entry in mail {
        let shown = mail::with_message(&entry.json, |message| {
            message.map(|message| (letter(&message), envelope(&message)))
        });
        // What is no message has nothing to show; Claude Code passes it over, too.
        if let Ok(Some((letter, envelope))) = shown {
            messages.push(letter);
            text.push('\n');
            text.push_str(&envelope);
        }
    }
    desk.hand_out(mail.iter().map(|entry| entry.key).collect());
    let line = match messages.len() {
        0 => "no new messages".to_owned(),
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    };
    let text = format!("{line}{text}");
    Reply::new(text, &Messages { success: true, message: line, messages })
}

fn letter(message: &Message<'_>) -> Letter {
    let (kind, request_id, text) = match message.body() {
        Body::Protocol(protocol) => {
            let request_id = protocol_text::request_id(&protocol).map(str::to_owned);
            (Some(protocol.kind().to_owned()), request_id, protocol_text::of(&protocol))
        }
        _ => (None, None, message.text().into_owned()),
    };
    Letter {
        from: message.from().into_owned(),
        timestamp: message.timestamp().into_owned(),
        summary: message.summary().map(std::borrow::Cow::into_owned),
        text,
        kind,
        request_id,
    }
}

/// The message as models know messages, so that nothing in it passes for anything else.
fn envelope(message: &Message<'_>) -> String {
    let (from, summary) = (message.from(), message.summary());
    let text = match message.body() {
        Body::Protocol(protocol) => {
            // Before what the sender wrote, where nothing it wrote can pass for it.
            let id = protocol_text::request_id(&protocol);
            let id = id.map(|id| format!("request_id {id}: ")).unwrap_or_default();
            format!("{id}{from} {}", protocol_text::of(&protocol))
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

/// Why messages that are safe are not where they are read.
fn waiting(sent: &[mail::Sent]) -> String {
    let why = sent.iter().find_map(mail::Sent::caveat);
    why.map(|why| format!(" (safe, but {why})")).unwrap_or_default()
}

fn routing(desk: &Desk<'_>, target: String, words: Words<'_>) -> Result<Routing, Refusal> {
    let mut content: String = words.text.chars().take(REPEATED).collect();
    if content.len() < words.text.len() {
        content.push('…');
    }
    Ok(Routing {
        sender: desk.seat()?.name.to_string(),
        target,
        target_color: None,
        summary: words.summary.map(str::to_owned),
        content,
    })
}

fn sent_to(to: Vec<String>, line: String, routing: Routing) -> Reply {
    let data = Sent { success: true, message: line.clone(), recipients: Some(to), routing };
    Reply::new(line, &data)
}

/// One name, several separated by commas, or a list of names.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a name, or several separated by commas")]
    enum Names {
        One(String),
        Several(Vec<String>),
    }
    let names = match Names::deserialize(deserializer)? {
        Names::One(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        Names::Several(names) => names,
    };
    Ok(names)
}
