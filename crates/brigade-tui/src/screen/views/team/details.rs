//! Draws the details of the selected member.

use brigade_core::projection::{MemberView, MessageKind};
use brigade_core::wire::backend;
use brigade_wire::task::Status;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{MIN_AGENT_WIDTH, agent_label, last_text};
use crate::canvas::Canvas;
use crate::markdown;
use crate::screen::Screen;
use crate::screen::views::{approvals, member, member_status};
use crate::text_layout::{abbreviate, age, since, with_label, wrap};
use crate::time::local;
use brigade_core::text::one_line;

/// Width of the column with the labels.
const LABEL_WIDTH: usize = 10;
/// Maximum number of the member's tasks that are shown.
const MAX_TASKS: usize = 6;
/// Maximum number of lines that are shown of the member's last message.
const MAX_TEXT_LINES: usize = 4;
/// Minimum height of the space for recent activity.
const MIN_RECENT_HEIGHT: u16 = 4;

pub(super) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect, person: &MemberView) {
    if area.height == 0 {
        return;
    }
    let [title, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let name = one_line(&person.name);
    let rule = usize::from(title.width).saturating_sub(name.width() + 4);
    let theme = canvas.theme;
    let line = Line::from(vec![
        Span::styled("── ", theme.faint()),
        Span::styled(name, theme.person(person)),
        Span::styled(format!(" {}", "─".repeat(rule)), theme.faint()),
    ]);
    canvas.line(title, line);
    let columns = if area.width >= MIN_AGENT_WIDTH { 2 } else { 1 };
    let parts = Layout::horizontal(vec![Constraint::Fill(1); columns]).spacing(3).split(body);
    // The columns differ in width if the space between them cannot be halved.
    let width = parts.iter().map(|part| usize::from(part.width)).min().unwrap_or_default();
    let (mut now, facts) = (current_state(screen, person, width), facts(screen, person, width));
    let columns = if columns == 1 {
        // In a layout with one column, put the rarely changing facts at the end, where they may be cut off.
        now.extend(facts);
        vec![now]
    } else {
        vec![now, facts]
    };
    let used = columns.iter().map(Vec::len).max().unwrap_or_default();
    for (part, lines) in parts.iter().zip(columns) {
        canvas.lines(*part, lines);
    }
    let used = u16::try_from(used).unwrap_or(u16::MAX);
    recent_activity(screen, canvas, body, person, used);
}

/// Draws the member's recent activity in the remaining space.
fn recent_activity(
    screen: &Screen,
    canvas: &mut Canvas<'_>,
    area: Rect,
    person: &MemberView,
    used: u16,
) {
    let parts = [Constraint::Length(used), Constraint::Length(2), Constraint::Min(0)];
    let [_, head, rest] = Layout::vertical(parts).areas(area);
    if rest.height < MIN_RECENT_HEIGHT {
        return;
    }
    let head = Rect { y: head.bottom().saturating_sub(1), height: 1, ..head };
    canvas.line(head, Line::styled("RECENT ACTIVITY", canvas.theme.faint()));
    member::draw_activity(screen, canvas, rest, person, None, member::ItemDetail::Brief);
}

fn labelled(screen: &Screen, label: &'static str, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    with_label(label, LABEL_WIDTH, screen.theme.faint(), lines)
}

/// Renders the member's current state: problem, requests, tasks, last message.
fn current_state(screen: &Screen, person: &MemberView, width: usize) -> Vec<Line<'static>> {
    let (theme, room) = (screen.theme, width.saturating_sub(LABEL_WIDTH));
    let mut lines = Vec::new();
    if let Some(why) = member_status::problem(screen, person) {
        lines.extend(labelled(screen, "problem", wrap(&[Span::styled(why, theme.error())], room)));
    }
    for approval in &screen.approvals {
        if approval.from.as_str() == &*person.name {
            let since = age(screen.now, approval.at);
            let what = format!("▲ {}, for {since}", approvals::describe_request(approval));
            lines.extend(labelled(
                screen,
                "waiting",
                wrap(&[Span::styled(what, theme.urgent())], room),
            ));
        }
    }
    lines.extend(labelled(screen, "tasks", tasks(screen, person)));
    if let Some(text) = last_text(screen, person) {
        let mut text = markdown::lines(text.trim_end(), room, theme);
        let more = text.len() > MAX_TEXT_LINES;
        text.truncate(MAX_TEXT_LINES);
        if let Some(last) = text.last_mut().filter(|_| more) {
            last.push_span(Span::raw(" …"));
        }
        lines.extend(labelled(screen, "last said", text));
    }
    lines
}

