//! The team's `config.json`. The lead writes the whole document, and each member may replace its own entry. All
//! these writes are in one stream, so their order is defined.

use std::collections::BTreeMap;

use brigade_core::store::{Actor, Document, Revision, StoreError};
use brigade_wire::member_entry::MemberEntry;
use brigade_wire::team::Team;
use bytes::Bytes;

use crate::connection::NatsConnection;
use crate::layout::{Stream, Subjects};
use crate::read::{ReadRange, StoredMessage};
use crate::write::{
    DELETED, ELSEWHERE, EXPECTED_FILTER, EXPECTED_LAST, INCARNATION, LEFT, OP, PendingWrite,
};

const DOING: &str = "read the team";
/// The header with the sequence of the last entry that a document contains. Entries between that sequence and the
/// document are applied to the document.
const INCLUDES_UPTO: &str = "Brigade-Includes-Upto";

/// A roster that is built from messages. It keeps the state that is needed to apply the next message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster {
    /// Sequence of the last message that was applied.
    seq: u64,
    /// The lead's document and the incarnation; `None` if there is no team.
    base: Option<(Bytes, String)>,
    base_seq: u64,
    /// The document contains the members' entries up to this sequence.
    includes_upto: u64,
    /// The later entries that members wrote. `None` means that the member left.
    entries: BTreeMap<String, (u64, Option<Bytes>)>,
    /// The shard to which the team was assigned, if that is another shard than this one.
    elsewhere: Option<u16>,
}

impl Roster {
    /// Applies the next message to the roster.
    pub(crate) fn apply(&mut self, stored: &StoredMessage) {
        self.seq = self.seq.max(stored.seq);
        match stored.tokens().as_slice() {
            ["doc", "cfg", _] if stored.seq >= self.base_seq => {
                self.base_seq = stored.seq;
                self.elsewhere = None;
                self.base = match stored.header(OP) {
                    Some(DELETED) => None,
                    Some(ELSEWHERE) => {
                        self.elsewhere = shard_elsewhere(&stored.payload);
                        None
                    }
                    _ => {
                        let incarnation = stored.header(INCARNATION).unwrap_or_default().to_owned();
                        Some((stored.payload.clone(), incarnation))
                    }
                };
                self.includes_upto = includes_upto(stored).unwrap_or(stored.seq).min(stored.seq);
                self.entries.retain(|_, (seq, _)| *seq > self.includes_upto);
            }
            ["doc", "m", name] if stored.seq > self.includes_upto => {
                let entry = (stored.header(OP) != Some(LEFT)).then(|| stored.payload.clone());
                self.entries.insert((*name).to_owned(), (stored.seq, entry));
            }
            _ => {}
        }
    }

    /// Whether a message holds a whole document, written by a lead, that contains all earlier entries of members.
    pub(crate) fn is_full_document(stored: &StoredMessage) -> bool {
        matches!(stored.tokens().as_slice(), ["doc", "cfg", _]) && includes_upto(stored).is_none()
    }

    /// Returns the name of the team's lead; `None` if there is no team.
    pub(crate) fn lead(&self) -> Option<String> {
        let (base, _) = self.base.as_ref()?;
        let team = Team::read(base).ok()?;
        Some(team.lead()?.name()?.into_owned())
    }

    /// Returns the names of the members; `None` if there is no team.
    pub(crate) fn members(&self) -> Option<Vec<String>> {
        let document = self.document()?;
        Some(Team::read(&document.bytes).ok()?.member_names())
    }

    /// Returns the lead's document with the members' entries applied; `None` if there is no team.
    pub(crate) fn document(&self) -> Option<Document> {
        let (base, _) = self.base.as_ref()?;
        let mut bytes = base.to_vec();
        for (name, (_, entry)) in &self.entries {
            let Ok(team) = Team::read(&bytes) else { continue };
            let next = match entry {
                None => Some(team.without_member(name)),
                Some(entry) => {
                    own_changes(entry, name).and_then(|entry| team.with_own_changes(name, &entry))
                }
            };
            if let Some(next) = next {
                bytes = next.into_owned();
            }
        }
        Some(Document { bytes, revision: Revision(self.seq) })
    }

    /// Returns the team's incarnation; `None` if there is no team.
    pub(crate) fn incarnation(&self) -> Option<&str> {
        self.base.as_ref().map(|(_, incarnation)| incarnation.as_str())
    }

    /// Returns the sequence of the lead's document, or of its deletion; 0 if there was never a team.
    pub(crate) fn document_seq(&self) -> u64 {
        self.base_seq
    }

    /// Returns the shard to which the team was assigned, if that is another shard than the one that was read.
    pub(crate) fn elsewhere(&self) -> Option<u16> {
        self.elsewhere
    }

    /// Returns the sequence of the last message that was applied.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }
}

