//! The approvals view: open requests, and the selected one in full.

mod document;
mod past;

use brigade_core::approvals::{Approval, Wanted};
use brigade_core::policy;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

pub(crate) use self::past::by;
use crate::output::{cut, one_line};
use crate::ui::canvas::{Canvas, Hit, window};
use crate::ui::keys::Command;
use crate::ui::prose::age;
use crate::ui::screen::{Effect, Screen};
use crate::ui::views::step;

/// Minimum width to show the list beside the selected request.
const WIDE: u16 = 110;
/// Width of the list in that layout.
const LIST: u16 = 40;

/// The state of the view.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The scroll position, and the request it belongs to.
    scroll: usize,
    of: Option<String>,
    /// Whether the request fills the view and up/down scroll it.
    reads: bool,
}

pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(chosen) = screen.chosen_request() else {
        past::draw(screen, canvas, area);
        return;
    };
    if screen.states.approvals.reads {
        document(screen, canvas, area, chosen);
    } else if area.width >= WIDE {
        let parts = [Constraint::Length(LIST), Constraint::Length(3), Constraint::Min(0)];
        let [left, middle, right] = Layout::horizontal(parts).areas(area);
        let waiting = u16::try_from(screen.approvals.len()).unwrap_or(u16::MAX);
        let waiting = waiting.saturating_mul(2).saturating_add(1);
        let parts = [Constraint::Length(waiting), Constraint::Length(1), Constraint::Min(0)];
        let [list, _, below] = Layout::vertical(parts).areas(left);
        self::list(screen, canvas, list, chosen, 2);
        past::lately(screen, canvas, below);
        for y in middle.top()..middle.bottom() {
            let line = Line::styled(" │", canvas.theme.faint());
            canvas.line(Rect { y, height: 1, ..middle }, line);
        }
        document(screen, canvas, right, chosen);
    } else {
        // The request needs the space more than the list.
        let rows = u16::try_from(screen.approvals.len()).unwrap_or(u16::MAX);
        let rows = rows.min((area.height / 3).max(1)).saturating_add(1);
        let parts = [Constraint::Length(rows), Constraint::Min(0)];
        let [list, below] = Layout::vertical(parts).areas(area);
        self::list(screen, canvas, list, chosen, 1);
        document(screen, canvas, below, chosen);
    }
}

/// The list of open requests, with one or two lines each.
fn list(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect, chosen: &Approval, each: u16) {
    let theme = canvas.theme;
    let [head, list] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let total = screen.approvals.len();
    let whom = if screen.answers() { "YOU" } else { "THE LEAD" };
    let title = format!("{total} WAITING FOR {whom}");
    canvas.line(head, Line::styled(title, theme.urgent()));
    let is_it = |approval: &Approval| approval.request_id == chosen.request_id;
    let place = screen.approvals.iter().position(is_it).unwrap_or_default();
    let height = usize::from(list.height / each);
    let from = window(total, height, place);
    let mut y = list.y;
    for approval in screen.approvals.iter().skip(from).take(height) {
        let from = one_line(approval.from.as_str());
        let since = age(screen.now, approval.at);
        let kind = approval.wanted.kind().to_string();
        let who = format!("▲ {:8} {kind:10} {since:>6}  ", cut(&from, 8));
        let taken = if each == 1 { who.width() } else { 2 };
        let who = Span::styled(who, theme.urgent());
        let room = usize::from(list.width).saturating_sub(taken);
        let what = Span::raw(cut(&subject(approval), room));
        let lines = match each {
            1 => vec![Line::from(vec![who, what])],
            _ => vec![Line::from(who), Line::from(vec![Span::raw("  "), what])],
        };
        for line in lines {
            let hit = Hit::Request(approval.request_id.clone());
            canvas.row(Rect { y, height: 1, ..list }, line, is_it(approval), hit);
            y += 1;
        }
    }
}

