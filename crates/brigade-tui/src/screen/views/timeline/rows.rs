//! Draws the rows of the timeline view.

use brigade_core::projection::{BusyKind as Activity, MemberView};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::axis::{Axis, format_step, time};
use super::cells::{TimelineCell, cells, reports_activity, symbol};
use super::mail::MailMark;
use crate::canvas::{Canvas, ClickTarget};
use crate::screen::Screen;
use crate::style::{self, Theme};
use crate::time::local;
use brigade_core::text::{cut, one_line};

/// Position and time axis that all lanes share.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneLayout<'a> {
    /// Width of the name column.
    pub(super) left: u16,
    pub(super) axis: &'a Axis,
    /// End of the team's history, in milliseconds since 1970.
    pub(super) end: i64,
}

/// Draws the heading: visible time range, time per column, and whether the view follows the current time.
pub(super) fn heading(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect, axis: &Axis, end: i64) {
    let theme = canvas.theme;
    let (from, to) = (local(time(axis.left)), local(time(axis.right().min(end))));
    let form = if from.date() == to.date() { "%H:%M:%S" } else { "%-d %b %H:%M" };
    let day = from.strftime(if from.date() == to.date() { "%a %-d %b, " } else { "" });
    let span = format!(" {day}{} to {}", from.strftime(form), to.strftime(form));
    let column = format!(", {} per column", format_step(axis.step));
    let follows = match screen.states.timeline.right {
        Some(_) => ", end: back to now",
        None if screen.projection.exists() => ", following now",
        None => "",
    };
    canvas.line(
        area,
        Line::from(vec![
            Span::styled(span, theme.strong()),
            Span::styled(format!("{column}{follows}"), theme.faint()),
        ]),
    );
}

pub(super) fn ticks(canvas: &mut Canvas<'_>, area: Rect, axis: &Axis) {
    for (column, label) in axis.ticks() {
        let x = area.x.saturating_add(u16::try_from(column).unwrap_or(u16::MAX));
        let label_area = Rect { x, ..area }.intersection(area);
        canvas.line(label_area, Line::styled(format!("╷{label}"), canvas.theme.faint()));
    }
}

/// Draws a lane: the member's name and its activity.
pub(super) fn lane(
    screen: &Screen,
    canvas: &mut Canvas<'_>,
    area: Rect,
    person: &MemberView,
    is_selected: bool,
    LaneLayout { left, axis, end }: LaneLayout<'_>,
) {
    let theme = canvas.theme;
    let (sign, _) = style::state_label(person.activity());
    let sign = if screen.is_dead(person) { "✕" } else { sign };
    let name = cut(&one_line(&person.name), usize::from(left).saturating_sub(4));
    let name_area = Rect { width: left.min(area.width), ..area };
    // Highlight only the name. In reverse video, a low block would look like a high one.
    let name = format!(" {sign} {name}");
    canvas.row(
        Rect { width: name_area.width.saturating_sub(1), ..name_area },
        name,
        is_selected,
        click_target(person),
    );
    let cells = cells(person, axis, end);
    let reports_activity = reports_activity(person);
    let spans: Vec<Span<'_>> = cells
        .chunk_by(|one, next| style_of(*one, theme) == style_of(*next, theme))
        .map(|same| {
            let text: String = same.iter().map(|cell| symbol(*cell, reports_activity)).collect();
            let style = same.first().map_or_else(Style::new, |cell| style_of(*cell, theme));
            Span::styled(text, style)
        })
        .collect();
    let rest = right_of(area, left);
    canvas.line(rest, Line::from(spans));
    canvas.add_click_target(rest, click_target(person));
}

fn click_target(person: &MemberView) -> ClickTarget {
    ClickTarget::Member(person.name.to_string())
}

fn right_of(area: Rect, left: u16) -> Rect {
    let left = left.min(area.width);
    Rect { x: area.x + left, width: area.width - left, ..area }
}

fn style_of(cell: TimelineCell, theme: Theme) -> Style {
    match cell {
        TimelineCell::Away | TimelineCell::Joined | TimelineCell::Left => Style::new(),
        TimelineCell::Idle => theme.faint(),
        TimelineCell::Spent(Activity::Working, _) => theme.busy(),
        TimelineCell::Spent(Activity::Waiting, _) => theme.urgent(),
        TimelineCell::Spent(Activity::Limited, _) => theme.error(),
    }
}

pub(super) fn mail_row(
    canvas: &mut Canvas<'_>,
    area: Rect,
    left: u16,
    marks: &[MailMark],
    name: &str,
) {
    let theme = canvas.theme;
    let span = |mark: &MailMark| {
        Span::styled(
            mark.symbol(),
            if mark.involves_selected { theme.strong() } else { theme.faint() },
        )
    };
    let rest = right_of(area, left);
    canvas.line(rest, Line::from(marks.iter().map(span).collect::<Vec<_>>()));
    canvas.add_click_target(area, ClickTarget::Member(name.to_owned()));
}

/// Draws the legend.
pub(super) fn legend(canvas: &mut Canvas<'_>, area: Rect, has_mail: bool, reports_activity: bool) {
    let theme = canvas.theme;
    let mut signs = vec![
        ("█", "working", theme.busy()),
        ("▲", "waiting", theme.urgent()),
        ("■", "rate-limited", theme.error()),
        ("─", "idle", theme.faint()),
    ];
    if has_mail {
        signs.extend([("↑", "sent", theme.strong()), ("↓", "received", theme.strong())]);
    }
    if !reports_activity {
        signs.push(("·", "unknown", theme.faint()));
    }
    let mut spans = vec![Span::raw(" ")];
    for (sign, word, style) in signs {
        spans.push(Span::styled(sign, style));
        spans.push(Span::styled(format!(" {word}  "), theme.faint()));
    }
    canvas.line(area, Line::from(spans));
}
