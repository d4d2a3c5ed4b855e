//! Draws the screen of one member.

use brigade_core::pulse::Liveness;
use brigade_core::text::{cut, one_line};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Padding};
use tui_input::Input;
use unicode_width::UnicodeWidthStr;

use super::AttachedState;
use super::keys::ATTACHED_KEYS;
use super::request::{self, RequestLayout};
use crate::canvas::{Canvas, FrameInfo};
use crate::screen::Screen;
use crate::screen::views::member::{self, PROMPT, SEARCH_KEYS, TranscriptSearch};
use crate::screen::views::member_status;
use crate::style::Theme;
use crate::text_layout::{abbreviate, since, wrap_input};
use crate::time::local;

/// The largest height of the line to write in.
const MAX_COMPOSER_ROWS: u16 = 5;

/// Draws the whole screen and returns its scroll limits.
pub(crate) fn draw(screen: &Screen, state: &AttachedState, buffer: &mut Buffer) -> FrameInfo {
    let area = buffer.area;
    let mut canvas = Canvas::new(buffer, screen.theme);
    let composer_rows = composer_rows(state, area);
    let free = area.height.saturating_sub(3).saturating_sub(composer_rows);
    let request = screen.attached_request().map(|approval| {
        let most = if state.is_reading { free } else { (free / 3 * 2).max(3) };
        (approval, RequestLayout::new(screen, state, approval, area.width, most))
    });
    let request_rows = match &request {
        Some(_) if state.is_reading => free,
        Some((_, layout)) => layout.height().min(free),
        None => 0,
    };
    let rows = [
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(request_rows),
        Constraint::Length(1),
        Constraint::Length(composer_rows),
        Constraint::Length(1),
    ];
    let [title, transcript, panel, status, composer, bottom] = Layout::vertical(rows).areas(area);
    self::title(screen, state, &mut canvas, title);
    self::transcript(screen, state, &mut canvas, transcript);
    if let Some((approval, layout)) = request {
        request::draw(screen, state, &mut canvas, panel, approval, layout);
    }
    self::status(screen, state, &mut canvas, status);
    self::composer(screen, state, &mut canvas, composer);
    self::bottom(screen, state, &mut canvas, bottom);
    if state.is_help_open {
        help(&mut canvas, area);
    }
    canvas.frame
}

/// Draws the first line: the member, its agent and its team on the left, the time on the right.
fn title(screen: &Screen, state: &AttachedState, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    let person = screen.attached_member();
    let style = person.map_or(theme.strong(), |person| theme.person(person));
    let of_roster =
        person.and_then(|person| person.entry.as_ref()).and_then(|entry| entry.agent_type.clone());
    let agent = state.summary.as_ref().and_then(|summary| summary.agent.clone()).or(of_roster);
    let mut spans = vec![Span::styled(state.member.to_string(), style)];
    if let Some(agent) = agent {
        // Of a command, show only the name of the program.
        let program = agent.rsplit('/').next().unwrap_or_default();
        spans.push(Span::raw(format!("  {}", cut(&one_line(program), 30))));
    }
    spans.push(Span::styled(format!("  team {}", one_line(&screen.team)), theme.faint()));
    canvas.line(area, Line::from(spans));
    let right = match screen.caught_up {
        true => local(screen.now).strftime("%H:%M:%S").to_string(),
        false => format!("loading … {}", screen.projection.records()),
    };
    let width = u16::try_from(right.width() + 1).unwrap_or(area.width).min(area.width);
    let area = Rect { x: area.right() - width, width, ..area };
    canvas.line(area, Line::styled(format!(" {right}"), theme.faint()));
}

