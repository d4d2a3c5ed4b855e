//! The text of an action, for people and for models.

use std::fmt;

use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::value::{Leaf, LeafText, leaves};
use super::{ActionKind, AgentAction, CommandLine, Fields, value};
use crate::text;

/// A wrapped line keeps at least this many columns for its text.
const MIN_ROOM: usize = 8;

/// The later parts of a wrapped line have at least this indent. No line has as many blanks before its first other
/// character: the deepest are the marked lines of a value inside the request, with four.
const LATER_PART_INDENT: usize = 6;

/// How much of an action to show. Where something is left out, the text says how much.
#[derive(Clone, Copy, Debug)]
pub struct RenderLimit<'l> {
    /// The maximum number of lines of one value.
    pub lines: usize,
    /// The maximum number of characters of one value.
    pub characters: usize,
    /// The maximum number of values.
    pub values: usize,
    /// How to see the rest, for example "run `brigade approvals 3`".
    pub hint: &'l str,
}

/// One line of an action's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownLine {
    /// The content of the line.
    pub role: LineRole,
    /// The indentation and the mark that shows that the line belongs to a value.
    pub prefix: String,
    /// The text. It contains no control characters and no invisible characters.
    pub text: String,
}

/// The content of a line of an action's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineRole {
    /// The tool and what it does.
    Title,
    /// The name of a field, with its value if that is short.
    Field,
    /// A line of the command.
    Command,
    /// A line of another value.
    Text,
    /// Says how much is left out, and how to see it.
    Cut,
}

/// Joins the lines of an action's text.
pub fn text_of(lines: &[ShownLine]) -> String {
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl AgentAction {
    /// Writes the action as lines: the tool, then each field of the request with its value. Without a limit, the
    /// text determines the action.
    pub fn render(&self, limit: Option<RenderLimit<'_>>) -> Vec<ShownLine> {
        let title = format!("{}: {}", text::exact(&self.tool), self.kind.purpose());
        let mut lines = Lines { limit, values: 0, left_out: 0, lines: Vec::new() };
        lines.push(LineRole::Title, "", title);
        if let Some(cwd) = &self.cwd {
            lines.push(LineRole::Field, "", format!("working directory: {}", text::exact(cwd)));
        }
        if let Some(command) = self.command() {
            lines.command(command);
        }
        lines.other_fields(self);
        lines.finish()
    }

    /// Writes the fields of the action without its command.
    pub(super) fn render_other_fields(&self, limit: Option<RenderLimit<'_>>) -> Vec<ShownLine> {
        let mut lines = Lines { limit, values: 0, left_out: 0, lines: Vec::new() };
        lines.other_fields(self);
        lines.finish()
    }
}

struct Lines<'l> {
    limit: Option<RenderLimit<'l>>,
    /// How many values were written.
    values: usize,
    left_out: usize,
    lines: Vec<ShownLine>,
}

