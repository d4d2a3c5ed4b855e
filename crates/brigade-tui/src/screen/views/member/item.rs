//! Renders one item of a member's activity: an agent event or a message.

use std::sync::Arc;

use brigade_core::approvals::{Approval, ApprovalSubject};
use brigade_core::event::{Event, Record, TurnOutcome, WorkEvent};
use brigade_core::projection::{
    self, DeliveryStatus, MemberActivity, MemberView, MessageKind, MessageRef, Millis,
};
use brigade_core::store::event_log::RecordRef;
use brigade_host::history_text;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::activity::ActivityItem;
use crate::markdown;
use crate::screen::views::{approvals, mail};
use crate::screen::{Screen, record_text};
use crate::style::Theme;
use crate::text_layout::{age, prepend, since, with_label, wrap_plain};
use crate::time::local;
use brigade_core::text::{cut, first_line, one_line, plain, without_escapes};

/// Maximum number of lines of a message in the member view. The mail view shows all lines.
const MAX_MESSAGE_LINES: usize = 12;
/// Maximum number of lines of a folded diff.
const MAX_DIFF_LINES: usize = 12;
/// How many later events are searched for the result of a tool call.
const MAX_LOOKAHEAD: usize = 64;
/// Minimum width of the view at which the time column is shown.
const MIN_WIDTH_WITH_TIME: usize = 50;

/// How much of an activity item is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemDetail {
    /// The dashboard: the beginning of a message, one line for a tool call or a file change.
    Brief,
    /// Whole messages, one line for a tool call, and the first lines of a diff.
    Folded,
    /// Everything that is recorded.
    Unfolded,
}

/// Renders an activity item. An event that only ends an earlier event, such as a tool result, has no lines.
pub(crate) fn lines(
    screen: &Screen,
    person: &MemberView,
    item: ActivityItem,
    width: usize,
    detail: ItemDetail,
) -> Vec<Line<'static>> {
    let (at, spot) = match item {
        ActivityItem::Event(act) => (act.at, act.record),
        ActivityItem::Message(message) => (message.at, message.record),
    };
    let time = if width < MIN_WIDTH_WITH_TIME { String::new() } else { time(screen, at) };
    let margin = time.width();
    let room = width.saturating_sub(margin);
    let Some(record) = screen.record(spot) else { return Vec::new() };
    let lines = match item {
        ActivityItem::Event(act) => event_lines(screen, person, act, &record, room, detail),
        ActivityItem::Message(message) => {
            message_lines(screen, person, &message, &record, room, detail)
        }
    };
    with_label(&time, margin, screen.theme.faint(), lines)
}

fn time(screen: &Screen, at: Millis) -> String {
    let (now, then) = (local(screen.now), local(at.timestamp()));
    let form = if now.date() == then.date() { "%H:%M:%S  " } else { "%b %d %H:%M  " };
    then.strftime(form).to_string()
}

/// Renders a symbol and one line of text, cut to the available width.
fn symbol_line(sign: &'static str, text: &str, style: Style, room: usize) -> Vec<Line<'static>> {
    vec![Line::styled(format!("{sign} {}", cut(&one_line(text), room.saturating_sub(2))), style)]
}

/// Renders a symbol and a text. The dashboard shows its first line, `brigade attach` all lines.
fn symbol_lines(
    sign: &'static str,
    text: &str,
    style: Style,
    room: usize,
    detail: ItemDetail,
) -> Vec<Line<'static>> {
    let room = room.saturating_sub(2);
    let lines = match detail {
        ItemDetail::Brief => vec![Line::styled(first_line(text, room), style)],
        ItemDetail::Folded | ItemDetail::Unfolded => {
            wrap_plain(&without_escapes(text), room, style)
        }
    };
    with_label(&format!("{sign} "), 2, style, lines)
}