fn transcript(screen: &Screen, state: &AttachedState, canvas: &mut Canvas<'_>, area: Rect) {
    let parts = [Constraint::Min(0), Constraint::Length(u16::from(state.at.is_some()))];
    let [body, below] = Layout::vertical(parts).areas(area);
    canvas.frame.page = usize::from(body.height);
    canvas.frame.columns = usize::from(body.width);
    if let Some(person) = screen.attached_member() {
        member::draw_activity(screen, canvas, body, person, state.at, state.detail());
    } else if screen.caught_up {
        let text = format!("no activity from {} yet", state.member);
        canvas.line(body, Line::styled(text, canvas.theme.faint()));
    }
    if let Some(search) = &state.search {
        member::highlight(canvas.buffer, body, search.pattern.value(), canvas.theme);
    }
    let more = "▼ newer activity below; esc follows it";
    canvas.line(below, Line::styled(more, canvas.theme.urgent()));
}

/// Draws the line between the transcript and the text: the state of the member, its model and its tokens.
fn status(screen: &Screen, state: &AttachedState, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    let (words, style) = status_words(screen, state);
    let mut spans = vec![Span::styled("── ", theme.faint()), Span::styled(words, style)];
    let mut part = |text: String, style: Style| {
        spans.push(Span::styled(" ─ ", theme.faint()));
        spans.push(Span::styled(text, style));
    };
    let person = screen.attached_member();
    let summary = state.summary.as_ref();
    if let Some(model) = summary.and_then(|summary| summary.model.as_deref()) {
        part(cut(&one_line(model), 30), Style::new());
    }
    let recorded = person.map(|person| person.tokens).unwrap_or_default();
    let reported = summary.map(|summary| summary.tokens).unwrap_or_default();
    let tokens = (recorded.0 + recorded.1).max(reported.0 + reported.1);
    let cost = summary.and_then(|summary| summary.cost).filter(|cost| *cost > 0.0);
    let cost = cost.map(|cost| format!(" ${cost:.2}")).unwrap_or_default();
    if tokens > 0 {
        part(format!("{} tokens{cost}", abbreviate(tokens)), Style::new());
    }
    if let Some(unread @ 1..) = person.map(|person| person.unread) {
        part(format!("{unread} unread"), theme.urgent());
    }
    let used: usize = spans.iter().map(|span| span.content.width()).sum();
    let dashes = usize::from(area.width).saturating_sub(used + 1);
    spans.push(Span::styled(format!(" {}", "─".repeat(dashes)), theme.faint()));
    canvas.line(area, Line::from(spans));
}

/// Returns the state of the member in the words of `brigade status`. Until they are fetched, returns the words of the dashboard.
fn status_words(screen: &Screen, state: &AttachedState) -> (String, Style) {
    let theme = screen.theme;
    if let Some(summary) = &state.summary {
        return (one_line(&summary.words), liveness_style(theme, summary.liveness));
    }
    let Some(person) = screen.attached_member() else { return (String::new(), Style::new()) };
    let (_, word, style) = member_status::state(screen, person);
    let time = person.since().map(|at| format!(" {}", since(screen.now, at)));
    (format!("{word}{}", time.unwrap_or_default()), style)
}

fn liveness_style(theme: Theme, liveness: Option<Liveness>) -> Style {
    let Some(liveness) = liveness else { return theme.error() };
    match liveness {
        Liveness::Working => theme.busy(),
        Liveness::Waiting => theme.urgent(),
        Liveness::Limited | Liveness::Hung | Liveness::Dead => theme.error(),
        Liveness::Starting => theme.success(),
        Liveness::Idle | Liveness::Paused => Style::new(),
    }
}

/// Returns the text that the person edits, and the word before it.
fn edited(state: &AttachedState) -> (&Input, &'static str) {
    match &state.search {
        Some(search) => (&search.pattern, PROMPT),
        None => (&state.composer, "> "),
    }
}

fn composer_rows(state: &AttachedState, area: Rect) -> u16 {
    let (input, prompt) = edited(state);
    let room = usize::from(area.width).saturating_sub(prompt.width() + 1).max(1);
    let rows = u16::try_from(wrap_input(input.value(), room).len()).unwrap_or(u16::MAX);
    rows.min(MAX_COMPOSER_ROWS).min(area.height / 4).max(1)
}

