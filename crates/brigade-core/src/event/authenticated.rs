//! Checks that the author of an event may cause it. Readers of a journal accept only checked events.
//!
//! There are three constructors, one for each way in which an event reaches a store: the store derives the event from
//! a document, a member records it, or it is in a file on this computer. For an event that a member records, the table
//! in [`rights`](crate::rights) decides.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use brigade_wire::inbox::with_message;
use brigade_wire::message::Message;
use brigade_wire::name::TeamName;
use serde::Serialize;
use thiserror::Error;

use super::{Event, MessageKey, UncheckedRecord};
use crate::rights::{EventKind, Recorder, grants};

/// Recorded in place of the decider if the asking member withdrew the request.
pub const WITHDRAWN: &str = "taken back";

/// A value whose author was checked. The methods of [`UncheckedRecord`] create one.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Authenticated<T>(T);

impl<T> Authenticated<T> {
    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Authenticated<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A record whose author was checked.
pub type Record = Authenticated<UncheckedRecord>;

/// An event that its author may not record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("{by} may not record the event \"{kind}\"")]
pub struct RefusedEvent {
    /// The member that recorded the event.
    pub by: String,
    /// The kind of the event.
    pub kind: EventKind,
}

/// The member that recorded an event, as far as the store knows it.
#[derive(Clone, Copy, Debug)]
pub struct EventAuthor<'a> {
    /// The member's name, which the store authenticated.
    pub name: &'a str,
    /// Whether the member leads the team.
    pub leads: bool,
    /// Whether the member may answer requests.
    pub answers: bool,
    /// The names of the team's members; `None` if the store does not know them.
    pub members: Option<&'a [String]>,
}

impl EventAuthor<'_> {
    /// Returns whether the team has a member with this name; `unknown` if the store does not know the members.
    fn has_member(&self, name: &str, unknown: bool) -> bool {
        self.members.map_or(unknown, |members| members.iter().any(|member| member == name))
    }
}

impl UncheckedRecord {
    /// Accepts a record from the member that recorded it, if the member may record such an event.
    pub fn from_member(self, author: EventAuthor<'_>) -> Result<Record, RefusedEvent> {
        self.event.check_author(author)?;
        Ok(Authenticated(self))
    }

    /// Accepts a record that the store derived from a document. The store lets only certain members change that
    /// document.
    pub fn from_document(self) -> Record {
        Authenticated(self)
    }

    /// Accepts a record from a file on this computer. Every process of the same user can write that file, so the
    /// author cannot be checked.
    pub fn from_local_file(self) -> Record {
        Authenticated(self)
    }
}

impl Event {
    /// Checks that a member may record the event itself.
    pub fn check_author(&self, author: EventAuthor<'_>) -> Result<(), RefusedEvent> {
        if may_record(author, self) {
            return Ok(());
        }
        Err(RefusedEvent { by: author.name.to_owned(), kind: self.kind() })
    }

    /// Returns the member that the event is addressed to: the owner of the inbox, the member that asked, or the member whose session
    /// was taken over. A store may let only this member, the author and the lead read the event.
    pub fn addressee(&self) -> Option<&str> {
        match self {
            Self::Answered { to, .. } => Some(to),
            Self::TakenOver { name, .. } => Some(name),
            event => event.mailbox(),
        }
    }

    /// Returns whether the event answers a plan or permission request, or repeats a message that grants something. Only
    /// a lead that may answer requests can record it. Any member answers a shutdown request.
    pub fn is_answer(&self) -> bool {
        match self {
            Self::Seen { message, .. } => {
                let granting = |message: Option<Message<'_>>| {
                    message.is_none_or(|message| grants(&message.text()))
                };
                with_message(message.get().as_bytes(), granting).unwrap_or(true)
            }
            Self::Answered { kind, hand, .. } => hand != WITHDRAWN && kind != "shutdown",
            _ => false,
        }
    }
}

fn may_record(author: EventAuthor<'_>, event: &Event) -> bool {
    let by = author.name;
    let may_answer = author.leads && author.answers;
    if !author.has_member(by, true) || (event.is_answer() && !may_answer) {
        return false;
    }
    match (event.kind().recorded_by(), event) {
        (Recorder::MemberItself, Event::Worked { name, .. } | Event::TakenOver { name, .. }) => {
            name == by
        }
        (Recorder::SenderOrOwner, Event::Seen { to, key, message }) => {
            let may_record = with_message(message.get().as_bytes(), |message| {
                message.is_some_and(|message| {
                    if message.msg_id().is_some_and(|id| MessageKey::from_id(&id) != *key) {
                        return false;
                    }
                    let from = message.from();
                    let is_foreign = !event.is_answer() && !author.has_member(&from, false);
                    from == by || (to == by && is_foreign)
                })
            });
            may_record.unwrap_or(false)
        }
        (Recorder::AskedOrAsker, Event::Answered { to, hand, .. }) => {
            (to == by) == (hand == WITHDRAWN)
        }
        _ => false,
    }
}

/// The refused events of a store, by team, author and kind. Logs the first of each.
#[derive(Debug, Default)]
pub struct RefusedEvents(Mutex<BTreeMap<(TeamName, RefusedEvent), BTreeSet<u64>>>);

/// Refused events of one author and kind beyond this number are not counted. They would only use memory.
const MAX_COUNTED: usize = 10_000;

impl RefusedEvents {
    /// Adds the refused event with this number in the store. An event that is added again is not counted again.
    pub fn add(&self, team: &TeamName, refused: &RefusedEvent, number: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = all.entry((team.clone(), refused.clone())).or_default();
        if numbers.is_empty() {
            tracing::warn!(%team, by = refused.by, kind = %refused.kind, "ignored an event: its author may not record it");
        }
        if numbers.len() < MAX_COUNTED {
            numbers.insert(number);
        }
    }

    /// Returns the refused events of a team and how often each occurred.
    pub fn counts(&self, team: &TeamName) -> Vec<(RefusedEvent, usize)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_team = all.iter().filter(|((of, _), _)| of == team);
        of_team.map(|((_, refused), numbers)| (refused.clone(), numbers.len())).collect()
    }
}
