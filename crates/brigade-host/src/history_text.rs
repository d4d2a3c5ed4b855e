//! The history of a team as people read it.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use brigade_core::event::{Act, Ending, Event, MessageKey, Record};
use brigade_core::handshake::TAKEN_BACK;
use brigade_core::mail::with_message;
use brigade_wire::body::Body;
use brigade_wire::task::Task;
use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr;

use anstyle::Style;
use brigade_core::text::{cut, one_line};
use jiff::tz::TimeZone;

/// The day, which begins a group of lines.
const STRONG: Style = Style::new().bold();
/// The time, and what became of a message.
const FAINT: Style = Style::new().dimmed();

/// How much of a text is shown where nobody's terminal sets a limit.
const WORDS: usize = 72;

/// Which message of which inbox.
type Place = (String, MessageKey);

/// A story being told: what was said so far decides how the next thing is put.
#[derive(Debug)]
pub struct Story {
    zone: TimeZone,
    /// Whether it tells what members do at their work.
    tells_work: bool,
    day: Option<Date>,
    /// From whom each message is, and what it says.
    messages: HashMap<Place, (String, String)>,
    /// Each task as it was last seen.
    tasks: HashMap<u64, String>,
    gone: Gone,
}

/// What went with a team that was deleted. In the next one of its name it is not there, which is nobody's deed.
#[derive(Debug, Default)]
struct Gone {
    messages: HashSet<Place>,
    tasks: HashSet<u64>,
}

/// When a message was read, and when its reader's model saw it.
#[derive(Debug, Default)]
struct Fate {
    read: Option<Timestamp>,
    shown: Option<Timestamp>,
}

impl Story {
    /// A story with the times of this zone.
    pub fn new(zone: TimeZone) -> Self {
        let (messages, tasks) = (HashMap::new(), HashMap::new());
        Self { zone, tells_work: false, day: None, messages, tasks, gone: Gone::default() }
    }

    /// A story that tells what members do at their work, too.
    pub fn with_work(zone: TimeZone) -> Self {
        Self { tells_work: true, ..Self::new(zone) }
    }

    /// The past: what became of a message stands in the message's own line.
    pub fn tell<R: Borrow<Record>>(&mut self, records: &[R], width: Option<usize>) -> String {
        let mut fates: HashMap<Place, Fate> = HashMap::new();
        let (mut there, mut gone) = (HashSet::new(), HashSet::new());
        for record in records.iter().map(R::borrow) {
            match &record.event {
                Event::Sent { to, key, .. } | Event::Seen { to, key, .. } => {
                    there.insert((to.as_str(), *key));
                }
                Event::TeamDeleted {} => gone.extend(there.drain()),
                Event::Read { to, key, .. } if gone.contains(&(to.as_str(), *key)) => {}
                Event::Read { to, key, .. } => {
                    let fate = fates.entry((to.clone(), *key)).or_default();
                    fate.read.get_or_insert(record.at);
                }
                Event::Shown { to, key } => {
                    let fate = fates.entry((to.clone(), *key)).or_default();
                    fate.shown.get_or_insert(record.at);
                }
                _ => {}
            }
        }
        let mut text = String::new();
        for record in records.iter().map(R::borrow) {
            match &record.event {
                Event::Read { .. } | Event::Shown { .. } => {}
                Event::Sent { to, key, .. } | Event::Seen { to, key, .. } => {
                    let fate = fates.remove(&(to.clone(), *key)).unwrap_or_default();
                    text.push_str(&self.line(record, &state(&fate, &self.zone), width));
                }
                _ => text.push_str(&self.line(record, "", width)),
            }
        }
        text
    }

    /// One more thing that happened.
    pub fn go_on(&mut self, record: &Record, width: Option<usize>) -> String {
        let state = match &record.event {
            Event::Sent { .. } | Event::Seen { .. } => state(&Fate::default(), &self.zone),
            _ => String::new(),
        };
        self.line(record, &state, width)
    }

