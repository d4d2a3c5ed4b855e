//! `brigade approve`, `brigade deny`

use brigade_core::approvals::{self, Approval, ApprovalSubject};
use brigade_core::handshake::{Answer, NO_REASON};
use brigade_core::policy::RuleDecision;
use brigade_core::seat::Seat;
use brigade_core::text::{self, count};
use brigade_host::answer::{self as host, Confirmation, GivenAnswer};
use brigade_host::approval_document::FirstAnswerDocument;
use brigade_host::personal_policy::PersonalRule;
use brigade_host::rules::{AnsweredWithRules, RuleProposal, RuleScope, answer_with_rules, propose};
use serde::Serialize;

use super::policy::pattern_text;
use crate::approval::{ShownAmount, answered_text, show};
use crate::cli::{ApproveArgs, DenyArgs, NewRuleArgs};
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::slow_notice::{with_lock_notice, with_notice};
use crate::{confirm, exit, output};

/// Shown while the command waits for a confirmation.
const WAITING: &str = "waiting until the member has taken the answer";
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

/// The rules that were added for a request that had been answered before, as JSON.
#[derive(Serialize)]
struct RuleDocument<'a> {
    number: usize,
    request_id: &'a str,
    kind: String,
    to: &'a str,
    /// The first answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<FirstAnswerDocument<'a>>,
    rules: &'a [PersonalRule],
}

impl<'a> RuleDocument<'a> {
    fn new(approval: &'a Approval, proposed: &'a RuleProposal) -> Self {
        Self {
            number: approval.number,
            request_id: &approval.request_id,
            kind: approval.subject.kind().to_string(),
            to: approval.from.as_str(),
            answer: proposed.answered.as_ref().map(FirstAnswerDocument::new),
            rules: &proposed.rules,
        }
    }
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
        output::print(&requests_text(context, &waiting))?;
    }
    let question = format!("approve {}?", these(waiting.len()));
    if !confirm_unless(context.json, args.rule.yes, &question)? {
        return Ok(confirm::declined("nothing was changed: no request was answered"));
    }
    give(context, &seat, waiting, Answer::Yes).await
}

pub(crate) async fn deny(context: &CliContext, args: &DenyArgs) -> Result<u8, CliError> {
    let seat = context.answering_seat().await?;
    let no = Answer::No(args.reason.as_deref().unwrap_or(NO_REASON));
    answer(context, &seat, &args.which, no, &args.rule).await
}

fn these(requests: usize) -> String {
    if requests == 1 { "this request".to_owned() } else { format!("these {requests} requests") }
}

/// Renders whole requests: the answer is for all of their text.
fn requests_text(context: &CliContext, requests: &[Approval]) -> String {
    let now = context.clock.now();
    let text = |approval| show(approval, now, output::width(), ShownAmount::Everything);
    format!("{}\n", requests.iter().map(text).collect::<Vec<_>>().join("\n"))
}

/// Asks the question, unless the caller has already said yes. Returns whether the answer is yes.
fn confirm_unless(json: bool, yes: bool, question: &str) -> Result<bool, CliError> {
    if yes {
        return Ok(true);
    }
    if !confirm::can_ask(json) {
        let error = CliError::usage(CliTrouble::NobodyToAsk);
        return Err(error.hint("`--yes` does it without asking"));
    }
    confirm::ask(question)
}

/// Answers the named requests. With `--turn`, also adds a rule. With `--always`, first shows the rule and asks.
async fn answer(
    context: &CliContext,
    seat: &Seat,
    which: &[String],
    answer: Answer<'_>,
    rule: &NewRuleArgs,
) -> Result<u8, CliError> {
    let found = with_lock_notice(host::find(seat, which)).await?;
    let Some(scope) = rule_scope(rule) else {
        return give(context, seat, found, answer).await;
    };
    let [approval] = found.as_slice() else {
        return Err(CliError::usage(CliTrouble::OneRequestForRule));
    };
    let (ruling, word) = match answer {
        Answer::Yes => (RuleDecision::Allow, "approve"),
        Answer::No(_) => (RuleDecision::Deny, "deny"),
    };
    let proposed = propose(context, seat, approval, ruling, &rule.rule, scope).await?;
    if scope == RuleScope::Turn {
        return give_with_rules(context, seat, approval.clone(), answer, proposed).await;
    }
    if !context.json {
        let now = context.clock.now();
        let request = show(approval, now, output::width(), ShownAmount::Everything);
        let first = proposed.answered.as_ref().map(|first| answered_text(first, now));
        let first = first.unwrap_or_default();
        output::print(&format!("{request}{first}\n{}", proposal_text(&proposed)))?;
    }
    let rules = if proposed.rules.len() == 1 { "the rule" } else { "the rules" };
    let (question, declined) = match &proposed.answered {
        Some(_) => (format!("add {rules} for later requests?"), "no rule was added"),
        None => (
            format!("{word} this request and add {rules}?"),
            "the request was not answered, and no rule was added",
        ),
    };
    if !confirm_unless(context.json, rule.yes, &question)? {
        return Ok(confirm::declined(&format!("nothing was changed: {declined}")));
    }
    give_with_rules(context, seat, approval.clone(), answer, proposed).await
}

