//! Renders a request in full, so that the person sees everything before approving it.

use brigade_core::action::LineRole;
use brigade_core::approvals::{Approval, ApprovalSubject};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::markdown;
use crate::screen::Screen;
use crate::text_layout::{age, with_label, wrap};
use crate::time::local;
use brigade_core::text::one_line;

/// Width of the column with the labels.
const LABEL_WIDTH: usize = 11;

pub(crate) fn lines(screen: &Screen, approval: &Approval, width: usize) -> Vec<Line<'static>> {
    let theme = screen.theme;
    let room = width.saturating_sub(LABEL_WIDTH);
    let mut lines = Vec::new();
    let mut part = |label: &'static str, content: Vec<Line<'static>>| {
        lines.extend(with_label(label, LABEL_WIDTH, theme.faint(), content));
    };
    let text_lines = |text: &str, style: Style| wrap(&[Span::styled(one_line(text), style)], room);
    let waiting = age(screen.now, approval.at);
    let at = local(approval.at).strftime("%H:%M:%S");
    let waiting = format!("for {waiting}, since {at}");
    match &approval.subject {
        ApprovalSubject::Permission { description, action, .. } => {
            part("purpose", text_lines(description, Style::new()));
            part("waiting", text_lines(&waiting, theme.urgent()));
            lines.push(Line::default());
            for line in action.render(None) {
                let style = match line.role {
                    LineRole::Title | LineRole::Command => theme.strong(),
                    LineRole::Cut => theme.urgent(),
                    _ => Style::new(),
                };
                let parts = line.wrapped(width).into_iter();
                lines.extend(parts.map(|part| Line::styled(part, style)));
            }
        }
        ApprovalSubject::Plan { plan, path } => {
            part("waiting", text_lines(&waiting, theme.urgent()));
            if let Some(path) = path {
                part("file", text_lines(path, Style::new()));
            }
            lines.push(Line::default());
            lines.extend(markdown::lines(plan, width, theme));
        }
    }
    lines
}
