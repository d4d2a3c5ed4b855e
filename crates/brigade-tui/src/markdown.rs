//! Renders Markdown for the terminal. No text is left out, because a person who approves a plan must see all
//! of the plan: HTML is shown as written, links show their target, and long code lines continue on the next
//! line. Lines end where the text has line breaks, because agents write lines that are read as lines.

#[cfg(test)]
mod tests;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::style::Theme;
use super::text_layout::wrap;
use brigade_core::text::plain;

/// Minimum width of text, however deeply the text is nested in lists and quotations.
const MIN_WIDTH: usize = 8;

/// Renders Markdown as styled lines, at most `width` wide.
pub(crate) fn lines(text: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = MarkdownWriter::new(width, theme);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        let is_blank = |character: char| matches!(character, ' ' | '\t');
        if let Event::Start(Tag::List(_) | Tag::CodeBlock(_)) = event
            && !ends_with_blank_line(text.get(..range.start).unwrap_or_default())
        {
            writer.gap = false;
        }
        // The parser drops the blanks at the start of a line.
        let indentation = match event {
            Event::Start(Tag::Paragraph) => {
                let before = text.get(..range.start).unwrap_or_default();
                before.strip_prefix(before.trim_end_matches(is_blank))
            }
            Event::SoftBreak | Event::HardBreak => {
                let after = text.get(range.end..).unwrap_or_default();
                after.strip_suffix(after.trim_start_matches(is_blank))
            }
            _ => None,
        };
        writer.handle(event);
        writer.indent(indentation.unwrap_or_default());
    }
    writer.flush();
    writer.lines
}

/// Returns whether a text ends with an empty line, apart from blanks.
fn ends_with_blank_line(text: &str) -> bool {
    let without_blanks =
        |text: &str| text.trim_end_matches([' ', '\t']).strip_suffix('\n').map(str::len);
    let line_start = without_blanks(text).and_then(|end| text.get(..end));
    line_start.and_then(without_blanks).is_some()
}

/// The prefix of each line in a list item or quotation.
struct Margin {
    /// The prefix of the first line; `None` after that line has been written.
    first: Option<String>,
    rest: String,
}

struct MarkdownWriter {
    theme: Theme,
    width: usize,
    lines: Vec<Line<'static>>,
    /// The text of the current line or paragraph.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    margins: Vec<Margin>,
    /// The enclosing lists, outermost first: the number of the next item, or `None` for an unnumbered list.
    lists: Vec<Option<u64>>,
    /// The text of the current code block.
    code: Option<String>,
    /// The enclosing links: the target of each, and the index in `spans` where the link text starts.
    links: Vec<(String, usize)>,
    /// The rows of the current table.
    rows: Vec<Vec<Vec<Span<'static>>>>,
    /// Whether to write an empty line before the next block.
    gap: bool,
}

