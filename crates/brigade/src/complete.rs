//! Completes a word of a command line in a shell: finds out what the word is, from the same definition of commands and
//! arguments that parses command lines.
//!
//! This module only looks at words. `commands::complete` reads the values, such as the members of a team.

mod line;
mod values;

use brigade_host::candidates::Candidate;
use clap::{Arg, ArgAction, Command};

pub(crate) use self::line::split_line;
pub(crate) use self::values::{ValueSource, value_source};

/// The values that fit in the place of a word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The part of the word before the value, such as `--team=`, or the earlier values of a list.
    pub(crate) prefix: String,
    /// The part of the word to complete.
    pub(crate) current: String,
    /// Where the values come from.
    pub(crate) source: ValueSource,
    /// The values of the same argument that the command line already has.
    pub(crate) taken: Vec<String>,
    /// The options for all commands that stand before the word, as a command line.
    pub(crate) global: Vec<String>,
}

/// The parts of a command line before the word to complete.
struct Parsed<'c> {
    root: &'c Command,
    /// The names of the commands, such as `task add`.
    path: Vec<&'c str>,
    command: &'c Command,
    /// An option that takes the next words, and how many it has taken.
    open: Option<(&'c Arg, usize)>,
    positionals: usize,
    is_escaped: bool,
    /// The values of each argument.
    given: Vec<(&'c Arg, String)>,
}

/// Returns what can stand in the place of the last word. `words` are the words after the name of the program.
pub(crate) fn complete(root: &Command, words: &[String]) -> Completion {
    let (current, before) = words.split_last().map_or(("", &[][..]), |(last, rest)| (last, rest));
    // `brigade help task add` is `brigade task add --help`.
    let (is_help, before) = match before.split_first() {
        Some((first, rest)) if first == "help" => (true, rest),
        _ => (false, before),
    };
    let mut parsed = Parsed::new(root);
    for word in before {
        parsed.read(word);
    }
    if is_help {
        return parsed.completion("", current, ValueSource::Fixed(parsed.subcommands()), None);
    }
    parsed.complete(current)
}

impl<'c> Parsed<'c> {
    fn new(root: &'c Command) -> Self {
        Self {
            root,
            path: Vec::new(),
            command: root,
            open: None,
            positionals: 0,
            is_escaped: false,
            given: Vec::new(),
        }
    }

    /// Returns the arguments of the command and the global options.
    fn arguments(&self) -> impl Iterator<Item = &'c Arg> + use<'c> {
        let is_root = self.path.is_empty();
        let global = self.root.get_arguments().filter(move |arg| arg.is_global_set() && !is_root);
        self.command.get_arguments().chain(global)
    }

    fn option(&self, is_it: impl Fn(&Arg) -> bool) -> Option<&'c Arg> {
        self.arguments().find(|arg| !arg.is_positional() && is_it(arg))
    }

    /// Returns the argument without a name that the next word would be.
    fn positional(&self) -> Option<&'c Arg> {
        let mut positionals = self.command.get_positionals();
        let last = self.command.get_positionals().last().filter(|arg| takes_several(arg));
        positionals.nth(self.positionals).or(last)
    }

    fn read(&mut self, word: &str) {
        if let Some((arg, taken)) = self.open
            && (taken == 0 || (takes_several(arg) && !self.is_option(word)))
        {
            self.add(arg, word);
            self.open = takes_several(arg).then_some((arg, taken + 1));
            return;
        }
        self.open = None;
        if self.is_escaped || !self.is_option(word) {
            return self.read_plain(word);
        }
        if word == "--" {
            self.is_escaped = true;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let Some(arg) = self.option(|arg| arg.get_long() == Some(name)) else { return };
            self.read_option(arg, value);
        } else {
            let mut letters = word.chars();
            letters.next();
            while let Some(letter) = letters.next() {
                let Some(arg) = self.option(|arg| arg.get_short() == Some(letter)) else { return };
                if arg.get_action().takes_values() {
                    let rest = letters.as_str();
                    return self.read_option(arg, Some(rest).filter(|rest| !rest.is_empty()));
                }
                self.add(arg, "");
            }
        }
    }

    fn read_option(&mut self, arg: &'c Arg, value: Option<&str>) {
        match value {
            Some(value) => self.add(arg, value),
            None if !arg.get_action().takes_values() || arg.is_require_equals_set() => {
                self.add(arg, "");
            }
            None => self.open = Some((arg, 0)),
        }
    }

    fn read_plain(&mut self, word: &str) {
        if self.positionals == 0
            && !self.is_escaped
            && let Some(command) = self.command.find_subcommand(word)
        {
            self.path.push(command.get_name());
            self.command = command;
        } else if let Some(arg) = self.positional() {
            self.add(arg, word);
            self.positionals += 1;
        }
    }

    fn add(&mut self, arg: &'c Arg, value: &str) {
        self.given.push((arg, value.to_owned()));
    }

    fn is_option(&self, word: &str) -> bool {
        !self.is_escaped && word.len() > 1 && word.starts_with('-')
    }

    fn complete(&self, word: &str) -> Completion {
        if let Some((arg, taken)) = self.open
            && (taken == 0 || !self.is_option(word))
        {
            return self.value(arg, "", word);
        }
        if !self.is_escaped && word.starts_with('-') {
            if let Some((name, value)) = word.split_once('=')
                && let Some(arg) = self.option(|arg| arg.get_long() == name.strip_prefix("--"))
            {
                return self.value(arg, &format!("{name}="), value);
            }
            return self.completion("", word, ValueSource::Fixed(self.options(true)), None);
        }
        let subcommands = match self.positionals {
            0 => self.subcommands(),
            _ => Vec::new(),
        };
        if !subcommands.is_empty() {
            return self.completion("", word, ValueSource::Fixed(subcommands), None);
        }
        match self.positional() {
            Some(arg) => self.value(arg, "", word),
            // Only options can follow.
            None => self.completion("", word, ValueSource::Fixed(self.options(false)), None),
        }
    }

    /// Completes a value of an argument. The value may be the last one of a list.
    fn value(&self, arg: &'c Arg, prefix: &str, word: &str) -> Completion {
        let source = value_source(&self.path, arg);
        let at = arg.get_value_delimiter().and_then(|delimiter| word.rfind(delimiter));
        let (before, current) = match at.and_then(|at| word.split_at_checked(at + 1)) {
            Some((before, current)) => (before, current),
            None => ("", word),
        };
        let mut completion =
            self.completion(&format!("{prefix}{before}"), current, source, Some(arg));
        let listed = before.split(',').filter(|value| !value.is_empty());
        completion.taken.extend(listed.map(str::to_owned));
        completion
    }

    fn completion(
        &self,
        prefix: &str,
        current: &str,
        source: ValueSource,
        arg: Option<&'c Arg>,
    ) -> Completion {
        let of_arg = |other: &Arg| arg.is_some_and(|arg| arg.get_id() == other.get_id());
        let taken = self.given.iter().filter(|(other, _)| of_arg(other));
        let mut global = Vec::new();
        for (arg, value) in self.given.iter().filter(|(arg, _)| arg.is_global_set()) {
            if let (Some(long), true) = (arg.get_long(), arg.get_action().takes_values()) {
                global.push(format!("--{long}={value}"));
            }
        }
        Completion {
            prefix: prefix.to_owned(),
            current: current.to_owned(),
            source,
            taken: taken.map(|(_, value)| value.clone()).collect(),
            global,
        }
    }

    /// Returns the commands below the present one.
    fn subcommands(&self) -> Vec<Candidate> {
        let shown = self.command.get_subcommands().filter(|command| !command.is_hide_set());
        shown
            .map(|command| {
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                Candidate::new(command.get_name(), &about)
            })
            .collect()
    }

    /// Returns the options of the command that can still be given.
    fn options(&self, with_global: bool) -> Vec<Candidate> {
        let mut found = Vec::new();
        for arg in self.arguments().filter(|arg| !arg.is_hide_set()) {
            let is_given = self.given.iter().any(|(given, _)| given.get_id() == arg.get_id());
            let can_repeat = matches!(arg.get_action(), ArgAction::Append);
            if let Some(long) = arg.get_long()
                && (!is_given || can_repeat)
                && (with_global || !arg.is_global_set())
            {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                found.push(Candidate::new(format!("--{long}"), &help));
            }
        }
        if with_global {
            found.push(Candidate::new("--help", "Print help"));
        }
        found
    }
}

fn takes_several(arg: &Arg) -> bool {
    let is_many = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    is_many || (arg.is_positional() && matches!(arg.get_action(), ArgAction::Append))
}

#[cfg(test)]
#[path = "complete/tests.rs"]
mod tests;