/// Draws the selected request in full.
fn document(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect, approval: &Approval) {
    let theme = canvas.theme;
    let [rule, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let lines = document::lines(screen, approval, usize::from(body.width));
    let state = &screen.states.approvals;
    let is_same = state.of.as_ref() == Some(&approval.request_id);
    let height = usize::from(body.height);
    let most = lines.len().saturating_sub(height);
    let scroll = if is_same { state.scroll.min(most) } else { 0 };
    canvas.scrolls(lines.len(), body.height);
    let does = match approval.wanted {
        Wanted::Plan { .. } => "submits a plan",
        Wanted::Permission { .. } => "asks for permission",
    };
    let title = format!("{} {does}", one_line(approval.from.as_str()));
    let place = match (most, state.reads) {
        (0, true) => " esc: back ".to_owned(),
        (0, false) => String::new(),
        (_, true) => format!(" {}, esc: back ", place(scroll, height, lines.len())),
        (_, false) => format!(" {}, enter: read ", place(scroll, height, lines.len())),
    };
    let dashes = usize::from(rule.width).saturating_sub(title.width() + place.width() + 6);
    let line = Line::from(vec![
        Span::styled("── ", theme.faint()),
        Span::styled(title, theme.strong()),
        Span::styled(format!(" {}", "─".repeat(dashes)), theme.faint()),
        Span::raw(place),
        Span::styled("──", theme.faint()),
    ]);
    canvas.line(rule, line);
    for (row, line) in lines.into_iter().skip(scroll).take(height).enumerate() {
        let y = body.y + u16::try_from(row).unwrap_or(0);
        canvas.line(Rect { y, height: 1, ..body }, line);
    }
}

/// The visible line range as text.
fn place(scroll: usize, height: usize, total: usize) -> String {
    format!("lines {}–{} of {total}", scroll + 1, (scroll + height).min(total))
}

/// The request in one line: the command, the tool, or the plan's title.
pub(crate) fn subject(approval: &Approval) -> String {
    match &approval.wanted {
        Wanted::Plan { plan, .. } => {
            let words = |line: &str| one_line(line.trim_start_matches(['#', ' ']));
            plan.lines().map(words).find(|line| !line.is_empty()).unwrap_or_default()
        }
        Wanted::Permission { tool, input, description, .. } => match policy::command(input) {
            Some(command) => one_line(&command),
            None => one_line(&format!("{tool}: {description}")),
        },
    }
}

/// The request as a phrase that follows the member's name.
pub(crate) fn asks(approval: &Approval) -> String {
    let subject = subject(approval);
    match &approval.wanted {
        Wanted::Plan { .. } => format!("asks to approve its plan: {subject}"),
        Wanted::Permission { input, .. } if policy::command(input).is_some() => {
            format!("asks to run: {subject}")
        }
        Wanted::Permission { .. } => format!("asks to use {subject}"),
    }
}

pub(crate) fn act(screen: &mut Screen, command: Command) -> Option<Vec<Effect>> {
    let chosen = screen.chosen_request().map(|approval| approval.request_id.clone());
    let (page, extent, total) = (screen.drawn.page, screen.drawn.extent, screen.approvals.len());
    let state = &mut screen.states.approvals;
    match command {
        Command::Open => state.reads = chosen.is_some() && !state.reads,
        Command::Back => state.reads = false,
        Command::Up | Command::Down if !state.reads && total > 1 => go(screen, command),
        Command::Left => go(screen, Command::Up),
        Command::Right => go(screen, Command::Down),
        _ => {
            if state.of != chosen {
                (state.of, state.scroll) = (chosen, 0);
            }
            let page = page.saturating_sub(1);
            state.scroll = step(state.scroll.min(extent), extent + 1, page, command)?;
        }
    }
    Some(Vec::new())
}

/// Selects the next or previous request.
fn go(screen: &mut Screen, command: Command) {
    let chosen = screen.chosen_request().map(|approval| &approval.request_id);
    let is_it = |approval: &Approval| Some(&approval.request_id) == chosen;
    let place = screen.approvals.iter().position(is_it).unwrap_or_default();
    let place = step(place, screen.approvals.len(), 1, command).unwrap_or(place);
    screen.request = screen.approvals.get(place).map(|approval| approval.request_id.clone());
}

pub(crate) fn chosen_text(screen: &Screen) -> Option<String> {
    Some(match &screen.chosen_request()?.wanted {
        Wanted::Plan { plan, .. } => plan.clone(),
        Wanted::Permission { input, .. } => {
            policy::command(input).unwrap_or_else(|| input.to_string())
        }
    })
}
