//! Draws the open dialog.

use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Padding, Paragraph};
use unicode_width::UnicodeWidthStr;

use super::{CONFIRM_WIDTH, ConfirmDialog, Dialog, FormDialog, ListDialog};
use crate::canvas::{Canvas, ClickTarget, first_visible};
use crate::keys::{KeyBinding, KeyScope, bindings_for};
use crate::screen::Screen;
use crate::text_layout::{wrap, wrap_input};
use brigade_core::text::{cut, one_line, plain};

/// Draws the open dialog over the view.
pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    match &screen.dialog {
        None => {}
        Some(Dialog::Help) => help(screen, canvas, area),
        Some(Dialog::List(list)) => self::list(list, canvas, area),
        Some(Dialog::Form(form)) => self::form(form, canvas, area),
        Some(Dialog::Confirm(confirm)) => self::confirm(confirm, canvas, area),
    }
}

/// Draws a centred frame whose inner area has this size, and returns the inner area.
fn draw_frame(canvas: &mut Canvas<'_>, area: Rect, title: &str, size: (u16, u16)) -> Rect {
    let (width, height) = (size.0.saturating_add(4), size.1.saturating_add(2));
    let outside = area.centered(Constraint::Max(width), Constraint::Max(height));
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .padding(Padding::horizontal(1))
        .title(Line::styled(format!(" {} ", one_line(title)), canvas.theme.strong()));
    let inside = block.inner(outside);
    canvas.draw(Clear, outside);
    canvas.draw(block, outside);
    // Remove the click targets behind the dialog.
    canvas.frame.click_targets.clear();
    inside
}

fn help(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let keys: Vec<_> = bindings_for(screen.view, screen.replay.is_some()).collect();
    let (mut bindings, global): (Vec<&KeyBinding>, Vec<&KeyBinding>) =
        keys.into_iter().partition(|key| key.scope != KeyScope::Everywhere);
    let split = bindings.len();
    bindings.extend(global);
    let rows = u16::try_from(bindings.len()).unwrap_or(u16::MAX);
    // Use two columns if one column would be too high for the screen.
    let columns: u16 = if rows + 4 > area.height { 2 } else { 1 };
    let size = (38 * columns - 2, rows.div_ceil(columns) + 2);
    let theme = canvas.theme;
    let inside = draw_frame(canvas, area, &format!("Keys in {}", screen.view.title()), size);
    let parts = Layout::horizontal(vec![Constraint::Fill(1); usize::from(columns)]);
    let parts = parts.spacing(2).split(inside);
    let each = usize::from(inside.height.saturating_sub(2)).max(1);
    let lines: Vec<Line<'_>> = bindings
        .iter()
        .enumerate()
        .map(|(index, key)| {
            let style = if index < split { theme.urgent() } else { theme.strong() };
            let name = Span::styled(format!("{:11} ", key.keys.join(" ")), style);
            Line::from(vec![name, Span::raw(key.description)])
        })
        .collect();
    for (part, lines) in parts.iter().zip(lines.chunks(each)) {
        canvas.draw(Paragraph::new(lines.to_vec()), *part);
    }
    let last = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
    canvas.line(last, Line::styled("press any key to close", theme.faint()));
}

fn list(list: &ListDialog, canvas: &mut Canvas<'_>, area: Rect) {
    let shown: Vec<_> = list.matches().collect();
    let theme = canvas.theme;
    let height = u16::try_from(list.choices.len() + 2).unwrap_or(u16::MAX);
    let inside =
        draw_frame(canvas, area, &list.title, (72, height.min(area.height.saturating_sub(4))));
    let [typed, _, entries] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(0)])
            .areas(inside);
    if list.filter.value().is_empty() {
        canvas.line(
            typed,
            Line::styled("type to search, enter to choose, esc to close", theme.faint()),
        );
    } else {
        canvas.line(typed, one_line(list.filter.value()));
    }
    let column = u16::try_from(list.filter.visual_cursor()).unwrap_or(0).min(typed.width);
    canvas.frame.cursor = Some(Position { x: typed.x + column, y: typed.y });
    let height = usize::from(entries.height);
    let from = first_visible(shown.len(), height, list.selected);
    if shown.is_empty() {
        canvas.line(entries, Line::styled("no matches", theme.faint()));
    }
    for (row, (index, choice)) in shown.iter().enumerate().skip(from).take(height).enumerate() {
        let area = Rect { y: entries.y + u16::try_from(row).unwrap_or(0), height: 1, ..entries };
        let hint = one_line(&choice.hint);
        let room = usize::from(area.width).saturating_sub(hint.width() + 1);
        let label = cut(&one_line(&choice.label), room);
        let gap = room.saturating_sub(label.width()) + 1;
        let line = Line::from(vec![
            Span::raw(format!("{label}{:gap$}", "")),
            Span::styled(hint, theme.faint()),
        ]);
        canvas.row(area, line, index == list.selected, ClickTarget::Choice(index));
    }
}

