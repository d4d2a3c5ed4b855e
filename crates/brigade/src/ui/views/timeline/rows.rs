//! Draws the rows of the timeline.

use brigade_core::picture::{Person, Span as Spent};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::axis::{Axis, time, words};
use super::cells::{Cell, cells, is_told, sign as sign_of};
use super::mail::Mark;
use crate::output::{cut, local, one_line};
use crate::ui::canvas::{Canvas, Hit};
use crate::ui::screen::Screen;
use crate::ui::style::{self, Theme};

/// Layout shared by all lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes<'a> {
    /// Width of the name column.
    pub(super) left: u16,
    pub(super) axis: &'a Axis,
    /// End of the drawn time.
    pub(super) end: i64,
}

/// The heading: visible time range, time per column, and whether the view follows the current time.
pub(super) fn head(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect, axis: &Axis, end: i64) {
    let theme = canvas.theme;
    let (from, to) = (local(time(axis.left)), local(time(axis.right().min(end))));
    let form = if from.date() == to.date() { "%H:%M:%S" } else { "%-d %b %H:%M" };
    let day = from.strftime(if from.date() == to.date() { "%a %-d %b, " } else { "" });
    let span = format!(" {day}{} to {}", from.strftime(form), to.strftime(form));
    let column = format!(", {} per column", words(axis.step));
    let follows = match screen.states.timeline.right {
        Some(_) => ", end: back to now",
        None if screen.picture.is_there() => ", following now",
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
        let place = Rect { x, ..area }.intersection(area);
        canvas.line(place, Line::styled(format!("╷{label}"), canvas.theme.faint()));
    }
}

/// Draws a lane: the member's name and its activity.
pub(super) fn lane(
    screen: &Screen,
    canvas: &mut Canvas<'_>,
    area: Rect,
    person: &Person,
    is_chosen: bool,
    Lanes { left, axis, end }: Lanes<'_>,
) {
    let theme = canvas.theme;
    let (sign, _) = style::doing(person.doing());
    let sign = if screen.is_dead(person) { "✕" } else { sign };
    let name = cut(&one_line(&person.name), usize::from(left).saturating_sub(4));
    let who = Rect { width: left.min(area.width), ..area };
    // Highlight only the name: reversed blocks would show the opposite of the activity.
    let name = format!(" {sign} {name}");
    canvas.row(Rect { width: who.width.saturating_sub(1), ..who }, name, is_chosen, hit(person));
    let cells = cells(person, axis, end);
    let is_told = is_told(person);
    let spans: Vec<Span<'_>> = cells
        .chunk_by(|one, next| style_of(*one, theme) == style_of(*next, theme))
        .map(|same| {
            let text: String = same.iter().map(|cell| sign_of(*cell, is_told)).collect();
            let style = same.first().map_or_else(Style::new, |cell| style_of(*cell, theme));
            Span::styled(text, style)
        })
        .collect();
    let rest = right_of(area, left);
    canvas.line(rest, Line::from(spans));
    canvas.hit(rest, hit(person));
}

fn hit(person: &Person) -> Hit {
    Hit::Member(person.name.to_string())
}

fn right_of(area: Rect, left: u16) -> Rect {
    let left = left.min(area.width);
    Rect { x: area.x + left, width: area.width - left, ..area }
}

fn style_of(cell: Cell, theme: Theme) -> Style {
    match cell {
        Cell::Away | Cell::Joined | Cell::Left => Style::new(),
        Cell::Idle => theme.faint(),
        Cell::Spent(Spent::Working, _) => theme.busy(),
        Cell::Spent(Spent::Waiting, _) => theme.urgent(),
        Cell::Spent(Spent::Limited, _) => theme.wrong(),
    }
}

pub(super) fn mail_row(canvas: &mut Canvas<'_>, area: Rect, left: u16, marks: &[Mark], name: &str) {
    let theme = canvas.theme;
    let span = |mark: &Mark| {
        Span::styled(mark.sign(), if mark.concerns { theme.strong() } else { theme.faint() })
    };
    let rest = right_of(area, left);
    canvas.line(rest, Line::from(marks.iter().map(span).collect::<Vec<_>>()));
    canvas.hit(area, Hit::Member(name.to_owned()));
}

/// Draws the legend.
pub(super) fn legend(canvas: &mut Canvas<'_>, area: Rect, has_mail: bool, is_told: bool) {
    let theme = canvas.theme;
    let mut signs = vec![
        ("█", "working", theme.busy()),
        ("▲", "waiting", theme.urgent()),
        ("■", "rate-limited", theme.wrong()),
        ("─", "idle", theme.faint()),
    ];
    if has_mail {
        signs.extend([("↑", "sent", theme.strong()), ("↓", "received", theme.strong())]);
    }
    if !is_told {
        signs.push(("·", "not reported", theme.faint()));
    }
    let mut spans = vec![Span::raw(" ")];
    for (sign, word, style) in signs {
        spans.push(Span::styled(sign, style));
        spans.push(Span::styled(format!(" {word}  "), theme.faint()));
    }
    canvas.line(area, Line::from(spans));
}
