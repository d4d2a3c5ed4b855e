//! Draws the visible part of the dependency graph.

use brigade_core::projection::{BlockReason, TaskEntry};
use brigade_core::pulse;
use brigade_wire::name::TaskId;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::super::{card, is_stuck, wrap_to_lines};
use super::routes::Net;
use super::strokes::{LineStyle, Strokes, Viewport, shape};
use super::{GraphLayout, get_or_default};
use crate::canvas::{Canvas, ClickTarget, first_visible};
use crate::screen::Screen;
use brigade_core::task_view::{self, TaskView};
use brigade_core::text::{cut, one_line};

/// Draws at positions in the graph layout, and clips to the visible part.
struct Pen<'p, 'b> {
    canvas: &'p mut Canvas<'b>,
    area: Rect,
    frame: Viewport,
}

impl Pen<'_, '_> {
    fn text(&mut self, x: usize, y: usize, text: &str, style: Style) {
        if !self.frame.rows().contains(&y) || x >= self.frame.columns().end {
            return;
        }
        let mut hidden = self.frame.x.saturating_sub(x);
        let mut text = text.chars();
        let mut blank = 0;
        while hidden > 0 {
            let Some(c) = text.next() else { return };
            let char_width = c.width().unwrap_or(0);
            blank = char_width.saturating_sub(hidden);
            hidden = hidden.saturating_sub(char_width);
        }
        let x = x.max(self.frame.x) - self.frame.x + blank;
        let room = self.frame.width.saturating_sub(x);
        let screen_position = |offset: usize, start: u16| Some(start + u16::try_from(offset).ok()?);
        if let (Some(x), Some(y)) =
            (screen_position(x, self.area.x), screen_position(y - self.frame.y, self.area.y))
        {
            self.canvas.buffer.set_stringn(x, y, text.as_str(), room, style);
        }
    }

    /// Converts an area of the layout to screen coordinates, cut to its visible part.
    fn visible_area(&self, x: usize, y: usize, width: usize, height: usize) -> Rect {
        let cut = |from: usize, to: usize, visible_area: std::ops::Range<usize>| {
            let (from, to) = (from.max(visible_area.start), to.min(visible_area.end));
            let short = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
            (short(from.saturating_sub(visible_area.start)), short(to.saturating_sub(from)))
        };
        let (x, width) = cut(x, x + width, self.frame.columns());
        let (y, height) = cut(y, y + height, self.frame.rows());
        let (x, y) = (self.area.x.saturating_add(x), self.area.y.saturating_add(y));
        Rect { x, y, width, height }.intersection(self.area)
    }
}

impl GraphLayout {
    pub(in super::super) fn draw(
        &self,
        screen: &Screen,
        canvas: &mut Canvas<'_>,
        area: Rect,
        selected: u64,
    ) {
        let area = area.intersection(canvas.buffer.area);
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        if width == 0 || height == 0 {
            return;
        }
        let (layer, row) = self.positions.get(&selected).copied().unwrap_or_default();
        let x = get_or_default(&self.columns, layer) + self.size.0 / 2;
        let frame = Viewport {
            x: first_visible(self.total.0, width, x),
            y: first_visible(self.total.1, height, row),
            width,
            height,
        };
        canvas.frame.page = (height / self.size.1).max(1);
        let mut pen = Pen { canvas, area, frame };
        self.lines(&mut pen);
        if let Some(row) = self.isolated {
            let style = pen.canvas.theme.faint();
            let note_text = "tasks without dependencies:";
            pen.text(0, row, note_text, style);
        }
        for (layer, boxes) in self.boxes.iter().enumerate() {
            let x = get_or_default(&self.columns, layer);
            if !self.is_visible(x, x + self.size.0, frame) {
                continue;
            }
            let from = boxes.partition_point(|(row, _)| row + self.size.1 <= frame.y);
            let rest = boxes.get(from..).unwrap_or_default();
            for (row, id) in rest.iter().take_while(|(row, _)| *row <= frame.rows().end) {
                self.card(screen, &mut pen, (x, row.saturating_sub(1)), *id, *id == selected);
            }
        }
        if self.hidden > 0 {
            let style = pen.canvas.theme.faint();
            let note_text = format!(" {} long lines not drawn ", self.hidden);
            let y = frame.rows().end - 1;
            pen.text(frame.columns().end.saturating_sub(note_text.width()), y, &note_text, style);
        }
    }