fn event_lines(
    screen: &Screen,
    person: &MemberView,
    act_ref: projection::WorkRef,
    record: &Arc<Record>,
    room: usize,
    detail: ItemDetail,
) -> Vec<Line<'static>> {
    let theme = screen.theme;
    let act = match &record.event {
        Event::Worked { act, .. } => act,
        Event::TakenOver { program, session, ended, .. } => {
            let text = history_text::taken_over(program, session.as_deref(), *ended);
            return symbol_lines("◇", &text, theme.urgent(), room, detail);
        }
        _ => return Vec::new(),
    };
    match act {
        WorkEvent::Started {} => symbol_line("◌", "agent started", theme.success(), room),
        WorkEvent::TurnStarted {} => symbol_line("┌", "turn started", theme.faint(), room),
        WorkEvent::Said { text } => {
            indent(markdown::lines(text.trim_end(), room.saturating_sub(2), theme))
        }
        WorkEvent::ToolStarted { id, tool, about } => {
            let fits = |line: &str| line.width() + 12 <= room;
            let (first, below) = match (detail, about.trim_end().split_once('\n')) {
                (ItemDetail::Unfolded, Some((first, others))) if fits(first) => (first, others),
                (ItemDetail::Unfolded, None) if fits(about) => (about.as_str(), ""),
                (ItemDetail::Unfolded, _) => (about.as_str(), about.as_str()),
                (ItemDetail::Brief | ItemDetail::Folded, _) => (about.as_str(), ""),
            };
            let line = tool_line(screen, person, act_ref, (id, tool, first), room);
            let below = indent(wrap_plain(below, room.saturating_sub(2), theme.faint()));
            [vec![line], below].concat()
        }
        WorkEvent::Changed { path, added, removed, diff } => {
            let counts = format!("  +{added} −{removed}");
            let path = cut(&one_line(path), room.saturating_sub(counts.width() + 2));
            let line = Line::from(vec![
                Span::styled("± ", theme.success()),
                Span::raw(path),
                Span::styled(counts, theme.faint()),
            ]);
            let diff = diff.as_deref().map(|diff| diff_lines(diff, theme, room, detail));
            [vec![line], diff.unwrap_or_default()].concat()
        }
        WorkEvent::Limited { why } => {
            symbol_lines("■", &format!("rate-limited: {why}"), theme.error(), room, detail)
        }
        WorkEvent::Trouble { why } => symbol_lines("✕", why, theme.error(), room, detail),
        WorkEvent::TurnEnded { end, why } => {
            let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            match end {
                TurnOutcome::Done => symbol_line("└", "turn ended", theme.faint(), room),
                TurnOutcome::Interrupted => {
                    let text = format!("turn interrupted{why}");
                    symbol_lines("└", &text, theme.urgent(), room, detail)
                }
                TurnOutcome::Failed => {
                    symbol_lines("└", &format!("turn failed{why}"), theme.error(), room, detail)
                }
                TurnOutcome::Limited => {
                    symbol_line("└", "turn ended: rate-limited by the vendor", theme.error(), room)
                }
            }
        }
        _ => Vec::new(),
    }
}

/// Renders a recorded diff. Each of its lines begins with a space, a minus or a plus.
fn diff_lines(diff: &str, theme: Theme, room: usize, detail: ItemDetail) -> Vec<Line<'static>> {
    let most = match detail {
        ItemDetail::Brief => return Vec::new(),
        ItemDetail::Folded => MAX_DIFF_LINES,
        ItemDetail::Unfolded => usize::MAX,
    };
    let room = room.saturating_sub(2);
    let line = |line: &str| {
        let style = match line.as_bytes().first() {
            Some(b'+') => theme.success(),
            Some(b'-') => theme.removed(),
            _ => theme.faint(),
        };
        match detail {
            ItemDetail::Unfolded => wrap_plain(line, room, style),
            _ => vec![Line::styled(cut(&one_line_with_indentation(line), room), style)],
        }
    };
    let mut lines: Vec<Line<'static>> = diff.lines().take(most).flat_map(line).collect();
    let more = diff.lines().count().saturating_sub(most);
    if more > 0 {
        lines.push(Line::styled(format!("… {more} more lines"), theme.faint()));
    }
    indent(lines)
}

/// Makes control characters visible and keeps the spaces at the start of the line.
fn one_line_with_indentation(line: &str) -> String {
    plain(&line.replace('\t', "    "))
}

/// Renders a tool call and its result.
fn tool_line(
    screen: &Screen,
    person: &MemberView,
    act_ref: projection::WorkRef,
    (id, tool, about): (&str, &str, &str),
    room: usize,
) -> Line<'static> {
    let theme = screen.theme;
    let (sign, result, style) = match tool_outcome(screen, person, act_ref, id) {
        ToolOutcome::Finished { ok: true, at } => ("✓", duration(at, act_ref.at), theme.success()),
        ToolOutcome::Finished { ok: false, at } => {
            ("✗", format!("failed{}", duration(at, act_ref.at)), theme.error())
        }
        // The tool call has not started yet: it waits for permission.
        ToolOutcome::Running if person.activity() == MemberActivity::Waiting => {
            ("▲", format!("waiting, {}", since(screen.now, act_ref.at)), theme.urgent())
        }
        ToolOutcome::Running => {
            ("▶", format!("running, {}", since(screen.now, act_ref.at)), theme.busy())
        }
        ToolOutcome::Unknown => ("–", "no result".to_owned(), theme.faint()),
    };
    let verb = tool_verb(tool);
    let before = format!("{sign} {verb:5} ");
    let result = if result.is_empty() { result } else { format!("  {}", result.trim_start()) };
    let about = first_line(about, room.saturating_sub(before.width() + result.width()));
    Line::from(vec![
        Span::styled(before, style),
        Span::raw(about),
        Span::styled(result, if sign == "✓" { theme.faint() } else { style }),
    ])
}

/// Formats the time between two events. Returns an empty text for less than one second.
fn duration(at: Millis, from: Millis) -> String {
    let time = age(at.timestamp(), from.timestamp());
    if at.0 - from.0 < 1_000 { String::new() } else { format!(" {time}") }
}

