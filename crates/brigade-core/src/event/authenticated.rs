//! Checks that the author of an event may cause it. Readers of a journal accept only checked events.
//!
//! There are three constructors, one for each way in which an event reaches a store: the store derives the event from
//! a document, a member records it, or it is in a file on this computer. For an event that a member records, the table
//! in [`rights`](crate::rights) decides.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use brigade_wire::inbox::with_message;
use serde::Serialize;
use thiserror::Error;

use super::{Event, UncheckedRecord};
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

impl UncheckedRecord {
    /// Accepts a record from the member that recorded it, if the member may record such an event. The store has
    /// authenticated the member; `leads` tells whether it leads the team.
    pub fn from_member(self, member: &str, leads: bool) -> Result<Record, RefusedEvent> {
        self.event.check_recorder(member, leads)?;
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
    /// Checks that a member may record the event itself. `leads` tells whether the member leads the team.
    pub fn check_recorder(&self, member: &str, leads: bool) -> Result<(), RefusedEvent> {
        if may_record(member, leads, self) {
            return Ok(());
        }
        Err(RefusedEvent { by: member.to_owned(), kind: self.kind() })
    }
}

fn may_record(by: &str, leads: bool, event: &Event) -> bool {
    match (event.kind().recorded_by(), event) {
        (Recorder::MemberItself, Event::Worked { name, .. }) => name == by,
        (Recorder::SenderOrOwner, Event::Seen { to, message, .. }) => {
            let may_record = with_message(message.get().as_bytes(), |message| {
                message.is_some_and(|message| {
                    message.from() == by || (to == by && !grants(&message.text()))
                })
            });
            may_record.unwrap_or(false)
        }
        (Recorder::AskedOrAsker, Event::Answered { kind, to, hand, .. }) => {
            match (hand.as_str(), kind.as_str()) {
                (WITHDRAWN, _) => to == by,
                // The lead answers plans and permission requests. Any member answers a shutdown request.
                (_, "shutdown") => to != by,
                _ => leads && to != by,
            }
        }
        _ => false,
    }
}

/// The refused events of a store, by author and kind. Logs the first of each.
#[derive(Debug, Default)]
pub struct RefusedEvents(Mutex<BTreeMap<RefusedEvent, BTreeSet<u64>>>);

/// Refused events of one author and kind beyond this number are not counted. They would only use memory.
const MAX_COUNTED: usize = 10_000;

impl RefusedEvents {
    /// Adds the refused event with this number in the store. An event that is added again is not counted again.
    pub fn add(&self, refused: &RefusedEvent, number: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = all.entry(refused.clone()).or_default();
        if numbers.is_empty() {
            tracing::warn!(by = refused.by, kind = %refused.kind, "ignored an event: its author may not record it");
        }
        if numbers.len() < MAX_COUNTED {
            numbers.insert(number);
        }
    }

    /// Returns the refused events and how often each occurred.
    pub fn counts(&self) -> Vec<(RefusedEvent, usize)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(refused, numbers)| (refused.clone(), numbers.len())).collect()
    }
}
