//! `brigade approve`, `brigade deny`

use brigade_core::approvals::{self, Approval, ApprovalSubject};
use brigade_core::handshake::{Answer, NO_REASON};
use brigade_core::policy::RuleDecision;
use brigade_core::seat::Seat;
use brigade_core::text::{self, count};
use brigade_host::answer::{self as host, Confirmation, GivenAnswer};
use brigade_host::personal_policy::{PersonalPolicy, PersonalRule};
use brigade_host::rules::{RuleProposal, propose};
use serde::Serialize;

use crate::approval::{ShownAmount, show};
use crate::cli::{ApproveArgs, DenyArgs, NewRuleArgs};
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::slow_notice::{with_lock_notice, with_notice};
use crate::{confirm, exit, output};

/// The width at which the summary of a request is cut.
const MAX_SUMMARY_WIDTH: usize = 100;
/// The number of earlier requests that are shown with a new rule.
const MAX_SHOWN: usize = 10;

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
    /// The rules that were added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<PersonalRule>,
    /// The request in one line. Only for the text.
    #[serde(skip)]
    summary: Option<String>,
}

pub(crate) async fn approve(context: &CliContext, args: &ApproveArgs) -> Result<u8, CliError> {
    let seat = context.answering_seat().await?;
    if !args.all {
        return answer(context, &seat, &args.which, Answer::Yes, &args.rule).await;
    }
    let waiting = with_lock_notice(approvals::waiting(&seat)).await?;
    if waiting.is_empty() {
        if context.json {
            output::print("[]\n")?;
        } else {
            output::note("no requests are waiting");
        }
        return Ok(exit::NOTHING);
    }
    if !context.json {
        show_requests(context, &waiting)?;
    }
    let question = format!("approve {}?", these(waiting.len()));
    confirm_unless(context.json, args.rule.yes, &question)?;
    give(context, &seat, waiting, Answer::Yes, None).await
}

pub(crate) async fn deny(context: &CliContext, args: &DenyArgs) -> Result<u8, CliError> {
    let seat = context.answering_seat().await?;
    let no = Answer::No(args.reason.as_deref().unwrap_or(NO_REASON));
    answer(context, &seat, &args.which, no, &args.rule).await
}

fn these(requests: usize) -> String {
    if requests == 1 { "this request".to_owned() } else { format!("these {requests} requests") }
}

/// Shows requests as `brigade approvals` does.
fn show_requests(context: &CliContext, requests: &[Approval]) -> Result<(), CliError> {
    let now = context.clock.now();
    let text = |approval| show(approval, now, output::width(), ShownAmount::Short);
    output::print(&format!("{}\n", requests.iter().map(text).collect::<Vec<_>>().join("\n")))
}

/// Asks the question, unless the caller has already said yes.
fn confirm_unless(json: bool, yes: bool, question: &str) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    if !confirm::can_ask(json) {
        let error = CliError::usage(CliTrouble::NobodyToAsk);
        return Err(error.hint("`--yes` does it without asking"));
    }
    if confirm::ask(question)? { Ok(()) } else { Err(CliError::failed(CliTrouble::NotApplied)) }
}

/// Answers the named requests. With `--always`, first shows the rule and asks.
async fn answer(
    context: &CliContext,
    seat: &Seat,
    which: &[String],
    answer: Answer<'_>,
    rule: &NewRuleArgs,
) -> Result<u8, CliError> {
    let found = with_lock_notice(host::find(seat, which)).await?;
    if !rule.always {
        return give(context, seat, found, answer, None).await;
    }
    let [approval] = found.as_slice() else {
        return Err(CliError::usage(CliTrouble::OneRequestForRule));
    };
    let (ruling, word) = match answer {
        Answer::Yes => (RuleDecision::Allow, "approve"),
        Answer::No(_) => (RuleDecision::Deny, "deny"),
    };
    let proposed = propose(context, seat, approval, ruling, &rule.rule, rule.everywhere).await?;
    if !context.json {
        show_requests(context, &found)?;
        output::print(&proposal_text(&proposed))?;
    }
    let rules = if proposed.rules.len() == 1 { "the rule" } else { "the rules" };
    let question = format!("{word} this request and add {rules}?");
    confirm_unless(context.json, rule.yes, &question)?;
    give(context, seat, found, answer, Some(proposed)).await
}

