//! The approvals view: a list of the open requests, and the selected request in full.

pub(crate) mod document;
mod history;

use brigade_core::action::text_of;
use brigade_core::approvals::{Approval, ApprovalSubject};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

pub(crate) use self::history::answered_by;
use crate::canvas::{Canvas, ClickTarget, first_visible};
use crate::keys::KeyCommand;
use crate::screen::Screen;
use crate::screen::views::step;
use crate::text_layout::age;
use brigade_core::text::{cut, one_line};

/// Minimum width of the view at which the list is shown beside the selected request.
const MIN_SPLIT_WIDTH: u16 = 110;
/// Width of the list when it is beside the selected request.
const LIST_WIDTH: u16 = 40;

/// The state of the approvals view.
#[derive(Debug, Default)]
pub(crate) struct ApprovalsState {
    /// The scroll position within the request whose id is `scrolled_request`.
    scroll: usize,
    scrolled_request: Option<String>,
    /// Whether the selected request fills the view. If so, the up and down keys scroll the request.
    is_full: bool,
}

pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(selected) = screen.selected_request() else {
        history::draw(screen, canvas, area);
        return;
    };
    if screen.states.approvals.is_full {
        document(screen, canvas, area, selected);
    } else if area.width >= MIN_SPLIT_WIDTH {
        let parts = [Constraint::Length(LIST_WIDTH), Constraint::Length(3), Constraint::Min(0)];
        let [left, middle, right] = Layout::horizontal(parts).areas(area);
        let waiting = u16::try_from(screen.approvals.len()).unwrap_or(u16::MAX);
        let waiting = waiting.saturating_mul(2).saturating_add(1);
        let parts = [Constraint::Length(waiting), Constraint::Length(1), Constraint::Min(0)];
        let [list, _, below] = Layout::vertical(parts).areas(left);
        self::list(screen, canvas, list, selected, 2);
        history::draw_recent(screen, canvas, below);
        for y in middle.top()..middle.bottom() {
            let line = Line::styled(" │", canvas.theme.faint());
            canvas.line(Rect { y, height: 1, ..middle }, line);
        }
        document(screen, canvas, right, selected);
    } else {
        // Keep the list short, because the request needs the space more.
        let rows = u16::try_from(screen.approvals.len()).unwrap_or(u16::MAX);
        let rows = rows.min((area.height / 3).max(1)).saturating_add(1);
        let parts = [Constraint::Length(rows), Constraint::Min(0)];
        let [list, below] = Layout::vertical(parts).areas(area);
        self::list(screen, canvas, list, selected, 1);
        document(screen, canvas, below, selected);
    }
}

