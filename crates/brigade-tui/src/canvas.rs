//! What the views draw on: a part of the screen, and beside it what can be clicked and how far can be
//! scrolled.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use super::style::Theme;
use super::views::View;

/// What lies under the mouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    View(View),
    Member(String),
    Letter(u32),
    Task(u64),
    Request(String),
    /// A line of a list that stands before everything else.
    Choice(usize),
}

/// What came of drawing, for whoever has to answer keys and the mouse.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drawn {
    pub(crate) hits: Vec<(Rect, Hit)>,
    /// How far the view can be scrolled, and how much of it is a page.
    pub(crate) extent: usize,
    pub(crate) page: usize,
    /// How many columns its time or its lines have.
    pub(crate) columns: usize,
    /// Where the cursor stands, if something is being typed.
    pub(crate) cursor: Option<Position>,
}

/// The screen.
pub(crate) struct Canvas<'b> {
    pub(crate) buffer: &'b mut Buffer,
    pub(crate) theme: Theme,
    pub(crate) drawn: Drawn,
}

impl<'b> Canvas<'b> {
    pub(crate) fn new(buffer: &'b mut Buffer, theme: Theme) -> Self {
        Self { buffer, theme, drawn: Drawn::default() }
    }

    /// Draws anything of ratatui's.
    pub(crate) fn draw(&mut self, widget: impl Widget, area: Rect) {
        widget.render(area.intersection(self.buffer.area), self.buffer);
    }

    /// One line; what does not fit is left out.
    pub(crate) fn line<'l>(&mut self, area: Rect, line: impl Into<Line<'l>>) {
        if area.height > 0 {
            let area = Rect { height: 1, ..area };
            self.draw(line.into(), area);
        }
    }

    /// A whole line that can be chosen: its ground is marked from edge to edge.
    pub(crate) fn row<'l>(
        &mut self,
        area: Rect,
        line: impl Into<Line<'l>>,
        is_chosen: bool,
        hit: Hit,
    ) {
        let area = Rect { height: 1, ..area }.intersection(self.buffer.area);
        let line = line.into();
        if is_chosen {
            // Faint words on a marked ground could not be read.
            let line = Line::from(line.to_string()).style(self.theme.chosen());
            self.buffer.set_style(area, self.theme.chosen());
            self.draw(line, area);
        } else {
            self.draw(line, area);
        }
        self.drawn.hits.push((area, hit));
    }

    /// Gives a part of the screen a style.
    pub(crate) fn style(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area.intersection(self.buffer.area), style);
    }

    /// Says what can be clicked where.
    pub(crate) fn hit(&mut self, area: Rect, hit: Hit) {
        self.drawn.hits.push((area, hit));
    }

    /// Says how long the view is beyond what is seen of it.
    pub(crate) fn scrolls(&mut self, total: usize, height: u16) {
        self.drawn.page = usize::from(height);
        self.drawn.extent = total.saturating_sub(usize::from(height));
    }
}

/// Which part of a list is seen, so that what is chosen stands in it: from where on.
pub(crate) fn window(total: usize, height: usize, chosen: usize) -> usize {
    chosen.saturating_sub(height / 2).min(total.saturating_sub(height))
}
