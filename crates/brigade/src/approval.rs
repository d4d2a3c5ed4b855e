//! Renders a request (a plan or a permission request) as text.

use std::fmt::Write as _;

use brigade_core::action::{AgentAction, RenderLimit};
use brigade_core::approvals::{Approval, ApprovalSubject};
use brigade_core::handshake::First;
use brigade_core::text;
use jiff::Timestamp;

use crate::output::{BUSY, FAINT, STRONG};

/// The indentation of a request below its first line.
const INDENT: &str = "   ";
/// How much of a permission request `brigade approvals` prints without a number.
const SHORT: RenderLimit<'static> =
    RenderLimit { lines: 40, characters: 4_000, values: 100, hint: "" };

/// How much of a request to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownAmount {
    /// Cut long values, and say how to see the rest.
    Short,
    Everything,
}

/// Renders a request as text: a line with its sender and age, then its content.
pub(crate) fn show(
    approval: &Approval,
    now: Timestamp,
    width: Option<usize>,
    amount: ShownAmount,
) -> String {
    let age = text::age(now.duration_since(approval.at));
    let (number, from) = (approval.number, text::one_line(approval.from.as_str()));
    let id = text::one_line(&approval.request_id);
    let kind = approval.subject.kind();
    let mut text = format!(
        "{BUSY}{number}{BUSY:#}  {STRONG}{from}{STRONG:#}  {kind}  {FAINT}{age}  {id}{FAINT:#}\n"
    );
    match &approval.subject {
        ApprovalSubject::Plan { plan, path } => {
            let path = path.as_ref().map(|path| format!("in {}", text::one_line(path)));
            let plan = text::plain(plan);
            let room = width.map_or(usize::MAX, |width| width.saturating_sub(INDENT.len()));
            for line in path.iter().map(String::as_str).chain(plan.lines()) {
                for part in text::wrap(line, room) {
                    let _infallible = writeln!(text, "{}", format!("{INDENT}{part}").trim_end());
                }
            }
        }
        ApprovalSubject::Permission { description, action, .. } => {
            let hint = format!("`brigade approvals {number}` shows all");
            let limit = RenderLimit { hint: &hint, ..SHORT };
            let limit = (amount == ShownAmount::Short).then_some(limit);
            text.push_str(&show_action(action, description, width, limit));
        }
    }
    text
}

/// Renders the answer to a request as a line below the request.
pub(crate) fn answered_text(first: &First, now: Timestamp) -> String {
    format!("{INDENT}{STRONG}already answered:{STRONG:#} {}\n", text::plain(&first.describe(now)))
}

/// Renders what an agent asks permission for, indented.
pub(crate) fn show_action(
    action: &AgentAction,
    purpose: &str,
    width: Option<usize>,
    limit: Option<RenderLimit<'_>>,
) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(INDENT.len()));
    let lines = action_lines(action, purpose, room, limit);
    lines.iter().map(|line| format!("{INDENT}{line}\n")).collect()
}

/// Renders what an agent asks permission for as lines of at most `room` columns. The purpose follows the title.
pub(crate) fn action_lines(
    action: &AgentAction,
    purpose: &str,
    room: usize,
    limit: Option<RenderLimit<'_>>,
) -> Vec<String> {
    let purpose = text::one_line(purpose);
    let mut lines = action.render(limit);
    if let Some(title) = lines.first_mut().filter(|_| !purpose.is_empty()) {
        title.text = format!("{} ({purpose})", title.text);
    }
    lines.iter().flat_map(|line| line.wrapped(room)).collect()
}
