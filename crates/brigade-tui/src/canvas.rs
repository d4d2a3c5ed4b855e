//! The surface that the views draw on: the screen buffer, click targets and scroll limits.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use super::style::Theme;
use crate::view::View;

/// The effect of a click on an area of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClickTarget {
    View(View),
    Member(String),
    Message(u32),
    Task(u64),
    Request(String),
    /// The index of an entry in a list dialog.
    Choice(usize),
}

/// Facts about the last drawn frame that the key and mouse handlers need.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameInfo {
    pub(crate) click_targets: Vec<(Rect, ClickTarget)>,
    /// How far the view can be scrolled, and how many lines a page key scrolls.
    pub(crate) max_scroll: usize,
    pub(crate) page: usize,
    /// Width, in columns, of the timeline or of the member view's text.
    pub(crate) columns: usize,
    /// The cursor position while the person types.
    pub(crate) cursor: Option<Position>,
    /// The request on the screen of one member, and whether its end is visible.
    pub(crate) request: Option<String>,
    pub(crate) is_request_whole: bool,
}

/// The screen buffer, with the click targets and scroll limits of what was drawn on it.
pub(crate) struct Canvas<'b> {
    pub(crate) buffer: &'b mut Buffer,
    pub(crate) theme: Theme,
    pub(crate) frame: FrameInfo,
}

impl<'b> Canvas<'b> {
    pub(crate) fn new(buffer: &'b mut Buffer, theme: Theme) -> Self {
        Self { buffer, theme, frame: FrameInfo::default() }
    }

    /// Draws a ratatui widget.
    pub(crate) fn draw(&mut self, widget: impl Widget, area: Rect) {
        widget.render(area.intersection(self.buffer.area), self.buffer);
    }

    /// Draws one line of text and cuts it at the right edge of the area.
    pub(crate) fn line<'l>(&mut self, area: Rect, line: impl Into<Line<'l>>) {
        if area.height > 0 {
            let area = Rect { height: 1, ..area };
            self.draw(line.into(), area);
        }
    }

    /// Draws lines of text from the top of the area down; lines that do not fit are left out.
    pub(crate) fn lines<'l>(&mut self, area: Rect, lines: impl IntoIterator<Item = Line<'l>>) {
        for (y, line) in (area.y..area.bottom()).zip(lines) {
            self.line(Rect { y, height: 1, ..area }, line);
        }
    }

    /// Draws a selectable line. The selected line is highlighted over its whole width.
    pub(crate) fn row<'l>(
        &mut self,
        area: Rect,
        line: impl Into<Line<'l>>,
        is_selected: bool,
        target: ClickTarget,
    ) {
        let area = Rect { height: 1, ..area }.intersection(self.buffer.area);
        let mut line = line.into();
        if is_selected {
            // Drop the line's own styles: dim text is unreadable in reverse video.
            line = Line::from(line.to_string()).style(self.theme.selected());
            self.buffer.set_style(area, self.theme.selected());
        }
        self.draw(line, area);
        self.add_click_target(area, target);
    }

    /// Applies a style to an area.
    pub(crate) fn style(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area.intersection(self.buffer.area), style);
    }

    /// Makes an area clickable.
    pub(crate) fn add_click_target(&mut self, area: Rect, target: ClickTarget) {
        self.frame.click_targets.push((area, target));
    }

    /// Sets the scroll limits for a text of `total` lines in an area that is `height` lines high.
    pub(crate) fn set_scroll(&mut self, total: usize, height: u16) {
        self.frame.page = usize::from(height);
        self.frame.max_scroll = total.saturating_sub(usize::from(height));
    }
}

/// Returns the index of the first list row to draw, chosen so that the selected row is visible.
pub(crate) fn first_visible(total: usize, height: usize, selected: usize) -> usize {
    selected.saturating_sub(height / 2).min(total.saturating_sub(height))
}
