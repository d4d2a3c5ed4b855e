//! The board as four columns. Each column lists the tasks in one state.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use brigade_core::projection::{BlockReason, TeamProjection};
use brigade_wire::name::TaskId;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::card;
use crate::canvas::{Canvas, ClickTarget};
use crate::keys::KeyCommand;
use crate::screen::Screen;
use crate::screen::views::step;
use brigade_core::task_view::TaskView;

/// The tasks of each column, from top to bottom.
#[derive(Debug)]
pub(super) struct Columns {
    lists: [Vec<u64>; 4],
    /// The tasks on the critical path.
    pub(super) critical: BTreeSet<u64>,
    /// Number of stuck tasks.
    pub(super) stuck: usize,
}

const TITLES: [&str; 4] = ["Ready", "In progress", "Blocked", "Done"];
const IN_PROGRESS: usize = 1;

impl Columns {
    pub(super) fn new(projection: &TeamProjection) -> Self {
        let mut lists: [Vec<_>; 4] = Default::default();
        let [ready, in_progress, blocked, done] = &mut lists;
        let mut stuck = 0;
        for card in projection.tasks() {
            let Some(id) = TaskId::new(card.id) else { continue };
            let hold = projection.block_reason(card.id);
            stuck += usize::from(super::is_stuck(hold));
            let is_wrong = matches!(hold, Some(BlockReason::Cycle(_) | BlockReason::Orphan(_)));
            // Tasks in a dependency cycle, and tasks whose owner left the team, come first: a person must
            // resolve them.
            let first = |rank: u8| (if is_wrong { 0 } else { rank }, Reverse(0));
            match TaskView::new(projection.graph(), id) {
                TaskView::Ready => ready.push((first(1), card.id)),
                TaskView::InProgress => in_progress.push((first(1), card.id)),
                TaskView::Kept => in_progress.push((first(2), card.id)),
                TaskView::Blocked => blocked.push((first(1), card.id)),
                TaskView::Done => {
                    let at = card.done.map_or(0, |at| at.0);
                    done.push(((0, Reverse(at)), card.id));
                }
            }
        }
        let sorted = |mut list: Vec<((u8, Reverse<i64>), u64)>| {
            list.sort_unstable();
            list.into_iter().map(|(_, id)| id).collect()
        };
        Self { lists: lists.map(sorted), critical: super::critical_tasks(projection), stuck }
    }

    /// Returns the initially selected task: the first task in progress, else the first task of any column.
    pub(super) fn first(&self) -> Option<u64> {
        let in_progress = self.lists.get(IN_PROGRESS).into_iter();
        in_progress.chain(&self.lists).find_map(|list| list.first().copied())
    }

    fn position(&self, id: u64) -> Option<(usize, usize)> {
        let lists = self.lists.iter().enumerate();
        lists
            .filter_map(|(column, list)| {
                Some((column, list.iter().position(|other| *other == id)?))
            })
            .next()
    }

    /// Returns the task that is selected after a movement command.
    pub(super) fn step(&self, from: u64, page: usize, command: KeyCommand) -> Option<u64> {
        let (column, row) = self.position(from)?;
        let list = self.lists.get(column)?;
        let beside = match command {
            KeyCommand::Left => self.lists.iter().take(column).rfind(|list| !list.is_empty()),
            KeyCommand::Right => self.lists.iter().skip(column + 1).find(|list| !list.is_empty()),
            _ => return list.get(step(row, list.len(), page, command)?).copied(),
        };
        let beside = beside.unwrap_or(list);
        beside.get(row.min(beside.len().saturating_sub(1))).copied()
    }