/// Draws the text that the person edits.
fn composer(screen: &Screen, state: &AttachedState, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    if let (Some(why), None) = (&state.view_only, &state.search) {
        let text = cut(&format!("view only: {}", one_line(why)), usize::from(area.width));
        canvas.line(area, Line::styled(text, theme.faint()));
        return;
    }
    let (input, prompt) = edited(state);
    let prompt_width = u16::try_from(prompt.width()).unwrap_or(0);
    canvas.line(area, Line::styled(prompt, theme.strong()));
    let text = Rect {
        x: area.x.saturating_add(prompt_width),
        width: area.width.saturating_sub(prompt_width),
        ..area
    };
    if input.value().is_empty() && state.search.is_none() {
        let hint = format!("write to {}", state.member);
        canvas.line(text, Line::styled(hint, theme.faint()));
    }
    let room = usize::from(text.width).saturating_sub(1).max(1);
    let before: String = input.value().chars().take(input.cursor()).collect();
    let before = wrap_input(&before, room);
    let row = before.len().saturating_sub(1);
    // Keep the row with the cursor visible.
    let skip = (row + 1).saturating_sub(usize::from(text.height));
    let lines = wrap_input(input.value(), room);
    canvas.lines(text, lines.into_iter().skip(skip).map(Line::raw));
    let column = before.last().map_or(0, |line| line.width());
    let offset = |value: usize| u16::try_from(value).unwrap_or(0);
    if text.height > 0 && text.width > 0 {
        canvas.frame.cursor = Some(Position {
            x: text.x.saturating_add(offset(column)).min(text.right().saturating_sub(1)),
            y: text.y.saturating_add(offset(row - skip)),
        });
    }
    if let Some(word) = state.search.as_ref().and_then(TranscriptSearch::end_text) {
        let width = offset(word.width()).min(area.width);
        let place = Rect { x: area.right() - width, width, height: 1, ..area };
        canvas.line(place, Line::styled(word, screen.theme.urgent()));
    }
}

/// Draws the bottom line: the current notice, or the most useful keys.
fn bottom(screen: &Screen, state: &AttachedState, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    if let Some(notice) = &screen.notice {
        let style = if notice.is_error { theme.error() } else { theme.success() };
        let text = cut(&one_line(&notice.text), usize::from(area.width));
        canvas.line(area, Line::styled(text, style));
        return;
    }
    let keys: Vec<(&str, &str)> = match &state.search {
        Some(_) => SEARCH_KEYS.to_vec(),
        None => {
            let shown = ATTACHED_KEYS.iter().filter(|key| !key.label.is_empty());
            let is_usable = |key: &str| state.view_only.is_none() || key != "enter";
            shown.filter(|key| is_usable(key.key)).map(|key| (key.key, key.label)).collect()
        }
    };
    let mut room = usize::from(area.width);
    let mut spans = Vec::new();
    for (key, label) in keys {
        let label = if key == "ctrl-o" && state.is_unfolded { "fold" } else { label };
        let Some(left) = room.checked_sub(key.width() + label.width() + 1) else { continue };
        room = left.saturating_sub(2);
        spans.push(Span::styled(key.to_owned(), theme.strong()));
        spans.push(Span::styled(format!(" {label}  "), theme.faint()));
    }
    canvas.line(area, Line::from(spans));
}

fn help(canvas: &mut Canvas<'_>, area: Rect) {
    let rows = u16::try_from(ATTACHED_KEYS.len()).unwrap_or(u16::MAX).saturating_add(2);
    let outside = area.centered(Constraint::Max(66), Constraint::Max(rows.saturating_add(1)));
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .padding(Padding::horizontal(1))
        .title(Line::styled(" Keys: press any key to close ", canvas.theme.strong()));
    let inside = block.inner(outside);
    canvas.draw(Clear, outside);
    canvas.draw(block, outside);
    let theme = canvas.theme;
    let lines = ATTACHED_KEYS.iter().map(|key| {
        let name = Span::styled(format!("{:10} ", key.key), theme.strong());
        Line::from(vec![name, Span::raw(key.description)])
    });
    canvas.lines(inside, lines);
}
