//! `brigade send`

use std::io::Read;

use brigade_core::mail::{self, MAX_TEXT_BYTES, MessageText};
use serde::Serialize;

use brigade_core::seat::Seat;
use brigade_host::{claude_led, state};
use brigade_wire::name::MemberName;

use super::note_delay;
use crate::cli::MessageArgs;
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble, failed};
use crate::exit;
use crate::output::{self, FAINT};
use crate::slow_notice::with_lock_notice;

#[derive(Serialize)]
struct SendDocument<'a> {
    message_id: &'a str,
    to: [&'a str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_running: Option<String>,
}

pub(crate) async fn run(
    context: &CliContext,
    to: &str,
    message: MessageArgs,
) -> Result<u8, CliError> {
    let seat = claude_led::sending_seat(context, to).await?;
    let text = text(message.text)?;
    let message = MessageText { text: &text, summary: message.summary.as_deref() };
    let sent = with_lock_notice(mail::send(&seat, to, message)).await?;
    let id = &sent.receipt.msg_id;
    let waits = note_delay(&sent);
    let not_running = note_not_running(context, &seat, &sent.to).await;
    if context.json {
        let to = [sent.to.as_str()];
        output::print_json(&SendDocument { message_id: id, to, waits, not_running })?;
    } else {
        output::print(&format!("sent to {} {FAINT}({id}){FAINT:#}\n", sent.to))?;
    }
    Ok(exit::DONE)
}

/// Prints a note if the recipient is not running on this host and is not going to be started, and returns the reason.
/// The message is already sent, so an error here is no error of the command.
pub(super) async fn note_not_running(
    context: &CliContext,
    seat: &Seat,
    to: &MemberName,
) -> Option<String> {
    let why = state::why_not_reached(&context.host().ok()?, seat, to).await.ok()??;
    let team = &seat.team;
    output::note(&format!(
        "{to} is not running ({why}) and gets the message when it runs again: `brigade resume {team}`"
    ));
    Some(why)
}

/// Returns the text of a message. If the argument is `-`, reads the text from standard input.
pub(super) fn text(given: String) -> Result<String, CliError> {
    if given != "-" {
        return Ok(given);
    }
    let mut bytes = Vec::new();
    // Read slightly more than the limit: enough to detect a text that is too long, without reading all of it.
    let limit = u64::try_from(MAX_TEXT_BYTES).unwrap_or(u64::MAX).saturating_add(2);
    std::io::stdin()
        .lock()
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|source| failed("read standard input", source))?;
    // A text that is too long may be cut within a character. Report it as too long, not as invalid UTF-8.
    if bytes.len() > MAX_TEXT_BYTES + 1 {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let mut text = String::from_utf8(bytes).map_err(|_| CliError::failed(CliTrouble::NotText))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}