fn tasks(screen: &Screen, person: &MemberView) -> Vec<Line<'static>> {
    let theme = screen.theme;
    let mut cards: Vec<_> = screen
        .projection
        .tasks()
        .filter(|card| card.owner.as_deref() == Some(&*person.name))
        .collect();
    let rank = |status| match status {
        Some(Status::InProgress) => 0,
        Some(Status::Completed) => 2,
        _ => 1,
    };
    cards.sort_by_key(|card| (rank(card.status()), std::cmp::Reverse(card.since)));
    let more = cards.len().saturating_sub(MAX_TASKS);
    let task = |card: &&brigade_core::projection::TaskEntry| {
        let since = since(screen.now, card.since);
        let (sign, word, style) = match card.status() {
            Some(Status::InProgress) => ("◐", format!("in progress for {since}"), theme.busy()),
            Some(Status::Completed) => ("✓", format!("done {since} ago"), theme.faint()),
            _ => ("○", "not started".to_owned(), theme.success()),
        };
        Line::from(vec![
            Span::styled(format!("{sign} {} ", card.id), style),
            Span::raw(one_line(&card.subject)),
            Span::styled(format!(", {word}"), theme.faint()),
        ])
    };
    let mut lines: Vec<Line<'static>> = cards.iter().take(MAX_TASKS).map(task).collect();
    if more > 0 {
        lines.push(Line::styled(format!("and {more} more"), theme.faint()));
    }
    lines
}

/// Renders facts about the member: agent, folder, process, tokens, mail.
fn facts(screen: &Screen, person: &MemberView, width: usize) -> Vec<Line<'static>> {
    let room = width.saturating_sub(LABEL_WIDTH);
    let entry = person.entry.clone().unwrap_or_default();
    let mut lines = Vec::new();
    let mut part = |label, text: String| {
        if !text.is_empty() {
            lines.extend(labelled(screen, label, wrap(&[Span::raw(text)], room)));
        }
    };
    part("agent", agent_label(person));
    part("folder", one_line(entry.cwd.as_deref().unwrap_or_default()));
    part("runs", process_text(screen, person));
    if let Some(joined) = person.joined {
        let time = local(joined.timestamp()).strftime("%H:%M");
        part("joined", format!("{time}, {} ago", since(screen.now, joined)));
    }
    let (read, written) = person.tokens;
    if read + written > 0 {
        let cost = person.cost.map(|cost| format!(", ${cost:.2}")).unwrap_or_default();
        part("tokens", format!("{} input, {} output{cost}", abbreviate(read), abbreviate(written)));
    }
    let messages = screen.projection.messages();
    if !person.messages.is_empty() {
        // Search only recent messages, because scanning all of them on each redraw would be slow.
        let is_text = |number: &&u32| {
            let message = usize::try_from(**number).ok().and_then(|number| messages.get(number));
            message.is_some_and(|message| message.kind == MessageKind::Text)
        };
        let last = person.messages.iter().rev().take(100).find(is_text);
        let last = last.and_then(|number| messages.get(usize::try_from(*number).ok()?));
        let last = last.map(|message| {
            let (from, to) =
                (screen.projection.name(message.from), screen.projection.name(message.to));
            format!(
                ", last: {} → {} {} ago",
                one_line(from),
                one_line(to),
                since(screen.now, message.at)
            )
        });
        let unread =
            if person.unread == 0 { String::new() } else { format!(", {} unread", person.unread) };
        let total = person.messages.len();
        part("mail", format!("{total} messages{unread}{}", last.unwrap_or_default()));
    }
    lines
}

/// Describes how and where the member's process runs.
fn process_text(screen: &Screen, person: &MemberView) -> String {
    let entry = person.entry.clone().unwrap_or_default();
    let backend = match entry.backend_type.as_deref() {
        Some(backend::TMUX) => match entry.tmux_pane_id.as_deref() {
            Some(pane) if !pane.is_empty() => format!("in tmux, pane {}", one_line(pane)),
            _ => "in tmux".into(),
        },
        Some(backend::IN_PROCESS) => "in the lead's process".into(),
        Some(backend::PROCESS) => "as a separate process".into(),
        other => one_line(other.unwrap_or_default()),
    };
    let health = screen.health.get(&*person.name);
    match health.and_then(|health| health.host.as_deref()) {
        Some(host) => format!("{backend} on {}", one_line(host)),
        None => backend,
    }
}

#[cfg(test)]
mod tests {
    use crate::keys::KeyCommand;
    use crate::screen::test_support::ScriptedTeam;
    use crate::view::View;

    #[test]
    fn a_long_folder_is_shown_whole_at_any_width() {
        let mut team = ScriptedTeam::new(View::Team);
        team.create(0);
        team.join_in(1_000, "ben", &"ø".repeat(90));
        team.press(&[KeyCommand::Down]);
        for width in 110..=140 {
            let drawn = team.drawn(width, 40).concat();
            assert_eq!(drawn.matches('ø').count(), 90, "{width}");
        }
    }
}
