//! Formats a team's history as text, one line per event. A formatter that prints texts in full prints their lines as they were
//! written, below each other.

mod layout;
mod message_text;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use brigade_core::event::WITHDRAWN;
use brigade_core::event::{Event, MessageKey, Record, TurnOutcome, WorkEvent};
use brigade_wire::task::Task;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr;

use anstyle::Style;
use brigade_core::text::{first_line, one_line, plain, without_escapes, wrap};
use jiff::tz::TimeZone;

use self::layout::{later_column, shortened_state};
pub(crate) use self::message_text::full_text;
use self::message_text::sender_and_text;

/// The style of the date above each day's events.
const STRONG: Style = Style::new().bold();
/// The style of times and of the delivery state of messages.
const FAINT: Style = Style::new().dimmed();

/// Records are in the order in which they were written. If a record is this much earlier than the one before it, the
/// clock was set back. Smaller differences arise between processes and hosts.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(1);

/// The minimum width of an event's text, also in a narrow terminal.
const MIN_TEXT_WIDTH: usize = 12;

/// The maximum width of an event's text if the terminal width is unknown.
const DEFAULT_TEXT_WIDTH: usize = 72;

/// The name of an inbox and the key of a message in it.
type InboxMessage = (String, MessageKey);

/// Formats records in order. It keeps state, because the text of a record depends on earlier records.
#[derive(Debug)]
pub struct LogFormatter {
    /// Time zone of the printed times.
    zone: TimeZone,
    /// Whether to include what agents say and do.
    shows_work: bool,
    /// Whether to print texts in full.
    shows_all_text: bool,
    /// The date of the last formatted record.
    day: Option<Date>,
    /// The time of the last formatted record.
    last: Option<Timestamp>,
    /// Sender and text of each message.
    messages: HashMap<InboxMessage, (String, String)>,
    /// The JSON of each task, from the latest record about the task.
    tasks: HashMap<u64, String>,
    deleted: DeletedWithTeam,
    /// The width of the actor column. It grows with the longest actor so far.
    actor_width: usize,
}

/// The parts of an entry.
#[derive(Debug)]
struct LogEntry {
    at: Timestamp,
    who: String,
    /// The text as it was written, which may have several lines and control characters.
    what: String,
    state: String,
}

/// Messages and tasks that were deleted together with a team. The journal may record these deletions only
/// after a new team of the same name was created. The formatter must not show them as events of the new team.
#[derive(Debug, Default)]
struct DeletedWithTeam {
    messages: HashSet<InboxMessage>,
    tasks: HashSet<u64>,
}

/// When a message was read, and when it was shown to the recipient's model.
#[derive(Debug, Default)]
struct DeliveryTimes {
    read: Option<Timestamp>,
    shown: Option<Timestamp>,
}

impl LogFormatter {
    /// Creates a formatter that prints times in this zone and omits what agents say and do.
    pub fn new(zone: TimeZone) -> Self {
        let (messages, tasks) = (HashMap::new(), HashMap::new());
        let deleted = DeletedWithTeam::default();
        let actor_width = ACTOR_WIDTH;
        let (shows_work, shows_all_text, day, last) = (false, false, None, None);
        Self { zone, shows_work, shows_all_text, day, last, messages, tasks, deleted, actor_width }
    }

    /// Creates a formatter that prints times in this zone and includes what agents say and do.
    pub fn with_work(zone: TimeZone) -> Self {
        Self { shows_work: true, ..Self::new(zone) }
    }

    /// Returns the formatter, which prints texts in full instead of cutting them to the width of the terminal.
    #[must_use]
    pub fn with_all_text(self) -> Self {
        Self { shows_all_text: true, ..self }
    }

    /// Reads a record that is not shown. The lines of later records depend on it.
    pub fn skip(&mut self, record: &Record) {
        match &record.event {
            Event::Sent { to, key, message, .. } | Event::Seen { to, key, message } => {
                self.messages.insert((to.clone(), *key), sender_and_text(message));
            }
            Event::Task { id, task } => {
                self.tasks.insert(*id, task.get().to_owned());
                self.deleted.tasks.remove(id);
            }
            Event::TaskDeleted { .. } | Event::TeamDeleted {} => drop(self.describe(record)),
            _ => {}
        }
    }

    /// Formats a whole history. The line of a message includes the times at which it was read and shown.
    pub fn format_history<R: Borrow<Record>>(
        &mut self,
        records: &[R],
        width: Option<usize>,
    ) -> String {
        self.format_each(records.iter().map(|record| (record.borrow(), true)), width)
    }

