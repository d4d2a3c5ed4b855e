//! Searches the transcript of one member.

use brigade_core::event::{Event, Record, WorkEvent};
use brigade_core::projection::MemberView;
use brigade_host::history_text;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tui_input::Input;

use crate::screen::views::member::{
    ActivityItem, ActivityList, ActivityPosition, ItemDetail, item_lines,
};
use crate::screen::{Screen, record_text};
use crate::style::Theme;

/// A search in the transcript.
#[derive(Debug, Default)]
pub(super) struct TranscriptSearch {
    pub(super) pattern: Input,
    /// The position after the entry that was found last.
    pub(super) found: Option<ActivityPosition>,
    /// Whether the last step found nothing, and whether that step was towards later entries.
    pub(super) is_at_end: Option<bool>,
}

/// The result of a step to the next match.
pub(super) struct FoundEntry {
    /// The position after the entry.
    pub(super) entry: ActivityPosition,
    /// The scroll position that shows the entry.
    pub(super) at: Option<ActivityPosition>,
}

/// Finds the nearest entry that contains the pattern: an earlier one, or a later one if `later` is set.
pub(super) fn step(
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
    let matches =
        |line: &ratatui::text::Line<'_>| line.to_string().to_lowercase().contains(pattern);
    let line = lines.iter().position(matches).unwrap_or_default();
    let hidden = lines.len().saturating_sub(line + 1);
    let mut bottom = entry;
    bottom.hidden = hidden;
    let lower = activity.down(bottom, page / 2, height)?;
    activity.up(lower, 0, page, height)
}

/// Highlights the pattern in the rows of an area.
pub(super) fn highlight(buffer: &mut Buffer, area: Rect, pattern: &str, theme: Theme) {
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
