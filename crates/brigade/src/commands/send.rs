//! `brigade send`

use std::io::Read;

use brigade_core::mail::{self, MAX_TEXT_BYTES, MessageText};
use serde::Serialize;

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
}

pub(crate) async fn run(
    context: &CliContext,
    to: &str,
    message: MessageArgs,
) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    let text = text(message.text)?;
    let message = MessageText { text: &text, summary: message.summary.as_deref() };
    let sent = with_lock_notice(mail::send(&seat, to, message)).await?;
    let id = &sent.receipt.msg_id;
    let waits = note_delay(&sent);
    if context.json {
        output::print_json(&SendDocument { message_id: id, to: [sent.to.as_str()], waits })?;
    } else {
        output::print(&format!("sent to {} {FAINT}({id}){FAINT:#}\n", sent.to))?;
    }
    Ok(exit::DONE)
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
