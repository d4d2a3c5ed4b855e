//! The timeline view: when each member worked.

mod axis;
mod cells;
mod details;
mod mail;
mod rows;
#[cfg(test)]
mod tests;

use brigade_core::projection::{MemberView, TeamProjection};
use ratatui::layout::Rect;
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use self::axis::{Axis, STEPS, fitting_step};
use self::rows::LaneLayout;
use crate::canvas::{Canvas, first_visible};
use crate::keys::KeyCommand;
use crate::screen::Screen;
use crate::screen::views::step;
use crate::view::View;
use brigade_core::text::one_line;

/// The state of the timeline view.
#[derive(Debug, Default)]
pub(crate) struct TimelineState {
    zoom: Zoom,
    /// End time of the last column, in milliseconds since 1970. If `None`, the view follows the current time.
    right: Option<i64>,
}

/// How much time a column covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Zoom {
    /// Columns cover enough time to show the whole history, within the limits of `DEFAULT_STEP_RANGE`.
    #[default]
    Default,
    /// Columns cover enough time to show the whole history.
    All,
    /// Each column covers this many milliseconds.
    Step(i64),
}

/// Limits of the default zoom level, in milliseconds per column.
const DEFAULT_STEP_RANGE: std::ops::RangeInclusive<i64> = 1_000..=60_000;

/// How the height of the view is divided into lanes, mail rows and details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowPlan {
    /// Number of visible lanes.
    lanes: usize,
    /// Which lanes have a row for mail.
    mail: MailRows,
    /// Rows for the details of the selected member.
    details: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MailRows {
    None,
    Selected,
    All,
}

impl RowPlan {
    /// Divides the height, in this order of priority: all lanes, minimal details, mail rows, more details.
    fn new(lanes: usize, height: u16) -> Self {
        let room = usize::from(height);
        let seen = lanes.min(room);
        let rest = room - seen;
        let least = usize::from(details::MIN_ROWS);
        let mail = match rest.saturating_sub(least) {
            rest if seen > 0 && rest >= seen => MailRows::All,
            1.. if seen > 0 => MailRows::Selected,
            _ => MailRows::None,
        };
        let rest = rest
            - match mail {
                MailRows::None => 0,
                MailRows::Selected => 1,
                MailRows::All => seen,
            };
        Self { lanes: seen, mail, details: u16::try_from(rest).unwrap_or(u16::MAX) }
    }
}

/// Returns the members with a lane: current members first, then those who left.
fn lanes(projection: &TeamProjection) -> Vec<&MemberView> {
    let has_left = |person: &&MemberView| person.entry.is_none() && person.left.is_some();
    let mut former: Vec<&MemberView> = projection.all_members().iter().filter(has_left).collect();
    former.sort_by_key(|person| (person.joined, person.index));
    let mut lanes = projection.members();
    lanes.extend(former);
    lanes
}

/// Returns the start and end of the team's history. The end is the current time or, for a deleted team, the
/// time of its last record.
fn times(screen: &Screen) -> Option<(i64, i64)> {
    let (first, last) = screen.projection.span()?;
    let now = screen.now.as_millisecond();
    let end = if screen.projection.exists() { now.max(last.0) } else { last.0 };
    Some((first.0, end.saturating_add(1)))
}

fn step_of(screen: &Screen, columns: usize) -> i64 {
    let (first, end) = times(screen).unwrap_or_default();
    match screen.states.timeline.zoom {
        Zoom::Default => fitting_step(first, end, columns)
            .clamp(*DEFAULT_STEP_RANGE.start(), *DEFAULT_STEP_RANGE.end()),
        Zoom::All => fitting_step(first, end, columns),
        Zoom::Step(step) => step,
    }
}

fn axis(screen: &Screen, columns: usize) -> Axis {
    let (_, end) = times(screen).unwrap_or_default();
    let right = screen.states.timeline.right.unwrap_or(end);
    Axis::until(right, step_of(screen, columns), columns)
}

pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let lanes = lanes(&screen.projection);
    let row = |y: u16| Rect { y: area.y.saturating_add(y), height: 1, ..area }.intersection(area);
    let Some((_, end)) = times(screen).filter(|_| !lanes.is_empty()) else {
        canvas.line(row(0), Line::raw(" No members yet."));
        return;
    };
    let names = lanes.iter().map(|person| one_line(&person.name).width()).max().unwrap_or_default();
    // Reserve space for the name, a symbol and padding.
    let left = u16::try_from(names + 4).unwrap_or(u16::MAX).min((area.width / 4).max(8));
    let columns = usize::from(area.width.saturating_sub(left));
    let axis = axis(screen, columns);
    rows::heading(screen, canvas, row(0), &axis, end);
    let below = Rect { y: area.y + 3, height: area.height.saturating_sub(3), ..area };
    let below = below.intersection(area);
    rows::ticks(
        canvas,
        Rect { x: area.x + left.min(area.width), ..row(1) }.intersection(area),
        &axis,
    );
    let plan = RowPlan::new(lanes.len(), below.height);
    let selected = screen.selected_index(&lanes);
    canvas.frame.columns = columns;
    canvas.set_scroll(lanes.len(), u16::try_from(plan.lanes).unwrap_or(u16::MAX));
    let from = first_visible(lanes.len(), plan.lanes, selected);
    let shown = lanes.iter().enumerate().skip(from).take(plan.lanes);
    let Some(who) = lanes.get(selected).map(|person| person.index) else { return };
    let mut y = 2;
    for (index, person) in shown {
        let is_selected = index == selected;
        let layout = LaneLayout { left, axis: &axis, end };
        rows::lane(screen, canvas, row(y), person, is_selected, layout);
        y += 1;
        if plan.mail == MailRows::All || (plan.mail == MailRows::Selected && is_selected) {
            let marks = mail::marks(&screen.projection, person, who, &axis);
            rows::mail_row(canvas, row(y), left, &marks, &person.name);
            y += 1;
        }
    }
    let all_report = lanes.iter().all(|person| cells::reports_activity(person));
    rows::legend(canvas, row(y), plan.mail != MailRows::None, all_report);
    let rest = Rect { y: area.y + y + 1, height: plan.details, ..area }.intersection(area);
    if let Some(person) = lanes.get(selected) {
        details::draw(screen, canvas, rest, person, (axis.left, axis.right().min(end)));
    }
}

pub(crate) fn handle(screen: &mut Screen, command: KeyCommand) -> Option<()> {
    let columns = screen.frame.columns.max(1);
    let at = step_of(screen, columns);
    match command {
        KeyCommand::ZoomIn => {
            let smaller = STEPS.iter().rfind(|step| **step < at).or(STEPS.first());
            zoom(screen, columns, *smaller?);
        }
        KeyCommand::ZoomOut => {
            let larger = STEPS.iter().find(|step| **step > at);
            zoom(screen, columns, *larger.unwrap_or(&at));
        }
        KeyCommand::ZoomAll => {
            screen.states.timeline = TimelineState { zoom: Zoom::All, right: None }
        }
        KeyCommand::Left => scroll(screen, columns, -1),
        KeyCommand::Right => scroll(screen, columns, 1),
        KeyCommand::First => scroll_to(screen, columns, i64::MIN),
        KeyCommand::Last | KeyCommand::Back => screen.states.timeline.right = None,
        KeyCommand::Open => {
            let lanes = lanes(&screen.projection);
            let name = lanes.get(screen.selected_index(&lanes))?.name.to_string();
            screen.member = Some(name);
            screen.view = View::Member;
        }
        _ => {
            let lanes = lanes(&screen.projection);
            let index =
                step(screen.selected_index(&lanes), lanes.len(), screen.frame.page, command)?;
            screen.member = lanes.get(index).map(|person| person.name.to_string());
        }
    }
    Some(())
}

/// Changes the zoom level. While the view follows the current time, its right end stays in place. Otherwise,
/// its middle stays in place.
fn zoom(screen: &mut Screen, columns: usize, step: i64) {
    let half = |axis: &Axis| (axis.right() - axis.left) / 2;
    let before = axis(screen, columns);
    screen.states.timeline.zoom = Zoom::Step(step);
    if screen.states.timeline.right.is_some() {
        let after = axis(screen, columns);
        scroll_to(screen, columns, before.left + half(&before) + half(&after));
    }
}

/// Scrolls by a quarter of the columns.
fn scroll(screen: &mut Screen, columns: usize, side: i64) {
    let axis = axis(screen, columns);
    let quarter = i64::try_from((columns / 4).max(1)).unwrap_or(1);
    scroll_to(screen, columns, axis.right().saturating_add(side * quarter * axis.step));
}

/// Scrolls so that the last column ends at `right`, but stops at the start of the history. At the end of the
/// history, the view follows the current time again.
fn scroll_to(screen: &mut Screen, columns: usize, right: i64) {
    let axis = axis(screen, columns);
    let Some((first, end)) = times(screen) else { return };
    let begin = first.div_euclid(axis.step).saturating_mul(axis.step);
    let least = begin.saturating_add(axis.right().saturating_sub(axis.left));
    // With a fixed end time, the visible part stays in place while time passes.
    screen.states.timeline.right = Some(right.max(least)).filter(|right| *right < end);
}

/// Returns the name of the selected member.
pub(crate) fn selected_text(screen: &Screen) -> Option<String> {
    let lanes = lanes(&screen.projection);
    Some(lanes.get(screen.selected_index(&lanes))?.name.to_string())
}
