//! Tables with aligned columns that fit the terminal.

use std::fmt::Write as _;

use anstyle::Style;
use brigade_core::text::{cut, one_line, wrap};
use unicode_width::UnicodeWidthStr;

use super::FAINT;

/// The width to which a table that is too wide shrinks a column at most.
const MIN_COLUMN: usize = 4;
/// The width to which a table that is too wide shrinks its last column before the others.
const MIN_LAST_COLUMN: usize = 8;
/// A text up to this width is not moved below its row.
const MAX_UNSPLIT: usize = 24;
/// The number of lines below a row, or in a cell. Longer texts are cut.
const MAX_LINES: usize = 8;

/// One cell of a table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    /// The length of the part that stays in the cell if the table is too wide. The rest is then shown below the row.
    head: Option<usize>,
}

impl Cell {
    /// Creates a cell with this style. Joins the text into one line and escapes control characters.
    pub(crate) fn new(style: Style, text: &str) -> Self {
        Self { text: one_line(text), style, head: None }
    }

    /// Creates a cell for a state with an optional reason, such as `failed 3 min ago: no login`. In a table that is too wide, a
    /// long reason is shown below the row instead of being cut.
    pub(crate) fn with_reason(style: Style, text: &str) -> Self {
        let cell = Self::new(style, text);
        let ends = [": ", "; "].iter().filter_map(|end| cell.text.find(end));
        Self { head: ends.min(), ..cell }
    }

    /// Splits the text, if it has a reason and is too long.
    fn split(&self) -> Option<(&str, &str)> {
        let (head, rest) = self.text.split_at_checked(self.head?)?;
        (self.text.width() > MAX_UNSPLIT).then_some((head, rest.get(2..)?))
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(Style::new(), text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// A row, and the texts below it.
#[derive(Clone, Debug)]
struct Row {
    cells: Vec<Cell>,
    details: Vec<String>,
}

/// A table with aligned columns. If it is too wide, cells of the last column are cut, and then those of the widest
/// columns.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Row>,
    wraps_last: bool,
}

impl Table {
    /// Creates a table with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let cells = headings.iter().map(|text| Cell::new(FAINT, text)).collect();
        Self { rows: vec![Row { cells, details: Vec::new() }], wraps_last: false }
    }

    /// Breaks the texts of the last column between words instead of cutting them.
    pub(crate) fn wrapping_last(self) -> Self {
        Self { wraps_last: true, ..self }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row { cells: cells.into_iter().collect(), details: Vec::new() });
    }

    /// Adds a text below the last row, in as many lines as it needs.
    pub(crate) fn detail(&mut self, text: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.details.push(one_line(text));
        }
    }

    /// Returns whether the table fits a terminal of this width without a change.
    pub(crate) fn fits(&self, indent: &str, width: Option<usize>) -> bool {
        let widths = widths(&self.rows);
        width.is_none_or(|width| widths.iter().sum::<usize>() + gaps(&widths, indent) <= width)
    }

    /// Renders the table. Each line starts with `indent`; none is wider than `width`.
    pub(crate) fn render(&self, indent: &str, width: Option<usize>) -> String {
        let mut rows = self.rows.clone();
        if !self.fits(indent, width) {
            for row in &mut rows {
                let details = row.cells.iter_mut().filter_map(|cell| {
                    let (head, rest) = cell.split()?;
                    let (head, rest) = (head.to_owned(), rest.to_owned());
                    cell.text = head;
                    Some(rest)
                });
                let details: Vec<String> = details.collect();
                row.details = [details, std::mem::take(&mut row.details)].concat();
            }
        }
        let mut widths = widths(&rows);
        if let Some(width) = width {
            let gaps = gaps(&widths, indent);
            shrink(&mut widths, width.saturating_sub(gaps));
        }
        let below = indent.width() + widths.first().map_or(0, |first| first + 2);
        let mut text = String::new();
        for row in &rows {
            for line in self.lines(row, &widths) {
                text.push_str(indent);
                text.push_str(&line);
                text.push('\n');
            }
            let room = width.map_or(usize::MAX, |width| width.saturating_sub(below));
            for part in row.details.iter().flat_map(|detail| wrapped(detail, room)) {
                let _infallible = writeln!(text, "{:below$}{FAINT}{part}{FAINT:#}", "");
            }
        }
        text
    }

    /// Returns the lines of a row: one, or more if the text of the last column is broken.
    fn lines(&self, row: &Row, widths: &[usize]) -> Vec<String> {
        let last = widths.len().saturating_sub(1);
        let parts: Vec<Vec<String>> = row
            .cells
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, wide))| match self.wraps_last && column == last {
                true => wrapped(&cell.text, *wide),
                false => vec![cut(&cell.text, *wide)],
            })
            .collect();
        let height = parts.iter().map(Vec::len).max().unwrap_or_default();
        (0..height).map(|line| render_line(&row.cells, &parts, widths, line)).collect()
    }
}