/// Returns a short verb for a known tool, or the name of any other tool.
fn tool_verb(tool: &str) -> String {
    let verb = match tool {
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
    verb.to_owned()
}

enum ToolOutcome {
    Finished {
        ok: bool,
        at: Millis,
    },
    /// The tool call is still running.
    Running,
    /// The turn ended without a result for this tool call.
    Unknown,
}

fn tool_outcome(
    screen: &Screen,
    person: &MemberView,
    act_ref: projection::WorkRef,
    id: &str,
) -> ToolOutcome {
    // Records are nearly in time order, so the search can start at the time of the tool call.
    let from = person.work.partition_point(|act| act.at < act_ref.at);
    let later = person.work.get(from..).unwrap_or_default();
    let start = later.iter().position(|act| act.record == act_ref.record).unwrap_or_default();
    for act in later.iter().skip(start + 1).take(MAX_LOOKAHEAD) {
        let Some(record) = screen.record(act.record) else { continue };
        match &record.event {
            Event::Worked { act: WorkEvent::ToolEnded { id: ended, ok }, .. } if ended == id => {
                return ToolOutcome::Finished { ok: *ok, at: act.at };
            }
            Event::Worked { act: WorkEvent::TurnEnded { .. } | WorkEvent::Started {}, .. } => {
                return ToolOutcome::Unknown;
            }
            _ => {}
        }
    }
    if later.len() > start + MAX_LOOKAHEAD { ToolOutcome::Unknown } else { ToolOutcome::Running }
}

fn indent(lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    lines.into_iter().map(|line| prepend(vec![Span::raw("  ")], line)).collect()
}

fn message_lines(
    screen: &Screen,
    person: &MemberView,
    message: &MessageRef,
    record: &Arc<Record>,
    room: usize,
    detail: ItemDetail,
) -> Vec<Line<'static>> {
    let theme = screen.theme;
    let is_outgoing = message.from == person.index;
    // Skip idle notices: the end of this member's turn is already shown, and another member's notice does not
    // belong here. If this member reports no other activity, show its own notices.
    if message.kind == MessageKind::Idle && !(is_outgoing && person.work.is_empty()) {
        return Vec::new();
    }
    let Some(text) = record_text(record) else { return Vec::new() };
    let (sign, other) =
        if is_outgoing { ("→ to", message.to) } else { ("← from", message.from) };
    let who = vec![Span::raw(format!("{sign} ")), screen.styled_name(other)];
    let state = match message.status() {
        DeliveryStatus::Shown(_) => "",
        DeliveryStatus::Read(_) => ", read",
        DeliveryStatus::Written => ", unread",
    };
    if message.kind == MessageKind::Text {
        let mut lines = vec![prepend(who, Line::styled(state, theme.urgent()))];
        let text_lines = markdown::lines(text.trim_end(), room.saturating_sub(2), theme);
        // If only one more line is left, show it: a note about the rest would take one line too.
        let most = match detail {
            ItemDetail::Brief => {
                MAX_MESSAGE_LINES + usize::from(text_lines.len() == MAX_MESSAGE_LINES + 1)
            }
            ItemDetail::Folded | ItemDetail::Unfolded => usize::MAX,
        };
        let more = text_lines.len().saturating_sub(most);
        lines.extend(indent(text_lines.into_iter().take(most).collect()));
        if more > 0 {
            let more = format!("  … {more} more lines, see the mail view");
            lines.push(Line::styled(more, theme.faint()));
        }
        return lines;
    }
    if let MessageKind::PlanRequest | MessageKind::PermissionRequest = message.kind {
        let (style, request) = request_text(screen, message.record, message.at, record);
        let width: usize = who.iter().map(|span| span.content.width()).sum();
        let request = cut(&one_line(&request), room.saturating_sub(width + 2));
        return vec![prepend(who, Line::from(vec![Span::raw(": "), Span::styled(request, style)]))];
    }
    let sign = if is_outgoing { "→" } else { "←" };
    symbol_line(sign, &mail::one_line_text(screen, message), theme.faint(), room)
}

/// Describes a request and its answer.
fn request_text(
    screen: &Screen,
    spot: RecordRef,
    at: Millis,
    record: &Arc<Record>,
) -> (Style, String) {
    let theme = screen.theme;
    let all = screen.projection.requests();
    let from = all.partition_point(|asked| asked.at < at);
    let near = all.get(from..).unwrap_or_default().iter().take(MAX_LOOKAHEAD);
    let (style, result) = match near.into_iter().find(|asked| asked.record == spot) {
        Some(asked) => match &asked.reply {
            None => (theme.urgent(), format!(" (waiting, {})", since(screen.now, at))),
            Some(reply) => {
                let verdict = if reply.yes { "approved" } else { "denied" };
                (
                    theme.faint(),
                    format!(
                        " ({verdict}, {})",
                        approvals::answered_by(reply.decided_by.as_deref())
                    ),
                )
            }
        },
        None => (theme.faint(), String::new()),
    };
    let approval = Approval::from_record(record, 0);
    let kind = match approval.as_ref().map(|approval| &approval.subject) {
        Some(ApprovalSubject::Plan { .. }) => "plan",
        _ => "asks for permission",
    };
    let what = approval.map(|approval| approvals::subject(&approval)).unwrap_or_default();
    (style, format!("▲ {kind}{result}: {what}"))
}