    fn is_visible(&self, from: usize, to: usize, frame: Viewport) -> bool {
        to > frame.x && from < frame.columns().end
    }

    /// Draws the dependency lines between the tasks.
    fn lines(&self, pen: &mut Pen<'_, '_>) {
        let frame = pen.frame;
        let mut strokes = Strokes::new(frame);
        let mut arrow_heads = Vec::new();
        for (layer, nets) in self.nets.iter().enumerate() {
            let from = get_or_default(&self.columns, layer) + self.size.0;
            let to = get_or_default(&self.columns, layer + 1);
            if !self.is_visible(from, to, frame) {
                continue;
            }
            let rows = frame.rows();
            let visible_area = |net: &&Net| net.span().1 >= rows.start && net.span().0 < rows.end;
            for net in nets.iter().filter(visible_area) {
                self.horizontal_parts(&mut strokes, net, from, to, &mut arrow_heads);
            }
            for net in nets.iter().filter(visible_area) {
                let Some(track) = net.track else { continue };
                let line_style = LineStyle { heavy: false, live: net.live };
                strokes.vertical(from + 1 + track, net.span(), line_style, &net.rows);
                if let Some((a, b)) = net.heavy {
                    let line_style = LineStyle { heavy: true, ..line_style };
                    strokes.vertical(from + 1 + track, (a.min(b), a.max(b)), line_style, &net.rows);
                }
            }
        }
        for (layer, bends) in self.bends.iter().enumerate() {
            let x = get_or_default(&self.columns, layer);
            for bend in bends.iter().filter(|bend| frame.rows().contains(&bend.row)) {
                let line_style = LineStyle { heavy: bend.heavy, live: !bend.done };
                strokes.horizontal(bend.row, 2 * x, 2 * (x + self.size.0), line_style);
            }
        }
        let theme = pen.canvas.theme;
        let style = |line_style: LineStyle| match line_style {
            LineStyle { heavy: true, .. } => theme.strong(),
            LineStyle { live: true, .. } => Style::new(),
            LineStyle { .. } => theme.faint(),
        };
        for (x, y, shape, line_style) in strokes.visible_cells() {
            pen.text(x, y, shape.encode_utf8(&mut [0; 4]), style(line_style));
        }
        for (x, y, line_style) in arrow_heads {
            pen.text(x, y, "▶", style(line_style));
        }
    }

    /// Draws the horizontal parts of dependency lines and collects their arrow heads.
    fn horizontal_parts(
        &self,
        strokes: &mut Strokes,
        net: &Net,
        from: usize,
        to: usize,
        arrow_heads: &mut Vec<(usize, usize, LineStyle)>,
    ) {
        let heavy = |row: usize, end: fn((usize, usize)) -> usize| LineStyle {
            heavy: net.heavy.map(end) == Some(row),
            live: net.live,
        };
        let end = |is_task: bool| if is_task { 2 * (to - 1) } else { 2 * to };
        match net.track {
            None => {
                for &(row, is_task) in &net.to {
                    strokes.horizontal(row, 2 * from, end(is_task), heavy(row, |(_, to)| to));
                }
            }
            Some(track) => {
                let middle = 2 * (from + 1 + track) + 1;
                for &row in &net.from {
                    strokes.horizontal(row, 2 * from, middle, heavy(row, |(from, _)| from));
                }
                for &(row, is_task) in &net.to {
                    strokes.horizontal(row, middle, end(is_task), heavy(row, |(_, to)| to));
                }
            }
        }
        let tasks = net.to.iter().filter(|(_, is_task)| *is_task);
        arrow_heads.extend(tasks.map(|(row, _)| (to - 1, *row, heavy(*row, |(_, to)| to))));
    }

