//! A grammar for the part of the shell language whose meaning does not depend on the shell, its settings or the
//! folder.
//!
//! [`parse`] accepts lists and pipelines of simple commands with quotes, file name patterns and redirections. It
//! accepts a line only if `bash`, `dash` and `zsh` run the same commands for it. The end-to-end test `e2e/policy`
//! compares it with `bash` and `dash`; its treatment of `zsh` is untested. Everything else is
//! [`Unclear`]: variables, substitutions, here-documents, compound commands, functions, brace and tilde expansion,
//! comments, history expansion and control characters.
//!
//! ```
//! use brigade_core::policy::shell;
//!
//! let commands = shell::parse("git log --oneline | head -n '3'").unwrap();
//! let words: Vec<Vec<&str>> = commands.iter().map(|command| command.texts().collect()).collect();
//! assert_eq!(words, [vec!["git", "log", "--oneline"], vec!["head", "-n", "3"]]);
//! assert!(shell::parse("git log $(rm x)").is_err());
//! ```

use std::fmt;

use super::word::{Word, WordBuilder};
use crate::text;

pub use super::word::quote;

/// The length of the longest line that the grammar accepts, in bytes. No line that a person would want to allow by
/// a rule is longer.
const MAX_LINE: usize = 64 * 1024;

/// Words that begin or continue a compound command, in any of the shells. `time` and `coproc` run the command that
/// follows.
pub(super) const RESERVED: &[&str] = &[
    "[[",
    "]]",
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "fi",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "nocorrect",
    "repeat",
    "select",
    "then",
    "time",
    "until",
    "while",
];

/// The reason why a line is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclear(&'static str);

impl Unclear {
    pub(super) const SEVERAL_COMMANDS: Self = Self("it contains several commands");
    pub(super) const OTHER_COMMANDS: Self = Self("the request also names another command");
    pub(super) const REDIRECTION: Self = Self("it contains a redirection");
    pub(super) const UNQUOTED_PATTERN: Self = Self("it contains ? or [ without quotes");
    pub(super) const RUNNER: Self = Self("its program runs other commands");
    pub(super) const PROGRAM: Self = Self("the program's name depends on the shell");
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Unclear {}

/// One program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The assignments before the program, such as `A=1`.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// The redirections, without those to `/dev/null` and to another descriptor.
    pub redirections: Vec<Redirection>,
    /// Whether the command reads the output of the command before it.
    pub is_piped: bool,
}

/// An assignment before a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the variable.
    pub name: String,
    /// The value.
    pub value: Word,
}

/// A redirection from or to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirection {
    /// The command reads this file.
    From(String),
    /// The command writes this file, or opens it for reading and writing.
    To(String),
}

impl SimpleCommand {
    /// Returns the program.
    pub fn program(&self) -> &str {
        self.words.first().map(Word::text).unwrap_or_default()
    }

    /// Returns the program and its arguments without quotes. An argument that is a pattern for file names is not
    /// expanded.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(Word::text)
    }
}

/// Splits a line into its commands.
pub fn parse(line: &str) -> Result<Vec<SimpleCommand>, Unclear> {
    let commands = parse_list(line)?;
    for command in &commands {
        if !command.words.first().is_some_and(is_plain_program) {
            return Err(Unclear::PROGRAM);
        }
    }
    Ok(commands)
}

/// Like [`parse`], but the name of a program may contain `*`. Patterns of rules have this form.
pub(super) fn parse_list(line: &str) -> Result<Vec<SimpleCommand>, Unclear> {
    if line.len() > MAX_LINE {
        return Err(Unclear("it is too long"));
    }
    if line.chars().any(is_hidden) {
        return Err(Unclear("it contains a control character or an invisible character"));
    }
    parse_unchecked(line)
}

/// Like [`parse_list`], but accepts control characters and invisible characters as parts of words.
pub(super) fn parse_unchecked(line: &str) -> Result<Vec<SimpleCommand>, Unclear> {
    let mut parser = Parser { rest: line };
    let commands = parser.list()?;
    if commands.is_empty() {
        return Err(Unclear("it contains no command"));
    }
    Ok(commands)
}