    /// Like [`LogFormatter::format_history`], but formats only the records that are marked with true.
    pub fn format_selected<R: Borrow<Record>>(
        &mut self,
        records: &[(R, bool)],
        width: Option<usize>,
    ) -> String {
        self.format_each(
            records.iter().map(|(record, selected)| (record.borrow(), *selected)),
            width,
        )
    }

    fn format_each<'r>(
        &mut self,
        records: impl Iterator<Item = (&'r Record, bool)> + Clone,
        width: Option<usize>,
    ) -> String {
        let mut deliveries: HashMap<InboxMessage, DeliveryTimes> = HashMap::new();
        let (mut present, mut deleted) = (HashSet::new(), HashSet::new());
        for (record, _) in records.clone() {
            match &record.event {
                Event::Sent { to, key, .. } | Event::Seen { to, key, .. } => {
                    present.insert((to.as_str(), *key));
                }
                Event::TeamDeleted {} => deleted.extend(present.drain()),
                Event::Read { to, key, .. } if deleted.contains(&(to.as_str(), *key)) => {}
                Event::Read { to, key, .. } => {
                    let times = deliveries.entry((to.clone(), *key)).or_default();
                    times.read.get_or_insert(record.at);
                }
                Event::Shown { to, key } => {
                    let times = deliveries.entry((to.clone(), *key)).or_default();
                    times.shown.get_or_insert(record.at);
                }
                _ => {}
            }
        }
        let mut entries = Vec::new();
        for (record, is_selected) in records {
            let state = match &record.event {
                Event::Read { .. } | Event::Shown { .. } => continue,
                _ if !is_selected => {
                    self.skip(record);
                    continue;
                }
                Event::Sent { to, key, .. } | Event::Seen { to, key, .. } => {
                    let times = deliveries.remove(&(to.clone(), *key)).unwrap_or_default();
                    state(&times, &self.zone)
                }
                _ => String::new(),
            };
            entries.extend(self.entry(record, state));
        }
        for entry in &entries {
            self.widen(entry, width);
        }
        entries.into_iter().map(|entry| self.render(entry, width)).collect()
    }

    /// Formats one new record.
    pub fn format_record(&mut self, record: &Record, width: Option<usize>) -> String {
        let state = match &record.event {
            Event::Sent { .. } | Event::Seen { .. } => state(&DeliveryTimes::default(), &self.zone),
            _ => String::new(),
        };
        let Some(entry) = self.entry(record, state) else { return String::new() };
        self.widen(&entry, width);
        self.render(entry, width)
    }

    /// Returns the entry of a record; `None` for records that are not shown.
    fn entry(&mut self, record: &Record, state: String) -> Option<LogEntry> {
        let (who, what) = self.describe(record)?;
        Some(LogEntry { at: record.at, who: one_line(&who), what, state })
    }

    /// Makes the actor column wide enough for an entry, but at most a third of the terminal wide.
    fn widen(&mut self, entry: &LogEntry, width: Option<usize>) {
        let limit = width.map_or(usize::MAX, |width| width / 3).max(ACTOR_WIDTH);
        self.actor_width = self.actor_width.max(entry.who.width().min(limit));
    }

