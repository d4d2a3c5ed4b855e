//! The change that a brigade process is about to make.
//!
//! A process changes a document first and records the change in the journal afterwards. If the process dies in
//! between, or the disk is full, another process finds the difference and records it. The intent tells that process
//! who made the change. Without it, the change would look like one of another program.

use std::sync::atomic::Ordering;

use rustix::io::{pread, pwrite};
use serde::{Deserialize, Serialize};

use super::TeamStateDir;
use crate::dir::io_error;
use crate::layout::INTENT;
use crate::revision::revision;
use brigade_core::event::{Event, Record};
use brigade_core::store::{Actor, StoreError};

/// Longer intents are not stored.
const MAX_LEN: usize = 1024;
/// How many bytes of the journal are searched for a change that was recorded already. A process that died recorded
/// the change a moment before.
const SEARCHED: u64 = 64 << 10;

/// A document of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IntendedDocument {
    Roster,
    Task(u64),
}

#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    by: String,
    document: IntendedDocument,
    /// The revision of the document after the change; zero if the change deletes the document.
    revision: u64,
}

fn revision_of(bytes: Option<&[u8]>) -> u64 {
    bytes.map_or(0, |bytes| revision(bytes).0)
}

impl TeamStateDir {
    /// Stores the change that this process is about to make. `None` means that the document is to be deleted. The
    /// caller has locked the seen state.
    pub(super) fn intend(
        &self,
        by: &Actor,
        document: IntendedDocument,
        bytes: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let intent = Intent { by: by.0.clone(), document, revision: revision_of(bytes) };
        // An intent is plain data, so serialization cannot fail.
        let mut line = serde_json::to_vec(&intent).unwrap_or_default();
        line.push(b'\n');
        self.write_intent(if line.len() <= MAX_LEN { &line } else { b"\n" })
    }

    /// Removes the intent, after the change was recorded and the new state saved. `end` is the end of the journal after
    /// the change was recorded; `None` if another process had recorded it.
    pub(super) fn settle(&self, end: Option<u64>) -> Result<(), StoreError> {
        if let Some(end) = end {
            self.recorded_upto.store(end, Ordering::Relaxed);
        }
        self.write_intent(b"\n")
    }

    fn write_intent(&self, line: &[u8]) -> Result<(), StoreError> {
        let Some(file) = &self.intent_file else { return Ok(()) };
        let written = pwrite(file, line, 0);
        written.map(drop).map_err(|error| io_error("write", self.dir.path(INTENT), error))
    }

    /// Returns the brigade member that made this change and did not record it, if there is one.
    pub(super) fn intended_by(
        &self,
        document: IntendedDocument,
        bytes: Option<&[u8]>,
    ) -> Option<Actor> {
        let file = self.intent_file.as_ref()?;
        let mut line = [0; MAX_LEN];
        let read = pread(file, &mut line, 0).ok()?;
        let line = line.get(..read)?.split(|&byte| byte == b'\n').next()?;
        let intent: Intent = serde_json::from_slice(line).ok()?;
        let is_it = intent.document == document && intent.revision == revision_of(bytes);
        is_it.then_some(Actor(intent.by))
    }

    /// Returns whether the journal already contains these events as the last ones about their document.
    pub(super) fn has_recorded(
        &self,
        events: &[Event],
        is_about: impl Fn(&Event) -> bool,
    ) -> Result<bool, StoreError> {
        if self.journal.len()? == self.recorded_upto.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let records: Vec<Record> = self.journal.last_records(SEARCHED)?;
        let about: Vec<&Event> =
            records.iter().map(|record| &record.event).filter(|event| is_about(event)).collect();
        let json = |event: &Event| serde_json::to_string(event).ok();
        let last = about.len().checked_sub(events.len()).and_then(|start| about.get(start..));
        Ok(last.is_some_and(|last| {
            last.iter().zip(events).all(|(recorded, event)| json(recorded) == json(event))
        }))
    }
}
