//! Renders a request (a plan or a permission request) as text.

use std::fmt::Write as _;

use brigade_core::action::{AgentAction, RenderLimit};
use brigade_core::approvals::{Approval, ApprovalSubject};
use brigade_core::text;
use jiff::{SignedDuration, Timestamp};

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
    let age = age(now.duration_since(approval.at));
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

/// Renders what an agent asks permission for, indented.
pub(crate) fn show_action(
    action: &AgentAction,
    purpose: &str,
    width: Option<usize>,
    limit: Option<RenderLimit<'_>>,
) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(INDENT.len()));
    let purpose = text::one_line(purpose);
    let mut lines = action.render(limit);
    if let Some(title) = lines.first_mut().filter(|_| !purpose.is_empty()) {
        title.text = format!("{} ({purpose})", title.text);
    }
    let mut text = String::new();
    for part in lines.iter().flat_map(|line| line.wrapped(room)) {
        let _infallible = writeln!(text, "{INDENT}{part}");
    }
    text
}

/// Formats an age in a readable unit.
fn age(age: SignedDuration) -> String {
    match age.as_secs() {
        ..10 => "just now".to_owned(),
        secs @ 10..60 => format!("{secs} s ago"),
        secs @ 60..3600 => format!("{} min ago", secs / 60),
        secs @ 3600..86400 => format!("{} h ago", secs / 3600),
        secs => format!("{} d ago", secs / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_use_a_readable_unit() {
        for (secs, expected) in [
            (-5, "just now"),
            (9, "just now"),
            (10, "10 s ago"),
            (119, "1 min ago"),
            (3600, "1 h ago"),
            (86_399, "23 h ago"),
            (200_000, "2 d ago"),
        ] {
            assert_eq!(age(SignedDuration::from_secs(secs)), expected);
        }
    }
}
