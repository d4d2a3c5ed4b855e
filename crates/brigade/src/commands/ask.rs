//! `brigade ask`

use std::time::Duration;

use brigade_core::approvals;
use brigade_core::mail::MessageText;
use brigade_core::text::{one_line, plain};
use brigade_host::ask::{AskEnd, ReplyKind, ask};
use brigade_wire::name::MemberName;
use serde::Serialize;

use super::{note_delay, send};
use crate::cli::AskArgs;
use crate::context::CliContext;
use crate::error::{CliError, Trouble};
use crate::slow_notice::with_notice;
use crate::{exit, output};

#[derive(Serialize)]
struct AskDocument<'a> {
    message_id: &'a str,
    to: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<ReplyDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct ReplyDocument<'a> {
    kind: ReplyKind,
    text: &'a str,
}

pub(crate) async fn run(context: &CliContext, args: AskArgs) -> Result<u8, CliError> {
    let AskArgs { to, message, timeout } = args;
    let text = send::text(message.text)?;
    let question = MessageText { text: &text, summary: message.summary.as_deref() };
    let notice = format!("waiting for the reply of {}", one_line(&to));
    let asked = with_notice(&notice, ask(context, &to, question, timeout)).await?;
    note_delay(&asked.sent);
    let (message_id, to) = (asked.sent.receipt.msg_id.as_str(), asked.sent.to.as_str());
    if context.json {
        let (outcome, reply, why) = match &asked.end {
            AskEnd::Replied(kind, text) => {
                ("replied", Some(ReplyDocument { kind: *kind, text }), None)
            }
            AskEnd::Failed(why) => ("failed", None, Some(why.as_str())),
            AskEnd::TimedOut => ("timed_out", None, None),
        };
        output::print_json(&AskDocument { message_id, to, outcome, reply, why })?;
    } else if let AskEnd::Replied(_, text) = &asked.end {
        output::print(&format!("{}\n", plain(text)))?;
    }
    match asked.end {
        AskEnd::Replied(..) => Ok(exit::DONE),
        AskEnd::Failed(_) if context.json => Ok(exit::FAILED),
        AskEnd::Failed(why) => {
            let error = CliError::failed(Trouble::NoReply { why });
            Err(error.hint(format!("the question stays in the inbox of {to}")))
        }
        AskEnd::TimedOut => {
            if !context.json {
                output::note(&timed_out(to, timeout));
                note_request(context, &asked.sent.to).await;
            }
            Ok(exit::TIMED_OUT)
        }
    }
}

fn timed_out(to: &str, timeout: Duration) -> String {
    let time = output::duration(timeout.as_secs());
    format!(
        "no reply from {to} in {time}; the question stays sent, and `brigade inbox --unread` shows a later reply"
    )
}

/// Says if the member waits for a permission. The question has its own result, so an error here is no error of the command.
async fn note_request(context: &CliContext, member: &MemberName) {
    let Ok(seat) = context.answering_seat().await else { return };
    let waiting = approvals::waiting(&seat).await.unwrap_or_default();
    if let Some(request) = waiting.iter().find(|request| request.from == *member) {
        output::hint(&format!(
            "{member} is waiting for your answer: `brigade approvals {}`",
            request.number
        ));
    }
}
