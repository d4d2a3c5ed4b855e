//! The pattern of an allow rule: the words of one command.

use std::path::Path;

use super::shell::{self, Redirection, SimpleCommand, Unclear};
use super::word::Word;
use super::{git, options, paths, runners, scripts};

/// The pattern of an allow rule.
///
/// A `*` inside a word matches any characters of that word. A `*` that is a word of its own matches one argument or,
/// at the end of the pattern, any number of arguments.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    command: SimpleCommand,
    /// Whether the pattern ends with a `*` of its own.
    open: bool,
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, Unclear> {
        let mut commands = shell::parse_list(text)?;
        let (Some(mut command), None) = (commands.pop(), commands.pop()) else {
            return Err(Unclear::SEVERAL_COMMANDS);
        };
        if !command.redirections.is_empty() {
            return Err(Unclear::REDIRECTION);
        }
        let values = command.assignments.iter().map(|assignment| &assignment.value);
        let words = command.words.iter().chain(values);
        if words.flat_map(Word::signs).any(|(character, special)| special && character != '*') {
            return Err(Unclear::UNQUOTED_PATTERN);
        }
        if runners::is_runner(command.program()) {
            return Err(Unclear::RUNNER);
        }
        let depends = |program: &Word| program.is_literal() && !shell::is_plain_program(program);
        if command.words.first().is_none_or(depends) {
            return Err(Unclear::PROGRAM);
        }
        let open = command.words.len() > 1 && command.words.last().is_some_and(is_star);
        if open {
            command.words.pop();
        }
        let any = command.words.len() == 1 && command.words.first().is_some_and(is_star);
        Ok(Self { command, open: open || any })
    }

    /// Returns whether the pattern allows a command that runs in `folder` or below it.
    pub(super) fn allows(&self, command: &SimpleCommand, folder: &Path) -> bool {
        self.matches(command) && self.obstacle(command, folder).is_none()
    }

    /// Returns why the pattern does not allow a command that it matches; `None` if it allows the command.
    pub(super) fn obstacle(&self, command: &SimpleCommand, folder: &Path) -> Option<&'static str> {
        let program = command.program();
        let gets_input = command.is_piped || !command.redirections.is_empty();
        let is_outside = |redirection: &Redirection| match redirection {
            Redirection::From(file) => !paths::stays_inside(file, folder),
            Redirection::To(_) => false,
        };
        let writes = |redirection: &Redirection| matches!(redirection, Redirection::To(_));
        if options::reads_commands(runners::base_name(program)) && gets_input {
            return Some("the program runs the commands in its input");
        }
        if runners::is_runner(program) {
            return Some("the program runs the command in its arguments, or changes the shell");
        }
        if runners::is_shell(program) && self.has_star() {
            return Some("a rule for a shell script must not contain *");
        }
        if !command.words.iter().skip(1).all(expands_to_arguments) {
            return Some("it contains a file name pattern that can expand to an option or to ..");
        }
        if command.redirections.iter().any(writes) {
            return Some("it writes to a file");
        }
        if command.redirections.iter().any(is_outside) {
            return Some("it reads a file outside the member's folder");
        }
        if program == "cd" && !changes_to_inside(command, folder) {
            return Some("it does not stay in the member's folder");
        }
        if !dangerous(command).into_iter().all(|at| self.is_literal_at(at)) {
            return Some("it has an argument that makes the program run others or write files");
        }
        None
    }

    fn matches(&self, command: &SimpleCommand) -> bool {
        let SimpleCommand { assignments, words, .. } = &self.command;
        let same_variables = assignments.len() == command.assignments.len()
            && assignments.iter().zip(&command.assignments).all(|(pattern, assigned)| {
                pattern.name == assigned.name && matches_word(&pattern.value, &assigned.value)
            });
        let enough = match self.open {
            true => command.words.len() >= words.len(),
            false => command.words.len() == words.len(),
        };
        let more = command.words.iter().skip(words.len());
        let same_place =
            |word: &Word| self.command.program().contains('/') || !word.text().contains('/');
        same_variables
            && enough
            && command.words.first().is_some_and(same_place)
            && words.iter().zip(&command.words).all(|(pattern, word)| matches_word(pattern, word))
            && more.map(Word::text).all(|text| !leads_up(text))
    }

    fn has_star(&self) -> bool {
        self.open || !self.command.words.iter().all(Word::is_literal)
    }

    /// Returns whether the pattern itself contains the command's word at this position.
    fn is_literal_at(&self, at: usize) -> bool {
        self.command.words.get(at).is_some_and(Word::is_literal)
    }
}

