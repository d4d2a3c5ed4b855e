//! `brigade broadcast`

use std::collections::BTreeMap;

use brigade_core::mail::{self, MessageText};
use serde::Serialize;

use super::{note_delay, send};
use crate::cli::MessageArgs;
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble, Kind};
use crate::slow_notice::with_lock_notice;
use crate::{exit, output};

#[derive(Serialize)]
struct BroadcastDocument<'a> {
    message_ids: BTreeMap<&'a str, &'a str>,
    to: Vec<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    waits: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    not_running: BTreeMap<&'a str, String>,
}

pub(crate) async fn run(context: &CliContext, message: MessageArgs) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    let text = send::text(message.text)?;
    let message = MessageText { text: &text, summary: message.summary.as_deref() };
    let sent = with_lock_notice(mail::broadcast(&seat, message)).await?;
    if sent.is_empty() {
        let error = CliTrouble::NobodyElse { team: seat.team.to_string() };
        return Err(
            CliError::new(Kind::Nothing, error).hint("add a member with `brigade team join NAME`")
        );
    }
    let to: Vec<&str> = sent.iter().map(|sent| sent.to.as_str()).collect();
    let waits = sent.iter().filter_map(|sent| Some((sent.to.as_str(), note_delay(sent)?)));
    let waits: BTreeMap<&str, String> = waits.collect();
    let mut not_running = BTreeMap::new();
    for sent in &sent {
        let why = send::note_not_running(context, &seat, &sent.to).await;
        not_running.extend(why.map(|why| (sent.to.as_str(), why)));
    }
    if context.json {
        let ids = sent.iter().map(|sent| (sent.to.as_str(), sent.receipt.msg_id.as_str()));
        let message_ids = ids.collect();
        output::print_json(&BroadcastDocument { message_ids, to, waits, not_running })?;
    } else {
        output::print(&format!("sent to {}\n", to.join(", ")))?;
    }
    Ok(exit::DONE)
}
