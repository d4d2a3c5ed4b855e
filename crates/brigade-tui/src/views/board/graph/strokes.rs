//! Lines of box-drawing characters that know where they meet and where they only cross.

use std::ops::Range;

/// How thick a line leaves a cell upwards, to the right, downwards and to the left: 0 not at all, 1 thin,
/// 2 thick.
pub(super) type Arms = [u8; 4];

/// Every way in which thin and thick lines meet, by their [`Arms`] as a number to the base of three.
const SHAPES: &str = concat!(
    " ╴╸╷┐┑╻┒┓╶─╾┌┬┭┎┰┱╺╼━┍┮┯┏┲┳",
    "╵┘┙│┤┥╽┧┪└┴┵├┼┽┟╁╅┕┶┷┝┾┿┢╆╈",
    "╹┚┛╿┦┩┃┨┫┖┸┹┞╀╃┠╂╉┗┺┻┡╄╇┣╊╋",
);

/// The character of a cell.
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

/// The part of the drawing that is seen.
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

/// A line's own look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ink {
    /// Whether it is of the critical path.
    pub(super) heavy: bool,
    /// Whether what it comes from is not done yet.
    pub(super) live: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    arms: Arms,
    live: bool,
}

/// Lines in a frame. Places along a line are given in half cells: `2 * n` is where cell `n` begins, and
/// `2 * n + 1` its middle.
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

    /// A line from left to right.
    pub(super) fn across(&mut self, y: usize, from: usize, to: usize, ink: Ink) {
        let seen = self.frame.columns();
        for half in from.max(2 * seen.start)..to.min(2 * seen.end) {
            if let Some(cell) = self.cell(half / 2, y) {
                cell.draw(if half % 2 == 0 { 3 } else { 1 }, ink);
            }
        }
    }

    /// A line from the middle of one row down to the middle of another. In rows where it does not join
    /// what is there it goes over it, or under it if that is thicker.
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

    /// What there is to see: each cell that is not empty, its character, and its look.
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
        // One comes from the left and goes to two at the right.
        let fork = |strokes: &mut Strokes| {
            strokes.across(0, 0, 3, THIN);
            strokes.across(0, 3, 6, THIN);
            strokes.across(2, 3, 6, THIN);
            strokes.down(1, (0, 2), THIN, &[0, 2]);
        };
        check(fork, &["─┬─", " │ ", " ╰─"]);
        // Another that only passes is crossed, not joined.
        let crossing = |strokes: &mut Strokes| {
            strokes.across(1, 0, 6, THIN);
            fork(strokes);
        };
        check(crossing, &["─┬─", "─│─", " ╰─"]);
        // What is thick goes on over what is thin.
        let thick = |strokes: &mut Strokes| {
            strokes.across(1, 0, 6, THICK);
            fork(strokes);
        };
        check(thick, &["─┬─", "━━━", " ╰─"]);
        // The thick way through a fork is seen.
        let path = |strokes: &mut Strokes| {
            fork(strokes);
            strokes.across(0, 0, 3, THICK);
            strokes.down(1, (0, 2), THICK, &[0, 2]);
            strokes.across(2, 3, 6, THICK);
        };
        check(path, &["━┱─", " ┃ ", " ┗━"]);
    }

    #[test]
    fn every_shape_is_there() {
        assert_eq!(SHAPES.chars().count(), 81);
        assert_eq!(shape([2, 2, 2, 2]), '╋');
        assert_eq!(shape([1, 2, 1, 0]), '┝');
    }
}