/// Returns the shard that a marker names.
fn shard_elsewhere(payload: &[u8]) -> Option<u16> {
    str::from_utf8(payload).ok()?.parse().ok()
}

/// Returns the changes that a member made to its own entry. Returns `None` if the entry is of another member.
fn own_changes(json: &[u8], name: &str) -> Option<MemberEntry> {
    MemberEntry::read(json).filter(|entry| entry.string("name") == Some(name))
}

/// Returns the sequence of the last entry that the author of a document had read, if others may have been written
/// before the document.
fn includes_upto(stored: &StoredMessage) -> Option<u64> {
    stored.header(INCLUDES_UPTO)?.parse().ok()
}

/// Whether the message was stored directly after `seq`, among all messages about the roster. The server has checked
/// that, if the author asked it to. An author can ask about its own subject only, or send a header twice.
fn is_directly_after(stored: &StoredMessage, filter: &str, seq: u64) -> bool {
    let is_only = |name: &str, value: &str| {
        let mut values = stored.headers.get_all(name);
        values.next().is_some_and(|first| first.as_str() == value) && values.next().is_none()
    };
    seq > 0 && is_only(EXPECTED_LAST, &seq.to_string()) && is_only(EXPECTED_FILTER, filter)
}

impl NatsConnection {
    /// Reads the current roster. Reuses the cached roster if possible.
    pub(crate) async fn roster(
        &self,
        subjects: &Subjects,
        cached: Roster,
    ) -> Result<Roster, StoreError> {
        let (stream, filter) = (subjects.stream(Stream::Team), subjects.roster());
        let Some(last) = self.last(&stream, &filter, DOING).await? else {
            return Ok(Roster::default());
        };
        if last.seq == cached.seq {
            return Ok(cached);
        }
        let is_full_document = Roster::is_full_document(&last);
        let is_next = is_directly_after(&last, &filter, cached.seq);
        let mut roster = if is_full_document { Roster::default() } else { cached };
        if is_full_document || is_next {
            roster.apply(&last);
            return Ok(roster);
        }
        let mut roster = Roster::default();
        for stored in self.read(&stream, &filter, ReadRange::Last, DOING).await? {
            roster.apply(&stored);
        }
        Ok(roster)
    }

    /// Replaces the team's `config.json` if it has not changed since the revision `at`. `roster` is the current roster.
    /// Every member may write its own entry, so if only that entry differs, writes only the entry.
    pub(crate) async fn replace_roster(
        &self,
        subjects: &Subjects,
        roster: &Roster,
        config: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Result<u64, StoreError> {
        let incarnation = roster.incarnation().unwrap_or_default();
        let doing = "change the roster";
        let pending = PendingWrite::new(subjects.config_by(&by.0), config)
            .with_header(INCARNATION, incarnation);
        if roster.seq == at.0 {
            let before = roster.document().map(|document| document.bytes).unwrap_or_default();
            let own = own_entry(&before, config, &by.0);
            let next = match &own {
                Some(entry) => {
                    let subject = subjects.entry(&by.0);
                    let own = PendingWrite::new(subject, entry.as_deref().unwrap_or_default());
                    let own = if entry.is_none() { own.with_header(OP, LEFT) } else { own };
                    own.with_header(INCARNATION, incarnation)
                }
                None => pending.clone(),
            };
            match self.write(next.expect_last(subjects.roster(), at.0), doing).await {
                Err(StoreError::Conflict) => {}
                written => return written,
            }
        }
        // Perhaps only members have changed their entries since. They can do that at any rate, and must not be able to
        // keep the lead from changing the roster. Readers apply their later entries to the lead's document.
        if roster.lead().as_ref() != Some(&by.0) || at.0 < roster.base_seq {
            return Err(StoreError::Conflict);
        }
        let pending = pending
            .with_header(INCLUDES_UPTO, at.0.to_string())
            .expect_last(subjects.config(), roster.base_seq);
        self.write(pending, doing).await
    }
}

/// Returns the member's new entry, or `Some(None)` if the member leaves the team. Returns `None` if the documents
/// also differ elsewhere.
#[expect(clippy::option_option, reason = "the inner option says whether the member stays")]
fn own_entry(before: &[u8], after: &[u8], name: &str) -> Option<Option<Vec<u8>>> {
    let (old, new) = (Team::read(before).ok()?, Team::read(after).ok()?);
    // The lead has no separate entry: it always writes the whole document.
    if old.lead().is_some_and(|lead| lead.is(name)) {
        return None;
    }
    old.member(name)?;
    let Some(entry) = new.member(name) else {
        return (old.without_member(name) == after).then_some(None);
    };
    let same = old.with_own_changes(name, &own_changes(entry.json(), name)?)? == after;
    same.then(|| Some(entry.json().to_vec()))
}
