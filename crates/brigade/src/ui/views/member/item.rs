//! Renders one activity of a member: an agent event or a message.

use std::sync::Arc;

use brigade_core::approvals::{Approval, Wanted};
use brigade_core::chronicle::Spot;
use brigade_core::event::{Act, Ending, Event, Record};
use brigade_core::mail::with_message;
use brigade_core::picture::{self, At, Doing, Fate, Kind, Letter, Person};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr;

use super::tape::Item;
use crate::output::{cut, local, one_line};
use crate::ui::markdown;
use crate::ui::prose::{after, age, since};
use crate::ui::screen::Screen;
use crate::ui::views::{approvals, mail};

/// Maximum number of message lines shown here. The mail view shows all.
const MESSAGE: usize = 12;
/// How many later events are searched for the end of a tool call.
const TOOL: usize = 64;
/// Below this width the time column is left out.
const NARROW: usize = 50;

/// Renders an item. Items that only end another one have no lines.
pub(super) fn lines(
    screen: &Screen,
    person: &Person,
    item: Item,
    width: usize,
) -> Vec<Line<'static>> {
    let (at, spot) = match item {
        Item::Act(act) => (act.at, act.spot),
        Item::Letter(letter) => (letter.at, letter.spot),
    };
    let time = if width < NARROW { String::new() } else { time(screen, at) };
    let margin = time.width();
    let room = width.saturating_sub(margin);
    let Some(record) = screen.record(spot) else { return Vec::new() };
    let lines = match item {
        Item::Act(act) => worked(screen, person, act, &record, room),
        Item::Letter(letter) => written(screen, person, &letter, &record, room),
    };
    let before = |place| if place == 0 { time.clone() } else { " ".repeat(margin) };
    let line = |(place, line)| after(vec![Span::styled(before(place), screen.theme.faint())], line);
    lines.into_iter().enumerate().map(line).collect()
}

fn time(screen: &Screen, at: At) -> String {
    let (now, then) = (local(screen.now), local(at.timestamp()));
    let form = if now.date() == then.date() { "%H:%M:%S  " } else { "%b %d %H:%M  " };
    then.strftime(form).to_string()
}

/// A symbol and one line of text, cut to the available width.
fn one(sign: &'static str, text: &str, style: Style, room: usize) -> Vec<Line<'static>> {
    vec![Line::styled(format!("{sign} {}", cut(&one_line(text), room.saturating_sub(2))), style)]
}

fn worked(
    screen: &Screen,
    person: &Person,
    it: picture::Act,
    record: &Arc<Record>,
    room: usize,
) -> Vec<Line<'static>> {
    let theme = screen.theme;
    let Event::Worked { act, .. } = &record.event else { return Vec::new() };
    match act {
        Act::Started {} => one("◌", "agent started", theme.good(), room),
        Act::TurnStarted {} => one("┌", "turn started", theme.faint(), room),
        Act::Said { text } => {
            set_in(markdown::lines(text.trim_end(), room.saturating_sub(2), theme))
        }
        Act::ToolStarted { id, tool, about } => {
            vec![used(screen, person, it, (id, tool, about), room)]
        }
        Act::Changed { path, added, removed } => {
            let counts = format!("  +{added} −{removed}");
            let path = cut(&one_line(path), room.saturating_sub(counts.width() + 2));
            vec![Line::from(vec![
                Span::styled("± ", theme.good()),
                Span::raw(path),
                Span::styled(counts, theme.faint()),
            ])]
        }
        Act::Limited { why } => one("■", &format!("rate-limited: {why}"), theme.wrong(), room),
        Act::Trouble { why } => one("✕", why, theme.wrong(), room),
        Act::TurnEnded { end, why } => {
            let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            match end {
                Ending::Done => one("└", "turn ended", theme.faint(), room),
                Ending::Interrupted => {
                    one("└", &format!("turn interrupted{why}"), theme.urgent(), room)
                }
                Ending::Failed => one("└", &format!("turn failed{why}"), theme.wrong(), room),
                Ending::Limited => {
                    one("└", "turn ended: rate-limited by the vendor", theme.wrong(), room)
                }
            }
        }
        _ => Vec::new(),
    }
}

/// A tool call and its result.
fn used(
    screen: &Screen,
    person: &Person,
    it: picture::Act,
    (id, tool, about): (&str, &str, &str),
    room: usize,
) -> Line<'static> {
    let theme = screen.theme;
    let (sign, came, style) = match end_of(screen, person, it, id) {
        End::Came { ok: true, at } => ("✓", took(at, it.at), theme.good()),
        End::Came { ok: false, at } => ("✗", format!("failed{}", took(at, it.at)), theme.wrong()),
        // The call has not run yet: it waits for permission.
        End::Runs if person.doing() == Doing::Waiting => {
            ("▲", format!("waiting, {}", since(screen.now, it.at)), theme.urgent())
        }
        End::Runs => ("▶", format!("running, {}", since(screen.now, it.at)), theme.busy()),
        End::Lost => ("–", "no result".to_owned(), theme.faint()),
    };
    let word = word(tool);
    let before = format!("{sign} {word:5} ");
    let came = if came.is_empty() { came } else { format!("  {}", came.trim_start()) };
    let about = cut(&one_line(about), room.saturating_sub(before.width() + came.width()));
    Line::from(vec![
        Span::styled(before, style),
        Span::raw(about),
        Span::styled(came, if sign == "✓" { theme.faint() } else { style }),
    ])
}

/// The duration, or nothing below one second.
fn took(at: At, from: At) -> String {
    let took = age(at.timestamp(), from.timestamp());
    if at.0 - from.0 < 1_000 { String::new() } else { format!(" {took}") }
}

