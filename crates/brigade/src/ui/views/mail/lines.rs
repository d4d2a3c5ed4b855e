//! Renders a mail entry as lines.

use brigade_core::picture::{Kind, Letter, Person, Who};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::fate;
use super::thread::{Entry, Thread, text};
use super::words::{Told, idle_notices, told};
use crate::output::{cut, local, one_line, plain, wrap};
use crate::ui::style::Theme;

/// Number of lines shown of a folded message.
const FOLDED: usize = 6;
/// How many characters of a folded message are laid out.
const LOOKED_AT: usize = 16 << 10;
/// Width of the time column.
const TIME: usize = 10;
/// Minimum width for sender and recipient.
const NAMES: usize = 24;

/// The lines of an entry, at most `width` wide; the first is its heading.
pub(super) fn lines(
    thread: &Thread<'_>,
    entry: Entry,
    width: u16,
    is_unfolded: bool,
    theme: Theme,
) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let Some(letter) = thread.letter(entry.from) else { return Vec::new() };
    let screen = thread.screen();
    let (stage, state) = fate::words(thread.letters(entry), screen.now);
    let time = local(letter.at.timestamp()).strftime("%H:%M:%S  ").to_string();
    let said = || text(screen, letter).unwrap_or_else(|| "(text not available)".into());
    let indent = if width < 60 { 2 } else { TIME };
    let is_many = entry.to - entry.from > 1;
    if letter.kind != Kind::Words {
        let Told { line, more } = if is_many {
            let names = thread.letters(entry).map(|letter| thread.picture().name(letter.from));
            Told { line: idle_notices(names), more: each(thread, entry, is_unfolded) }
        } else {
            told(thread.picture(), letter, &said())
        };
        let words = vec![Span::styled(one_line(&line), theme.faint())];
        let mut lines = vec![head(&time, words, (&state, theme.faint()), width, theme)];
        if is_unfolded {
            let rows = rows(&more, width.saturating_sub(indent));
            lines.extend(rows.into_iter().map(|row| indented(indent, row, theme.faint())));
        }
        return lines;
    }
    let to = thread.letters(entry).map(|letter| letter.to).collect::<Vec<_>>();
    let words = vec![
        name(thread, letter.from, theme),
        Span::styled(" → ", theme.faint()),
        match to.as_slice() {
            [one] => name(thread, *one, theme),
            several => Span::styled(recipients(thread, letter, several), theme.strong()),
        },
    ];
    let mut lines = vec![head(&time, words, (&state, stage.style(theme)), width, theme)];
    if is_unfolded && is_many {
        let rows = rows(&each(thread, entry, true), width.saturating_sub(indent));
        lines.extend(rows.into_iter().map(|row| indented(indent, row, theme.faint())));
    }
    lines.extend(body(&said(), width.saturating_sub(indent), is_unfolded).into_iter().map(|row| {
        match row {
            Ok(row) => indented(indent, row, Style::new()),
            Err(note) => indented(indent, note, theme.faint()),
        }
    }));
    lines
}

/// The heading line: time, sender and recipients, delivery state at the right.
fn head(
    time: &str,
    words: Vec<Span<'static>>,
    (state, style): (&str, Style),
    width: usize,
    theme: Theme,
) -> Line<'static> {
    // On a narrow screen show only the symbol.
    let sign = state.char_indices().nth(1).and_then(|(end, _)| state.get(..end));
    let state = sign.filter(|_| width < TIME + NAMES + state.width()).unwrap_or(state);
    let room = width.saturating_sub(TIME + state.width() + 2);
    let mut spans = vec![Span::styled(time.to_owned(), theme.faint())];
    let mut taken = 0;
    for span in words {
        if taken >= room {
            break;
        }
        let text = cut(&span.content, room.saturating_sub(taken));
        taken += text.width();
        spans.push(Span::styled(text, span.style));
    }
    let gap = width.saturating_sub(TIME + taken + state.width());
    spans.push(Span::raw(" ".repeat(gap)));
    spans.push(Span::styled(state.to_owned(), style));
    Line::from(spans)
}

