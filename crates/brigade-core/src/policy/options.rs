//! Arguments with which common programs run other programs, or write files that the command does not name as its
//! purpose.
//!
//! A `*` in a rule does not cover these arguments: the rule must contain them literally. The table cannot be
//! complete. It contains the arguments that are known to have defeated the rules of coding agents, and their
//! relatives.

mod build_tools;
mod general;

use super::word::Word;

/// The dangerous arguments of some programs.
struct Danger {
    programs: &'static [&'static str],
    /// Letters of short options, alone or together with others: `-o`, `-xo`, `-oFILE`.
    short: &'static str,
    /// Long options. One that begins with `--` can be abbreviated.
    long: &'static [&'static str],
    /// Whole arguments, such as subcommands.
    words: &'static [&'static str],
    /// The beginning of an argument.
    starts: &'static [&'static str],
    /// Text in an argument, in lower case.
    texts: &'static [&'static str],
    /// Whether an option can begin with any number of dashes: `-script-shell`.
    any_dashes: bool,
    /// Whether the programs run the commands in their input.
    reads_commands: bool,
}

const NONE: Danger = Danger {
    programs: &[],
    short: "",
    long: &[],
    words: &[],
    starts: &[],
    texts: &[],
    any_dashes: false,
    reads_commands: false,
};

/// Returns the row of a program. A version after the name does not matter: `gcc-13`, nor does a target before it:
/// `aarch64-linux-gnu-gcc`.
fn row(program: &str) -> Option<&'static Danger> {
    let find = |name: &str| {
        let mut tables = general::TABLE.iter().chain(build_tools::TABLE);
        tables.find(|danger| danger.programs.contains(&name))
    };
    let unversioned =
        program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    let without_target =
        unversioned.rsplit_once("linux-gnu-").map_or(unversioned, |(_, name)| name);
    find(program).or_else(|| find(unversioned)).or_else(|| find(without_target))
}

/// Returns whether the table has dangerous arguments of a program.
pub(super) fn is_listed(program: &str) -> bool {
    row(program).is_some()
}

/// Returns whether a program runs the commands in its input.
pub(super) fn reads_commands(program: &str) -> bool {
    row(program).is_some_and(|danger| danger.reads_commands)
}

/// Returns the positions of the dangerous arguments of a program. The program has position 0.
pub(super) fn dangerous(program: &str, words: &[Word]) -> Vec<usize> {
    let danger = row(program);
    let arguments = words.iter().enumerate().skip(1);
    arguments
        .filter(|(at, word)| danger.is_some_and(|danger| danger.covers(*at, word)))
        .map(|(at, _)| at)
        .collect()
}

impl Danger {
    fn covers(&self, at: usize, word: &Word) -> bool {
        let text = word.text();
        // `tar xfC` has its options without a dash.
        let dashless = at == 1 && self.programs.contains(&"tar");
        let cluster = match text.strip_prefix('-') {
            Some(cluster) if !cluster.starts_with('-') => Some(cluster),
            None if dashless => Some(text),
            _ => None,
        };
        cluster.is_some_and(|cluster| cluster.contains(|letter| self.short.contains(letter)))
            || self.long.iter().any(|option| is_option(text, option))
            || (self.any_dashes && self.is_dashed(text))
            || self.words.contains(&text)
            || self.starts.iter().any(|start| text.starts_with(start))
            || self.texts.iter().any(|part| text.to_ascii_lowercase().contains(part))
    }

    /// Returns whether an argument is one of the long options with another number of dashes. One letter is a short
    /// option.
    fn is_dashed(&self, text: &str) -> bool {
        let name = text.trim_start_matches('-');
        let is_long = name.len() < text.len() && name.chars().nth(1).is_some_and(|c| c != '=');
        is_long && self.long.iter().any(|option| is_option(&format!("--{name}"), option))
    }
}

/// Returns whether an argument is this long option, with or without a value. An option that begins with `--` can be
/// abbreviated; one that begins with a single dash can also be written with two. Some programs accept `_` for `-`.
pub(super) fn is_option(text: &str, option: &str) -> bool {
    if !text.starts_with('-') {
        return false;
    }
    let name = text.split('=').next().unwrap_or(text).replace('_', "-");
    if option.starts_with("--") {
        return name.len() > 2 && option.starts_with(&name);
    }
    name == option || name.strip_prefix('-') == Some(option)
}