fn form(form: &FormDialog, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    // Each field is as high as its text requires, up to a limit.
    let inner = area.width.saturating_sub(4).min(72);
    let room = usize::from(inner.saturating_sub(13)).max(8);
    let rows = |value: &str| u16::try_from(wrap_input(value, room).len()).unwrap_or(1).min(8);
    let heights: Vec<u16> = form.fields.iter().map(|field| rows(field.input.value())).collect();
    let height: u16 = heights.iter().sum::<u16>() + 2;
    let inside = draw_frame(canvas, area, &form.title, (72, height));
    let mut y = inside.y;
    for (index, (field, height)) in form.fields.iter().zip(heights).enumerate() {
        let is_current = index == form.current;
        let style = if is_current { theme.urgent() } else { theme.faint() };
        let area = Rect { y, height, ..inside }.intersection(inside);
        canvas.line(area, Line::styled(format!("{:>11} ", field.label), style));
        let value = Rect { x: area.x + 13, width: area.width.saturating_sub(13), ..area };
        if field.input.value().is_empty() {
            canvas.line(value, Line::styled(field.hint, theme.faint()));
        }
        let lines = wrap_input(field.input.value(), room);
        let skip = lines.len().saturating_sub(usize::from(height));
        let text: Vec<Line<'_>> =
            lines.iter().skip(skip).map(|line| Line::raw(line.clone())).collect();
        canvas.draw(Paragraph::new(text), value);
        if is_current {
            let before: String = field.input.value().chars().take(field.input.cursor()).collect();
            let before = wrap_input(&before, room);
            let row = u16::try_from(before.len().saturating_sub(1 + skip)).unwrap_or(0);
            let column = before.last().map_or(0, |line| line.width());
            let column = u16::try_from(column).unwrap_or(0).min(value.width);
            canvas.frame.cursor = Some(Position {
                x: value.x + column,
                y: value.y + row.min(height.saturating_sub(1)),
            });
        }
        y += height;
    }
    let last = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
    match &form.error {
        Some(why) => canvas.line(last, Line::styled(one_line(why), theme.error())),
        None => canvas.line(
            last,
            Line::styled(
                "enter: next field, submits on the last   tab: next   esc: cancel",
                theme.faint(),
            ),
        ),
    }
}

fn confirm(confirm: &ConfirmDialog, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    let width = CONFIRM_WIDTH.min(area.width.saturating_sub(4));
    let wrapped = |line: &String| wrap(&[Span::raw(plain(line))], width.into());
    let mut text: Vec<Line<'_>> = confirm.lines.iter().flat_map(wrapped).collect();
    let room = usize::from(area.height.saturating_sub(6));
    if text.len() > room {
        let hidden = text.split_off(room.saturating_sub(1)).len();
        let hidden = brigade_core::text::count(hidden, "more line");
        text.push(Line::raw(format!("… {hidden}: press n and read all before you answer")));
    }
    let height = u16::try_from(text.len()).unwrap_or(u16::MAX).saturating_add(2);
    let text = Paragraph::new(text);
    let inside = draw_frame(canvas, area, &confirm.question, (width, height));
    let [above, _, below] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(1), Constraint::Length(1)])
            .areas(inside);
    canvas.draw(text, above);
    let key = |character: char, word: &str, style: Style| {
        vec![Span::styled(character.to_string(), style), Span::raw(format!(" {word}   "))]
    };
    let mut keys = key('y', "yes", theme.urgent());
    keys.extend(key('n', "no", theme.strong()));
    if let Some((character, word, _)) = &confirm.other {
        keys.extend(key(*character, word, theme.error()));
    }
    canvas.line(below, Line::from(keys));
}