fn indented(indent: usize, text: String, style: Style) -> Line<'static> {
    Line::from(vec![Span::raw(" ".repeat(indent)), Span::styled(text, style)])
}

fn name(thread: &Thread<'_>, who: Who, theme: Theme) -> Span<'static> {
    let person = thread.picture().person(who);
    let color = person.and_then(|person| person.entry.as_ref()?.color.as_deref());
    Span::styled(one_line(thread.picture().name(who)), theme.member(color))
}

/// The recipients of a message sent to several members.
fn recipients(thread: &Thread<'_>, letter: &Letter, to: &[Who]) -> String {
    let was_there = |person: &&Person| {
        person.joined.is_some_and(|joined| joined <= letter.at)
            && person.left.is_none_or(|left| left > letter.at)
    };
    let people = thread.picture().people().iter().filter(was_there);
    let others = people.filter(|person| person.who != letter.from).count();
    if to.len() >= others {
        return format!("all members ({})", to.len());
    }
    match to {
        [one, other] => {
            let name = |who| one_line(thread.picture().name(who));
            format!("{}, {}", name(*one), name(*other))
        }
        _ => format!("{} members", to.len()),
    }
}

/// The delivery state of each message of an entry, or nothing if the entry is folded.
fn each(thread: &Thread<'_>, entry: Entry, is_wanted: bool) -> String {
    if !is_wanted {
        return String::new();
    }
    let now = thread.screen().now;
    let line = |letter: &Letter| {
        let time = local(letter.at.timestamp()).strftime("%H:%M:%S");
        let (_, state) = fate::words(std::iter::once(letter), now);
        match letter.kind {
            Kind::Words => format!("{}: {state}", one_line(thread.picture().name(letter.to))),
            _ => format!("{time} {}: {state}", one_line(thread.picture().name(letter.from))),
        }
    };
    thread.letters(entry).map(line).collect::<Vec<_>>().join("\n")
}

/// The text lines (`Ok`), and a note (`Err`) if the message is cut.
fn body(text: &str, width: usize, is_unfolded: bool) -> Vec<Result<String, String>> {
    if is_unfolded {
        return rows(text, width).into_iter().map(Ok).collect();
    }
    // Do not lay out a huge message only to count its lines.
    let end = text.char_indices().nth(LOOKED_AT).map(|(at, _)| at);
    let seen = end.and_then(|end| text.get(..end)).unwrap_or(text);
    let mut rows = rows(seen, width);
    // A note about one more line would take as much space as that line.
    let fits = |rows: &Vec<String>| end.is_none() && rows.len() <= FOLDED + 1;
    if !fits(&rows) {
        rows.retain(|row| !row.trim().is_empty());
    }
    if fits(&rows) {
        return rows.into_iter().map(Ok).collect();
    }
    let more = rows.split_off(FOLDED.min(rows.len())).len();
    let note = match end {
        Some(_) => "… much more, enter: show all".to_owned(),
        None => format!("… {more} more lines, enter: show all"),
    };
    rows.into_iter().map(Ok).chain([Err(note)]).collect()
}

/// Wraps a text to `width`. Trailing empty lines are dropped.
pub(super) fn rows(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let text = plain(text.trim_end()).replace('\t', "    ");
    let lines = text.lines().flat_map(|line| wrap(line, width));
    lines.flat_map(|line| broken(line, width)).collect()
}

/// Splits a line that is still too wide because of a long word.
fn broken(line: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut taken = 0;
    for letter in line.chars() {
        let its = letter.width().unwrap_or_default();
        if taken + its > width && taken > 0 {
            pieces.push(String::new());
            taken = 0;
        }
        taken += its;
        if let Some(piece) = pieces.last_mut() {
            piece.push(letter);
        }
    }
    pieces
}
