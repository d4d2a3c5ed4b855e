//! Builds the new contents of an inbox: adds pending messages, and marks messages as read.

use std::collections::HashSet;

use brigade_wire::inbox::{self, Inbox};
use brigade_wire::message::{InboxEntry, Message};
use brigade_wire::name::MemberName;
use rustix::fs::Mode;

use super::state::{KnownMessage, MailboxHead};
use super::{FileMailbox, MailboxContext, MailboxWork, is_for_team, parse_inbox};
use crate::dir::{FileContents, FileStamp, Fsync};
use crate::journal::JournalTail;
use crate::lock::LockWaiter;
use brigade_core::event::{Event, MessageKey, UncheckedRecord};
use brigade_core::store::{Mark, Outgoing, StoreError, WriteObstacle};

/// Inboxes with fewer read messages are not pruned.
///
/// If an inbox holds at least this many messages and all of them are read, all are removed from the inbox. If any message is
/// unread, all stay, unless only brigade reads the inbox: Claude Code 2.1.50 marks the message at a given index as read, so the
/// index of an unread message must not change.
const PRUNE_AT: usize = 8;

/// The inbox as found on disk, and its new contents.
#[derive(Debug)]
pub(super) struct InboxDraft {
    pub(super) found: Option<FileStamp>,
    pub(super) mode: Option<Mode>,
    pub(super) bytes: Vec<u8>,
    /// The known messages in the new contents.
    pub(super) known: Vec<KnownMessage>,
    /// Whether existing entries changed. False if entries were only appended, or if nothing
    /// changed.
    pub(super) rewritten: bool,
    /// The last message appended to the inbox.
    pub(super) newest: Option<MessageKey>,
}

impl FileMailbox {
    /// Reads the inbox while holding its lock, repairs a torn inbox, and records changes that other
    /// programs made to the inbox.
    pub(super) fn draft(
        &self,
        context: &MailboxContext<'_>,
        head: &mut MailboxHead,
        tail: &mut JournalTail,
        waiter: &mut LockWaiter,
        work: MailboxWork<'_>,
    ) -> Result<Result<InboxDraft, WriteObstacle>, StoreError> {
        let file = self.file();
        let contents = context.inboxes.read(&file)?;
        let found = contents.as_ref().map(|contents| contents.stamp);
        let mode = contents.as_ref().map(|contents| contents.mode);
        let (bytes, stamp) = match contents {
            Some(FileContents { bytes, stamp, .. }) => (bytes, stamp),
            None => (inbox::EMPTY.to_vec(), FileStamp::default()),
        };
        let draft = |bytes, rewritten| {
            let known = Vec::new();
            InboxDraft { found, mode, bytes, known, rewritten, newest: None }
        };
        if stamp == head.inbox_stamp && found.is_some() {
            return self.pruned(context, head, draft(bytes, false), work).map(Ok);
        }
        let torn = Inbox::read(&bytes).is_err();
        if torn && !waiter.is_torn_for_good(stamp) {
            return Ok(Err(WriteObstacle::Torn { path: context.inboxes.path(&file) }));
        }
        let bytes = if torn { self.salvage(context, head, &bytes)? } else { bytes };
        let inbox = parse_inbox(&file, &bytes)?;
        // Do not record the stamp of a torn inbox, so that the next attempt reads it again.
        let observed_stamp = if torn { FileStamp::default() } else { stamp };
        if self.observe(context, head, &tail.records, &inbox, observed_stamp)? {
            *tail = self.tail(head)?;
        }
        self.pruned(context, head, draft(bytes, torn), work).map(Ok)
    }

    /// Adds the known messages to the draft. Removes read messages from the inbox if there are enough of them; the journal still
    /// has these messages. Does not change an inbox with entries that are not messages, because the journal does not have those
    /// entries.
    fn pruned(
        &self,
        context: &MailboxContext<'_>,
        head: &mut MailboxHead,
        mut draft: InboxDraft,
        work: MailboxWork<'_>,
    ) -> Result<InboxDraft, StoreError> {
        draft.known = self.state.known(head.after)?;
        let read = draft.known.iter().filter(|known| known.read).count();
        let unread = draft.known.len() - read;
        // Messages about to be marked must stay in the inbox.
        if matches!(work, MailboxWork::Mark { .. }) || head.has_non_messages || read < PRUNE_AT {
            return Ok(draft);
        }
        if unread == 0 {
            draft.bytes = inbox::EMPTY.to_vec();
        } else if read >= unread && self.is_read_only_by_brigade(context)? {
            let inbox = parse_inbox(&self.file(), &draft.bytes)?;
            let unread = inbox
                .retain(|entry| matches!(entry, InboxEntry::Message(message) if !message.read()));
            draft.bytes = unread.into_owned();
        } else {
            return Ok(draft);
        }
        draft.known.retain(|known| !known.read);
        let is_there = |key: &MessageKey| draft.known.iter().any(|known| known.key == *key);
        head.newest = head.newest.filter(is_there);
        draft.rewritten = true;
        Ok(draft)
    }