/// Writes the narrowest pattern for a command. A file name pattern in the command becomes a `*`.
pub(super) fn exact(command: &SimpleCommand) -> String {
    let assignments = command.assignments.iter();
    let assignments =
        assignments.map(|assigned| format!("{}={}", assigned.name, exact_word(&assigned.value)));
    let words = command.words.iter().map(exact_word);
    assignments.chain(words).collect::<Vec<_>>().join(" ")
}

fn exact_word(word: &Word) -> String {
    if word.is_literal() {
        return shell::quote(word.text());
    }
    let signs: Vec<(char, bool)> = word.signs().collect();
    let pieces = signs.chunk_by(|(_, first), (_, second)| first == second);
    let piece = |piece: &[(char, bool)]| match piece.first() {
        Some((_, true)) => "*".to_owned(),
        _ => shell::quote(&piece.iter().map(|(character, _)| *character).collect::<String>()),
    };
    pieces.map(piece).collect()
}

fn is_star(word: &Word) -> bool {
    word.text() == "*" && !word.is_literal()
}

/// Returns the positions of the words with which a program does more than its name says: it runs another program, or
/// writes a file.
fn dangerous(command: &SimpleCommand) -> Vec<usize> {
    let (program, words) = (runners::base_name(command.program()), command.words.as_slice());
    let takes_script = scripts::is_listed(program);
    // A pattern for file names can expand to a subcommand or a script, because an agent chooses the names of files.
    let expands =
        |word: &Word| !word.is_literal() && (takes_script || !word.literal_start().contains('/'));
    let is_listed = takes_script || program == "git" || options::is_listed(program);
    let patterns = words.iter().enumerate().filter(|(_, word)| is_listed && expands(word));
    let patterns = patterns.map(|(at, _)| at).collect();
    let git = if program == "git" { git::dangerous(words) } else { Vec::new() };
    [options::dangerous(program, words), scripts::dangerous(program, words), git, patterns].concat()
}

/// Returns whether the shell can expand the word only to arguments that are no options. A word such as `*.rs` is
/// also a pattern for a file named `--config=x.rs`. Some shells expand `.?` and `.*` to `..`.
fn expands_to_arguments(word: &Word) -> bool {
    let start = word.literal_start();
    word.is_literal() || !(start.is_empty() || start.starts_with('-') || can_expand_to_parent(word))
}

/// Returns whether a part of a path begins with a dot and is a pattern.
fn can_expand_to_parent(word: &Word) -> bool {
    let signs: Vec<(char, bool)> = word.signs().collect();
    signs.split(|(character, _)| *character == '/').any(|part| {
        part.first().is_some_and(|(first, _)| *first == '.')
            && part.iter().any(|(_, is_pattern)| *is_pattern)
    })
}

/// Returns whether the command is `cd FOLDER` and stays in the member's folder. `cd -` and a `cd` without a folder
/// depend on earlier commands and variables.
fn changes_to_inside(command: &SimpleCommand, folder: &Path) -> bool {
    let [_, target] = command.words.as_slice() else { return false };
    let text = target.text();
    target.is_literal()
        && !text.is_empty()
        && !text.starts_with(['-', '+'])
        && paths::stays_inside(text, folder)
}

/// Returns whether a text contains a `..` that could lead out of a folder, also after an option: `-I../x`, `-I..`,
/// `--dir=..`. `./...` and `main..topic` do not.
fn leads_up(text: &str) -> bool {
    let letters = text.strip_prefix('-').and_then(|option| option.strip_suffix(".."));
    if letters.is_some_and(|letters| letters.chars().all(|c| c.is_ascii_alphanumeric())) {
        return true;
    }
    let before_slash = text
        .match_indices("../")
        .any(|(at, _)| !text.get(..at).is_some_and(|before| before.ends_with('.')));
    before_slash || text == ".." || ["/..", "=..", ":.."].iter().any(|end| text.ends_with(end))
}

/// Returns whether a word of a pattern matches a word of a command. If the word of the command is itself a pattern
/// for file names, then each name to which it can expand must match.
fn matches_word(pattern: &Word, word: &Word) -> bool {
    if leads_up(word.text()) && !pattern.is_literal() && !pattern.text().contains("..") {
        return false;
    }
    let word: Vec<(char, bool)> = word.signs().collect();
    // The positions in `word` that the part of the pattern so far can reach.
    let mut reached = vec![false; word.len() + 1];
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    for (character, is_star) in pattern.signs() {
        let mut next = vec![false; reached.len()];
        let mut any = false;
        for (at, now) in next.iter_mut().enumerate() {
            any |= reached.get(at).copied().unwrap_or_default();
            let before = at.checked_sub(1);
            let is_same = before.is_some_and(|before| {
                word.get(before) == Some(&(character, false)) && reached.get(before) == Some(&true)
            });
            *now = if is_star { any } else { is_same };
        }
        reached = next;
    }
    reached.last() == Some(&true)
}