/// Draws the list of open requests, with one or two lines for each.
fn list(
    screen: &Screen,
    canvas: &mut Canvas<'_>,
    area: Rect,
    selected: &Approval,
    lines_each: u16,
) {
    let theme = canvas.theme;
    let [head, list] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let total = screen.approvals.len();
    let viewer = if screen.viewer_answers() { "YOU" } else { "THE LEAD" };
    let title = format!("{total} WAITING FOR {viewer}");
    canvas.line(head, Line::styled(title, theme.urgent()));
    let is_selected_request = |approval: &Approval| approval.request_id == selected.request_id;
    let index = screen.approvals.iter().position(is_selected_request).unwrap_or_default();
    let height = usize::from(list.height / lines_each);
    let from = first_visible(total, height, index);
    let mut y = list.y;
    for approval in screen.approvals.iter().skip(from).take(height) {
        let from = one_line(approval.from.as_str());
        let since = age(screen.now, approval.at);
        let kind = approval.subject.kind().to_string();
        let who = format!("▲ {:8} {kind:10} {since:>6}  ", cut(&from, 8));
        let taken = if lines_each == 1 { who.width() } else { 2 };
        let who = Span::styled(who, theme.urgent());
        let room = usize::from(list.width).saturating_sub(taken);
        let what = Span::raw(cut(&subject(approval), room));
        let lines = match lines_each {
            1 => vec![Line::from(vec![who, what])],
            _ => vec![Line::from(who), Line::from(vec![Span::raw("  "), what])],
        };
        for line in lines {
            let hit = ClickTarget::Request(approval.request_id.clone());
            canvas.row(Rect { y, height: 1, ..list }, line, is_selected_request(approval), hit);
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
    let is_same = state.scrolled_request.as_ref() == Some(&approval.request_id);
    let height = usize::from(body.height);
    let last_scroll = lines.len().saturating_sub(height);
    let scroll = if is_same { state.scroll.min(last_scroll) } else { 0 };
    canvas.set_scroll(lines.len(), body.height);
    let verb = match approval.subject {
        ApprovalSubject::Plan { .. } => "submits a plan",
        ApprovalSubject::Permission { .. } => "asks for permission",
    };
    let title = format!("{} {verb}", one_line(approval.from.as_str()));
    let position = match (last_scroll, state.is_full) {
        (0, true) => " esc: back ".to_owned(),
        (0, false) => String::new(),
        (_, true) => format!(" {}, esc: back ", line_range(scroll, height, lines.len())),
        (_, false) => format!(" {}, enter: read ", line_range(scroll, height, lines.len())),
    };
    let dashes = usize::from(rule.width).saturating_sub(title.width() + position.width() + 6);
    let line = Line::from(vec![
        Span::styled("── ", theme.faint()),
        Span::styled(title, theme.strong()),
        Span::styled(format!(" {}", "─".repeat(dashes)), theme.faint()),
        Span::raw(position),
        Span::styled("──", theme.faint()),
    ]);
    canvas.line(rule, line);
    canvas.lines(body, lines.into_iter().skip(scroll));
}

/// Returns the range of visible lines as text.
fn line_range(scroll: usize, height: usize, total: usize) -> String {
    format!("lines {}–{} of {total}", scroll + 1, (scroll + height).min(total))
}

/// Returns a request's subject in one line: what the agent wants to do, or the title of the plan.
pub(crate) fn subject(approval: &Approval) -> String {
    match &approval.subject {
        ApprovalSubject::Plan { plan, .. } => {
            let heading = |line: &str| one_line(line.trim_start_matches(['#', ' ']));
            plan.lines().map(heading).find(|line| !line.is_empty()).unwrap_or_default()
        }
        ApprovalSubject::Permission { action, .. } => action.summary(),
    }
}

/// Describes a request in a phrase that follows the member's name.
pub(crate) fn describe_request(approval: &Approval) -> String {
    let subject = subject(approval);
    match &approval.subject {
        ApprovalSubject::Plan { .. } => format!("asks to approve its plan: {subject}"),
        ApprovalSubject::Permission { .. } => format!("asks to {subject}"),
    }
}

pub(crate) fn handle(screen: &mut Screen, command: KeyCommand) -> Option<()> {
    let selected = screen.selected_request().map(|approval| approval.request_id.clone());
    let (page, max_scroll, total) =
        (screen.frame.page, screen.frame.max_scroll, screen.approvals.len());
    let state = &mut screen.states.approvals;
    match command {
        KeyCommand::Open => state.is_full = selected.is_some() && !state.is_full,
        KeyCommand::Back => state.is_full = false,
        KeyCommand::Up | KeyCommand::Down if !state.is_full && total > 1 => {
            move_selection(screen, command);
        }
        KeyCommand::Left => move_selection(screen, KeyCommand::Up),
        KeyCommand::Right => move_selection(screen, KeyCommand::Down),
        _ => {
            if state.scrolled_request != selected {
                (state.scrolled_request, state.scroll) = (selected, 0);
            }
            let page = page.saturating_sub(1);
            state.scroll = step(state.scroll.min(max_scroll), max_scroll + 1, page, command)?;
        }
    }
    Some(())
}

/// Selects the next or previous request.
fn move_selection(screen: &mut Screen, command: KeyCommand) {
    let selected = screen.selected_request().map(|approval| &approval.request_id);
    let is_selected_request = |approval: &Approval| Some(&approval.request_id) == selected;
    let index = screen.approvals.iter().position(is_selected_request).unwrap_or_default();
    let index = step(index, screen.approvals.len(), 1, command).unwrap_or(index);
    screen.request = screen.approvals.get(index).map(|approval| approval.request_id.clone());
}

pub(crate) fn selected_text(screen: &Screen) -> Option<String> {
    Some(match &screen.selected_request()?.subject {
        ApprovalSubject::Plan { plan, .. } => plan.clone(),
        ApprovalSubject::Permission { action, .. } => text_of(&action.render(None)),
    })
}
