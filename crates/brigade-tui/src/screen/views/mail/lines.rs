//! Renders a mail entry as lines.

use brigade_core::projection::{MemberIndex, MemberView, MessageKind, MessageRef};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::delivery;
use super::entries::{MailEntry, MessageList, text};
use super::protocol::{ProtocolSummary, describe, idle_notices};
use crate::style::Theme;
use crate::time::local;
use brigade_core::text::{cut, one_line, plain, wrap};

/// How many lines of a folded message are shown.
const FOLDED_LINES: usize = 6;
/// Maximum number of characters of a folded message that are wrapped into lines.
const MAX_FOLDED_CHARS: usize = 16 << 10;
/// Width of the time column.
const TIME_WIDTH: usize = 10;
/// Minimum width for the names of sender and recipient.
const NAMES_WIDTH: usize = 24;

/// Renders an entry as lines, at most `width` wide. The first line is the heading.
pub(super) fn lines(
    list: &MessageList<'_>,
    entry: MailEntry,
    width: u16,
    is_unfolded: bool,
    theme: Theme,
) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let Some(message) = list.message(entry.from) else { return Vec::new() };
    let screen = list.screen();
    let (stage, state) = delivery::describe(list.messages(entry), screen.now);
    let time = local(message.at.timestamp()).strftime("%H:%M:%S  ").to_string();
    let message_text = || text(screen, message).unwrap_or_else(|| "(text not available)".into());
    let indent = if width < 60 { 2 } else { TIME_WIDTH };
    let is_many = entry.to - entry.from > 1;
    if message.kind != MessageKind::Text {
        let ProtocolSummary { line, details } = if is_many {
            let names = list.messages(entry).map(|message| list.projection().name(message.from));
            let details = if is_unfolded { delivery_states(list, entry) } else { String::new() };
            ProtocolSummary { line: idle_notices(names), details }
        } else {
            describe(list.projection(), message, &message_text())
        };
        let parts = vec![Span::styled(one_line(&line), theme.faint())];
        let mut lines = vec![heading(&time, parts, (&state, theme.faint()), width, theme)];
        if is_unfolded {
            let rows = wrap_text(&details, width.saturating_sub(indent));
            lines.extend(rows.into_iter().map(|row| indented(indent, row, theme.faint())));
        }
        return lines;
    }
    let to = list.messages(entry).map(|message| message.to).collect::<Vec<_>>();
    let parts = vec![
        screen.styled_name(message.from),
        Span::styled(" → ", theme.faint()),
        match to.as_slice() {
            [one] => screen.styled_name(*one),
            several => Span::styled(recipients(list, message, several), theme.strong()),
        },
    ];
    let mut lines = vec![heading(&time, parts, (&state, stage.style(theme)), width, theme)];
    if is_unfolded && is_many {
        let rows = wrap_text(&delivery_states(list, entry), width.saturating_sub(indent));
        lines.extend(rows.into_iter().map(|row| indented(indent, row, theme.faint())));
    }
    lines.extend(body(&message_text(), width.saturating_sub(indent), is_unfolded).into_iter().map(
        |row| match row {
            Ok(row) => indented(indent, row, Style::new()),
            Err(note) => indented(indent, note, theme.faint()),
        },
    ));
    lines
}

/// Renders the heading: time, sender and recipients, and the delivery state at the right.
fn heading(
    time: &str,
    parts: Vec<Span<'static>>,
    (state, style): (&str, Style),
    width: usize,
    theme: Theme,
) -> Line<'static> {
    // On a narrow screen, show only the symbol of the delivery state.
    let sign = state.char_indices().nth(1).and_then(|(end, _)| state.get(..end));
    let state = sign.filter(|_| width < TIME_WIDTH + NAMES_WIDTH + state.width()).unwrap_or(state);
    let room = width.saturating_sub(TIME_WIDTH + state.width() + 2);
    let mut spans = vec![Span::styled(time.to_owned(), theme.faint())];
    let mut used = 0;
    for span in parts {
        if used >= room {
            break;
        }
        let text = cut(&span.content, room.saturating_sub(used));
        used += text.width();
        spans.push(Span::styled(text, span.style));
    }
    let gap = width.saturating_sub(TIME_WIDTH + used + state.width());
    spans.push(Span::raw(" ".repeat(gap)));
    spans.push(Span::styled(state.to_owned(), style));
    Line::from(spans)
}

