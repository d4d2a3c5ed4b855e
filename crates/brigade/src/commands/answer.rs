//! `brigade approve`, `brigade deny`

use brigade_core::approvals::ApprovalSubject;
use brigade_core::handshake::Answer;
use brigade_core::text;
use brigade_host::answer::{self as host, Confirmation, GivenAnswer};
use serde::Serialize;

use crate::context::CliContext;
use crate::error::CliError;
use crate::slow_notice::with_notice;
use crate::{exit, output};

/// The width at which the summary of an answered request is cut.
const MAX_SUMMARY_WIDTH: usize = 100;

/// An answer as JSON.
#[derive(Serialize)]
struct AnswerDocument {
    number: usize,
    request_id: String,
    kind: String,
    to: String,
    approved: bool,
    /// Whether the member has taken the answer.
    confirmed: bool,
    /// Why the member has not taken the answer yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_yet: Option<String>,
    /// The request in one line. Only for the text.
    #[serde(skip)]
    summary: Option<String>,
}

/// Answers each request. If one request cannot be answered, still answers the others.
pub(crate) async fn run(
    context: &CliContext,
    which: &[String],
    answer: Answer<'_>,
) -> Result<u8, CliError> {
    let seat = context.answering_seat().await?;
    let waiting = "waiting until the member has taken the answer";
    let outcomes = with_notice(waiting, host::answer(context, &seat, which, answer)).await?;
    let mut given = Vec::new();
    let mut refused: Option<CliError> = None;
    let mut all_confirmed = true;
    for (approval, answered) in outcomes {
        match (answered, &refused) {
            (Ok(GivenAnswer { answered, confirmation }), _) => {
                if let Some(why) = &answered.receipt.pending {
                    output::note(&format!("stored; not in {}'s inbox yet: {why}", approval.from));
                }
                let not_yet = match confirmation {
                    Confirmation::Confirmed => None,
                    Confirmation::NotYet(why) => Some(why),
                };
                all_confirmed &= not_yet.is_none();
                given.push(AnswerDocument {
                    number: approval.number,
                    request_id: approval.request_id,
                    kind: approval.subject.kind().to_string(),
                    to: answered.to.to_string(),
                    approved: answer == Answer::Yes,
                    confirmed: not_yet.is_none(),
                    not_yet,
                    summary: match &approval.subject {
                        ApprovalSubject::Permission { action, .. } => Some(action.summary()),
                        ApprovalSubject::Plan { .. } => None,
                    },
                });
            }
            (Err(error), None) => refused = Some(error),
            (Err(error), Some(_)) => output::note(&error.to_string()),
        }
    }
    if context.json {
        output::print_json(&given)?;
    } else {
        let word = if answer == Answer::Yes { "approved" } else { "denied" };
        let line = |given: &AnswerDocument| {
            let summary = given.summary.as_ref().map(|summary| format!(": {summary}"));
            let summary = text::cut(&summary.unwrap_or_default(), MAX_SUMMARY_WIDTH);
            let line = format!("{word} {}'s {} {}{summary}\n", given.to, given.kind, given.number);
            match &given.not_yet {
                None => line,
                Some(why) => format!("sent, not yet confirmed ({why}): {line}"),
            }
        };
        output::print(&given.iter().map(line).collect::<String>())?;
    }
    refused.map_or(Ok(if all_confirmed { exit::DONE } else { exit::UNCONFIRMED }), Err)
}
