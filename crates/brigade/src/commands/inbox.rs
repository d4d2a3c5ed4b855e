//! `brigade inbox`

mod waiting;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Duration;

use brigade_core::action::AgentAction;
use brigade_core::event::{self, Event, MessageKey};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::protocol_text;
use brigade_core::seat::Seat;
use brigade_core::store::{Mail, Mark};
use brigade_core::text;
use brigade_core::wire::inbox::with_message;
use brigade_wire::body::Body;
use brigade_wire::message::Message;
use brigade_wire::protocol::{IdleNotification, IdleReason, Protocol};
use unicode_width::UnicodeWidthStr as _;

use self::waiting::WaitingRequests;
use crate::approval::action_lines;
use crate::cli::InboxArgs;
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::exit;
use crate::output::{self, BUSY, FAINT, HINT, STRONG};
use crate::slow_notice::with_lock_notice;

/// While there are no events, check this often whether standard output is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The minimum width of a request id, which is cut on a narrow terminal.
const MIN_ID: usize = 8;

pub(crate) async fn run(context: &CliContext, args: InboxArgs) -> Result<u8, CliError> {
    // Reading another member's inbox does not require an identity.
    let seat = match args.name {
        Some(_) if !args.mark_read => context.reader().await?,
        _ => context.seat().await?,
    };
    let of = args.name.clone().unwrap_or_else(|| seat.name.clone());
    if args.mark_read && of != seat.name {
        let error = CliTrouble::NotYours { of: of.to_string(), me: seat.name.to_string() };
        return Err(CliError::failed(error).hint(format!("if you are {of}, add `--as {of}`")));
    }
    // Start the watch before reading the inbox, so that no later message is missed.
    let watch = match args.follow {
        true => Some(seat.store.watch_member(&seat.team, &of).await?),
        false => None,
    };
    let which = if args.unread { InboxFilter::Unread } else { InboxFilter::All };
    let mail = with_lock_notice(mail::inbox(&seat, &of, which)).await?;
    let printer = InboxPrinter { context, seat: &seat, all: args.all };
    let is_empty = mail.is_empty();
    let mut printed: HashSet<MessageKey> = mail.iter().map(|mail| mail.key).collect();
    let shown = printer.print(&mail, args.follow).await?;
    if args.mark_read {
        mark_read(&seat, &mail).await?;
    }
    let Some(mut watch) = watch else {
        if shown == 0 && !context.json {
            let unread = if args.unread { "unread " } else { "" };
            output::note(&format!("no {unread}messages for {of}"));
        }
        let is_reader = of == seat.name && !args.mark_read;
        if args.unread && shown > 0 && is_reader && !context.json && output::width().is_some() {
            // On standard output, so that the line comes after the messages, also in a pager.
            let command = "brigade inbox --unread --mark-read";
            let text = format!("\n{HINT}hint:{HINT:#} `{command}` marks these messages as read\n");
            output::print(&text)?;
        }
        let is_nothing = if context.json { is_empty } else { shown == 0 };
        return Ok(if is_nothing { exit::NOTHING } else { exit::DONE });
    };
    drop(mail);
    loop {
        let record = match tokio::time::timeout(POLL_INTERVAL, watch.next_shared()).await {
            Ok(Some(record)) => record,
            Err(_) if !output::is_stdout_closed() => continue,
            Ok(None) | Err(_) => return Ok(exit::DONE),
        };
        match &record.event {
            // The recipient's program may already have removed the message from the inbox.
            Event::Sent { to, key, message, .. } | Event::Seen { to, key, message }
                if *to == of.as_str() && printed.insert(*key) =>
            {
                let mail = [Mail { key: *key, json: message.get().as_bytes().to_vec() }];
                printer.print(&mail, true).await?;
                if args.mark_read {
                    mark_read(&seat, &mail).await?;
                }
            }
            Event::TeamDeleted {} => return Ok(exit::DONE),
            _ => {}
        }
    }
}

/// Marks the messages as read. Call this only after they were printed without an error.
async fn mark_read(seat: &Seat, mail: &[Mail]) -> Result<(), CliError> {
    let keys: Vec<_> = mail.iter().map(|mail| mail.key).collect();
    Ok(with_lock_notice(mail::mark(seat, &keys, Mark::Read)).await?)
}

/// Prints messages of an inbox.
struct InboxPrinter<'c> {
    context: &'c CliContext,
    seat: &'c Seat,
    /// Whether to print notices that say only that a member is idle.
    all: bool,
}

