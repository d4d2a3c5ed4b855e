//! Records changes that other programs made to an inbox, and salvages a torn inbox.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use brigade_wire::inbox::{self, Inbox};
use serde_json::value::RawValue;

use super::state::{self, KnownMessage, MailboxHead, MergeState, OverwriteRisk};
use super::{FileMailbox, MailboxContext, parse_inbox};
use crate::dir::{FileStamp, Fsync, PRIVATE};
use crate::layout::DAMAGED_COPIES;
use brigade_core::event::{Event, MessageKey, Record, UncheckedRecord, one_line};
use brigade_core::store::StoreError;

impl FileMailbox {
    /// Compares the inbox with the known messages, and writes the differences to the journal. From then on, the
    /// messages in the inbox are the known messages. Returns whether messages have to be merged again.
    ///
    /// `recorded` are the last records of the journal. A process that died after it wrote to the journal and before
    /// it saved the known messages has recorded some differences already.
    pub(super) fn observe(
        &self,
        context: &MailboxContext<'_>,
        head: &mut MailboxHead,
        recorded: &[Record],
        inbox: &Inbox<'_>,
        stamp: FileStamp,
    ) -> Result<bool, StoreError> {
        let before = self.state.known(head.after)?;
        let read_before = with_recorded(state::by_key(&before), recorded);
        let now = MessageKey::all(inbox.messages());
        let present: HashSet<MessageKey> = now.iter().map(|(key, _)| *key).collect();
        // If our newest message is gone, there are two possible reasons: a program that lost its
        // lock overwrote the inbox with an old copy, or a reader removed the message. Delivering
        // the message twice is better than losing it.
        let newest_gone = head.newest.is_some_and(|newest| !present.contains(&newest));
        let now_ms = context.clock.now().as_millisecond();
        let rewind = head.risk.filter(|risk| newest_gone && now_ms < risk.until);
        let at = context.clock.now();
        let to = || self.member.clone();
        let mut records = Vec::new();
        let mut note = |event| records.push(UncheckedRecord { at, by: None, event });
        for (key, message) in &now {
            match read_before.get(key) {
                None => {
                    note(Event::Seen { to: to(), key: *key, message: one_line(message.json()) });
                    if message.read() {
                        note(Event::Read { to: to(), key: *key, gone: false });
                    }
                }
                Some(false) if message.read() => {
                    note(Event::Read { to: to(), key: *key, gone: false });
                }
                Some(_) => {}
            }
        }
        if rewind.is_none() {
            let is_gone =
                |key: &&MessageKey| read_before.get(key) == Some(&false) && !present.contains(key);
            for &key in before.iter().map(|known| &known.key).filter(is_gone) {
                note(Event::Read { to: to(), key, gone: true });
            }
        }
        if !records.is_empty() {
            self.journal.append(&records, Fsync::No)?;
        }
        let known: Vec<KnownMessage> = now
            .iter()
            .map(|(key, message)| KnownMessage { key: *key, read: message.read() })
            .collect();
        let at = head.after.free_start_for(known.len() as u64);
        self.state.write_known(at, &known)?;
        let mut upto = head.after.upto;
        if let Some(risk) = rewind {
            // From now on, only later messages are at risk, so the messages restored here are not
            // restored a second time.
            head.risk = Some(OverwriteRisk { from: upto.offset, ..risk });
            upto = self.journal.position(risk.from)?;
        }
        head.after = MergeState { upto, known: known.len() as u64, at };
        head.before = head.after;
        head.inbox_stamp = stamp;
        head.has_non_messages = inbox.entries().len() > known.len();
        self.state.write_head(head)?;
        Ok(rewind.is_some())
    }

    /// Returns the recoverable contents of an inbox that does not parse: its complete entries, and
    /// the missing unread messages, taken from the journal. The torn inbox is copied to the `aside`
    /// folder first.
    pub(super) fn salvage(
        &self,
        context: &MailboxContext<'_>,
        head: &MailboxHead,
        bytes: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let at = context.clock.now();
        let name = format!("{}-{}.json", self.member, at.as_nanosecond());
        let damaged_copies = self.team_state.dir.private_child(DAMAGED_COPIES)?;
        damaged_copies.write_temp(&name, bytes, Some(PRIVATE), Fsync::Yes)?;
        let entries = inbox::salvage(bytes);
        let kept = inbox::from_entries(&entries);
        let present: HashSet<MessageKey> = MessageKey::all(parse_inbox(&name, &kept)?.messages())
            .iter()
            .map(|(key, _)| *key)
            .collect();
        let missing: HashSet<MessageKey> = self
            .state
            .known(head.after)?
            .iter()
            .filter(|known| !known.read && !present.contains(&known.key))
            .map(|known| known.key)
            .collect();
        let mut restored: Vec<(MessageKey, Box<RawValue>)> = Vec::new();
        self.journal.scan(0, |_, record| {
            if let Event::Sent { key, message, .. } | Event::Seen { key, message, .. } =
                &record.event
                && missing.contains(key)
                && !restored.iter().any(|(restored, _)| restored == key)
            {
                restored.push((*key, message.clone()));
            }
            ControlFlow::Continue(())
        })?;
        // The lost messages were at the end of the inbox, so append the restored messages there.
        let all: Vec<&[u8]> = entries
            .into_iter()
            .chain(restored.iter().map(|(_, json)| json.get().as_bytes()))
            .collect();
        let event = Event::Salvaged {
            to: self.member.clone(),
            copy: damaged_copies.path(&name).display().to_string(),
            kept: all.len(),
        };
        tracing::warn!(member = %self.member, copy = %damaged_copies.path(&name).display(), "salvaged a torn inbox");
        self.journal.append(&[UncheckedRecord { at, by: None, event }], Fsync::No)?;
        Ok(inbox::from_entries(&all))
    }
}

/// Applies the records to the known messages, which map each key to whether the message is read. The records may
/// repeat what is known already. A message that brigade sent is known, so it is not recorded as another program's.
fn with_recorded(
    mut known: HashMap<MessageKey, bool>,
    recorded: &[Record],
) -> HashMap<MessageKey, bool> {
    for record in recorded {
        match &record.event {
            Event::Sent { key, .. } | Event::Seen { key, .. } => {
                known.entry(*key).or_insert(false);
            }
            Event::Read { key, gone: false, .. } => {
                known.insert(*key, true);
            }
            Event::Read { key, gone: true, .. } => {
                known.remove(key);
            }
            _ => {}
        }
    }
    known
}
