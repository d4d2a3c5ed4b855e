//! Summarizes what the selected member did in the visible time range.

use brigade_core::projection::{MemberIndex, MemberView, MessageKind, MessageRef};
use brigade_core::pulse;
use jiff::SignedDuration;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::cells::{count_turns, presence, reports_activity, time_spent};
use super::mail::{self, MailCount};
use crate::canvas::Canvas;
use crate::screen::Screen;
use crate::screen::views::mail::{BROADCAST_WINDOW_MS, one_line_text};
use crate::style;
use crate::time::local;
use brigade_core::text::{cut, one_line};

/// Minimum number of rows for the details: an empty line, the member, how the time was spent, and the totals.
/// With fewer rows, the details are left out.
pub(super) const MIN_ROWS: u16 = 4;

pub(super) fn draw(
    screen: &Screen,
    canvas: &mut Canvas<'_>,
    area: Rect,
    person: &MemberView,
    (from, to): (i64, i64),
) {
    if area.height < MIN_ROWS {
        return;
    }
    let theme = canvas.theme;
    let width = usize::from(area.width);
    let row = |y: u16| Rect { y: area.y + y, height: 1, ..area };
    let (_, doing) = style::state_label(person.activity());
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
    canvas.line(row(3), Line::raw(format!(" {}", totals(screen, person, from, to))));
    let room = usize::from(area.height.saturating_sub(MIN_ROWS + 1));
    for (y, line) in messages(screen, person, (from, to), room).into_iter().enumerate() {
        let y = u16::try_from(y).unwrap_or(u16::MAX).saturating_add(MIN_ROWS + 1);
        canvas.line(row(y), Line::raw(cut(&format!(" {line}"), width)));
    }
}

/// Renders at most `most` messages: the latest ones of the visible time range, in time order.
fn messages(
    screen: &Screen,
    person: &MemberView,
    (from, to): (i64, i64),
    most: usize,
) -> Vec<String> {
    let mut lines: Vec<ListedMessage> = Vec::new();
    for message in mail::latest(&screen.projection, person, from, to) {
        let text = one_line_text(screen, message);
        let is_full = lines.len() >= most;
        match lines.last_mut() {
            // List a message to several members only once.
            Some(listed) if listed.is_same_message(message, &text) => {
                listed.to.insert(0, message.to);
            }
            _ if is_full => break,
            _ => lines.push(ListedMessage { message, to: vec![message.to], text }),
        }
    }
    lines.iter().rev().map(|listed| listed.line(screen, person)).collect()
}

/// A message, with all its recipients.
struct ListedMessage<'p> {
    message: &'p MessageRef,
    to: Vec<MemberIndex>,
    text: String,
}

impl ListedMessage<'_> {
    fn is_same_message(&self, message: &MessageRef, text: &str) -> bool {
        let distance = self.message.at.0.abs_diff(message.at.0);
        let is_at_once = distance <= BROADCAST_WINDOW_MS.unsigned_abs();
        is_at_once && self.message.from == message.from && self.text == text
    }

    fn line(&self, screen: &Screen, person: &MemberView) -> String {
        let Self { message, to, text } = self;
        let at = local(message.at.timestamp()).strftime("%H:%M:%S");
        let name = |who: &MemberIndex| one_line(screen.projection.name(*who));
        let sign = if message.from == person.index { "↑" } else { "↓" };
        match (message.kind, message.from == person.index) {
            (MessageKind::Text, true) => {
                let names = to.iter().map(name).collect::<Vec<_>>().join(", ");
                format!("{at} {sign} to {names}: {text}")
            }
            (MessageKind::Text, false) => {
                format!("{at} {sign} from {}: {text}", name(&message.from))
            }
            // The description of a protocol message already names sender and recipient.
            _ => format!("{at} {sign} {text}"),
        }
    }
}

/// Describes how the member spent the time, in percent. Durations are included if they fit.
pub(super) fn shares(person: &MemberView, (from, to): (i64, i64), width: usize) -> String {
    let Some((joined, left)) = presence(person, to) else {
        return "was never on the team".to_owned();
    };
    let (from, to) = (from.max(joined), to.min(left));
    if to <= from {
        return "was not on the team in this period".to_owned();
    }
    if !reports_activity(person) {
        return "its activity is not reported".to_owned();
    }
    let (all, spent) = (to - from, time_spent(&person.busy_spans, from, to));
    let parts = [
        ("worked", spent.working),
        ("waited for you", spent.waiting),
        ("rate-limited", spent.limited),
        ("idle", all - spent.all()),
    ];
    let shares = |is_long: bool| {
        let part = |(word, time): &(&str, i64)| {
            let percent = (time * 100 + all / 2) / all;
            let duration = pulse::format_duration(SignedDuration::from_millis(*time));
            if is_long {
                format!("{word} {duration} ({percent} %)")
            } else {
                format!("{word} {percent} %")
            }
        };
        let parts = parts.iter().filter(|(_, time)| *time > 0);
        parts.map(part).collect::<Vec<_>>().join(", ")
    };
    let long = shares(true);
    if long.width() < width { long } else { shares(false) }
}

/// Describes the number of turns, messages and tokens.
fn totals(screen: &Screen, person: &MemberView, from: i64, to: i64) -> String {
    let turns = match count_turns(&person.busy_spans, from, to) {
        _ if !reports_activity(person) => String::new(),
        1 => "1 turn, ".to_owned(),
        turns => format!("{turns} turns, "),
    };
    let message_counts = match mail::count(&screen.projection, person, from, to) {
        MailCount::Exact { sent, received } => {
            format!("sent {sent} and received {received} messages")
        }
        MailCount::Many(all) => format!("sent or received {all} messages"),
    };
    let tokens = match person.tokens {
        (0, 0) => String::new(),
        (read, written) => {
            let (read, written) = (thousands(read), thousands(written));
            let cost = person.cost.map(|cost| format!(", ${cost:.2}")).unwrap_or_default();
            format!("; total tokens: {read} input, {written} output{cost}")
        }
    };
    format!("{turns}{message_counts}{tokens}")
}

/// Formats a large number in abbreviated form.
fn thousands(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{} k", count / 1000),
        _ => format!("{} M", count / 1_000_000),
    }
}