/// Renders one line of a row: this part of each cell.
fn render_line(cells: &[Cell], parts: &[Vec<String>], widths: &[usize], line: usize) -> String {
    let mut text = String::new();
    let mut gap = 0;
    for ((cell, parts), wide) in cells.iter().zip(parts).zip(widths) {
        let shown = parts.get(line).map_or("", String::as_str);
        if shown.is_empty() {
            // Do not print an empty cell yet: it may be the last one, and lines must not end with spaces.
            gap += wide + 2;
            continue;
        }
        let Cell { style, .. } = cell;
        let _infallible = write!(text, "{:gap$}{style}{shown}{style:#}", "");
        gap = wide.saturating_sub(shown.width()) + 2;
    }
    text
}

/// Breaks a text between words, and cuts words that are too long.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let parts = wrap(text, width);
    let is_cut = parts.len() > MAX_LINES;
    let shown = parts.into_iter().take(MAX_LINES).enumerate();
    shown
        .map(|(at, part)| match is_cut && at + 1 == MAX_LINES {
            true => cut(&format!("{part} …"), width),
            false => cut(part, width),
        })
        .collect()
}

/// Returns the width of each column.
fn widths(rows: &[Row]) -> Vec<usize> {
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(column));
        cells.map(|cell| cell.text.width()).max().unwrap_or_default()
    };
    (0..columns).map(wide).collect()
}

/// Returns the width of the space before and between the columns.
fn gaps(widths: &[usize], indent: &str) -> usize {
    2 * widths.len().saturating_sub(1) + indent.width()
}

/// Shrinks columns until they have at most `room` columns of the terminal together, or cannot shrink further.
fn shrink(widths: &mut [usize], room: usize) {
    let mut excess = widths.iter().sum::<usize>().saturating_sub(room);
    if let Some(last) = widths.last_mut() {
        let cut = excess.min(last.saturating_sub(MIN_LAST_COLUMN));
        *last -= cut;
        excess -= cut;
    }
    while excess > 0 {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > MIN_COLUMN) else {
            return;
        };
        *widest -= 1;
        excess -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: &Table, width: usize, expected: &str) {
        let text = anstream::adapter::strip_str(&table.render("", Some(width))).to_string();
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.width() <= width), "{text}");
    }

    /// B21: the lines of a table were wider than the terminal if its first columns were wide.
    #[test]
    fn b21_a_wide_table_fits_a_narrow_terminal() {
        let mut table = Table::new(&["AGENT", "PLAN MODE ENFORCED BY", "PROGRAM"]);
        table.row(["codex".into(), "permission requests".into(), "/usr/bin/codex".into()]);
        check(&table, 30, "AGENT  PLAN MODE EN…  PROGRAM\ncodex  permission r…  /usr/bi…\n");
    }

    #[test]
    fn columns_are_aligned_by_width() {
        let mut table = Table::new(&["NAME", "SUBJECT"]);
        table.row(["日本".into(), "one".into()]);
        table.row(["b".into(), "a long subject indeed".into()]);
        check(&table, 18, "NAME  SUBJECT\n日本  one\nb     a long subj…\n");
    }

    #[test]
    fn a_reason_that_does_not_fit_is_shown_below_its_row() {
        let mut table = Table::new(&["NAME", "STATE", "TASK"]);
        let reason = "failed 3 min ago: the agent ended with exit status 1: no login";
        table.row(["bob".into(), Cell::with_reason(Style::new(), reason), "1 Lex".into()]);
        table.row(["eve".into(), Cell::with_reason(Style::new(), "wants to: ls"), "–".into()]);
        check(
            &table,
            40,
            "NAME  STATE             TASK\n\
             bob   failed 3 min ago  1 Lex\n      \
             the agent ended with exit status\n      \
             1: no login\n\
             eve   wants to: ls      –\n",
        );
        let wide = anstream::adapter::strip_str(&table.render("", Some(100))).to_string();
        assert!(wide.contains(&format!("bob   {reason}  1 Lex\n")), "{wide}");
    }

    #[test]
    fn texts_of_the_last_column_are_broken_between_words() {
        let mut table = Table::new(&["COMMAND", "REASON"]).wrapping_last();
        table.row(["restart".into(), "the agent ended with exit status 1".into()]);
        check(
            &table,
            28,
            "COMMAND  REASON\nrestart  the agent ended\n         with exit status 1\n",
        );
    }
}
