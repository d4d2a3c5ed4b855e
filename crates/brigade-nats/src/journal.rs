//! Converts stored messages into history records. There is no separate journal: the streams are the journal.

use std::sync::Arc;

use brigade_core::event::{
    Event, EventAuthor, Record, RefusedEvent, RefusedEvents, UncheckedRecord, one_line,
    roster_events,
};
use brigade_wire::name::TeamName;

use crate::board;
use crate::layout::MessageClass;
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
#[derive(Debug)]
pub(crate) struct RecordDecoder {
    team: TeamName,
    roster: Roster,
    lead: Option<String>,
    /// The names on the roster; `None` before the first roster.
    members: Option<Vec<String>>,
    refused: Arc<RefusedEvents>,
}

impl RecordDecoder {
    /// Creates a decoder that starts without a roster, for messages in order. Counts refused events in `refused`.
    pub(crate) fn for_history(
        team: &TeamName,
        messages: &[StoredMessage],
        refused: Arc<RefusedEvents>,
    ) -> Self {
        // The stream no longer has the first versions of an old roster. The lead is the same in all of them.
        let mut first = Roster::default();
        if let Some(stored) = messages.iter().find(|stored| Roster::is_full_document(stored)) {
            first.apply(stored);
        }
        let (team, lead) = (team.clone(), first.lead());
        Self { team, roster: Roster::default(), lead, members: None, refused }
    }

    /// Creates a decoder that starts from a known roster. Counts refused events in `refused`.
    pub(crate) fn with_roster(
        team: &TeamName,
        roster: Roster,
        refused: Arc<RefusedEvents>,
    ) -> Self {
        let (lead, members) = (roster.lead(), roster.members());
        Self { team: team.clone(), roster, lead, members, refused }
    }

    /// Converts a mail message that was read already.
    pub(crate) fn sent(stored: &StoredMessage, mail: MailMessage) -> Record {
        let event = Event::Sent {
            to: mail.to,
            key: mail.key,
            team_created: mail.created,
            power_safe: false,
            message: one_line(mail.json.as_bytes()),
        };
        UncheckedRecord { at: stored.at, by: Some(mail.from), event }.from_document()
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
                let mail = MailMessage::read(stored);
                mail.map(|mail| Self::sent(stored, mail)).into_iter().collect()
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
                let Ok(event) = serde_json::from_slice::<Event>(&stored.payload) else {
                    return Vec::new();
                };
                let Some(subject) = EventSubject::parse(kind, &tokens) else { return Vec::new() };
                let author = EventAuthor {
                    name: subject.by,
                    leads: self.lead.as_deref() == Some(subject.by),
                    answers: subject.answers,
                    members: self.members.as_deref(),
                };
                let checked = if subject.fits(&event) {
                    record(Some(subject.by), event).from_member(author)
                } else {
                    Err(RefusedEvent { by: subject.by.to_owned(), kind: event.kind() })
                };
                match checked {
                    Ok(record) => vec![record],
                    Err(refused) => {
                        self.refused.add(&self.team, &refused, stored.seq);
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
                self.members = self.roster.members();
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

/// The parts of the subject of an event. The server checked them.
struct EventSubject<'s> {
    /// The author.
    by: &'s str,
    /// The member that the event is addressed to; `None` for work, and for events by earlier versions of brigade.
    to: Option<&'s str>,
    /// Whether the author may answer requests.
    answers: bool,
    is_work: bool,
}

impl<'s> EventSubject<'s> {
    fn parse(kind: &str, tokens: &[&'s str]) -> Option<Self> {
        match (kind, tokens) {
            ("wk", [by]) => Some(Self { by, to: None, answers: false, is_work: true }),
            // Earlier versions of brigade gave every lead this right.
            ("ev", [by]) => Some(Self { by, to: None, answers: true, is_work: false }),
            ("ev", [to, by, class]) => {
                let answers = *class == MessageClass::Answer.token();
                Some(Self { by, to: Some(to), answers, is_work: false })
            }
            _ => None,
        }
    }

    /// Returns whether an event belongs on this subject.
    fn fits(&self, event: &Event) -> bool {
        matches!(event, Event::Worked { .. }) == self.is_work
            && self.to.is_none_or(|to| event.addressee() == Some(to))
    }
}
