//! The change that a brigade process is about to make.
//!
//! A process changes a document first and records the change in the journal afterwards. If the process dies in
//! between, or the disk is full, another process finds the difference and records it. The intent tells that process
//! who made the change. Without it, the change would look like one of another program.
//!
//! The file has one line for each document whose change is not recorded yet, and ends with an empty line. A process
//! that changes another document keeps the lines of dead processes, until their changes are recorded.

use std::sync::atomic::Ordering;

use rustix::io::{pread, pwrite};
use serde::{Deserialize, Serialize};

use super::TeamStateDir;
use crate::dir::io_error;
use crate::layout::INTENT;
use crate::revision::revision;
use brigade_core::event::{Event, Record};
use brigade_core::store::{Actor, StoreError};

/// Maximum size in bytes of the file. The oldest intents are dropped first.
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
        let mut intents = self.other_intents(document);
        intents.push(Intent { by: by.0.clone(), document, revision: revision_of(bytes) });
        self.write_intents(&intents)
    }

    /// Removes the intent to change a document, after the change was recorded and the new state saved. `end` is the end of
    /// the journal after the change was recorded; `None` if another process had recorded it.
    pub(super) fn settle(
        &self,
        document: IntendedDocument,
        end: Option<u64>,
    ) -> Result<(), StoreError> {
        if let Some(end) = end {
            self.recorded_upto.store(end, Ordering::Relaxed);
        }
        self.write_intents(&self.other_intents(document))
    }

    fn write_intents(&self, intents: &[Intent]) -> Result<(), StoreError> {
        let Some(file) = &self.intent_file else { return Ok(()) };
        let mut text = vec![b'\n'];
        for intent in intents.iter().rev() {
            // An intent is plain data, so serialization cannot fail.
            let mut line = serde_json::to_vec(intent).unwrap_or_default();
            line.push(b'\n');
            if line.len() + text.len() <= MAX_LEN {
                text.splice(0..0, line);
            }
        }
        let written = pwrite(file, &text, 0);
        written.map(drop).map_err(|error| io_error("write", self.dir.path(INTENT), error))
    }

    /// Returns the stored intents, oldest first.
    fn intents(&self) -> Vec<Intent> {
        let Some(file) = &self.intent_file else { return Vec::new() };
        let mut text = [0; MAX_LEN];
        let read = pread(file, &mut text, 0).unwrap_or_default();
        let lines = text.get(..read).unwrap_or_default().split(|&byte| byte == b'\n');
        // The bytes after the empty line are the rest of an earlier, longer text.
        let lines = lines.take_while(|line| !line.is_empty());
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    fn other_intents(&self, document: IntendedDocument) -> Vec<Intent> {
        let mut intents = self.intents();
        intents.retain(|intent| intent.document != document);
        intents
    }

    /// Returns the brigade member that made this change and did not record it, if there is one.
    pub(super) fn intended_by(
        &self,
        document: IntendedDocument,
        bytes: Option<&[u8]>,
    ) -> Option<Actor> {
        let is_it = |it: &Intent| it.document == document && it.revision == revision_of(bytes);
        self.intents().into_iter().find(is_it).map(|intent| Actor(intent.by))
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