    /// Returns whether no Claude Code reads the inbox: it is that of the lead of a team that brigade created, and no other program
    /// has written the roster.
    fn is_read_only_by_brigade(&self, context: &MailboxContext<'_>) -> Result<bool, StoreError> {
        if self.member != MemberName::lead().as_str() || self.team_state.is_shared()? {
            return Ok(false);
        }
        match (context.team_created)() {
            Some(created) => self.team_state.is_created_by_us(created),
            None => Ok(false),
        }
    }

    pub(super) fn mark(
        &self,
        context: &MailboxContext<'_>,
        draft: &mut InboxDraft,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError> {
        let wanted: HashSet<MessageKey> = keys.iter().copied().collect();
        let inbox = parse_inbox(&self.file(), &draft.bytes)?;
        let all = MessageKey::all(inbox.messages());
        let chosen: Vec<&(MessageKey, Message<'_>)> =
            all.iter().filter(|(key, _)| wanted.contains(key)).collect();
        let at = context.clock.now();
        let mut records = Vec::new();
        for (key, message) in &chosen {
            let (to, key) = (self.member.clone(), *key);
            if !message.read() {
                let event = Event::Read { to: to.clone(), key, gone: false };
                records.push(UncheckedRecord { at, by: None, event });
            }
            if mark == Mark::Shown {
                records.push(UncheckedRecord { at, by: None, event: Event::Shown { to, key } });
            }
        }
        if records.is_empty() {
            return Ok(());
        }
        self.journal.append(&records, Fsync::No)?;
        let indexes: HashSet<usize> = chosen.iter().map(|(_, message)| message.index()).collect();
        let marked = inbox.with_read(|message| indexes.contains(&message.index())).into_owned();
        for known in &mut draft.known {
            known.read |= wanted.contains(&known.key);
        }
        draft.rewritten = true;
        draft.bytes = marked;
        Ok(())
    }

    /// Appends the messages in the outbox to the draft. Returns whether any of these messages must
    /// survive power loss.
    pub(super) fn merge(
        &self,
        context: &MailboxContext<'_>,
        draft: &mut InboxDraft,
        tail: &JournalTail,
        work: MailboxWork<'_>,
    ) -> Result<bool, StoreError> {
        // If the only pending message ends at `upto`, the caller has just sent it. In that case, do
        // not check whether the team still exists: it existed a moment ago.
        let only_own_message = tail.sent_count() == 1
            && matches!(work, MailboxWork::Merge { upto } if tail.end.offset == upto);
        let created =
            if only_own_message || !tail.has_sent() { None } else { (context.team_created)() };
        let mut needs_sync = false;
        let mut waiting: Vec<Outgoing> = Vec::new();
        for record in &tail.records {
            let Event::Sent { key, power_safe, message, .. } = &record.event else { continue };
            if !is_for_team(record, created) {
                tracing::warn!(member = %self.member, %key, "skipping a message to a deleted team");
                continue;
            }
            // A linear scan is faster than building a set: there are few pending messages and many
            // known ones.
            if draft.known.iter().any(|known| known.key == *key)
                || waiting.iter().any(|waiting| waiting.key() == *key)
            {
                continue;
            }
            match serde_json::from_str(message.get()) {
                Ok(message) => {
                    needs_sync |= power_safe;
                    waiting.push(message);
                }
                Err(error) => {
                    tracing::error!(member = %self.member, %key, %error, "cannot parse a pending message");
                }
            }
        }
        let new: Vec<_> = waiting.iter().map(Outgoing::to_inbox_entry).collect();
        if !new.is_empty() {
            let damaged = |damage| StoreError::Damaged { place: self.file(), damage };
            inbox::append(&mut draft.bytes, &new).map_err(damaged)?;
            draft.known.extend(waiting.iter().map(|m| KnownMessage { key: m.key(), read: false }));
            draft.newest = waiting.last().map(Outgoing::key);
        }
        Ok(needs_sync)
    }
}
