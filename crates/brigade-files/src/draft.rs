//! The inbox as it shall be: what it was, what waits for it, and what is marked in it.

use std::collections::HashSet;

use brigade_wire::inbox::{self, Inbox};
use brigade_wire::message::Message;
use rustix::fs::Mode;

use super::dir::{Stamp, Sync, Whole};
use super::journal::Tail;
use super::lock::Patience;
use super::mailbox::{Mailbox, Work, World};
use super::state::{Head, Known};
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::store::{Mark, Obstacle, Outgoing, StoreError};

/// How many messages an inbox keeps when all of them are read.
///
/// Read messages go from the live file once there are this many and none is unread. With an unread
/// one among them they stay: Claude Code 2.1.50 marks messages read by their place in the file, and
/// a place must not move under it.
const KEEP: usize = 8;

/// The inbox as it was found, and as it shall be.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) found: Option<Stamp>,
    pub(super) mode: Option<Mode>,
    pub(super) bytes: Vec<u8>,
    /// The messages in it, as far as they are known.
    pub(super) known: Vec<Known>,
    /// Whether it was changed, and not only made longer.
    pub(super) renewed: bool,
    /// The last message put into it.
    pub(super) newest: Option<MessageKey>,
}

impl Mailbox {
    /// Reads the inbox under the lock, mends it if it is torn, and writes down what others did.
    pub(super) fn draft(
        &self,
        world: &World<'_>,
        head: &mut Head,
        tail: &mut Tail,
        patience: &mut Patience,
        work: Work<'_>,
    ) -> Result<Result<Draft, Obstacle>, StoreError> {
        let file = self.file();
        let whole = world.inboxes.read(&file)?;
        let found = whole.as_ref().map(|whole| whole.stamp);
        let mode = whole.as_ref().map(|whole| whole.mode);
        let (bytes, stamp) = match whole {
            Some(Whole { bytes, stamp, .. }) => (bytes, stamp),
            None => (inbox::EMPTY.to_vec(), Stamp::default()),
        };
        let draft = |bytes, renewed| {
            let known = Vec::new();
            Draft { found, mode, bytes, known, renewed, newest: None }
        };
        if stamp == head.left && found.is_some() {
            return self.pruned(head, draft(bytes, false), work).map(Ok);
        }
        let torn = Inbox::read(&bytes).is_err();
        if torn && !patience.is_torn_for_good(stamp) {
            return Ok(Err(Obstacle::Torn { path: world.inboxes.path(&file) }));
        }
        let bytes = if torn { self.salvage(world, head, &bytes)? } else { bytes };
        let inbox = read(&file, &bytes)?;
        // A torn one is not settled before it is replaced.
        let settled = if torn { Stamp::default() } else { stamp };
        if self.observe(world, head, &inbox, settled)? {
            *tail = self.tail(head)?;
        }
        self.pruned(head, draft(bytes, torn), work).map(Ok)
    }

    /// The draft with what is known of it, without its messages if there are enough and all are
    /// read: the journal has them. Entries that are no messages it has not.
    fn pruned(
        &self,
        head: &mut Head,
        mut draft: Draft,
        work: Work<'_>,
    ) -> Result<Draft, StoreError> {
        draft.known = self.state.known(head.after)?;
        // What is to be marked must be there.
        if !matches!(work, Work::Mark { .. })
            && draft.known.len() >= KEEP
            && !head.odd
            && draft.known.iter().all(|known| known.read)
        {
            draft.bytes = inbox::EMPTY.to_vec();
            draft.known.clear();
            head.newest = None;
            draft.renewed = true;
        }
        Ok(draft)
    }

    pub(super) fn mark(
        &self,
        world: &World<'_>,
        draft: &mut Draft,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError> {
        let wanted: HashSet<MessageKey> = keys.iter().copied().collect();
        let inbox = read(&self.file(), &draft.bytes)?;
        let all = MessageKey::all(inbox.messages());
        let chosen: Vec<&(MessageKey, Message<'_>)> =
            all.iter().filter(|(key, _)| wanted.contains(key)).collect();
        let at = world.clock.now();
        let mut records = Vec::new();
        for (key, message) in &chosen {
            let (to, key) = (self.member.clone(), *key);
            if !message.read() {
                let event = Event::Read { to: to.clone(), key, gone: false };
                records.push(Record { at, by: None, event });
            }
            if mark == Mark::Shown {
                records.push(Record { at, by: None, event: Event::Shown { to, key } });
            }
        }
        if records.is_empty() {
            return Ok(());
        }
        self.journal.append(&records, Sync::No)?;
        let places: HashSet<usize> = chosen.iter().map(|(_, message)| message.index()).collect();
        let marked = inbox.with_read(|message| places.contains(&message.index())).into_owned();
        for known in &mut draft.known {
            known.read |= wanted.contains(&known.key);
        }
        draft.renewed = true;
        draft.bytes = marked;
        Ok(())
    }

    /// Puts what waits in the outbox behind the messages of the inbox. Tells whether one of them was
    /// promised to survive a power cut.
    pub(super) fn merge(
        &self,
        world: &World<'_>,
        draft: &mut Draft,
        tail: &Tail,
        work: Work<'_>,
    ) -> Result<bool, StoreError> {
        // What is alone and ends where the caller's own message does is that: its team was there a
        // moment ago, and its sender need not wait for us to make sure.
        let own = tail.sent_count() == 1
            && matches!(work, Work::Merge { upto } if tail.end.offset == upto);
        let created = if own || !tail.has_sent() { None } else { (world.team_created)() };
        let mut power = false;
        let mut waiting: Vec<Outgoing> = Vec::new();
        for record in &tail.records {
            let Event::Sent { key, power_safe, message, .. } = &record.event else { continue };
            if !is_for(record, created) {
                tracing::warn!(member = %self.member, %key, "meant for a team that is no more");
                continue;
            }
            // A few against many: quicker than making a set of the many.
            if draft.known.iter().any(|known| known.key == *key)
                || waiting.iter().any(|waiting| waiting.key() == *key)
            {
                continue;
            }
            match serde_json::from_str(message.get()) {
                Ok(message) => {
                    power |= power_safe;
                    waiting.push(message);
                }
                Err(error) => {
                    tracing::error!(member = %self.member, %key, %error, "cannot be merged");
                }
            }
        }
        let new: Vec<_> = waiting.iter().map(Outgoing::as_new).collect();
        if !new.is_empty() {
            let damaged = |damage| StoreError::Damaged { place: self.file(), damage };
            inbox::append(&mut draft.bytes, &new).map_err(damaged)?;
            draft.known.extend(waiting.iter().map(|m| Known { key: m.key(), read: false }));
            draft.newest = waiting.last().map(Outgoing::key);
        }
        Ok(power)
    }
}

pub(super) fn read<'b>(file: &str, bytes: &'b [u8]) -> Result<Inbox<'b>, StoreError> {
    let damaged = |damage| StoreError::Damaged { place: file.to_owned(), damage };
    Inbox::read(bytes).map_err(damaged)
}

/// Whether a message is meant for the team that was created then, as far as anybody knows.
pub(super) fn is_for(record: &Record, created: Option<u64>) -> bool {
    match (&record.event, created) {
        (Event::Sent { team_created: 0, .. }, _) | (_, None) => true,
        (Event::Sent { team_created, .. }, Some(created)) => *team_created == created,
        _ => true,
    }
}
