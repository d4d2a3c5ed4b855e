//! Lays out the line of an event on a terminal.

use brigade_core::text::wrap;
use unicode_width::UnicodeWidthStr;

use super::FAINT;

/// Where the later lines of a long text begin on a narrow terminal: below the actor.
const NARROW_INDENT: usize = 10;

/// If less room is left for an event's text, the delivery state is shortened.
const GOOD_TEXT_WIDTH: usize = 30;

/// Returns the last part of a delivery state, and without its time, if the whole leaves little of `room` for the text.
pub(super) fn shortened_state(state: &str, room: usize) -> &str {
    let last = last_part(state);
    let word = last.match_indices(' ').nth(1).and_then(|(at, _)| last.get(..at)).unwrap_or(last);
    let leaves_room = |state: &&&str| state.width() + 2 + GOOD_TEXT_WIDTH <= room;
    [state, last].iter().find(leaves_room).copied().unwrap_or(word)
}

/// Returns the last part of a delivery state: `· shown 20:31:49`.
fn last_part(state: &str) -> &str {
    state.rfind("· ").and_then(|at| state.get(at..)).unwrap_or(state)
}

/// Returns a text with the delivery state after it.
pub(super) fn with_state(what: &str, state: &str) -> String {
    match state.is_empty() {
        true => what.to_owned(),
        false => format!("{what}  {FAINT}{state}{FAINT:#}"),
    }
}

/// Breaks a text between words below its column, which begins at `indent`. On a narrow terminal, the later lines begin further
/// left.
pub(super) fn wrapped(what: &str, state: &str, indent: usize, width: usize) -> String {
    let later = if width < indent + GOOD_TEXT_WIDTH { NARROW_INDENT } else { indent };
    let first = wrap(what, width.saturating_sub(indent)).first().copied().unwrap_or_default();
    let rest = what.get(first.len()..).unwrap_or_default().trim_start();
    let mut parts = vec![first];
    if !rest.is_empty() {
        parts.extend(wrap(rest, width.saturating_sub(later)));
    }
    let taken = if parts.len() == 1 { indent } else { later };
    let text = taken + parts.last().map_or(0, |last| last.width()) + 2;
    let fits = |state: &&str| text + state.width() <= width;
    let state = match [state, last_part(state)].into_iter().find(fits) {
        _ if state.is_empty() => String::new(),
        Some(state) => format!("  {FAINT}{state}{FAINT:#}"),
        None => format!("\n{:later$}{FAINT}{state}{FAINT:#}", ""),
    };
    parts.join(&format!("\n{:later$}", "")) + &state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_shortens_the_delivery_state() {
        let state = "· read 20:31:48 · shown 20:31:49";
        for (room, expected) in [
            (100, state),
            (64, state),
            (63, "· shown 20:31:49"),
            (48, "· shown 20:31:49"),
            (47, "· shown"),
        ] {
            assert_eq!(shortened_state(state, room), expected, "{room}");
        }
        assert_eq!(shortened_state("· unread", 20), "· unread");
        assert_eq!(shortened_state("", 20), "");
    }

    #[test]
    fn a_long_text_stays_in_its_column() {
        let shown = |width| {
            let text = wrapped("the parser is done and tested by all", "· unread", 20, width);
            let text = text.replace(&format!("{FAINT}"), "").replace(&format!("{FAINT:#}"), "");
            let first = " ".repeat(20);
            assert!(format!("{first}{text}").lines().all(|line| line.width() <= width), "{text}");
            text
        };
        assert_eq!(shown(80), "the parser is done and tested by all  · unread");
        let column = " ".repeat(20);
        assert_eq!(shown(60), format!("the parser is done and tested by all\n{column}· unread"));
        assert_eq!(shown(50), format!("the parser is done and tested\n{column}by all  · unread"));
        assert_eq!(shown(40), "the parser is done\n          and tested by all  · unread");
    }
}