    /// Draws one task in its box.
    fn card(
        &self,
        screen: &Screen,
        pen: &mut Pen<'_, '_>,
        (x, y): (usize, usize),
        id: u64,
        is_selected: bool,
    ) {
        let theme = screen.theme;
        let Some(card) = screen.projection.task(id) else { return };
        let Some(task) = TaskId::new(id) else { return };
        let (box_width, box_height) = self.size;
        let look = TaskView::new(screen.projection.graph(), task);
        let is_critical = self.critical.contains(&id);
        let stuck = is_stuck(screen.projection.block_reason(id));
        let (border, subject) = match look {
            _ if is_selected => (Style::new(), Style::new()),
            TaskView::Done => (theme.faint(), theme.faint()),
            _ if stuck => (theme.urgent(), Style::new()),
            _ if is_critical => (theme.strong(), theme.strong()),
            _ => (Style::new(), Style::new()),
        };
        let thick = if is_critical { 2 } else { 1 };
        let rule = shape([0, thick, 0, thick]).to_string().repeat(box_width.saturating_sub(2));
        let (top, bottom) = (y, y + box_height - 1);
        let corners = |left, right| format!("{}{rule}{}", shape(left), shape(right));
        pen.text(x, top, &corners([0, thick, thick, 0], [0, 0, thick, thick]), border);
        pen.text(x, bottom, &corners([thick, thick, 0, 0], [thick, 0, 0, thick]), border);
        let mut parts =
            wrap_to_lines(&one_line(&card.subject), box_width.saturating_sub(3), box_height - 2);
        parts.resize(box_height - 2, String::new());
        let side = shape([thick, 0, thick, 0]).to_string();
        let out = self.exit_thickness(id, look == TaskView::Done);
        for (row, part) in parts.iter().enumerate() {
            let y = top + 1 + row;
            let fill = " ".repeat(box_width.saturating_sub(3).saturating_sub(part.width()));
            pen.text(x, y, &side, border);
            pen.text(x + 1, y, &format!(" {part}{fill}"), subject);
            let end = match (row, out) {
                (0, Some(line)) => shape([thick, line, thick, 0]).to_string(),
                _ => side.clone(),
            };
            pen.text(x + box_width - 1, y, &end, border);
        }
        let room = box_width.saturating_sub(4);
        let head = format!("{} {id}", look.symbol());
        let sign = if is_selected { Style::new() } else { card::style(theme, look) };
        pen.text(
            x + 1,
            top,
            &format!(" {head} "),
            if look == TaskView::Done { border } else { sign.patch(theme.strong()) },
        );
        if let Some(owner) = &card.owner {
            let owner = cut(&one_line(owner), room.saturating_sub(head.width() + 1));
            let style = match look {
                _ if is_selected => Style::new(),
                TaskView::Done => theme.faint(),
                _ => card::owner_style(screen, card),
            };
            if !owner.is_empty() {
                pen.text(x + 3 + head.width(), top, &format!("{owner} "), style);
            }
        }
        if let Some(note) = note(screen, card, look) {
            let style = match look {
                _ if is_selected => Style::new(),
                _ if stuck => theme.urgent(),
                TaskView::Ready => theme.success(),
                _ => theme.faint(),
            };
            let note = cut(&note, room + 1);
            let gap = if note.width() > room { "" } else { " " };
            pen.text(x + 1, bottom, &format!(" {note}{gap}"), style);
        }
        let visible_area = pen.visible_area(x, y, box_width, box_height);
        if is_selected {
            pen.canvas.style(visible_area, theme.selected());
        }
        pen.canvas.add_click_target(visible_area, ClickTarget::Task(id));
    }

    /// Returns the thickness of the line that leaves a task, or `None` if no line leaves the task.
    fn exit_thickness(&self, id: u64, is_done: bool) -> Option<u8> {
        let [_, right] = self.neighbours.get(&id)?;
        if right.is_empty() {
            return None;
        }
        let is_heavy = !is_done && self.critical.contains(&id);
        let goes_on = is_heavy && right.iter().any(|to| self.critical.contains(to));
        Some(if goes_on { 2 } else { 1 })
    }
}

/// Returns a short remark about a task's state, for the bottom border of its box.
fn note(screen: &Screen, card: &TaskEntry, look: TaskView) -> Option<String> {
    let age =
        || pulse::format_duration(screen.now.duration_since(card::since(screen, card).timestamp()));
    Some(match (screen.projection.block_reason(card.id), look) {
        (Some(BlockReason::Cycle(_)), _) => "! cycle".to_owned(),
        (Some(BlockReason::Orphan(owner)), _) => format!("! {} gone", one_line(owner)),
        (Some(BlockReason::Idle(ids)), _) => {
            format!("! idle: {}", task_view::join(ids.iter().copied().take(3)))
        }
        (_, TaskView::Ready) => "ready".to_owned(),
        (_, TaskView::Kept) => "assigned".to_owned(),
        (_, TaskView::InProgress) => age(),
        (Some(BlockReason::Waits(_)) | None, TaskView::Blocked | TaskView::Done) => return None,
    })
}
