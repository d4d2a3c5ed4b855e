//! Searches the transcript of one member.

use brigade_core::event::{Event, Record, WorkEvent};
use brigade_core::projection::{MemberIndex, MemberView};
use brigade_host::history_text;
use crossterm::event::{Event as TerminalEvent, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;
use unicode_width::UnicodeWidthStr;

use super::{ActivityItem, ActivityList, ActivityPosition, ItemDetail, item_lines};
use crate::canvas::Canvas;
use crate::screen::{Screen, record_text};
use crate::style::Theme;
use crate::text_layout::{insert_at_cursor, wrap_input};

/// The word before the pattern.
pub(crate) const PROMPT: &str = "search: ";

/// The keys of a search, with their labels in the bottom line.
pub(crate) const SEARCH_KEYS: [(&str, &str); 3] =
    [("enter", "earlier"), ("down", "later"), ("esc", "end the search")];

/// A search in the transcript.
#[derive(Debug, Default)]
pub(crate) struct TranscriptSearch {
    pub(crate) pattern: Input,
    /// The member whose transcript was searched last.
    member: Option<MemberIndex>,
    /// The position after the entry that was found last.
    found: Option<ActivityPosition>,
    /// Whether the last step found nothing, and whether that step was towards later entries.
    is_at_end: Option<bool>,
}

impl TranscriptSearch {
    /// Edits the pattern.
    pub(crate) fn edit(&mut self, key: &KeyEvent) {
        let before = self.pattern.value().to_owned();
        self.pattern.handle_event(&TerminalEvent::Key(*key));
        if self.pattern.value() != before {
            self.restart();
        }
    }

    /// Inserts the first line of a pasted text into the pattern.
    pub(crate) fn paste(&mut self, text: &str) {
        let first = text.lines().next().unwrap_or_default();
        let letters = first.chars().filter(|letter| !letter.is_control());
        self.pattern = insert_at_cursor(&self.pattern, letters);
        self.restart();
    }

    /// A new pattern is searched from the end again.
    fn restart(&mut self) {
        (self.found, self.is_at_end) = (None, None);
    }

    /// Goes to the next match: an earlier one, or a later one if `later` is set. Returns the scroll position that shows the match.
    /// `current` is the scroll position now.
    pub(crate) fn find(
        &mut self,
        screen: &Screen,
        person: &MemberView,
        current: Option<ActivityPosition>,
        later: bool,
        detail: ItemDetail,
    ) -> Option<Option<ActivityPosition>> {
        if self.member.replace(person.index) != Some(person.index) {
            self.restart();
        }
        // Before the first match, a search goes upwards from the end of the transcript.
        let start = if self.found.is_none() && later { current } else { self.found };
        match step(screen, person, start, self.pattern.value(), later, detail) {
            Some(found) => {
                (self.found, self.is_at_end) = (Some(found.entry), None);
                Some(found.at)
            }
            None => {
                self.is_at_end = Some(later);
                None
            }
        }
    }

    /// Says that there is no further match, if the last step found none.
    pub(crate) fn end_text(&self) -> Option<&'static str> {
        self.is_at_end.map(|later| if later { "no later match" } else { "no earlier match" })
    }

    /// Draws the line in which the person types the pattern.
    pub(crate) fn draw(&self, canvas: &mut Canvas<'_>, area: Rect) {
        let theme = canvas.theme;
        let room = usize::from(area.width).saturating_sub(PROMPT.width() + 1).max(1);
        let before: String = self.pattern.value().chars().take(self.pattern.cursor()).collect();
        let before = wrap_input(&before, room);
        // Show the part of a long pattern with the cursor.
        let row = before.len().saturating_sub(1);
        let shown = wrap_input(self.pattern.value(), room).into_iter().nth(row).unwrap_or_default();
        let prompt = Span::styled(PROMPT, theme.strong());
        canvas.line(area, Line::from(vec![prompt, Span::raw(shown)]));
        let column = PROMPT.width() + before.last().map_or(0, |line| line.width());
        if area.height > 0 && area.width > 0 {
            let x = area.x.saturating_add(u16::try_from(column).unwrap_or(u16::MAX));
            let x = x.min(area.right().saturating_sub(1));
            canvas.frame.cursor = Some(Position { x, y: area.y });
        }
        if let Some(text) = self.end_text() {
            let width = u16::try_from(text.width()).unwrap_or(0).min(area.width);
            let place = Rect { x: area.right() - width, width, ..area };
            canvas.line(place, Line::styled(text, theme.urgent()));
        }
    }
}

