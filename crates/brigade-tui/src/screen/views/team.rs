//! The team view: the members and what each one does.

mod details;

use std::collections::HashMap;

use brigade_core::projection::{MemberView, TaskEntry};
use brigade_wire::task::Status;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::canvas::{Canvas, ClickTarget, first_visible};
use crate::keys::KeyCommand;
use crate::screen::views::{approvals, member_status, step};
use crate::screen::{Screen, record_text};
use crate::style::Theme;
use crate::text_layout::{abbreviate, since};
use crate::view::View;
use brigade_core::text::{cut, one_line};

/// Minimum width of the view at which the agent column is shown.
const MIN_AGENT_WIDTH: u16 = 110;
/// Minimum height of the details pane.
const MIN_DETAILS_HEIGHT: u16 = 5;

pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let members = screen.projection.members();
    if members.is_empty() {
        let text = if screen.caught_up { "this team has no members" } else { "" };
        canvas.line(area, Line::styled(text, canvas.theme.faint()));
        return;
    }
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let count = u16::try_from(members.len()).unwrap_or(u16::MAX);
    // If there is room for two lines per member, show each member's last message on the second line.
    let lines_each = if count.saturating_mul(2) <= body.height { 2 } else { 1 };
    let rows = count.saturating_mul(lines_each);
    let below = body.height.saturating_sub(rows);
    let below = if below >= MIN_DETAILS_HEIGHT { below } else { 0 };
    let [list, below] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(below)]).areas(body);
    let table = MemberTable::new(screen, &members, area.width, lines_each == 2);
    canvas.line(head, table.head(canvas.theme));
    let index = screen.selected_index(&members);
    let selected = members.get(index).map(|person| person.index);
    let fit = list.height / lines_each;
    // The last line shows the number of hidden members.
    let shown = if members.len() > usize::from(fit) { fit.saturating_sub(1) } else { fit };
    let from = first_visible(members.len(), usize::from(shown), index);
    canvas.set_scroll(members.len(), shown);
    let mut y = list.y;
    for person in members.iter().skip(from).take(usize::from(shown)) {
        let is_selected = Some(person.index) == selected;
        let hit = ClickTarget::Member(person.name.to_string());
        let mut row = |y, line| {
            canvas.row(Rect { y, height: 1, ..list }, line, is_selected, hit.clone());
        };
        row(y, table.first_line(person));
        if lines_each == 2 {
            row(y + 1, table.second_line(person));
        }
        y += lines_each;
    }
    let unseen = members.len().saturating_sub(usize::from(shown));
    if unseen > 0 {
        let line = Line::styled(format!("  … {unseen} more"), canvas.theme.faint());
        canvas.line(Rect { y, height: 1, ..list }.intersection(list), line);
    }
    if let Some(person) = members.get(index) {
        details::draw(screen, canvas, below, person);
    }
}

/// The table of members: column widths and data.
struct MemberTable<'t> {
    screen: &'t Screen,
    width: usize,
    name: usize,
    /// Width of the agent column; 0 if the column is not shown.
    agent: usize,
    task: usize,
    /// Whether each member has a second line.
    has_second_line: bool,
    /// For each member: the task it works on, and how many more of its tasks are in progress.
    tasks: HashMap<&'t str, (&'t TaskEntry, usize)>,
}

/// Widths of the columns STATE, SINCE, UNREAD and TOKENS.
const STATE_WIDTH: usize = 15;
const SINCE_WIDTH: usize = 6;
const UNREAD_WIDTH: usize = 6;
const TOKENS_WIDTH: usize = 6;
/// Maximum width of the task column. In a wider column, the numbers would be too far from the names.
const MAX_TASK_WIDTH: usize = 60;

impl<'t> MemberTable<'t> {
    fn new(screen: &'t Screen, members: &[&MemberView], width: u16, has_second_line: bool) -> Self {
        let longest = members.iter().map(|person| one_line(&person.name).width()).max();
        let is_wide = width >= MIN_AGENT_WIDTH;
        let name = longest.unwrap_or_default().clamp(6, if is_wide { 20 } else { 14 });
        let width = usize::from(width);
        let longest = members.iter().map(|person| agent_label(person).width()).max();
        let agent = if is_wide { longest.unwrap_or_default().clamp(5, width / 5) } else { 0 };
        let gaps = 2 + 2 + 2 + 2 + 2 + 2 + if is_wide { 2 } else { 0 };
        let taken = name + agent + STATE_WIDTH + SINCE_WIDTH + UNREAD_WIDTH + TOKENS_WIDTH + gaps;
        let task = width.saturating_sub(taken).min(MAX_TASK_WIDTH);
        let mut tasks: HashMap<&str, (&TaskEntry, usize)> = HashMap::new();
        let is_in_progress = |card: &&TaskEntry| card.status() == Some(Status::InProgress);
        for card in screen.projection.tasks().filter(is_in_progress) {
            let Some(owner) = card.owner.as_deref() else { continue };
            tasks.entry(owner).and_modify(|entry| entry.1 += 1).or_insert((card, 0));
        }
        Self { screen, width, name, agent, task, has_second_line, tasks }
    }