    pub(super) fn draw(&self, screen: &Screen, canvas: &mut Canvas<'_>, area: Rect, selected: u64) {
        let spacing = if area.width < 100 { 1 } else { 2 };
        let columns: [Rect; 4] =
            Layout::horizontal([Constraint::Fill(1); 4]).spacing(spacing).areas(area);
        let theme = canvas.theme;
        let styles = [theme.success(), theme.busy(), Style::new(), theme.faint()];
        let at = self.position(selected);
        for (number, ((list, area), style)) in
            self.lists.iter().zip(columns).zip(styles).enumerate()
        {
            let row = at.filter(|(column, _)| *column == number).map(|(_, row)| row);
            let [head, body] =
                Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
            let shown = column(screen, self, canvas, body, list, row);
            let title = TITLES.get(number).copied().unwrap_or_default();
            let above =
                if shown.start > 0 { format!(" ↑{}", shown.start) } else { String::new() };
            let count = format!(" {} ", list.len());
            let used = title.width() + count.width() + above.width();
            let rule = "─".repeat(usize::from(area.width).saturating_sub(used));
            let title_spans = [
                Span::styled(title, style.patch(theme.strong())),
                Span::styled(count, style),
                Span::styled(rule, theme.faint()),
                Span::raw(above),
            ];
            canvas.line(head, Line::from(title_spans.to_vec()));
            if row.is_some() {
                canvas.frame.page = shown.len();
                canvas.frame.max_scroll = list.len().saturating_sub(shown.len());
            }
        }
    }
}

/// Draws a column, scrolled so that the selected card is visible. Returns which cards are visible.
fn column(
    screen: &Screen,
    columns: &Columns,
    canvas: &mut Canvas<'_>,
    area: Rect,
    list: &[u64],
    selected: Option<usize>,
) -> std::ops::Range<usize> {
    let width = usize::from(area.width);
    let lines_of = |row: usize| {
        let id = *list.get(row)?;
        card::lines(screen, id, columns.critical.contains(&id), width)
    };
    let height = usize::from(area.height);
    let shown = visible_cards(list.len(), height, selected.unwrap_or(0), |row| {
        lines_of(row).map_or(0, |lines| lines.len())
    });
    let mut y = area.y;
    for row in shown.rows.clone() {
        let (Some(lines), Some(&id)) = (lines_of(row), list.get(row)) else { continue };
        let room = area.bottom().saturating_sub(y);
        let card_height = u16::try_from(lines.len()).unwrap_or(room).min(room);
        let card_area = Rect { y, height: card_height, ..area };
        let is_selected = selected == Some(row);
        // Drop the lines' own styles: dim text is unreadable in reverse video.
        let shown_line =
            |line: Line<'static>| if is_selected { Line::raw(line.to_string()) } else { line };
        canvas.lines(card_area, lines.into_iter().map(shown_line));
        if is_selected {
            canvas.style(card_area, canvas.theme.selected());
        }
        canvas.add_click_target(card_area, ClickTarget::Task(id));
        y = y.saturating_add(card_height).saturating_add(shown.gap);
    }
    let more = list.len().saturating_sub(shown.rows.end);
    if more > 0 && area.height > 1 {
        let last = Rect { y: area.bottom() - 1, height: 1, ..area };
        canvas.line(last, Line::styled(format!("↓ {more} more"), canvas.theme.faint()));
    }
    shown.rows
}

/// The visible cards of a column.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ColumnWindow {
    pub(super) rows: std::ops::Range<usize>,
    /// Number of empty lines between two cards.
    pub(super) gap: u16,
}

/// Computes which cards around the selected one are visible. Puts an empty line between two cards if all cards
/// then still fit. Calls `height_of` only for cards that may be visible.
pub(super) fn visible_cards(
    total: usize,
    height: usize,
    selected: usize,
    height_of: impl Fn(usize) -> usize,
) -> ColumnWindow {
    let spread = (0..total).try_fold(0, |used, row| {
        let used = used + height_of(row) + usize::from(row > 0);
        (used <= height).then_some(used)
    });
    if spread.is_some() {
        return ColumnWindow { rows: 0..total, gap: 1 };
    }
    let packed = (0..total).try_fold(0, |used, row| {
        let used = used + height_of(row);
        (used <= height).then_some(used)
    });
    if packed.is_some() {
        return ColumnWindow { rows: 0..total, gap: 0 };
    }
    // The last line shows how many cards follow.
    let height = height.saturating_sub(1);
    let mut used = height_of(selected);
    let mut rows = selected..selected + 1;
    // Give up to half of the remaining height to the cards above the selected card, and the rest to the cards
    // below the selected card. If some height is still free, give it to the cards above.
    let half = used + height.saturating_sub(used) / 2;
    for limit in [half, height] {
        while rows.start > 0 && used + height_of(rows.start - 1) <= limit {
            rows.start -= 1;
            used += height_of(rows.start);
        }
        while rows.end < total && used + height_of(rows.end) <= height {
            used += height_of(rows.end);
            rows.end += 1;
        }
    }
    ColumnWindow { rows, gap: 0 }
}