/// The result of a step to the next match.
struct FoundEntry {
    /// The position after the entry.
    entry: ActivityPosition,
    /// The scroll position that shows the entry.
    at: Option<ActivityPosition>,
}

/// Finds the nearest entry that contains the pattern: an earlier one, or a later one if `later` is set.
fn step(
    screen: &Screen,
    person: &MemberView,
    from: Option<ActivityPosition>,
    pattern: &str,
    later: bool,
    detail: ItemDetail,
) -> Option<FoundEntry> {
    let pattern = pattern.to_lowercase();
    if pattern.is_empty() {
        return None;
    }
    let activity = ActivityList::new(&screen.projection, person);
    let mut at = from.unwrap_or_else(|| activity.end());
    // The entry that was found last lies before `from`.
    if !later && from.is_some() {
        at = activity.previous(at)?.0;
    }
    loop {
        let (position, item) = if later { activity.next(at)? } else { activity.previous(at)? };
        at = position;
        if contains(screen, item, &pattern) {
            let entry = if later { position } else { activity.next(position)?.0 };
            return Some(FoundEntry {
                entry,
                at: scrolled_to(screen, person, entry, item, &pattern, detail),
            });
        }
    }
}

/// Returns whether the text of an entry contains the pattern, which is in lower case.
fn contains(screen: &Screen, item: ActivityItem, pattern: &str) -> bool {
    let spot = match item {
        ActivityItem::Event(act) => act.record,
        ActivityItem::Message(message) => message.record,
    };
    let record = screen.record(spot);
    record.is_some_and(|record| entry_text(&record).to_lowercase().contains(pattern))
}

fn entry_text(record: &Record) -> String {
    match &record.event {
        Event::Worked { act, .. } => match act {
            WorkEvent::Said { text } => text.clone(),
            WorkEvent::ToolStarted { tool, about, .. } => format!("{tool} {about}"),
            WorkEvent::Changed { path, diff, .. } => {
                format!("{path}\n{}", diff.as_deref().unwrap_or_default())
            }
            WorkEvent::Limited { why }
            | WorkEvent::Trouble { why }
            | WorkEvent::TurnEnded { why: Some(why), .. } => why.clone(),
            _ => String::new(),
        },
        Event::TakenOver { program, session, ended, .. } => {
            history_text::taken_over(program, session.as_deref(), *ended)
        }
        _ => record_text(record).unwrap_or_default(),
    }
}

/// Returns the scroll position at which the matching line of the entry before `entry` is near the middle of the page.
fn scrolled_to(
    screen: &Screen,
    person: &MemberView,
    entry: ActivityPosition,
    item: ActivityItem,
    pattern: &str,
    detail: ItemDetail,
) -> Option<ActivityPosition> {
    let (page, width) = (screen.frame.page.max(1), screen.frame.columns);
    let activity = ActivityList::new(&screen.projection, person);
    let height = |item: ActivityItem| item_lines(screen, person, item, width, detail).len();
    let lines = item_lines(screen, person, item, width, detail);
    let matches = |line: &Line<'_>| line.to_string().to_lowercase().contains(pattern);
    let line = lines.iter().position(matches).unwrap_or_default();
    let hidden = lines.len().saturating_sub(line + 1);
    let mut bottom = entry;
    bottom.hidden = hidden;
    let lower = activity.down(bottom, page / 2, height)?;
    activity.up(lower, 0, page, height)
}

/// Highlights the pattern in the rows of an area.
pub(crate) fn highlight(buffer: &mut Buffer, area: Rect, pattern: &str, theme: Theme) {
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    if pattern.is_empty() {
        return;
    }
    let area = area.intersection(buffer.area);
    for y in area.top()..area.bottom() {
        // The first character of each cell, in lower case. The second cell of a wide character is left out.
        let row: Vec<(u16, char)> = (area.left()..area.right())
            .filter_map(|x| {
                let symbol = buffer.cell((x, y))?.symbol();
                Some((x, symbol.chars().next()?.to_lowercase().next()?))
            })
            .collect();
        let mut start = 0;
        while let Some(window) = row.get(start..start + pattern.len()) {
            if window.iter().zip(&pattern).all(|((_, one), other)| one == other) {
                for (x, _) in window {
                    buffer.set_style(Rect { x: *x, y, width: 1, height: 1 }, theme.selected());
                }
                start += pattern.len();
            } else {
                start += 1;
            }
        }
    }
}