fn rule_scope(rule: &NewRuleArgs) -> Option<RuleScope> {
    match (rule.turn, rule.always, rule.everywhere) {
        (true, ..) => Some(RuleScope::Turn),
        (_, true, false) => Some(RuleScope::Folder),
        (_, true, true) => Some(RuleScope::Everywhere),
        (false, false, _) => None,
    }
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
        let summary = summary(past).unwrap_or_default();
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

/// Answers one request and adds the rules.
async fn give_with_rules(
    context: &CliContext,
    seat: &Seat,
    approval: Approval,
    answer: Answer<'_>,
    proposed: RuleProposal,
) -> Result<u8, CliError> {
    let answered = answer_with_rules(context, seat, &approval, answer, &proposed);
    let AnsweredWithRules { given, added } = with_notice(WAITING, answered).await?;
    let Some(given) = given else {
        let numbers = added?;
        if context.json {
            output::print_json(&[RuleDocument::new(&approval, &proposed)])?;
        } else {
            output::print(&added_text(&proposed, &numbers, approval.from.as_str()))?;
        }
        return Ok(exit::DONE);
    };
    let mut given = answer_document(approval, given, answer);
    let added = added.map(|numbers| added_text(&proposed, &numbers, &given.to));
    if added.is_ok() {
        given.rules = proposed.rules;
    }
    print_answers(context, std::slice::from_ref(&given))?;
    let added = added?;
    if !context.json {
        output::print(&added)?;
    }
    Ok(if given.confirmed { exit::DONE } else { exit::UNCONFIRMED })
}

/// Answers each request. If one request cannot be answered, still answers the others.
async fn give(
    context: &CliContext,
    seat: &Seat,
    requests: Vec<Approval>,
    answer: Answer<'_>,
) -> Result<u8, CliError> {
    let outcomes = with_notice(WAITING, host::answer(context, seat, requests, answer)).await;
    let mut given = Vec::new();
    let mut refused: Option<CliError> = None;
    for (approval, answered) in outcomes {
        match (answered, &refused) {
            (Ok(answered), _) => given.push(answer_document(approval, answered, answer)),
            (Err(error), None) => refused = Some(error),
            (Err(error), Some(_)) => output::note(&error.to_string()),
        }
    }
    print_answers(context, &given)?;
    let all_confirmed = given.iter().all(|given| given.confirmed);
    refused.map_or(Ok(if all_confirmed { exit::DONE } else { exit::UNCONFIRMED }), Err)
}

fn answer_document(
    approval: Approval,
    GivenAnswer { answered, confirmation }: GivenAnswer,
    answer: Answer<'_>,
) -> AnswerDocument {
    if let Some(why) = &answered.receipt.pending {
        output::note(&format!("stored; not in {}'s inbox yet: {why}", approval.from));
    }
    let not_yet = match confirmation {
        Confirmation::Confirmed => None,
        Confirmation::NotYet(why) => Some(why),
    };
    AnswerDocument {
        number: approval.number,
        summary: summary(&approval),
        request_id: approval.request_id,
        kind: approval.subject.kind().to_string(),
        to: answered.to.to_string(),
        approved: answer == Answer::Yes,
        confirmed: not_yet.is_none(),
        not_yet,
        rules: Vec::new(),
    }
}

fn print_answers(context: &CliContext, given: &[AnswerDocument]) -> Result<(), CliError> {
    if context.json {
        output::print_json(&given)
    } else {
        output::print(&given.iter().map(answer_line).collect::<String>())
    }
}

/// Describes the rules that were added.
fn added_text(proposed: &RuleProposal, numbers: &[usize], member: &str) -> String {
    if proposed.scope != RuleScope::Turn {
        return numbers.iter().map(|number| format!("added personal rule {number}\n")).collect();
    }
    let lines = proposed.rules.iter().map(|PersonalRule { rule, .. }| {
        let (ruling, pattern) = (rule.ruling.as_str(), pattern_text(rule));
        format!("until the turn of {member} ends: {ruling} {pattern}\n")
    });
    lines.collect()
}

fn answer_line(given: &AnswerDocument) -> String {
    let word = if given.approved { "approved" } else { "denied" };
    let summary = given.summary.as_ref().map(|summary| format!(": {summary}"));
    let summary = summary.unwrap_or_default();
    let line = format!("{word} {}'s {} {}{summary}\n", given.to, given.kind, given.number);
    match &given.not_yet {
        None => line,
        Some(why) => format!("sent, not yet confirmed ({why}): {line}"),
    }
}