    /// A record as a line, below the day's own if a new one has begun.
    fn line(&mut self, record: &Record, state: &str, width: Option<usize>) -> String {
        let at = record.at.to_zoned(self.zone.clone());
        let Some((who, what)) = self.what(record) else { return String::new() };
        let mut text = String::new();
        if self.day != Some(at.date()) {
            self.day = Some(at.date());
            let _infallible = writeln!(text, "{STRONG}{}{STRONG:#}", at.date());
        }
        let who = one_line(&who);
        let what = one_line(&what);
        let time = time(record.at, &self.zone);
        let taken = time.width() + who.width().max(WHO) + state.width() + 6;
        let room = width.map_or(WORDS, |width| width.saturating_sub(taken)).max(12);
        let what = cut(&what, room);
        let gap = WHO.saturating_sub(who.width());
        let _infallible = write!(text, "{FAINT}{time}{FAINT:#}  {who}{:gap$}  {what}", "");
        if !state.is_empty() {
            let _infallible = write!(text, "  {FAINT}{state}{FAINT:#}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }

    /// Who, and what; `None` for what goes without saying.
    fn what(&mut self, record: &Record) -> Option<(String, String)> {
        let by = record.by.clone();
        let somebody = || by.clone().unwrap_or_else(|| "(native)".to_owned());
        Some(match &record.event {
            Event::Sent { to, key, message, .. } | Event::Seen { to, key, message } => {
                let (from, words) = words(message);
                self.messages.insert((to.clone(), *key), (from.clone(), words.clone()));
                (format!("{from} → {to}"), words)
            }
            Event::Read { to, key, .. } if self.gone.messages.contains(&(to.clone(), *key)) => {
                return None;
            }
            Event::Read { to, key, .. } => (to.clone(), format!("read {}", self.message(to, *key))),
            Event::Shown { to, key } => {
                (to.clone(), format!("was shown {}", self.message(to, *key)))
            }
            Event::Answered { request_id, kind, to, yes, reason, hand } => {
                (somebody(), answered(kind, to, request_id, (*yes, reason.as_deref()), hand))
            }
            Event::Salvaged { to, copy, kept } => {
                let what = format!("inbox was damaged; kept {kept} messages, a copy is in {copy}");
                (to.clone(), what)
            }
            Event::Task { id, task } => (somebody(), self.task(*id, task)?),
            Event::TaskDeleted { id } if self.gone.tasks.remove(id) => return None,
            Event::TaskDeleted { id } => {
                self.tasks.remove(id);
                (somebody(), format!("task {id} deleted"))
            }
            Event::TeamCreated { .. } => (somebody(), "team created".into()),
            Event::TeamDeleted {} => {
                self.gone.messages.extend(self.messages.drain().map(|(place, _)| place));
                self.gone.tasks.extend(self.tasks.drain().map(|(id, _)| id));
                (somebody(), "team deleted".into())
            }
            Event::Member { name, joined: true, .. } => (name.clone(), "joined".into()),
            Event::Member { name, member, joined: false } => (name.clone(), changed(member)),
            Event::MemberLeft { name } => (name.clone(), "left".into()),
            Event::Worked { .. } if !self.tells_work => return None,
            Event::Worked { name, act } => (name.clone(), worked(act)?),
            _ => return None,
        })
    }

    fn message(&self, to: &str, key: MessageKey) -> String {
        match self.messages.get(&(to.to_owned(), key)) {
            Some((from, words)) => format!("{from}'s: {words}"),
            None => "a message".into(),
        }
    }

    /// What is new in a task; `None` if only that others wait for it, which they said themselves.
    fn task(&mut self, id: u64, task: &RawValue) -> Option<String> {
        let before = self.tasks.insert(id, task.get().to_owned());
        self.gone.tasks.remove(&id);
        let Ok(now) = Task::read(task.get().as_bytes()) else { return Some(format!("task {id}")) };
        let subject = now.subject().unwrap_or_default();
        let after = now.blocked_by().unwrap_or_default().join(", ");
        let before = before.as_ref().and_then(|before| Task::read(before.as_bytes()).ok());
        let Some(before) = before else {
            let after = if after.is_empty() { after } else { format!(", after {after}") };
            return Some(format!("task {id} added{after}: {subject}"));
        };
        let mut news = Vec::new();
        if before.status() != now.status() {
            let word = now.status().map_or("unknown", |status| status.as_str());
            news.push(word.replace('_', " "));
        }
        if before.owner() != now.owner() {
            let owner = now.owner().filter(|owner| !owner.is_empty());
            news.push(owner.map_or("no owner".into(), |owner| format!("owner {owner}")));
        }
        if before.subject() != now.subject() {
            news.push("renamed".into());
        }
        if before.description() != now.description() {
            news.push("described anew".into());
        }
        if before.blocked_by() != now.blocked_by() {
            news.push(format!("after {after}"));
        }
        if news.is_empty() && before.blocks() != now.blocks() {
            return None;
        }
        let news = if news.is_empty() { "changed".to_owned() } else { news.join(", ") };
        Some(format!("task {id} {news}: {subject}"))
    }
}

/// The usual width of `alice → team-lead`.
const WHO: usize = 18;

fn time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// The states a message went through, each with its time; that it was written is its own line's.
fn state(fate: &Fate, zone: &TimeZone) -> String {
    match (fate.read, fate.shown) {
        (None, None) => "· written".into(),
        (Some(read), None) => format!("· read {}", time(read, zone)),
        (None, Some(shown)) => format!("· shown {}", time(shown, zone)),
        (Some(read), Some(shown)) => {
            format!("· read {} · shown {}", time(read, zone), time(shown, zone))
        }
    }
}

/// Whom a message is from, and its first words.
fn words(message: &RawValue) -> (String, String) {
    let read = with_message(message.get().as_bytes(), |message| {
        let message = message?;
        let kind = match message.body() {
            Body::Text => None,
            Body::Protocol(protocol) => Some(protocol.kind().to_owned()),
            Body::Unknown { kind } | Body::Malformed { kind, .. } => Some(kind),
        };
        let said = || message.summary().unwrap_or_else(|| message.text()).into_owned();
        Some((message.from().into_owned(), kind.map_or_else(said, |kind| format!("[{kind}]"))))
    });
    read.ok().flatten().unwrap_or_else(|| ("(unknown)".into(), message.get().to_owned()))
}

/// That somebody answered a request, and by whose hand.
pub fn answered(
    kind: &str,
    to: &str,
    id: &str,
    (yes, reason): (bool, Option<&str>),
    hand: &str,
) -> String {
    if hand == TAKEN_BACK {
        return format!("no longer asks: {kind} [{id}]");
    }
    let word = if yes { "yes" } else { "no" };
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("said {word} to {to}'s {kind} (by {hand}){reason} [{id}]")
}

/// What is to be told of a member at work; `None` for what goes without saying.
fn worked(act: &Act) -> Option<String> {
    Some(match act {
        Act::Started {} => "started its agent".into(),
        Act::Said { text } => format!("“{text}”"),
        Act::ToolStarted { tool, about, .. } => format!("{tool}: {about}"),
        Act::ToolEnded { ok: false, .. } => "that failed".into(),
        Act::Changed { path, added, removed } => format!("changed {path} (+{added} -{removed})"),
        Act::Limited { why } => format!("rate-limited: {why}"),
        Act::TurnEnded { end: Ending::Done, .. } => "ended its turn".into(),
        Act::TurnEnded { end: Ending::Interrupted, .. } => "was interrupted".into(),
        Act::TurnEnded { end: Ending::Failed | Ending::Limited, why } => {
            format!("its turn failed: {}", why.as_deref().unwrap_or("it did not say why"))
        }
        Act::Trouble { why } => why.clone(),
        _ => return None,
    })
}

/// What is to be told of a member that changed: mostly, that it works or waits.
fn changed(member: &RawValue) -> String {
    let member: serde_json::Value = serde_json::from_str(member.get()).unwrap_or_default();
    match member.get("isActive").and_then(serde_json::Value::as_bool) {
        Some(true) => "is active".into(),
        Some(false) => "is idle".into(),
        None => "changed".into(),
    }
}
