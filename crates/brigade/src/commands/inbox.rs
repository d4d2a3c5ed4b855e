//! `brigade inbox`

use std::fmt::Write as _;

use brigade_core::action::AgentAction;
use brigade_core::mail::{self, InboxFilter};
use brigade_core::protocol_text;
use brigade_core::store::{Mail, Mark};
use brigade_core::text;
use brigade_core::wire::inbox::with_message;
use brigade_wire::body::Body;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;

use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::exit;
use crate::output::{self, BUSY, FAINT, STRONG};
use crate::slow_notice::with_lock_notice;

/// Options of `brigade inbox`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InboxOptions {
    pub(crate) unread: bool,
    pub(crate) mark_read: bool,
}

pub(crate) async fn run(
    context: &CliContext,
    of: Option<MemberName>,
    options: InboxOptions,
) -> Result<u8, CliError> {
    // Reading another member's inbox does not require an identity.
    let seat = match of {
        Some(_) if !options.mark_read => context.reader().await?,
        _ => context.seat().await?,
    };
    let of = of.unwrap_or_else(|| seat.name.clone());
    if options.mark_read && of != seat.name {
        let error = CliTrouble::NotYours { of: of.to_string(), me: seat.name.to_string() };
        return Err(CliError::failed(error).hint(format!("if you are {of}, add `--as {of}`")));
    }
    let which = if options.unread { InboxFilter::Unread } else { InboxFilter::All };
    let mail = with_lock_notice(mail::inbox(&seat, &of, which)).await?;
    if context.json {
        output::print_array(mail.iter().map(|mail| mail.json.as_slice()))?;
    } else {
        output::print(&render(&mail)?)?;
    }
    if mail.is_empty() {
        if !context.json {
            let unread = if options.unread { "unread " } else { "" };
            output::note(&format!("no {unread}messages for {of}"));
        }
        return Ok(exit::NOTHING);
    }
    // Mark the messages as read, but only after they were printed without an error.
    if options.mark_read {
        let keys: Vec<_> = mail.iter().map(|mail| mail.key).collect();
        with_lock_notice(mail::mark(&seat, &keys, Mark::Read)).await?;
    }
    Ok(exit::DONE)
}

fn render(mail: &[Mail]) -> Result<String, CliError> {
    let room = output::width().map_or(usize::MAX, |width| width.saturating_sub(2));
    let mut text = String::new();
    for entry in mail {
        let shown = with_message(&entry.json, |message| message.map(|m| show(&m, room)));
        let shown = shown.map_err(CliError::failed)?;
        // Skip entries that are not messages, as Claude Code does.
        if let Some(shown) = shown {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&shown);
        }
    }
    Ok(text)
}

fn show(message: &Message<'_>, room: usize) -> String {
    let (mark, style) = if message.read() { ("○", FAINT) } else { ("●", BUSY) };
    let from = text::one_line(&message.from());
    let when = output::when(&message.timestamp());
    let mut text = format!("{style}{mark}{style:#} {STRONG}{from}{STRONG:#}  {FAINT}{when}");
    if !message.read() {
        text.push_str("  unread");
    }
    let _infallible = write!(text, "{FAINT:#}");
    let mut action = None;
    let body = match message.body() {
        Body::Protocol(protocol) => {
            let _infallible = write!(text, "  {}", protocol.kind());
            if let Some(id) = protocol_text::request_id(&protocol) {
                let _infallible = write!(text, "  {FAINT}{}{FAINT:#}", text::one_line(id));
            }
            if let Protocol::PermissionRequest(asked) = &protocol {
                action = Some(AgentAction::from_message(asked));
                format!("{from} {}", protocol_text::permission_head(asked))
            } else {
                format!("{from} {}", protocol_text::render(&protocol))
            }
        }
        Body::Unknown { kind } | Body::Malformed { kind, .. } => {
            let _infallible = write!(text, "  {}", text::one_line(&kind));
            message.text().into_owned()
        }
        Body::Text => message.text().into_owned(),
    };
    text.push('\n');
    if let Some(summary) = message.summary() {
        let _infallible = writeln!(text, "  {STRONG}{}{STRONG:#}", text::one_line(&summary));
    }
    for line in text::plain(&body).lines() {
        for part in text::wrap(line, room) {
            let part = format!("  {part}");
            let _infallible = writeln!(text, "{}", part.trim_end());
        }
    }
    for line in action.iter().flat_map(|action| action.render(None)) {
        for part in line.wrapped(room) {
            let _infallible = writeln!(text, "  {part}");
        }
    }
    text
}
