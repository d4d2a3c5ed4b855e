//! Converts stored messages into history records. There is no separate journal: the streams are the journal.

use std::sync::Arc;

use brigade_core::event::{Event, Record, RefusedEvents, UncheckedRecord, one_line, roster_events};

use crate::board;
use crate::mail_message::MailMessage;
use crate::marks::MailboxMarks;
use crate::read::StoredMessage;
use crate::roster::Roster;
use crate::write::{DELETED, OP};

/// Converts messages to records, in order. The stream stores new versions of the roster, but the history shows
/// what changed. To find the changes, the decoder keeps the current roster.
///
/// The server checks who writes to which subject. That is enough for every subject but `ev` and `wk`: there a member
/// writes the event itself, and the decoder drops an event that the member may not record.
#[derive(Debug, Default)]
pub(crate) struct RecordDecoder {
    roster: Roster,
    lead: Option<String>,
    refused: Arc<RefusedEvents>,
}

impl RecordDecoder {
    /// Creates a decoder that starts without a roster, for messages in order. Counts refused events in `refused`.
    pub(crate) fn for_history(messages: &[StoredMessage], refused: Arc<RefusedEvents>) -> Self {
        // The stream no longer has the first versions of an old roster. The lead is the same in all of them.
        let mut first = Roster::default();
        if let Some(stored) = messages.iter().find(|stored| Roster::is_full_document(stored)) {
            first.apply(stored);
        }
        Self { roster: Roster::default(), lead: first.lead(), refused }
    }

    /// Creates a decoder that starts from a known roster. Counts refused events in `refused`.
    pub(crate) fn with_roster(roster: Roster, refused: Arc<RefusedEvents>) -> Self {
        Self { lead: roster.lead(), roster, refused }
    }

    /// Converts one message to history records.
    pub(crate) fn decode(&mut self, stored: &StoredMessage) -> Vec<Record> {
        let tokens = stored.tokens();
        let record = |by: Option<&str>, event| UncheckedRecord {
            at: stored.at,
            by: by.map(str::to_owned),
            event,
        };
        let derived = |by, event| record(by, event).from_document();
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
                vec![derived(Some(&mail.from), event)]
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
                        records.push(derived(None, read));
                    }
                    if change.shown {
                        records.push(derived(None, Event::Shown { to, key }));
                    }
                }
                records
            }
            Some(kind @ ("ev" | "wk")) => {
                let Some(by) = tokens.first().copied() else { return Vec::new() };
                let Ok(event) = serde_json::from_slice(&stored.payload) else { return Vec::new() };
                if matches!(event, Event::Worked { .. }) != (kind == "wk") {
                    return Vec::new();
                }
                let leads = self.lead.as_deref() == Some(by);
                match record(Some(by), event).from_member(by, leads) {
                    Ok(record) => vec![record],
                    Err(refused) => {
                        self.refused.add(&refused, stored.seq);
                        Vec::new()
                    }
                }
            }
            Some("bd") => {
                let Some(id) = board::task_id(stored) else { return Vec::new() };
                let event = match stored.header(OP) {
                    Some(DELETED) => Event::TaskDeleted { id: id.get() },
                    _ => Event::Task { id: id.get(), task: one_line(&stored.payload) },
                };
                vec![derived(tokens.get(1).copied(), event)]
            }
            Some("tm") => {
                if stored.seq <= self.roster.seq() {
                    return Vec::new();
                }
                let before = self.roster.document();
                self.roster.apply(stored);
                self.lead = self.roster.lead().or_else(|| self.lead.take());
                let events = match (before, self.roster.document()) {
                    (None, None) => Vec::new(),
                    (None, Some(is)) => vec![Event::TeamCreated { team: one_line(&is.bytes) }],
                    (Some(_), None) => vec![Event::TeamDeleted {}],
                    (Some(was), Some(is)) => roster_events(&was.bytes, &is.bytes),
                };
                let by = tokens.last().copied();
                events.into_iter().map(|event| derived(by, event)).collect()
            }
            _ => Vec::new(),
        }
    }
}
