//! What the selected member did in the visible time.

use brigade_core::picture::{Kind, Letter, Person, Who};
use brigade_core::pulse;
use jiff::SignedDuration;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::cells::{is_told, presence, spent, turns};
use super::mail::{self, Count};
use crate::output::{cut, local, one_line};
use crate::ui::canvas::Canvas;
use crate::ui::screen::Screen;
use crate::ui::style;
use crate::ui::views::mail::in_a_line;

/// Minimum number of rows for the details: an empty line, the member, how the time was spent, and the
/// totals. With fewer rows only the lanes are shown.
pub(super) const LEAST: u16 = 4;
/// Copies of one message to several members are written within this time, in milliseconds.
const AT_ONCE: u64 = 1000;

pub(super) fn draw(
    screen: &Screen,
    canvas: &mut Canvas<'_>,
    area: Rect,
    person: &Person,
    (from, to): (i64, i64),
) {
    if area.height < LEAST {
        return;
    }
    let theme = canvas.theme;
    let width = usize::from(area.width);
    let row = |y: u16| Rect { y: area.y + y, height: 1, ..area };
    let (_, doing) = style::doing(person.doing());
    let agent = person.entry.as_ref().and_then(|entry| entry.agent_type.as_deref());
    let agent = agent.map(|agent| format!(" ({})", one_line(agent))).unwrap_or_default();
    canvas.line(
        row(1),
        Line::from(vec![
            Span::styled(format!(" {}", one_line(&person.name)), theme.strong()),
            Span::raw(format!("{agent} is {doing}. ")),
            Span::styled("In this period:", theme.faint()),
        ]),
    );
    canvas.line(row(2), Line::raw(format!(" {}", shares(person, (from, to), width))));
    canvas.line(row(3), Line::raw(format!(" {}", deeds(screen, person, from, to))));
    let room = usize::from(area.height.saturating_sub(LEAST + 1));
    for (y, line) in messages(screen, person, (from, to), room).into_iter().enumerate() {
        let y = u16::try_from(y).unwrap_or(u16::MAX).saturating_add(LEAST + 1);
        canvas.line(row(y), Line::raw(cut(&format!(" {line}"), width)));
    }
}

/// The latest messages of the period, oldest first, at most `most` lines.
fn messages(screen: &Screen, person: &Person, (from, to): (i64, i64), most: usize) -> Vec<String> {
    let mut lines: Vec<Told> = Vec::new();
    for letter in mail::latest(&screen.picture, person, from, to) {
        let text = in_a_line(screen, letter);
        let is_full = lines.len() >= most;
        match lines.last_mut() {
            // A message to several members is listed once.
            Some(told) if told.is_also(letter, &text) => told.to.insert(0, letter.to),
            _ if is_full => break,
            _ => lines.push(Told { letter, to: vec![letter.to], text }),
        }
    }
    lines.iter().rev().map(|told| told.line(screen, person)).collect()
}

/// A message with all its recipients.
struct Told<'p> {
    letter: &'p Letter,
    to: Vec<Who>,
    text: String,
}

impl Told<'_> {
    fn is_also(&self, letter: &Letter, text: &str) -> bool {
        let is_at_once = self.letter.at.0.abs_diff(letter.at.0) <= AT_ONCE;
        is_at_once && self.letter.from == letter.from && self.text == text
    }

    fn line(&self, screen: &Screen, person: &Person) -> String {
        let Self { letter, to, text } = self;
        let at = local(letter.at.timestamp()).strftime("%H:%M:%S");
        let name = |who: &Who| one_line(screen.picture.name(*who));
        let sign = if letter.from == person.who { "↑" } else { "↓" };
        match (letter.kind, letter.from == person.who) {
            (Kind::Words, true) => {
                let names = to.iter().map(name).collect::<Vec<_>>().join(", ");
                format!("{at} {sign} to {names}: {text}")
            }
            (Kind::Words, false) => format!("{at} {sign} from {}: {text}", name(&letter.from)),
            // The description of a protocol message names sender and recipient.
            _ => format!("{at} {sign} {text}"),
        }
    }
}

/// How the time was spent, with percentages. Durations are left out if they do not fit.
pub(super) fn shares(person: &Person, (from, to): (i64, i64), width: usize) -> String {
    let Some((joined, left)) = presence(person, to) else {
        return "was never on the team".to_owned();
    };
    let (from, to) = (from.max(joined), to.min(left));
    if to <= from {
        return "was not on the team in this period".to_owned();
    }
    if !is_told(person) {
        return "its activity is not reported".to_owned();
    }
    let (all, spent) = (to - from, spent(&person.stretches, from, to));
    let parts = [
        ("worked", spent.working),
        ("waited for you", spent.waiting),
        ("rate-limited", spent.limited),
        ("idle", all - spent.all()),
    ];
    let told = |is_long: bool| {
        let part = |(word, time): &(&str, i64)| {
            let percent = (time * 100 + all / 2) / all;
            let words = pulse::words(SignedDuration::from_millis(*time));
            if is_long {
                format!("{word} {words} ({percent} %)")
            } else {
                format!("{word} {percent} %")
            }
        };
        let parts = parts.iter().filter(|(_, time)| *time > 0);
        parts.map(part).collect::<Vec<_>>().join(", ")
    };
    let long = told(true);
    if long.width() < width { long } else { told(false) }
}

/// Number of turns, messages and tokens.
fn deeds(screen: &Screen, person: &Person, from: i64, to: i64) -> String {
    let turns = match turns(&person.stretches, from, to) {
        _ if !is_told(person) => String::new(),
        1 => "1 turn, ".to_owned(),
        turns => format!("{turns} turns, "),
    };
    let letters = match mail::count(&screen.picture, person, from, to) {
        Count::Exact { wrote, got } => format!("sent {wrote} and received {got} messages"),
        Count::Many(all) => format!("sent or received {all} messages"),
    };
    let tokens = match person.tokens {
        (0, 0) => String::new(),
        (read, wrote) => {
            let (read, wrote) = (thousands(read), thousands(wrote));
            let cost = person.cost.map(|cost| format!(", ${cost:.2}")).unwrap_or_default();
            format!("; total tokens: {read} input, {wrote} output{cost}")
        }
    };
    format!("{turns}{letters}{tokens}")
}

/// A large number, abbreviated.
fn thousands(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{} k", count / 1000),
        _ => format!("{} M", count / 1_000_000),
    }
}