impl InboxPrinter<'_> {
    /// Prints these messages and returns how many were shown. `follow` says whether more may come later.
    async fn print(&self, mail: &[Mail], follow: bool) -> Result<usize, CliError> {
        if self.context.json && follow {
            for entry in mail {
                output::print_raw(&one_line(&entry.json))?;
                output::print_raw(b"\n")?;
            }
            return Ok(mail.len());
        }
        if self.context.json {
            output::print_array(mail.iter().map(|mail| mail.json.as_slice()))?;
            return Ok(mail.len());
        }
        let (shown, hidden) = match self.all {
            true => (mail.iter().collect(), 0),
            false => mail::without_idle_notices(mail),
        };
        let requests = WaitingRequests::find(self.context, self.seat, &shown).await;
        let text = render(&shown, &requests)?;
        // A blank line separates the messages, also those that are printed later.
        let separator = if follow && !text.is_empty() { "\n" } else { "" };
        output::print(&format!("{text}{separator}"))?;
        if hidden > 0 && !follow {
            let notices = text::count(hidden, "idle notice");
            output::note(&format!("{notices} not shown (`--all` shows them)"));
        }
        Ok(shown.len())
    }
}

/// Puts an inbox entry on one line.
fn one_line(json: &[u8]) -> Vec<u8> {
    event::one_line(json).get().as_bytes().to_vec()
}

fn render(mail: &[&Mail], requests: &WaitingRequests) -> Result<String, CliError> {
    let room = output::width().map_or(usize::MAX, |width| width.saturating_sub(2));
    let mut text = String::new();
    for entry in mail {
        let shown = with_message(&entry.json, |message| message.map(|m| show(&m, requests, room)));
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

fn show(message: &Message<'_>, requests: &WaitingRequests, room: usize) -> String {
    let (mark, style) = if message.read() { ("○", FAINT) } else { ("●", BUSY) };
    let from = text::one_line(&message.from());
    let when = output::when(&message.timestamp());
    let mut text = format!("{style}{mark}{style:#} {STRONG}{from}{STRONG:#}  {FAINT}{when}");
    if !message.read() {
        text.push_str("  unread");
    }
    let _infallible = write!(text, "{FAINT:#}");
    let mut action = None;
    let body = message.body();
    let label = protocol_text::label(&body).map(|label| text::one_line(&label));
    let label = label.map(|label| format!("  {label}")).unwrap_or_default();
    let body = match body {
        Body::Protocol(Protocol::IdleNotification(IdleNotification {
            result: Some(answer),
            idle_reason: IdleReason::Available | IdleReason::Interrupted | IdleReason::Other(_),
            ..
        })) => {
            text.push_str("  at the end of its turn");
            answer
        }
        Body::Protocol(protocol) => {
            text.push_str(&label);
            let headline = requests.headline(&message.from(), &protocol, room);
            if let (Some(id), None) = (protocol_text::request_id(&protocol), &headline) {
                let taken = anstream::adapter::strip_str(&text).to_string().width();
                let id = text::cut(&text::one_line(id), room.saturating_sub(taken).max(MIN_ID));
                let _infallible = write!(text, "  {FAINT}{id}{FAINT:#}");
            }
            match (&protocol, headline) {
                (Protocol::PermissionRequest(asked), Some(headline)) => {
                    action = Some((AgentAction::from_message(asked), asked.description.clone()));
                    headline
                }
                (Protocol::PermissionRequest(asked), None) => {
                    action = Some((AgentAction::from_message(asked), String::new()));
                    format!("{from} {}", protocol_text::permission_head(asked))
                }
                (Protocol::PlanApprovalRequest(asked), Some(headline)) => {
                    format!("{headline}\n{}", asked.plan_content)
                }
                _ => format!("{from} {}", protocol_text::render(&protocol)),
            }
        }
        Body::Unknown { .. } | Body::Malformed { .. } => {
            text.push_str(&label);
            message.text().into_owned()
        }
        Body::Text => message.text().into_owned(),
    };
    text.push('\n');
    if let Some(summary) = message.summary() {
        for part in text::wrap(&text::one_line(&summary), room) {
            let _infallible = writeln!(text, "  {STRONG}{part}{STRONG:#}");
        }
    }
    for line in text::plain(&body).lines() {
        for part in text::wrap(line, room) {
            let part = format!("  {part}");
            let _infallible = writeln!(text, "{}", part.trim_end());
        }
    }
    if let Some((action, purpose)) = action {
        for line in action_lines(&action, &purpose, room, None) {
            let _infallible = writeln!(text, "  {line}");
        }
    }
    text
}
