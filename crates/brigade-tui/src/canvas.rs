//! The drawing surface of the views: the screen buffer, click targets and scroll limits.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use super::style::Theme;
use crate::view::View;

/// Something that can be clicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClickTarget {
    View(View),
    Member(String),
    Message(u32),
    Task(u64),
    Request(String),
    /// An entry of a list dialog, by index.
    Choice(usize),
}

/// Facts about the last drawn frame that key and mouse handling need.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameInfo {
    pub(crate) click_targets: Vec<(Rect, ClickTarget)>,
    /// How far the view can be scrolled, and how much a page key moves.
    pub(crate) max_scroll: usize,
    pub(crate) page: usize,
    /// The number of columns of the timeline, or of a text line.
    pub(crate) columns: usize,
    /// The cursor position while the person types in a dialog.
    pub(crate) cursor: Option<Position>,
}

/// The screen buffer and what is recorded while drawing on it.
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

    /// Draws one line, cut at the right edge of the area.
    pub(crate) fn line<'l>(&mut self, area: Rect, line: impl Into<Line<'l>>) {
        if area.height > 0 {
            let area = Rect { height: 1, ..area };
            self.draw(line.into(), area);
        }
    }

    /// Draws a selectable line. The selected one is highlighted over its whole width.
    pub(crate) fn row<'l>(
        &mut self,
        area: Rect,
        line: impl Into<Line<'l>>,
        is_selected: bool,
        target: ClickTarget,
    ) {
        let area = Rect { height: 1, ..area }.intersection(self.buffer.area);
        let line = line.into();
        if is_selected {
            // Drop the line's own styles: dim text is unreadable when reversed.
            let line = Line::from(line.to_string()).style(self.theme.selected());
            self.buffer.set_style(area, self.theme.selected());
            self.draw(line, area);
        } else {
            self.draw(line, area);
        }
        self.frame.click_targets.push((area, target));
    }

    /// Applies a style to an area.
    pub(crate) fn style(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area.intersection(self.buffer.area), style);
    }

    /// Registers a click target.
    pub(crate) fn add_click_target(&mut self, area: Rect, target: ClickTarget) {
        self.frame.click_targets.push((area, target));
    }

    /// Sets the scroll limits for `total` lines, of which `height` fit.
    pub(crate) fn set_scroll(&mut self, total: usize, height: u16) {
        self.frame.page = usize::from(height);
        self.frame.max_scroll = total.saturating_sub(usize::from(height));
    }
}

/// The first row to show of a list, so that the selected row is visible.
pub(crate) fn first_visible(total: usize, height: usize, selected: usize) -> usize {
    selected.saturating_sub(height / 2).min(total.saturating_sub(height))
}