fn indented(indent: usize, text: String, style: Style) -> Line<'static> {
    Line::from(vec![Span::raw(" ".repeat(indent)), Span::styled(text, style)])
}

/// Describes the recipients of a message that was sent to several members.
fn recipients(list: &MessageList<'_>, message: &MessageRef, to: &[MemberIndex]) -> String {
    let was_member = |person: &&MemberView| {
        person.joined.is_some_and(|joined| joined <= message.at)
            && person.left.is_none_or(|left| left > message.at)
    };
    let people = list.projection().all_members().iter().filter(was_member);
    let others = people.filter(|person| person.index != message.from).count();
    if to.len() >= others {
        return format!("all members ({})", to.len());
    }
    match to {
        [one, other] => {
            let name = |who| one_line(list.projection().name(who));
            format!("{}, {}", name(*one), name(*other))
        }
        _ => format!("{} members", to.len()),
    }
}

/// Describes the delivery state of each message of an entry.
fn delivery_states(list: &MessageList<'_>, entry: MailEntry) -> String {
    let now = list.screen().now;
    let line = |message: &MessageRef| {
        let time = local(message.at.timestamp()).strftime("%H:%M:%S");
        let (_, state) = delivery::describe(std::iter::once(message), now);
        match message.kind {
            MessageKind::Text => {
                format!("{}: {state}", one_line(list.projection().name(message.to)))
            }
            _ => format!("{time} {}: {state}", one_line(list.projection().name(message.from))),
        }
    };
    list.messages(entry).map(line).collect::<Vec<_>>().join("\n")
}

/// Returns each line of the text as `Ok`. If the text is cut, a note about the rest follows as `Err`.
fn body(text: &str, width: usize, is_unfolded: bool) -> Vec<Result<String, String>> {
    if is_unfolded {
        return wrap_text(text, width).into_iter().map(Ok).collect();
    }
    // Do not wrap a huge message only to count its lines.
    let end = text.char_indices().nth(MAX_FOLDED_CHARS).map(|(at, _)| at);
    let seen = end.and_then(|end| text.get(..end)).unwrap_or(text);
    let mut rows = wrap_text(seen, width);
    // If only one more line is left, show it: a note about the rest would take one line too.
    let fits = |rows: &Vec<String>| end.is_none() && rows.len() <= FOLDED_LINES + 1;
    if !fits(&rows) {
        rows.retain(|row| !row.trim().is_empty());
    }
    if fits(&rows) {
        return rows.into_iter().map(Ok).collect();
    }
    let more = rows.split_off(FOLDED_LINES.min(rows.len())).len();
    let note = match end {
        Some(_) => "… much more, enter: show all".to_owned(),
        None => format!("… {more} more lines, enter: show all"),
    };
    rows.into_iter().map(Ok).chain([Err(note)]).collect()
}

/// Wraps a text to `width` and drops empty lines at the end.
pub(super) fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let text = plain(text.trim_end());
    let lines = text.lines().flat_map(|line| wrap(line, width));
    lines.flat_map(|line| split_line(line, width)).collect()
}

/// Splits a wrapped line that is too wide because it contains a long word.
fn split_line(line: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for character in line.chars() {
        let char_width = character.width().unwrap_or_default();
        if used + char_width > width && used > 0 {
            pieces.push(String::new());
            used = 0;
        }
        used += char_width;
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
    }
    pieces
}
