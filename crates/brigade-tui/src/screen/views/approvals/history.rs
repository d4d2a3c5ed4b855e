//! Answered requests, newest first.

use brigade_core::approvals::Approval;
use brigade_core::event::WITHDRAWN;
use brigade_core::projection::{MessageKind, RequestAnswer, RequestEntry};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::subject;
use crate::canvas::Canvas;
use crate::screen::Screen;
use crate::text_layout::since;
use crate::time::local;
use brigade_core::text::{cut, one_line};

/// Draws the view when no request is open: a line with that information, and the latest answers.
pub(super) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    let parts = [Constraint::Length(1), Constraint::Length(1), Constraint::Min(0)];
    let [first, _, below] = Layout::vertical(parts).areas(area);
    canvas.line(first, Line::styled("✓ No requests are waiting.", theme.success()));
    draw_recent(screen, canvas, below);
}

/// Draws the latest answers, two lines each.
pub(super) fn draw_recent(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    let asked = screen.projection.requests().iter().rev();
    let room = usize::from(area.height.saturating_sub(1) / 2);
    let mut answers = asked.filter(|asked| asked.kind != MessageKind::ShutdownRequest);
    let mut y = area.y;
    let mut line = |line: Line<'static>| {
        if y < area.bottom() {
            canvas.line(Rect { y, height: 1, ..area }, line);
        }
        y = y.saturating_add(1);
    };
    let answers: Vec<(&RequestEntry, &RequestAnswer)> = answers
        .by_ref()
        .filter_map(|asked| Some((asked, asked.reply.as_ref()?)))
        .take(room)
        .collect();
    if answers.is_empty() {
        return;
    }
    line(Line::styled("RECENTLY ANSWERED", theme.faint()));
    for (asked, reply) in answers {
        let (sign, style) = match reply.yes {
            true => ("✓ yes", theme.success()),
            false => ("✗ no ", theme.error()),
        };
        let name = one_line(screen.projection.name(asked.from));
        let record = screen.record(asked.record);
        let what = record
            .and_then(|record| Approval::from_record(&record, 0))
            .map(|approval| subject(&approval));
        let before = format!("{sign} {:8} ", cut(&name, 8));
        let room = usize::from(area.width).saturating_sub(before.width());
        let what = what.unwrap_or_else(|| "a request".into());
        line(Line::from(vec![Span::styled(before, style), Span::raw(cut(&what, room))]));
        let room = usize::from(area.width).saturating_sub(6);
        line(Line::styled(
            format!("      {}", cut(&answer_text(asked, reply), room)),
            theme.faint(),
        ));
    }
}

/// Returns when and by whom a request was answered, and the reason given.
fn answer_text(asked: &RequestEntry, reply: &RequestAnswer) -> String {
    let at = local(reply.at.timestamp()).strftime("%H:%M");
    let took = since(reply.at.timestamp(), asked.at);
    let reason = reply.reason.as_deref().map(|reason| format!(": {}", one_line(reason)));
    let by = answered_by(reply.decided_by.as_deref());
    format!("{at} after {took} {by}{}", reason.unwrap_or_default())
}

/// Describes who answered a request.
pub(crate) fn answered_by(hand: Option<&str>) -> String {
    match hand {
        Some("left") => "member left the team".into(),
        Some(hand) if hand == WITHDRAWN => "request withdrawn".into(),
        Some("person") => "by a person".into(),
        Some("agent") => "by an agent".into(),
        Some(hand) => format!("by {}", one_line(hand)),
        None => "by the lead".into(),
    }
}
