//! Draws lines with box-drawing characters, with correct junctions and crossings.

use std::ops::Range;

/// Thickness of the line parts of a cell, up, right, down and left: 0 none, 1 thin, 2 thick.
pub(super) type Arms = [u8; 4];

/// The characters for all combinations, indexed by [`Arms`] as a base-3 number.
const SHAPES: &str = concat!(
    " ╴╸╷┐┑╻┒┓╶─╾┌┬┭┎┰┱╺╼━┍┮┯┏┲┳",
    "╵┘┙│┤┥╽┧┪└┴┵├┼┽┟╁╅┕┶┷┝┾┿┢╆╈",
    "╹┚┛╿┦┩┃┨┫┖┸┹┞╀╃┠╂╉┗┺┻┡╄╇┣╊╋",
);

/// The character for a cell.
pub(super) fn shape(arms: Arms) -> char {
    match arms {
        [0, 1, 1, 0] => '╭',
        [0, 0, 1, 1] => '╮',
        [1, 1, 0, 0] => '╰',
        [1, 0, 0, 1] => '╯',
        _ => {
            let place = arms.iter().fold(0, |place, arm| place * 3 + usize::from(*arm).min(2));
            SHAPES.chars().nth(place).unwrap_or(' ')
        }
    }
}

/// The visible part of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Frame {
    pub(super) fn columns(&self) -> Range<usize> {
        self.x..self.x + self.width
    }

    pub(super) fn rows(&self) -> Range<usize> {
        self.y..self.y + self.height
    }
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ink {
    /// Whether it is part of the critical path.
    pub(super) heavy: bool,
    /// Whether its source task is unfinished.
    pub(super) live: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    arms: Arms,
    live: bool,
}

/// The line parts of each visible cell. Positions along a horizontal line are in half cells: `2 * n` is the
/// left edge of cell `n`, `2 * n + 1` its middle.
#[derive(Debug)]
pub(super) struct Strokes {
    frame: Frame,
    cells: Vec<Cell>,
}

impl Strokes {
    pub(super) fn new(frame: Frame) -> Self {
        Self { frame, cells: vec![Cell::default(); frame.width * frame.height] }
    }

    fn cell(&mut self, x: usize, y: usize) -> Option<&mut Cell> {
        let (x, y) = (x.checked_sub(self.frame.x)?, y.checked_sub(self.frame.y)?);
        if x >= self.frame.width {
            return None;
        }
        self.cells.get_mut(y * self.frame.width + x)
    }

    /// Draws a horizontal line.
    pub(super) fn across(&mut self, y: usize, from: usize, to: usize, ink: Ink) {
        let seen = self.frame.columns();
        for half in from.max(2 * seen.start)..to.min(2 * seen.end) {
            if let Some(cell) = self.cell(half / 2, y) {
                cell.draw(if half % 2 == 0 { 3 } else { 1 }, ink);
            }
        }
    }

    /// Draws a vertical line between the middles of two rows. In a row where it does not join a horizontal
    /// line it passes over it, or under it if that line is thicker.
    pub(super) fn down(&mut self, x: usize, rows: (usize, usize), ink: Ink, joins: &[usize]) {
        let seen = self.frame.rows();
        let (from, to) = rows;
        for y in from.max(seen.start)..=to.min(seen.end.saturating_sub(1)) {
            let Some(cell) = self.cell(x, y) else { continue };
            let [_, right, _, left] = cell.arms;
            if right.max(left) > 0 && joins.binary_search(&y).is_err() {
                if right.max(left) > 1 && !ink.heavy {
                    continue;
                }
                *cell = Cell::default();
            }
            if y > from {
                cell.draw(0, ink);
            }
            if y < to {
                cell.draw(2, ink);
            }
        }
    }

    /// The non-empty cells with their characters and styles.
    pub(super) fn drawn(&self) -> impl Iterator<Item = (usize, usize, char, Ink)> {
        let frame = self.frame;
        let cells = self.cells.iter().enumerate().filter(|(_, cell)| cell.arms != [0; 4]);
        cells.map(move |(place, cell)| {
            let (x, y) = (place % frame.width, place / frame.width);
            let ink = Ink { heavy: cell.arms.contains(&2), live: cell.live };
            (frame.x + x, frame.y + y, shape(cell.arms), ink)
        })
    }
}

impl Cell {
    fn draw(&mut self, arm: usize, ink: Ink) {
        if let Some(arm) = self.arms.get_mut(arm) {
            *arm = (*arm).max(if ink.heavy { 2 } else { 1 });
        }
        self.live |= ink.live;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THIN: Ink = Ink { heavy: false, live: true };
    const THICK: Ink = Ink { heavy: true, live: true };

    fn check(lines: impl Fn(&mut Strokes), seen: &[&str]) {
        let (width, height) = (seen[0].chars().count(), seen.len());
        let mut strokes = Strokes::new(Frame { x: 0, y: 0, width, height });
        lines(&mut strokes);
        let mut text = vec![vec![' '; width]; height];
        for (x, y, shape, _) in strokes.drawn() {
            text[y][x] = shape;
        }
        let text: Vec<String> = text.into_iter().map(String::from_iter).collect();
        assert_eq!(text, seen);
    }

    #[test]
    fn lines_meet_and_cross() {
        // One line from the left splits into two on the right.
        let fork = |strokes: &mut Strokes| {
            strokes.across(0, 0, 3, THIN);
            strokes.across(0, 3, 6, THIN);
            strokes.across(2, 3, 6, THIN);
            strokes.down(1, (0, 2), THIN, &[0, 2]);
        };
        check(fork, &["─┬─", " │ ", " ╰─"]);
        // A passing line is crossed, not joined.
        let crossing = |strokes: &mut Strokes| {
            strokes.across(1, 0, 6, THIN);
            fork(strokes);
        };
        check(crossing, &["─┬─", "─│─", " ╰─"]);
        // A thick line passes over a thin one.
        let thick = |strokes: &mut Strokes| {
            strokes.across(1, 0, 6, THICK);
            fork(strokes);
        };
        check(thick, &["─┬─", "━━━", " ╰─"]);
        // The thick path through a fork is visible.
        let path = |strokes: &mut Strokes| {
            fork(strokes);
            strokes.across(0, 0, 3, THICK);
            strokes.down(1, (0, 2), THICK, &[0, 2]);
            strokes.across(2, 3, 6, THICK);
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