/// Shows the lines that would be written, and the earlier requests that the rules would have answered.
fn proposal_text(proposed: &RuleProposal) -> String {
    let mut text = format!("to be added to {}:\n", text::exact(&proposed.path.to_string_lossy()));
    for rule in &proposed.rules {
        for line in rule.to_toml().lines() {
            text += &format!("  {}\n", text::exact(line));
        }
    }
    let covered = &proposed.covered;
    if covered.is_empty() {
        return text
            + "\nno other request to this team of the last 30 days would have been answered by it\n\n";
    }
    text += &format!(
        "\nit would also have answered {} to this team of the last 30 days:\n",
        count(covered.len(), "request")
    );
    for past in covered.iter().rev().take(MAX_SHOWN) {
        let summary = text::cut(&summary(past).unwrap_or_default(), MAX_SUMMARY_WIDTH);
        let day = output::local(past.at).strftime("%Y-%m-%d %H:%M").to_string();
        text += &format!("  {day}  {}  {summary}\n", past.from);
    }
    if let Some(more @ 1..) = covered.len().checked_sub(MAX_SHOWN) {
        text += &format!("  and {more} earlier\n");
    }
    text + "\n"
}

fn summary(approval: &Approval) -> Option<String> {
    match &approval.subject {
        ApprovalSubject::Permission { action, .. } => Some(action.summary()),
        ApprovalSubject::Plan { .. } => None,
    }
}

/// Answers each request. If one request cannot be answered, still answers the others. After an answer, adds the rules.
async fn give(
    context: &CliContext,
    seat: &Seat,
    requests: Vec<Approval>,
    answer: Answer<'_>,
    proposed: Option<RuleProposal>,
) -> Result<u8, CliError> {
    let waiting = "waiting until the member has taken the answer";
    let outcomes = with_notice(waiting, host::answer(context, seat, requests, answer)).await;
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
                    summary: summary(&approval),
                    request_id: approval.request_id,
                    kind: approval.subject.kind().to_string(),
                    to: answered.to.to_string(),
                    approved: answer == Answer::Yes,
                    confirmed: not_yet.is_none(),
                    not_yet,
                    rules: Vec::new(),
                });
            }
            (Err(error), None) => refused = Some(error),
            (Err(error), Some(_)) => output::note(&error.to_string()),
        }
    }
    let mut added = Ok(Vec::new());
    if let (Some(first), Some(proposed)) = (given.first_mut(), proposed) {
        added = PersonalPolicy::add(context, &proposed.rules);
        first.rules = if added.is_ok() { proposed.rules } else { Vec::new() };
    }
    if context.json {
        output::print_json(&given)?;
    } else {
        let word = if answer == Answer::Yes { "approved" } else { "denied" };
        output::print(&given.iter().map(|given| answer_line(given, word)).collect::<String>())?;
        for number in added.as_deref().unwrap_or_default() {
            output::print(&format!("added personal rule {number}\n"))?;
        }
    }
    added?;
    refused.map_or(Ok(if all_confirmed { exit::DONE } else { exit::UNCONFIRMED }), Err)
}

fn answer_line(given: &AnswerDocument, word: &str) -> String {
    let summary = given.summary.as_ref().map(|summary| format!(": {summary}"));
    let summary = text::cut(&summary.unwrap_or_default(), MAX_SUMMARY_WIDTH);
    let line = format!("{word} {}'s {} {}{summary}\n", given.to, given.kind, given.number);
    match &given.not_yet {
        None => line,
        Some(why) => format!("sent, not yet confirmed ({why}): {line}"),
    }
}
