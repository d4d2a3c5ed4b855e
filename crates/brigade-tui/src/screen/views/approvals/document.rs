//! Renders a request in full, so that the person sees everything before approving it.

use brigade_core::approvals::{Approval, ApprovalSubject};
use brigade_core::policy;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use crate::markdown;
use crate::screen::Screen;
use crate::text_layout::{age, with_label, wrap, wrap_plain};
use crate::time::local;
use brigade_core::text::one_line;

/// Width of the column with the labels.
const LABEL_WIDTH: usize = 11;

pub(super) fn lines(screen: &Screen, approval: &Approval, width: usize) -> Vec<Line<'static>> {
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
        ApprovalSubject::Permission { tool, input, description, cwd } => {
            let command = policy::command(input);
            if let Some(command) = &command {
                part("command", wrap_plain(command, room, theme.strong()));
            }
            match cwd {
                Some(cwd) => part("directory", text_lines(cwd, Style::new())),
                None => part("directory", text_lines("not specified", theme.faint())),
            }
            part("purpose", text_lines(description, Style::new()));
            part("tool", text_lines(tool, Style::new()));
            part("waiting", text_lines(&waiting, theme.urgent()));
            if !shows_all_input(input, command.as_deref(), cwd.as_deref(), description) {
                let json = serde_json::to_string_pretty(input).unwrap_or_default();
                part("input", wrap_plain(&json, room, Style::new()));
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

/// Returns whether the displayed fields contain the tool's whole input. If not, the raw input is displayed
/// too.
fn shows_all_input(input: &Value, command: Option<&str>, cwd: Option<&str>, purpose: &str) -> bool {
    let Value::Object(fields) = input else { return false };
    command.is_some()
        && fields.iter().all(|(name, value)| match name.as_str() {
            "command" => value.as_str() == command,
            "cwd" => value.as_str() == cwd,
            "description" => value.as_str() == Some(purpose),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn raw_input_is_shown_unless_the_fields_contain_all_of_it() {
        let check = |input: Value, all: bool| {
            let command = policy::command(&input);
            assert_eq!(
                shows_all_input(&input, command.as_deref(), Some("/w"), "why"),
                all,
                "{input}"
            );
        };
        check(json!({"command": "ls", "cwd": "/w"}), true);
        check(json!({"command": "ls", "description": "why"}), true);
        check(json!({"command": "ls", "description": "something else"}), false);
        check(json!({"command": "ls", "cwd": "/other"}), false);
        check(json!({"command": "ls", "sandbox": false}), false);
        check(json!({"command": "bash -lc 'ls'"}), false);
        check(json!({"command": ["ls"]}), false);
        check(json!({"path": "/etc/passwd"}), false);
        check(json!(null), false);
    }
}