/// Returns whether a character is invisible, or white space that some programs take for a blank.
fn is_hidden(character: char) -> bool {
    match character {
        ' '..='~' | '\t' | '\n' => false,
        '\u{200c}' | '\u{200d}' => true,
        _ => {
            let mut bytes = [0; 4];
            let alone = character.encode_utf8(&mut bytes);
            character.is_whitespace() || character.is_control() || text::plain(alone) != *alone
        }
    }
}

/// Returns whether a word names the same program in every shell. `%1` is a job, `-` is a modifier of `zsh`, and a
/// word with `=` can be an assignment.
pub(super) fn is_plain_program(word: &Word) -> bool {
    let text = word.text();
    word.is_literal()
        && !text.is_empty()
        && !text.starts_with(['-', '+', '%'])
        && !text.contains(['=', '\n'])
        && !RESERVED.contains(&text)
}

struct Parser<'l> {
    rest: &'l str,
}

/// The operator after a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// The end of the line, `;`, `&` or a line break. Another command may follow.
    End,
    /// `&&` or `||`. Another command must follow.
    AndOr,
    /// `|` or `|&`. Another command must follow.
    Pipe,
}

impl Parser<'_> {
    fn list(&mut self) -> Result<Vec<SimpleCommand>, Unclear> {
        let mut commands = Vec::new();
        let mut before = Operator::End;
        loop {
            self.skip_blanks();
            while self.take("\n") {
                self.skip_blanks();
            }
            if self.rest.is_empty() {
                break;
            }
            if before != Operator::Pipe && self.rest.starts_with("! ") {
                self.take("!");
                self.skip_blanks();
            }
            let mut command = self.command()?;
            command.is_piped = before == Operator::Pipe;
            if command.words.is_empty() {
                return Err(Unclear("it contains no program, or an operator without a command"));
            }
            commands.push(command);
            before = self.operator();
        }
        if before != Operator::End {
            return Err(Unclear("a command is missing after the last operator"));
        }
        Ok(commands)
    }

    fn operator(&mut self) -> Operator {
        if self.take("&&") || self.take("||") {
            return Operator::AndOr;
        }
        if self.take("|&") || self.take("|") {
            return Operator::Pipe;
        }
        let _ended = self.take(";") || self.take("&") || self.take("\n");
        Operator::End
    }

    fn command(&mut self) -> Result<SimpleCommand, Unclear> {
        let mut command = SimpleCommand::default();
        loop {
            self.skip_blanks();
            match self.rest.chars().next() {
                // In `dash`, what follows `&>` is another command.
                Some('&') if self.rest.starts_with("&>") => {
                    return Err(Unclear("it contains &>, which shells read differently"));
                }
                None | Some('\n' | ';' | '|' | '&') => return Ok(command),
                Some('<' | '>') => self.redirection(&mut command)?,
                Some(_) => {
                    let word = self.word()?;
                    if word.is_descriptor() && self.rest.starts_with(['<', '>']) {
                        self.redirection(&mut command)?;
                        continue;
                    }
                    if self.rest.starts_with(['<', '>']) {
                        return Err(Unclear("there is no blank before a redirection"));
                    }
                    match word.assigned_name() {
                        Some(name) if command.words.is_empty() => {
                            let (name, value) = (name.to_owned(), word.after_name());
                            command.assignments.push(Assignment { name, value });
                        }
                        _ => command.words.push(word.finish()),
                    }
                }
            }
        }
    }

    /// Parses a redirection. A descriptor before the operator does not matter.
    fn redirection(&mut self, command: &mut SimpleCommand) -> Result<(), Unclear> {
        for unsupported in ["<<", "<(", ">(", ">!"] {
            if self.rest.starts_with(unsupported) {
                return Err(Unclear("it contains a here-document or a process substitution"));
            }
        }
        if self.take(">&") || self.take("<&") {
            // `2>&1` and `2>&-`.
            let mut characters = self.rest.chars();
            let is_copy = characters.next().is_some_and(|c| c.is_ascii_digit() || c == '-');
            self.rest = characters.as_str();
            return if is_copy && self.at_boundary() {
                Ok(())
            } else {
                Err(Unclear("it redirects to a descriptor that is not a digit"))
            };
        }
        let writes = self.take(">>") || self.take(">|") || self.take(">") || self.take("<>");
        if !writes {
            self.take("<");
        }
        self.skip_blanks();
        let target = self.word()?.finish();
        if self.rest.starts_with(['<', '>']) {
            return Err(Unclear("there is no blank before a redirection"));
        }
        if !target.is_literal() || target.text().is_empty() {
            return Err(Unclear("the name of a redirected file is missing or a pattern"));
        }
        let file = target.text().to_owned();
        match (writes, file.as_str()) {
            (_, "/dev/null") => {}
            (true, _) => command.redirections.push(Redirection::To(file)),
            (false, _) => command.redirections.push(Redirection::From(file)),
        }
        Ok(())
    }

    fn word(&mut self) -> Result<WordBuilder, Unclear> {
        let mut word = WordBuilder::default();
        while !self.at_boundary() {
            let mut characters = self.rest.chars();
            let Some(character) = characters.next() else { break };
            if matches!(character, '<' | '>') {
                break;
            }
            self.rest = characters.as_str();
            match character {
                '\'' => {
                    let (quoted, rest) =
                        self.rest.split_once('\'').ok_or(Unclear("a quote is not closed"))?;
                    word.push_quoted(quoted);
                    self.rest = rest;
                }
                '"' => self.double_quoted(&mut word)?,
                '\\' => {
                    let mut characters = self.rest.chars();
                    let escaped = characters.next().filter(|escaped| *escaped != '\n');
                    let escaped = escaped.ok_or(Unclear("a line ends with a backslash"))?;
                    self.rest = characters.as_str();
                    word.push_quoted(escaped.encode_utf8(&mut [0; 4]));
                }
                '$' | '`' => return Err(Unclear("it contains a variable or a substitution")),
                '(' | ')' => return Err(Unclear("it contains a parenthesis")),
                '{' | '}' => return Err(Unclear("it contains a brace")),
                '!' => {
                    return Err(Unclear("it contains an exclamation mark, which can be expanded"));
                }
                '#' | '=' | '^' if word.is_empty() => {
                    return Err(Unclear("a word begins with #, = or ^, which can be special"));
                }
                '~' if word.ends_at_tilde_prefix() => {
                    return Err(Unclear("it contains a tilde that is expanded"));
                }
                '*' | '?' | '[' | ']' => word.push_pattern(character),
                _ => word.push(character),
            }
        }
        Ok(word)
    }

    fn double_quoted(&mut self, word: &mut WordBuilder) -> Result<(), Unclear> {
        let unclosed = Unclear("a quote is not closed");
        word.push_quoted("");
        loop {
            let mut characters = self.rest.chars();
            let character = characters.next().ok_or(unclosed)?;
            let after = characters.as_str();
            match character {
                '"' => {
                    self.rest = after;
                    return Ok(());
                }
                '$' | '`' => return Err(Unclear("it contains a variable or a substitution")),
                '!' => {
                    return Err(Unclear("it contains an exclamation mark, which can be expanded"));
                }
                '\\' => match characters.next().ok_or(unclosed)? {
                    '\n' => return Err(Unclear("a line ends with a backslash")),
                    escaped @ ('"' | '\\' | '$' | '`') => {
                        word.push_quoted(escaped.encode_utf8(&mut [0; 4]));
                        self.rest = characters.as_str();
                        continue;
                    }
                    // Before any other character, the backslash stays.
                    _ => word.push_quoted("\\"),
                },
                _ => word.push_quoted(character.encode_utf8(&mut [0; 4])),
            }
            self.rest = after;
        }
    }

    /// Returns whether a word ends here.
    fn at_boundary(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with([' ', '\t', '\n', ';', '&', '|'])
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}