/// A short verb for a tool, or the tool's own name if it is not known.
fn word(tool: &str) -> String {
    let word = match tool {
        "commandExecution" | "execute" | "Bash" | "shell" => "run",
        "fileChange" | "edit" | "Edit" | "Write" | "MultiEdit" => "edit",
        "read" | "Read" => "read",
        "search" | "Grep" | "Glob" => "find",
        "webSearch" | "WebSearch" | "fetch" | "WebFetch" => "web",
        "delete" => "delete",
        "move" => "move",
        "think" => "think",
        other => return cut(&one_line(other), 24),
    };
    word.to_owned()
}

enum End {
    Came {
        ok: bool,
        at: At,
    },
    /// The call is still running.
    Runs,
    /// The turn ended without a result for this call.
    Lost,
}

fn end_of(screen: &Screen, person: &Person, it: picture::Act, id: &str) -> End {
    // Records are nearly in time order, so this is the earliest candidate.
    let from = person.acts.partition_point(|act| act.at < it.at);
    let later = person.acts.get(from..).unwrap_or_default();
    let begun = later.iter().position(|act| act.spot == it.spot).unwrap_or_default();
    for act in later.iter().skip(begun + 1).take(TOOL) {
        let Some(record) = screen.record(act.spot) else { continue };
        match &record.event {
            Event::Worked { act: Act::ToolEnded { id: ended, ok }, .. } if ended == id => {
                return End::Came { ok: *ok, at: act.at };
            }
            Event::Worked { act: Act::TurnEnded { .. } | Act::Started {}, .. } => return End::Lost,
            _ => {}
        }
    }
    if later.len() > begun + TOOL { End::Lost } else { End::Runs }
}

fn set_in(lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    lines.into_iter().map(|line| after(vec![Span::raw("  ")], line)).collect()
}

/// The text of a message.
pub(super) fn text(message: &RawValue) -> Option<String> {
    with_message(message.get().as_bytes(), |message| Some(message?.text().into_owned())).ok()?
}

fn written(
    screen: &Screen,
    person: &Person,
    letter: &Letter,
    record: &Arc<Record>,
    room: usize,
) -> Vec<Line<'static>> {
    let theme = screen.theme;
    let is_out = letter.from == person.who;
    // Skip idle notices: the end of the turn is shown already, and another member's notice is not this
    // member's activity. Show them only for a member that reports no activity of its own.
    if letter.kind == Kind::Idle && !(is_out && person.acts.is_empty()) {
        return Vec::new();
    }
    let (Event::Sent { message, .. } | Event::Seen { message, .. }) = &record.event else {
        return Vec::new();
    };
    let Some(text) = text(message) else { return Vec::new() };
    let (sign, other) = if is_out { ("→ to", letter.to) } else { ("← from", letter.from) };
    let name = one_line(screen.picture.name(other));
    let color = screen.picture.person(other).and_then(|other| other.entry.as_ref());
    let style = theme.member(color.and_then(|entry| entry.color.as_deref()));
    let who = vec![Span::raw(format!("{sign} ")), Span::styled(name, style)];
    let fate = match letter.fate() {
        Fate::Shown(_) => "",
        Fate::Read(_) => ", read",
        Fate::Written => ", unread",
    };
    if letter.kind == Kind::Words {
        let mut lines = vec![after(who, Line::styled(fate, theme.urgent()))];
        let words = markdown::lines(text.trim_end(), room.saturating_sub(2), theme);
        // A note about one more line would take as much space as that line.
        let most = if words.len() == MESSAGE + 1 { MESSAGE + 1 } else { MESSAGE };
        let more = words.len().saturating_sub(most);
        lines.extend(set_in(words.into_iter().take(most).collect()));
        if more > 0 {
            let more = format!("  … {more} more lines, see the mail view");
            lines.push(Line::styled(more, theme.faint()));
        }
        return lines;
    }
    if let Kind::PlanRequest | Kind::PermissionRequest = letter.kind {
        let (style, words) = asked(screen, letter.spot, letter.at, record);
        let width: usize = who.iter().map(|span| span.content.width()).sum();
        let words = cut(&one_line(&words), room.saturating_sub(width + 2));
        return vec![after(who, Line::from(vec![Span::raw(": "), Span::styled(words, style)]))];
    }
    let sign = if is_out { "→" } else { "←" };
    one(sign, &mail::in_a_line(screen, letter), theme.faint(), room)
}

/// A request and its answer.
fn asked(screen: &Screen, spot: Spot, at: At, record: &Arc<Record>) -> (Style, String) {
    let theme = screen.theme;
    let all = screen.picture.asked();
    let from = all.partition_point(|asked| asked.at < at);
    let near = all.get(from..).unwrap_or_default().iter().take(TOOL);
    let (style, came) = match near.into_iter().find(|asked| asked.spot == spot) {
        Some(asked) => match &asked.reply {
            None => (theme.urgent(), format!(" (waiting, {})", since(screen.now, at))),
            Some(reply) => {
                let word = if reply.yes { "approved" } else { "denied" };
                (theme.faint(), format!(" ({word}, {})", approvals::by(reply.hand.as_deref())))
            }
        },
        None => (theme.faint(), String::new()),
    };
    let told = Approval::told(record, 0);
    let kind = match told.as_ref().map(|told| &told.wanted) {
        Some(Wanted::Plan { .. }) => "plan",
        _ => "asks for permission",
    };
    let what = told.map(|told| approvals::subject(&told)).unwrap_or_default();
    (style, format!("▲ {kind}{came}: {what}"))
}