    fn row(&self, cells: [Span<'static>; 8]) -> Line<'static> {
        let [sign, name, agent, state, since, task, unread, tokens] = cells;
        let mut spans = vec![sign, Span::raw(" ")];
        let mut left = |span: Span<'static>, width: usize| {
            let text = cut(&span.content, width);
            let gap = width.saturating_sub(text.width()) + 2;
            spans.push(Span::styled(text, span.style));
            spans.push(Span::raw(" ".repeat(gap)));
        };
        left(name, self.name);
        if self.agent > 0 {
            left(agent, self.agent);
        }
        left(state, STATE_WIDTH);
        let since = Span::styled(format!("{:>SINCE_WIDTH$}", since.content), since.style);
        left(since, SINCE_WIDTH);
        left(task, self.task);
        for (cell, width) in [(unread, UNREAD_WIDTH), (tokens, TOKENS_WIDTH + 2)] {
            spans.push(Span::styled(format!("{:>width$}", cell.content), cell.style));
        }
        Line::from(spans)
    }

    fn head(&self, theme: Theme) -> Line<'static> {
        let cells = ["", "MEMBER", "AGENT", "STATE", "SINCE", "WORKS ON", "UNREAD", "TOKENS"];
        let mut line = self.row(cells.map(|cell| Span::styled(cell, theme.faint())));
        // The column of symbols has no heading.
        if let Some(first) = line.spans.first_mut() {
            *first = Span::raw(" ");
        }
        line
    }

    /// Renders the first line of a member: name, agent, state, duration, task, unread messages and tokens.
    fn first_line(&self, person: &MemberView) -> Line<'static> {
        let (screen, theme) = (self.screen, self.screen.theme);
        let (sign, word, style) = member_status::state(screen, person);
        let task = match self.tasks.get(&*person.name) {
            None => String::new(),
            Some((card, 0)) => format!("{} {}", card.id, one_line(&card.subject)),
            Some((card, more)) => format!("{} {} (+{more})", card.id, one_line(&card.subject)),
        };
        let unread = if person.unread == 0 { String::new() } else { person.unread.to_string() };
        let tokens = person.tokens.0.saturating_add(person.tokens.1);
        let tokens = if tokens == 0 { String::new() } else { abbreviate(tokens) };
        // If members have no second line, show a problem in place of the task.
        let (task, task_style) = match remark(screen, person) {
            Remark::Problem(why) if !self.has_second_line => (why, theme.error()),
            _ => (task, Style::new()),
        };
        let since = person.since().map(|at| since(screen.now, at)).unwrap_or_default();
        self.row([
            Span::styled(sign, style),
            Span::styled(one_line(&person.name), theme.person(person)),
            Span::styled(agent_label(person), theme.faint()),
            Span::styled(word, style),
            Span::styled(since, theme.faint()),
            Span::styled(task, task_style),
            Span::styled(unread, theme.urgent()),
            Span::styled(tokens, theme.faint()),
        ])
    }

    /// Renders the second line of a member: a problem, an open request, or the last message.
    fn second_line(&self, person: &MemberView) -> Line<'static> {
        let theme = self.screen.theme;
        let (text, style) = match remark(self.screen, person) {
            Remark::Problem(why) => (why, theme.error()),
            Remark::Request(what) => (what, theme.urgent()),
            Remark::Text(text) => (text, Style::new()),
        };
        let before = if self.agent > 0 { self.name + 2 + self.agent } else { self.name };
        let short =
            if self.agent > 0 { String::new() } else { cut(&agent_type(person), self.name) };
        let gap = before.saturating_sub(short.width()) + 2;
        let room = self.width.saturating_sub(before + 4);
        Line::from(vec![
            Span::raw("  "),
            Span::styled(short, theme.faint()),
            Span::raw(" ".repeat(gap)),
            Span::styled(cut(&text, room), style),
        ])
    }
}

/// Returns the member's agent type.
fn agent_type(person: &MemberView) -> String {
    let entry = person.entry.as_ref().and_then(|entry| entry.agent_type.as_deref());
    // Leave out the type if it equals the member's name, as it does for a lead.
    entry.filter(|kind| *kind != &*person.name).map(one_line).unwrap_or_default()
}

/// Returns the agent type, with the model if it is known.
fn agent_label(person: &MemberView) -> String {
    let model = person.entry.as_ref().and_then(|entry| entry.model.as_deref());
    let parts = [agent_type(person), one_line(model.unwrap_or_default())];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The most important fact about a member, in one line.
enum Remark {
    Problem(String),
    Request(String),
    Text(String),
}

fn remark(screen: &Screen, person: &MemberView) -> Remark {
    if let Some(why) = member_status::problem(screen, person) {
        return Remark::Problem(why);
    }
    let asks = screen.approvals.iter().find(|approval| approval.from.as_str() == &*person.name);
    if let Some(approval) = asks {
        return Remark::Request(approvals::describe_request(approval));
    }
    Remark::Text(last_text(screen, person).map(|text| one_line(&text)).unwrap_or_default())
}

/// Returns the last text that a member said or sent.
pub(crate) fn last_text(screen: &Screen, person: &MemberView) -> Option<String> {
    record_text(&*screen.record(person.last_text?)?)
}

pub(crate) fn handle(screen: &mut Screen, command: KeyCommand) -> Option<()> {
    if command == KeyCommand::Open {
        screen.member = Some(screen.selected_member()?.name.to_string());
        screen.view = View::Member;
        return Some(());
    }
    let members = screen.projection.members();
    let index = step(screen.selected_index(&members), members.len(), screen.frame.page, command)?;
    screen.member = members.get(index).map(|person| person.name.to_string());
    Some(())
}
