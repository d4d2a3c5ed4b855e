//! The open request of the attached member, above the line to write in.

use brigade_core::approvals::{Approval, ApprovalSubject};
use brigade_core::text::{count, one_line};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::AttachedState;
use crate::canvas::Canvas;
use crate::screen::Screen;
use crate::screen::views::approvals::document;

/// How much of a request is on the screen.
pub(super) struct RequestLayout {
    lines: Vec<Line<'static>>,
    /// The index of the first visible line.
    from: usize,
    /// The number of visible lines.
    shown: usize,
}

impl RequestLayout {
    /// Lays a request out in an area of this width and at most this height. The heading and the line with the keys need one
    /// row each.
    pub(super) fn new(
        screen: &Screen,
        state: &AttachedState,
        approval: &Approval,
        width: u16,
        height: u16,
    ) -> Self {
        let lines = document::lines(screen, approval, usize::from(width));
        let room = usize::from(height.saturating_sub(2)).max(1);
        let last = lines.len().saturating_sub(room);
        let from = if state.is_reading { state.request_scroll.min(last) } else { 0 };
        let shown = room.min(lines.len());
        Self { lines, from, shown }
    }

    /// Returns the height of the panel.
    pub(super) fn height(&self) -> u16 {
        u16::try_from(self.shown).unwrap_or(u16::MAX).saturating_add(2)
    }

    fn hidden(&self) -> usize {
        self.lines.len().saturating_sub(self.from + self.shown)
    }
}

pub(super) fn draw(
    screen: &Screen,
    state: &AttachedState,
    canvas: &mut Canvas<'_>,
    area: Rect,
    approval: &Approval,
    layout: RequestLayout,
) {
    let theme = canvas.theme;
    let verb = match approval.subject {
        ApprovalSubject::Plan { .. } => "submits a plan",
        ApprovalSubject::Permission { .. } => "asks for permission",
    };
    let title = format!("▲ {} {verb}", one_line(approval.from.as_str()));
    let dashes = usize::from(area.width).saturating_sub(title.width() + 4);
    let heading = Line::from(vec![
        Span::styled("── ", theme.urgent()),
        Span::styled(title, theme.urgent()),
        Span::styled(format!(" {}", "─".repeat(dashes)), theme.urgent()),
    ]);
    canvas.line(area, heading);
    let body = Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(2), ..area };
    if state.is_reading {
        canvas.set_scroll(layout.lines.len(), body.height);
    }
    let (hidden, from) = (layout.hidden(), layout.from);
    canvas.frame.is_request_whole = hidden == 0;
    canvas.frame.request = Some(approval.request_id.clone());
    canvas.lines(body, layout.lines.into_iter().skip(from));
    let last = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
    canvas.line(last, key_line(screen, state, approval, hidden));
}

/// Returns the line below a request: the keys that answer it, or why the person cannot answer.
fn key_line(
    screen: &Screen,
    state: &AttachedState,
    approval: &Approval,
    hidden: usize,
) -> Line<'static> {
    let theme = screen.theme;
    if state.answering.as_ref() == Some(&approval.request_id) {
        return Line::styled("answering …", theme.busy());
    }
    if !screen.acts_as_lead() {
        return Line::styled("the lead answers this request", theme.faint());
    }
    let mut spans = Vec::new();
    let mut key = |name: &'static str, label: String| {
        spans.push(Span::styled(name, theme.strong()));
        spans.push(Span::raw(format!(" {label}   ")));
    };
    match (hidden, state.is_reading) {
        (0, _) => {
            key("ctrl-y", "allow".to_owned());
            key("ctrl-n", "deny".to_owned());
        }
        (_, true) => key("pgdn", count(hidden, "more line")),
        (_, false) => {
            key("ctrl-r", format!("read {}", count(hidden, "more line")));
            key("ctrl-n", "deny".to_owned());
        }
    }
    if state.is_reading {
        key("esc", "back".to_owned());
    }
    Line::from(spans)
}