impl MarkdownWriter {
    fn new(width: usize, theme: Theme) -> Self {
        Self {
            theme,
            width,
            lines: Vec::new(),
            spans: Vec::new(),
            styles: vec![Style::new()],
            margins: Vec::new(),
            lists: Vec::new(),
            code: None,
            links: Vec::new(),
            rows: Vec::new(),
            gap: false,
        }
    }

    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.add(&text),
            },
            Event::Code(text) => self.add_styled(&format!("`{text}`"), self.theme.busy()),
            Event::InlineHtml(text) => self.add(&text),
            Event::Html(text) => {
                for line in text.lines() {
                    self.add(line);
                    self.flush();
                }
            }
            // The text of a link is compared with its target, so it stays on one line.
            Event::SoftBreak | Event::HardBreak if !self.links.is_empty() => self.add(" "),
            Event::SoftBreak | Event::HardBreak => self.flush(),
            Event::Rule => {
                self.flush();
                self.spans.push(Span::styled("─".repeat(self.room().min(40)), self.theme.faint()));
                self.flush();
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.add(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.add(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => {
                self.flush();
                self.gap = !self.lines.is_empty();
                self.push(Modifier::BOLD);
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.margins.push(Margin { first: None, rest: "│ ".into() });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                // Drop the name of a programming language after the fence. Show any other text there, because
                // a sender could hide something in it.
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.chars().all(char::is_alphanumeric)
                {
                    self.add_styled(&language, self.theme.faint());
                    self.flush();
                }
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.flush();
                self.gap &= self.lists.is_empty();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", number.saturating_sub(1))
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(mark.width());
                self.margins.push(Margin { first: Some(mark), rest });
            }
            Tag::Emphasis => self.push(Modifier::ITALIC),
            Tag::Strong => self.push(Modifier::BOLD),
            Tag::Strikethrough => {
                self.push(Modifier::CROSSED_OUT);
                self.add("~~");
            }
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.spans.len()));
                self.push(Modifier::UNDERLINED);
            }
            Tag::Image { dest_url, .. } => {
                self.add("[image] ");
                self.links.push((dest_url.into_string(), self.spans.len()));
                self.push(Modifier::UNDERLINED);
            }
            Tag::Table(_) => {
                self.flush();
                self.rows.clear();
            }
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.flush();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.margins.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                self.margins.push(Margin { first: None, rest: "  ".into() });
                for line in code.lines() {
                    self.add_styled(line, self.theme.busy());
                    self.break_code();
                }
                self.margins.pop();
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                self.margins.pop();
                self.gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong => {
                self.styles.pop();
            }
            TagEnd::Strikethrough => {
                self.add("~~");
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let Some((to, from)) = self.links.pop() else { return };
                let link_text: String =
                    self.spans.iter().skip(from).map(|span| &*span.content).collect();
                if link_text.is_empty() {
                    self.add(&to);
                } else if link_text != plain(&to) {
                    self.add_styled(&format!(" ({to})"), self.theme.faint());
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(row) = self.rows.last_mut() {
                    row.push(cell);
                }
            }
            TagEnd::Table => self.table(),
            _ => {}
        }
    }

    fn push(&mut self, modifier: Modifier) {
        let style = self.styles.last().copied().unwrap_or_default().add_modifier(modifier);
        self.styles.push(style);
    }

    /// Adds the blanks at the start of a line. In a list or quotation, the margin replaces them.
    fn indent(&mut self, blanks: &str) {
        if !blanks.is_empty() && self.spans.is_empty() && self.margins.is_empty() {
            self.add(blanks);
        }
    }

    fn add(&mut self, text: &str) {
        self.add_styled(text, Style::new());
    }

    /// Adds text. Control characters are escaped here and not before parsing, because a Markdown text can
    /// contain them as entities such as `&#27;`.
    fn add_styled(&mut self, text: &str, style: Style) {
        let style = self.styles.last().copied().unwrap_or_default().patch(style);
        let text = plain(text).replace('\n', " ");
        self.spans.push(Span::styled(text, style));
    }

    fn room(&self) -> usize {
        let margin: usize = self.margins.iter().map(|margin| margin.rest.width()).sum();
        self.width.saturating_sub(margin).max(MIN_WIDTH)
    }

    /// Writes out the current line or paragraph.
    fn flush(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.spans);
        for line in wrap(&spans, self.room()) {
            self.write(line);
        }
    }

    /// Writes a line of code. Splits a long line, and starts each further line with a continuation symbol.
    /// Keeps all spaces.
    fn break_code(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        let code: String = spans.iter().map(|span| &*span.content).collect();
        let style = spans.first().map(|span| span.style).unwrap_or_default();
        let (room, mut used, mut line) = (self.room(), 0, String::new());
        for character in code.chars() {
            let char_width = unicode_width::UnicodeWidthChar::width(character).unwrap_or_default();
            if used + char_width > room && !line.is_empty() {
                self.write(Line::styled(std::mem::take(&mut line), style));
                line.push_str("↪ ");
                used = 2;
            }
            line.push(character);
            used += char_width;
        }
        self.write(Line::styled(line, style));
    }

    fn write(&mut self, line: Line<'static>) {
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        let faint = self.theme.faint();
        let mut spans: Vec<Span<'static>> = Vec::new();
        for margin in &mut self.margins {
            let text = margin.first.take().unwrap_or_else(|| margin.rest.clone());
            spans.push(Span::styled(text, faint));
        }
        let style = line.style;
        spans.extend(line.spans.into_iter().map(|span| span.patch_style(style)));
        self.lines.push(Line::from(spans));
    }

    /// Writes a table with aligned columns; if the table is too wide, writes each row as `a | b`.
    fn table(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let cell_width =
            |cell: &Vec<Span<'_>>| cell.iter().map(|span| span.content.width()).sum::<usize>();
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        let column = |index| {
            rows.iter().filter_map(|row| row.get(index)).map(cell_width).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(column).collect();
        let total = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
        let fits = total <= self.room();
        for (row_index, row) in rows.into_iter().enumerate() {
            for (number, (cell, width)) in row.into_iter().zip(&widths).enumerate() {
                let gap = if fits { width.saturating_sub(cell_width(&cell)) } else { 0 };
                if number > 0 {
                    self.spans.push(Span::raw(if fits { "  " } else { " | " }));
                }
                let bold = Style::new().add_modifier(Modifier::BOLD);
                let patch = |span: Span<'static>| {
                    if row_index == 0 { span.patch_style(bold) } else { span }
                };
                self.spans.extend(cell.into_iter().map(patch));
                self.spans.push(Span::raw(" ".repeat(gap)));
            }
            self.flush();
            if row_index == 0 {
                let rule = "─".repeat(total.min(self.room()));
                self.spans.push(Span::styled(rule, self.theme.faint()));
                self.flush();
            }
        }
        self.gap = true;
    }
}
