//! Lays out the line of an event on a terminal.

use unicode_width::UnicodeWidthStr;

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

/// Returns where the later lines of a text begin: in its column or, on a narrow terminal, further left.
pub(super) fn later_column(column: usize, width: Option<usize>) -> usize {
    match width {
        Some(width) if width < column + GOOD_TEXT_WIDTH => NARROW_INDENT.min(column),
        _ => column,
    }
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
    fn later_lines_begin_further_left_on_a_narrow_terminal() {
        for (width, expected) in [(None, 20), (Some(50), 20), (Some(49), 10), (Some(20), 10)] {
            assert_eq!(later_column(20, width), expected, "{width:?}");
        }
        assert_eq!(later_column(8, Some(20)), 8);
    }
}