    /// Formats an entry. A line with the date precedes the first entry of each day.
    fn render(&mut self, entry: LogEntry, width: Option<usize>) -> String {
        let LogEntry { at, who, what, state } = entry;
        let date = at.to_zoned(self.zone.clone()).date();
        let mut text = String::new();
        if let Some(back) = self.last.map(|last| last.duration_since(at))
            && back >= CLOCK_TOLERANCE
        {
            let back = duration(back);
            let _infallible =
                writeln!(text, "{FAINT}-- the clock was set back by {back} --{FAINT:#}");
        }
        self.last = Some(at);
        if self.day != Some(date) {
            self.day = Some(date);
            let _infallible = writeln!(text, "{STRONG}{date}{STRONG:#}");
        }
        let time = time(at, &self.zone);
        let column = time.width() + who.width().max(self.actor_width) + 4;
        let state = width
            .map_or(state.as_str(), |width| shortened_state(&state, width.saturating_sub(column)));
        let room =
            |taken: usize| width.map(|width| width.saturating_sub(taken).max(MIN_TEXT_WIDTH));
        let room_beside_state = room(column + state.width() + 2);
        let later = later_column(column, width);
        let (first, others) = match self.shows_all_text {
            true => lines_of(&what, room_beside_state, room(later)),
            false => {
                (first_line(&what, room_beside_state.unwrap_or(DEFAULT_TEXT_WIDTH)), Vec::new())
            }
        };
        let gap = self.actor_width.saturating_sub(who.width());
        let _infallible = write!(text, "{FAINT}{time}{FAINT:#}  {who}{:gap$}  {first}", "");
        if !state.is_empty() {
            let _infallible = write!(text, "  {FAINT}{state}{FAINT:#}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        for line in others {
            let line = format!("{:later$}{line}", "");
            let _infallible = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// Returns the actor and the event's text; `None` for events that are not shown.
    fn describe(&mut self, record: &Record) -> Option<(String, String)> {
        let by = record.by.clone();
        let actor = || by.clone().unwrap_or_else(|| "Claude Code".to_owned());
        Some(match &record.event {
            Event::Sent { to, key, message, .. } | Event::Seen { to, key, message } => {
                let (from, text) = sender_and_text(message);
                let who = format!("{from} → {to}");
                let full = self.shows_all_text.then(|| full_text(message)).flatten();
                let what = full.unwrap_or_else(|| text.clone());
                self.messages.insert((to.clone(), *key), (from, text));
                (who, what)
            }
            Event::Read { to, key, .. } if self.deleted.messages.contains(&(to.clone(), *key)) => {
                return None;
            }
            Event::Read { to, key, .. } => (to.clone(), format!("read {}", self.message(to, *key))),
            Event::Shown { to, key } => {
                (to.clone(), format!("was shown {}", self.message(to, *key)))
            }
            Event::Answered { request_id, kind, to, yes, reason, hand } => {
                (actor(), answered(kind, to, request_id, (*yes, reason.as_deref()), hand))
            }
            Event::Salvaged { to, copy, kept } => {
                let what =
                    format!("inbox was damaged; saved {kept} messages, damaged file: {copy}");
                (to.clone(), what)
            }
            Event::Task { id, task } => (actor(), self.task(*id, task)?),
            Event::TaskDeleted { id } if self.deleted.tasks.remove(id) => return None,
            Event::TaskDeleted { id } => {
                self.tasks.remove(id);
                (actor(), format!("task {id} deleted"))
            }
            Event::TeamCreated { .. } => (actor(), "team created".into()),
            Event::TeamDeleted {} => {
                self.deleted.messages.extend(self.messages.drain().map(|(message, _)| message));
                self.deleted.tasks.extend(self.tasks.drain().map(|(id, _)| id));
                (actor(), "team deleted".into())
            }
            Event::Member { name, joined: true, .. } => (name.clone(), "joined".into()),
            Event::Member { name, member, joined: false } => (name.clone(), changed(member)),
            Event::MemberLeft { name } => (name.clone(), "left".into()),
            Event::TakenOver { name, program, session, ended } => {
                (name.clone(), taken_over(program, session.as_deref(), *ended))
            }
            Event::Worked { .. } if !self.shows_work => return None,
            Event::Worked { name, act } => (name.clone(), worked(act)?),
            _ => return None,
        })
    }

    fn message(&self, to: &str, key: MessageKey) -> String {
        match self.messages.get(&(to.to_owned(), key)) {
            Some((from, text)) => format!("{from}'s message: {text}"),
            None => "a message".into(),
        }
    }

    /// Describes how a task changed. Returns `None` if only its `blocks` list changed, because the blocked task's
    /// own record shows that change.
    fn task(&mut self, id: u64, task: &RawValue) -> Option<String> {
        let before = self.tasks.insert(id, task.get().to_owned());
        self.deleted.tasks.remove(&id);
        let Ok(now) = Task::read(task.get().as_bytes()) else { return Some(format!("task {id}")) };
        let subject = now.subject().unwrap_or_default();
        let after = now.blocked_by().unwrap_or_default().join(", ");
        let before = before.as_ref().and_then(|before| Task::read(before.as_bytes()).ok());
        let Some(before) = before else {
            let after = if after.is_empty() { after } else { format!(", after {after}") };
            return Some(format!("task {id} added{after}: {subject}"));
        };
        let mut changes = Vec::new();
        if before.status() != now.status() {
            let word = now.status().map_or("unknown", |status| status.as_str());
            changes.push(word.replace('_', " "));
        }
        if before.owner() != now.owner() {
            let owner = now.owner().filter(|owner| !owner.is_empty());
            changes.push(owner.map_or("no owner".into(), |owner| format!("owner {owner}")));
        }
        if before.subject() != now.subject() {
            changes.push("renamed".into());
        }
        if before.description() != now.description() {
            changes.push("description changed".into());
        }
        if before.blocked_by() != now.blocked_by() {
            changes.push(format!("after {after}"));
        }
        if changes.is_empty() && before.blocks() != now.blocks() {
            return None;
        }
        let changes = if changes.is_empty() { "changed".to_owned() } else { changes.join(", ") };
        Some(format!("task {id} {changes}: {subject}"))
    }
}

/// The least width of the actor column, enough for `alice → team-lead`.
const ACTOR_WIDTH: usize = 18;

/// Returns the first line of a text, and its other lines. Lines that are wider than their room are wrapped.
fn lines_of(text: &str, first_room: Option<usize>, room: Option<usize>) -> (String, Vec<String>) {
    let text = text.trim_end();
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty()).enumerate().flat_map(
        |(index, line)| {
            let line = plain(line);
            let room = if index == 0 { first_room } else { room };
            let parts = room.map_or_else(|| vec![line.as_str()], |room| wrap(&line, room));
            parts.into_iter().map(str::to_owned).collect::<Vec<_>>()
        },
    );
    (lines.next().unwrap_or_default(), lines.collect())
}

fn time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// Formats a span of time in its largest whole unit.
fn duration(span: SignedDuration) -> String {
    match (span.as_hours(), span.as_mins()) {
        (48.., _) => format!("{} days", span.as_hours() / 24),
        (2.., _) => format!("{} hours", span.as_hours()),
        (_, minutes) => format!("{minutes} min"),
    }
}

/// Formats the times at which a message was read and shown, or `unread`.
fn state(times: &DeliveryTimes, zone: &TimeZone) -> String {
    match (times.read, times.shown) {
        (None, None) => "· unread".into(),
        (Some(read), None) => format!("· read {}", time(read, zone)),
        (None, Some(shown)) => format!("· shown {}", time(shown, zone)),
        (Some(read), Some(shown)) => {
            format!("· read {} · shown {}", time(read, zone), time(shown, zone))
        }
    }
}

/// Describes the answer to a request, and who gave the answer: a person or an agent.
pub fn answered(
    kind: &str,
    to: &str,
    id: &str,
    (yes, reason): (bool, Option<&str>),
    hand: &str,
) -> String {
    if hand == WITHDRAWN {
        return format!("withdrew its {kind} request [{id}]");
    }
    let verb = if yes { "approved" } else { "denied" };
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{verb} {to}'s {kind} request (by {hand}){reason} [{id}]")
}

/// Describes that a person took over a session, or that this has ended.
pub fn taken_over(program: &str, session: Option<&str>, ended: bool) -> String {
    let session = session.map(|session| format!(" [{session}]")).unwrap_or_default();
    match ended {
        false => format!("a person took over its session in {program}{session}"),
        true => format!("{program} has ended; the member continues its session{session}"),
    }
}

/// Returns whether an action of a member's agent is shown.
pub(crate) fn has_text(act: &WorkEvent) -> bool {
    worked(act).is_some()
}

/// Describes an action of a member's agent. Returns `None` for actions that are not shown.
fn worked(act: &WorkEvent) -> Option<String> {
    Some(match act {
        WorkEvent::Started {} => "started its agent".into(),
        WorkEvent::Said { text } => format!("“{text}”"),
        WorkEvent::ToolStarted { tool, about, .. } => format!("{tool}: {about}"),
        WorkEvent::ToolEnded { ok: false, .. } => "the tool call failed".into(),
        WorkEvent::Changed { path, added, removed, .. } => {
            format!("changed {path} (+{added} -{removed})")
        }
        WorkEvent::Limited { why } => format!("rate-limited: {why}"),
        WorkEvent::TurnEnded { end: TurnOutcome::Done, .. } => "ended its turn".into(),
        WorkEvent::TurnEnded { end: TurnOutcome::Interrupted, .. } => "was interrupted".into(),
        WorkEvent::TurnEnded { end: TurnOutcome::Failed | TurnOutcome::Limited, why } => {
            format!("its turn failed: {}", why.as_deref().unwrap_or("no reason given"))
        }
        WorkEvent::Trouble { why } => without_escapes(why),
        _ => return None,
    })
}

/// Describes how a member's roster entry changed: usually the member became active or idle.
fn changed(member: &RawValue) -> String {
    let member: serde_json::Value = serde_json::from_str(member.get()).unwrap_or_default();
    match member.get("isActive").and_then(serde_json::Value::as_bool) {
        Some(true) => "is active".into(),
        Some(false) => "is idle".into(),
        None => "changed".into(),
    }
}
