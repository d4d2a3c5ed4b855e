//! Draws dependency lines with box-drawing characters, including junctions and crossings.

use std::ops::Range;

/// The lines that run from the middle of a cell: up, right, down and left. 0 is no line, 1 a thin line, 2 a
/// thick line.
pub(super) type Arms = [u8; 4];

/// The box-drawing characters for all combinations of lines, indexed by [`Arms`] as a base-3 number.
const SHAPES: &str = concat!(
    " ╴╸╷┐┑╻┒┓╶─╾┌┬┭┎┰┱╺╼━┍┮┯┏┲┳",
    "╵┘┙│┤┥╽┧┪└┴┵├┼┽┟╁╅┕┶┷┝┾┿┢╆╈",
    "╹┚┛╿┦┩┃┨┫┖┸┹┞╀╃┠╂╉┗┺┻┡╄╇┣╊╋",
);

/// Returns the box-drawing character for a cell.
pub(super) fn shape(arms: Arms) -> char {
    match arms {
        [0, 1, 1, 0] => '╭',
        [0, 0, 1, 1] => '╮',
        [1, 1, 0, 0] => '╰',
        [1, 0, 0, 1] => '╯',
        _ => {
            let index = arms.iter().fold(0, |index, arm| index * 3 + usize::from(*arm).min(2));
            SHAPES.chars().nth(index).unwrap_or(' ')
        }
    }
}

/// The visible part of the graph layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Viewport {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Viewport {
    pub(super) fn columns(&self) -> Range<usize> {
        self.x..self.x + self.width
    }

    pub(super) fn rows(&self) -> Range<usize> {
        self.y..self.y + self.height
    }
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineStyle {
    /// Whether the line is on the critical path.
    pub(super) heavy: bool,
    /// Whether the task at the start of the line is unfinished.
    pub(super) live: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct StrokeCell {
    arms: Arms,
    live: bool,
}

/// The lines in each visible cell. Positions along a horizontal line are in half cells: `2 * n` is the left
/// edge of cell `n`, and `2 * n + 1` is its middle.
#[derive(Debug)]
pub(super) struct Strokes {
    frame: Viewport,
    cells: Vec<StrokeCell>,
}

impl Strokes {
    pub(super) fn new(frame: Viewport) -> Self {
        Self { frame, cells: vec![StrokeCell::default(); frame.width * frame.height] }
    }

    fn cell(&mut self, x: usize, y: usize) -> Option<&mut StrokeCell> {
        let (x, y) = (x.checked_sub(self.frame.x)?, y.checked_sub(self.frame.y)?);
        if x >= self.frame.width {
            return None;
        }
        self.cells.get_mut(y * self.frame.width + x)
    }

    /// Draws a horizontal line.
    pub(super) fn horizontal(&mut self, y: usize, from: usize, to: usize, line_style: LineStyle) {
        let visible = self.frame.columns();
        for half in from.max(2 * visible.start)..to.min(2 * visible.end) {
            if let Some(cell) = self.cell(half / 2, y) {
                cell.draw(if half % 2 == 0 { 3 } else { 1 }, line_style);
            }
        }
    }

    /// Draws a vertical line between the middles of two rows. It joins the horizontal lines in the rows
    /// `joins`. It passes under thicker horizontal lines and over all others.
    pub(super) fn vertical(
        &mut self,
        x: usize,
        rows: (usize, usize),
        line_style: LineStyle,
        joins: &[usize],
    ) {
        let visible = self.frame.rows();
        let (from, to) = rows;
        for y in from.max(visible.start)..=to.min(visible.end.saturating_sub(1)) {
            let Some(cell) = self.cell(x, y) else { continue };
            let [_, right, _, left] = cell.arms;
            if right.max(left) > 0 && joins.binary_search(&y).is_err() {
                if right.max(left) > 1 && !line_style.heavy {
                    continue;
                }
                *cell = StrokeCell::default();
            }
            if y > from {
                cell.draw(0, line_style);
            }
            if y < to {
                cell.draw(2, line_style);
            }
        }
    }

    /// Returns the non-empty cells with their characters and styles.
    pub(super) fn visible_cells(&self) -> impl Iterator<Item = (usize, usize, char, LineStyle)> {
        let frame = self.frame;
        let cells = self.cells.iter().enumerate().filter(|(_, cell)| cell.arms != [0; 4]);
        cells.map(move |(index, cell)| {
            let (x, y) = (index % frame.width, index / frame.width);
            let line_style = LineStyle { heavy: cell.arms.contains(&2), live: cell.live };
            (frame.x + x, frame.y + y, shape(cell.arms), line_style)
        })
    }
}

impl StrokeCell {
    fn draw(&mut self, arm: usize, line_style: LineStyle) {
        if let Some(arm) = self.arms.get_mut(arm) {
            *arm = (*arm).max(if line_style.heavy { 2 } else { 1 });
        }
        self.live |= line_style.live;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THIN: LineStyle = LineStyle { heavy: false, live: true };
    const THICK: LineStyle = LineStyle { heavy: true, live: true };

    fn check(lines: impl Fn(&mut Strokes), visible: &[&str]) {
        let (width, height) = (visible[0].chars().count(), visible.len());
        let mut strokes = Strokes::new(Viewport { x: 0, y: 0, width, height });
        lines(&mut strokes);
        let mut text = vec![vec![' '; width]; height];
        for (x, y, shape, _) in strokes.visible_cells() {
            text[y][x] = shape;
        }
        let text: Vec<String> = text.into_iter().map(String::from_iter).collect();
        assert_eq!(text, visible);
    }

    #[test]
    fn lines_meet_and_cross() {
        // One line from the left splits into two on the right.
        let fork = |strokes: &mut Strokes| {
            strokes.horizontal(0, 0, 3, THIN);
            strokes.horizontal(0, 3, 6, THIN);
            strokes.horizontal(2, 3, 6, THIN);
            strokes.vertical(1, (0, 2), THIN, &[0, 2]);
        };
        check(fork, &["─┬─", " │ ", " ╰─"]);
        // A vertical line crosses a horizontal line without joining it.
        let crossing = |strokes: &mut Strokes| {
            strokes.horizontal(1, 0, 6, THIN);
            fork(strokes);
        };
        check(crossing, &["─┬─", "─│─", " ╰─"]);
        // A thick line passes over a thin one.
        let thick = |strokes: &mut Strokes| {
            strokes.horizontal(1, 0, 6, THICK);
            fork(strokes);
        };
        check(thick, &["─┬─", "━━━", " ╰─"]);
        // A thick line stays thick where a thin line forks off.
        let path = |strokes: &mut Strokes| {
            fork(strokes);
            strokes.horizontal(0, 0, 3, THICK);
            strokes.vertical(1, (0, 2), THICK, &[0, 2]);
            strokes.horizontal(2, 3, 6, THICK);
        };
        check(path, &["━┱─", " ┃ ", " ┗━"]);
    }

    #[test]
    fn all_combinations_have_a_shape() {
        assert_eq!(SHAPES.chars().count(), 81);
        assert_eq!(shape([2, 2, 2, 2]), '╋');
        assert_eq!(shape([1, 2, 1, 0]), '┝');
    }
}