impl Lines<'_> {
    fn push(&mut self, role: LineRole, prefix: &str, text: String) {
        self.lines.push(ShownLine { role, prefix: prefix.to_owned(), text });
    }

    fn other_fields(&mut self, action: &AgentAction) {
        match &action.kind {
            ActionKind::RunCommand {
                command: _,
                directory,
                sandbox,
                network,
                environment,
                other,
            } => {
                for group in [directory, sandbox, network, environment, other] {
                    self.values("", group);
                }
            }
            ActionKind::EditFiles { files, changes, other } => {
                for group in [files, changes, other] {
                    self.values("", group);
                }
            }
            ActionKind::Fetch { url, other } => {
                let mut found = Vec::new();
                leaves("url".to_owned(), url, &mut found);
                self.leaves("", found);
                self.values("", other);
            }
            ActionKind::McpCall { arguments: input, .. } | ActionKind::Other { input } => {
                self.whole("", "(the whole input)", input);
            }
        }
        if !action.request.is_null() {
            self.push(LineRole::Field, "", "with the request:".to_owned());
            self.whole("  ", "(the whole request)", &action.request);
        }
    }

    fn command(&mut self, command: &CommandLine) {
        match command {
            CommandLine::Shell(line) => {
                self.push(LineRole::Field, "", "command:".to_owned());
                self.block(LineRole::Command, "  $", line);
            }
            CommandLine::Arguments(words) => {
                let line = value::inline_array(words.iter().map(String::as_str));
                self.push(LineRole::Command, "", format!("command: {line}"));
            }
        }
    }

    /// Writes the fields of an object, or a value that is not an object. The label of such a value is not the name of
    /// a field, because a name with blanks is quoted.
    fn whole(&mut self, indent: &str, label: &str, value: &Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() => self.values(indent, fields),
            other => {
                let mut found = Vec::new();
                leaves(label.to_owned(), other, &mut found);
                self.leaves(indent, found);
            }
        }
    }

    fn values(&mut self, indent: &str, fields: &Fields) {
        for (name, value) in fields {
            let mut found = Vec::new();
            leaves(value::field_name(name), value, &mut found);
            self.leaves(indent, found);
        }
    }

    fn leaves(&mut self, indent: &str, found: Vec<Leaf<'_>>) {
        for Leaf { path, text } in found {
            self.values += 1;
            if self.limit.is_some_and(|limit| self.values > limit.values) {
                self.left_out += 1;
                continue;
            }
            let max = self.limit.map_or(usize::MAX, |limit| limit.characters);
            match text {
                LeafText::Inline(text) if text.chars().count() <= max => {
                    self.push(LineRole::Field, indent, format!("{path}: {text}"));
                }
                LeafText::Inline(text) => {
                    self.push(LineRole::Field, indent, format!("{path}:"));
                    self.lines_of(LineRole::Text, &format!("{indent}  |"), vec![text]);
                }
                LeafText::Block(text) => {
                    self.push(LineRole::Field, indent, format!("{path}:"));
                    self.block(LineRole::Text, &format!("{indent}  |"), text);
                }
            }
        }
    }

    /// Writes a string on lines of its own. Each line begins with a mark, so no line of the string can look like a
    /// field.
    fn block(&mut self, role: LineRole, mark: &str, string: &str) {
        self.lines_of(role, mark, string.split('\n').map(text::exact).collect());
    }

    fn lines_of(&mut self, role: LineRole, mark: &str, lines: Vec<String>) {
        let (max_lines, max_characters) =
            self.limit.map_or((usize::MAX, usize::MAX), |limit| (limit.lines, limit.characters));
        let (mut left_lines, mut left_characters, mut room) = (0, 0, max_characters);
        for (index, line) in lines.into_iter().enumerate() {
            let length = line.chars().count();
            if index >= max_lines || room == 0 {
                left_lines += 1;
                left_characters += length;
                continue;
            }
            let shown: String = line.chars().take(room).collect();
            left_characters += length.saturating_sub(room);
            room = room.saturating_sub(length.max(1));
            let gap = if shown.is_empty() { "" } else { " " };
            self.push(role, &format!("{mark}{gap}"), shown);
        }
        if let Some(limit) = self.limit.filter(|_| left_lines > 0 || left_characters > 0) {
            let characters = text::count(left_characters, "more character");
            let lines = match left_lines {
                0 => String::new(),
                lines => format!(" in {}", text::count(lines, "more line")),
            };
            let indent = mark.trim_end_matches(['|', '$']).to_owned();
            self.push(LineRole::Cut, &indent, format!("[{characters}{lines}; {}]", limit.hint));
        }
    }

    fn finish(mut self) -> Vec<ShownLine> {
        if let Some(limit) = self.limit.filter(|_| self.left_out > 0) {
            let more = text::count(self.left_out, "more value");
            self.push(LineRole::Cut, "", format!("[{more}; {}]", limit.hint));
        }
        self.lines
    }
}

impl ShownLine {
    /// Breaks the line so that no part is wider than `width`, and loses no character. The later parts are indented
    /// more than every line, so that none of them can look like a line of its own.
    pub fn wrapped(&self, width: usize) -> Vec<String> {
        let indent = " ".repeat((self.prefix.width() + 2).max(LATER_PART_INDENT));
        let mut parts = Vec::new();
        let mut rest = self.text.as_str();
        let mut prefix = self.prefix.clone();
        loop {
            let room = width.saturating_sub(prefix.width()).max(MIN_ROOM);
            let (part, tail) = split_at_width(rest, room);
            parts.push(format!("{prefix}{part}").trim_end().to_owned());
            if tail.is_empty() {
                return parts;
            }
            (rest, prefix) = (tail, indent.clone());
        }
    }
}

/// Splits a text at the last blank within `room` columns, or at `room` columns if there is none in the second half.
fn split_at_width(text: &str, room: usize) -> (&str, &str) {
    let (mut used, mut blank) = (0, None);
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or_default();
        if used > room {
            let end = blank.filter(|blank| *blank > at / 2).unwrap_or(at);
            return text.split_at_checked(end).unwrap_or((text, ""));
        }
        if c == ' ' {
            blank = Some(at + 1);
        }
    }
    (text, "")
}

impl fmt::Display for ShownLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.prefix, self.text)
    }
}
