//! Compares the text of ask and deny rules with a line. These rules match generously: whatever a shell could run as
//! a command is compared, whether or not the line is understood.

use super::{runners, shell};

/// Returns whether a pattern matches the whole line or any part of it that could be a command. As in allow rules, ` *`
/// at the end also matches no argument.
pub(super) fn matches_any_part(pattern: &str, line: &str) -> bool {
    let bare = pattern.strip_suffix(" *").filter(|bare| !bare.is_empty());
    bare.is_some_and(|bare| matches_part(bare, line)) || matches_part(pattern, line)
}

fn matches_part(pattern: &str, line: &str) -> bool {
    let joined = line.replace("\\\n", "");
    let bare = joined.replace(['"', '\'', '\\'], "");
    let commands = joined.split(is_operator).chain(bare.split(is_operator));
    // A quoted text may be a command for a shell.
    let quoted = joined.split(|c| is_operator(c) || matches!(c, '"' | '\''));
    matches(pattern, line) || commands.chain(quoted).any(|part| matches_command(pattern, part))
}

/// Returns whether a character can separate commands.
fn is_operator(character: char) -> bool {
    matches!(character, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '{' | '}' | '$' | '`' | '!' | '#')
        || (character.is_control() && character != '\t')
}

/// Returns whether a pattern matches a part of a line: as it is, without the program's folder, and without
/// assignments and words such as `then` before it. After a program that runs other commands, any word may be a program.
fn matches_command(pattern: &str, part: &str) -> bool {
    let words: Vec<&str> = part.split_whitespace().collect();
    let text = words.join(" ");
    if text.is_empty() {
        return false;
    }
    let is_assignment = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let is_before = |word: &&str| is_assignment(word) || shell::RESERVED.contains(word);
    let before = words.iter().take_while(|word| is_before(word)).count();
    let runs = |word: &&str| runners::is_runner(word) || runners::is_shell(word);
    let runs_others = words.get(before).is_some_and(runs)
        || words.iter().any(|word| word.starts_with('-') && word.contains("exec"));
    let mut starts = vec![0];
    let mut at = 0;
    for (number, word) in words.iter().enumerate() {
        if runs_others || number == before {
            starts.push(at);
            // Also without the folder of the program.
            starts.push(at + word.len() - runners::base_name(word).len());
        }
        at += word.len() + 1;
    }
    starts.sort_unstable();
    starts.dedup();
    match_ends(pattern, &text, starts, |_| true).any(|end| end == text.len())
}

/// Returns whether a pattern matches the whole text. `*` matches any characters.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    match_ends(pattern, text, vec![0], |_| true).any(|end| end == text.len())
}

/// Returns whether the pattern of an allow rule matches the input of a tool, as JSON. A `*` stays within one string.
/// A `*` that ends the pattern matches the rest of the input.
pub(super) fn matches_json(pattern: &str, json: &str) -> bool {
    if pattern.contains('*')
        && !pattern.contains("..")
        && (json.contains("../") || json.contains("/.."))
    {
        return false;
    }
    let within = |star: &str| !star.contains(['"', '\\']);
    match pattern.strip_suffix('*') {
        Some(begin) => match_ends(begin, json, vec![0], within).next().is_some(),
        None => match_ends(pattern, json, vec![0], within).any(|end| end == json.len()),
    }
}

/// Returns the end offset of each part of `text` that matches the pattern and begins at one of `starts`. Each `*`
/// matches only texts that `star` accepts. The running time is at most proportional to the product of both lengths,
/// so no pattern can make this function hang.
fn match_ends(
    pattern: &str,
    text: &str,
    starts: Vec<usize>,
    star: impl Fn(&str) -> bool,
) -> impl Iterator<Item = usize> {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let begins = |start: &usize| text.get(*start..).is_some_and(|rest| rest.starts_with(first));
    let mut starts: Vec<usize> =
        starts.into_iter().filter(begins).map(|start| start + first.len()).collect();
    for piece in pieces {
        let (mut next, mut behind, mut nearest) = (Vec::new(), starts.iter().peekable(), None);
        for end in text.char_indices().map(|(at, _)| at).chain([text.len()]) {
            while let Some(start) = behind.next_if(|start| **start <= end) {
                nearest = Some(*start);
            }
            if !text.get(end..).is_some_and(|rest| rest.starts_with(piece)) {
                continue;
            }
            // If `star` accepts a text, it accepts every suffix of that text, so checking the last start
            // before `end` is enough.
            if nearest.and_then(|start| text.get(start..end)).is_some_and(&star) {
                next.push(end + piece.len());
            }
        }
        starts = next;
    }
    starts.into_iter()
}
