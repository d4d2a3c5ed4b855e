//! Converts stored messages into history records. There is no separate journal: the streams are the journal.

use brigade_core::event::{Event, Record, one_line, roster_events};

use crate::board;
use crate::mail_message::MailMessage;
use crate::marks::MailboxMarks;
use crate::read::StoredMessage;
use crate::roster::Roster;
use crate::write::{DELETED, OP};

/// Converts messages to records, in order. Keeps the current roster, because the stream stores each new version
/// of the roster, while the history shows what changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordDecoder {
    roster: Roster,
}

impl RecordDecoder {
    /// Creates a decoder that starts from a known roster.
    pub(crate) fn with_roster(roster: Roster) -> Self {
        Self { roster }
    }

    /// Converts one message to history records.
    pub(crate) fn decode(&mut self, stored: &StoredMessage) -> Vec<Record> {
        let tokens = stored.tokens();
        let record =
            |by: Option<&str>, event| Record { at: stored.at, by: by.map(str::to_owned), event };
        match stored.subject.split('.').next() {
            Some("mb") => {
                let Some(mail) = MailMessage::read(stored) else { return Vec::new() };
                let event = Event::Sent {
                    to: mail.to,
                    key: mail.key,
                    team_created: mail.created,
                    power_safe: false,
                    message: one_line(mail.json.as_bytes()),
                };
                vec![record(Some(&mail.from), event)]
            }
            Some("mk") => {
                let Ok(marks) = serde_json::from_slice::<MailboxMarks>(&stored.payload) else {
                    return Vec::new();
                };
                let to = tokens.first().copied().unwrap_or_default().to_owned();
                let mut records = Vec::new();
                for change in marks.changes {
                    let (key, to) = (change.key, to.clone());
                    if change.read {
                        let read = Event::Read { to: to.clone(), key, gone: false };
                        records.push(record(None, read));
                    }
                    if change.shown {
                        records.push(record(None, Event::Shown { to, key }));
                    }
                }
                records
            }
            Some(kind @ ("ev" | "wk")) => {
                let by = tokens.first().copied();
                let Ok(event) = serde_json::from_slice(&stored.payload) else { return Vec::new() };
                let is_valid = match &event {
                    // A member can only record its own work.
                    Event::Worked { name, .. } => kind == "wk" && by == Some(name),
                    _ => kind == "ev",
                };
                if is_valid { vec![record(by, event)] } else { Vec::new() }
            }
            Some("bd") => {
                let Some(id) = board::task_id(stored) else { return Vec::new() };
                let event = match stored.header(OP) {
                    Some(DELETED) => Event::TaskDeleted { id: id.get() },
                    _ => Event::Task { id: id.get(), task: one_line(&stored.payload) },
                };
                vec![record(tokens.get(1).copied(), event)]
            }
            Some("tm") => {
                if stored.seq <= self.roster.seq() {
                    return Vec::new();
                }
                let before = self.roster.document();
                self.roster.apply(stored);
                let events = match (before, self.roster.document()) {
                    (None, None) => Vec::new(),
                    (None, Some(is)) => vec![Event::TeamCreated { team: one_line(&is.bytes) }],
                    (Some(_), None) => vec![Event::TeamDeleted {}],
                    (Some(was), Some(is)) => roster_events(&was.bytes, &is.bytes),
                };
                let by = tokens.last().copied();
                events.into_iter().map(|event| record(by, event)).collect()
            }
            _ => Vec::new(),
        }
    }
}
