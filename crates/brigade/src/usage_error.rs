//! The text of errors in the command line: what is wrong, a similar name, and the command that shows the help.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

use crate::{exit, familiar, help, output};

/// The last line of an error of `clap`, which does not name the command.
const SEE_HELP: &str = "For more information, try '";
/// A part of the advice to write `--` before an unknown option. It is misleading: nearly always the option is misspelled.
const AS_VALUE: &str = "as a value, use";

/// Improves the suggestions of an error in the command line.
pub(crate) fn with_suggestions(invalid: clap::Error) -> clap::Error {
    familiar::with_suggestion(without_unlike_option(without_values(without_letters(invalid))))
}

/// Prints an error in the command line, and returns its exit code.
pub(crate) fn report(invalid: &clap::Error, args: &[OsString]) -> u8 {
    output::eprint_line(with_command(&invalid.render().ansi().to_string(), args).trim_end());
    exit::USAGE
}

/// Returns the text of an error in the command line, without styles.
pub(crate) fn plain_text(invalid: &clap::Error, args: &[OsString]) -> String {
    with_command(&invalid.render().to_string(), args)
}

/// Names the command in the last line.
fn with_command(text: &str, args: &[OsString]) -> String {
    match text.rfind(SEE_HELP).and_then(|at| text.get(..at)) {
        Some(start) => {
            let command = help::command_line(args);
            format!("{start}For more information, try `{command} --help`.\n")
        }
        None => text.to_owned(),
    }
}

/// Removes names of one letter from the commands that the error suggests. They are similar to too many words.
fn without_letters(mut invalid: clap::Error) -> clap::Error {
    let names = match invalid.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names.clone(),
        Some(ContextValue::String(name)) => vec![name.clone()],
        _ => return invalid,
    };
    let mut names: Vec<String> = names.into_iter().filter(|name| name.len() > 1).collect();
    let names = match names.len() {
        0 => {
            invalid.remove(ContextKind::SuggestedSubcommand);
            return invalid;
        }
        1 => ContextValue::String(names.remove(0)),
        _ => ContextValue::Strings(names),
    };
    invalid.insert(ContextKind::SuggestedSubcommand, names);
    invalid
}

/// Removes a suggested option that is much shorter or longer than the given one: `--ca` is no help for `--scale`.
fn without_unlike_option(mut invalid: clap::Error) -> clap::Error {
    let text = |kind| match invalid.get(kind) {
        Some(ContextValue::String(text)) => Some(text.len()),
        _ => None,
    };
    if let (Some(given), Some(suggested)) =
        (text(ContextKind::InvalidArg), text(ContextKind::SuggestedArg))
        && given.abs_diff(suggested) > 2
    {
        invalid.remove(ContextKind::SuggestedArg);
    }
    invalid
}

/// Removes the advice to pass an unknown option as a value. A similar option is a suggestion of its own.
fn without_values(mut invalid: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(tips)) = invalid.remove(ContextKind::Suggested) {
        let is_kept = |tip: &clap::builder::StyledStr| !tip.to_string().contains(AS_VALUE);
        let tips: Vec<_> = tips.into_iter().filter(is_kept).collect();
        if !tips.is_empty() {
            invalid.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    invalid
}
