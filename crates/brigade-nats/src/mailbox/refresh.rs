//! Reads the new messages of a mailbox into the cache. Of a mailbox that is too large, it reads a part of each
//! sender's mail, so that one sender can neither fill the reader's memory nor hide the mail of others. When the reader
//! has marked that part as read, the next read returns the next part.

use std::collections::BTreeMap;
use std::time::Duration;

use brigade_core::store::StoreError;
use brigade_wire::name::MemberName;

use super::{CachedMailbox, MailboxHandle};
use crate::connection::NatsConnection;
use crate::layout::{Stream, Subjects};
use crate::mail_message::MailMessage;
use crate::marks::MailboxMarks;
use crate::read::{ReadLimit, ReadRange};

/// The background task waits this long before it reads, because a caller probably reads the new message first.
const CONFIRM_DELAY: Duration = Duration::from_millis(100);
/// A mailbox up to this size is read whole.
pub(super) const WHOLE: ReadLimit =
    ReadLimit { messages: 10_000, bytes: 8 << 20, examined: 20_000 };
/// Of a larger mailbox, this much unread mail of each sender is read.
const PER_SENDER: ReadLimit = ReadLimit { messages: 1_000, bytes: 1 << 20, examined: 20_000 };

impl CachedMailbox {
    /// Whether the mailbox is too large to hold all of it.
    fn is_too_large(&self) -> bool {
        let size = || self.messages.values().map(|message| message.json.len()).sum::<usize>();
        self.messages.len() >= WHOLE.messages || size() >= WHOLE.bytes
    }

    /// Removes all messages, and remembers that the mailbox is too large.
    fn begin_crowded(&mut self) {
        self.crowded = true;
        self.generation = None;
        self.complete_upto = 0;
        self.messages = BTreeMap::new();
    }
}

impl NatsConnection {
    /// Reads the messages that arrived since the last read of the mailbox, and adds them to the cache.
    pub(super) async fn refresh(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        cached: &mut CachedMailbox,
        marks: &MailboxMarks,
        last: u64,
        heard: bool,
    ) -> Result<(), StoreError> {
        let start = marks.inbox_start(last);
        if !cached.crowded && last > if heard { cached.last_seq } else { cached.complete_upto } {
            self.read_whole(subjects, member, cached, start).await?;
        }
        cached.messages = cached.messages.split_off(&(start + 1));
        if cached.crowded {
            self.read_each_sender(subjects, member, cached, marks, start).await?;
        }
        Ok(())
    }

    /// Reads all new messages. Stops if the mailbox is too large for that.
    async fn read_whole(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        cached: &mut CachedMailbox,
        start: u64,
    ) -> Result<(), StoreError> {
        let after = cached.complete_upto.max(start);
        if let Some(new) = self.read_linked(subjects, member, after).await? {
            cached.add_read(new.messages, new.complete_upto);
            if cached.is_too_large() {
                cached.begin_crowded();
            }
            return Ok(());
        }
        let (stream, filter) = (subjects.stream(Stream::Mail), subjects.mailbox(member));
        let doing = format!("read the mail of {member}");
        let range = ReadRange::From(after + 1);
        let map = |stored| MailMessage::read(&stored);
        let read = self.read_limited(&stream, &filter, range, WHOLE, &doing, map).await?;
        let is_full = read.is_full();
        cached.add_read(read.items, read.last);
        if is_full || cached.is_too_large() {
            cached.begin_crowded();
        }
        Ok(())
    }

    /// Reads the first unread messages of each sender.
    async fn read_each_sender(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        cached: &mut CachedMailbox,
        marks: &MailboxMarks,
        start: u64,
    ) -> Result<(), StoreError> {
        let (stream, filter) = (subjects.stream(Stream::Mail), subjects.mailbox(member));
        let doing = format!("read the mail of {member}");
        let last_of_each = self.read(&stream, &filter, ReadRange::LastHeaders, &doing).await?;
        // Messages that arrive after this point are not part of this read.
        let mut complete_upto = last_of_each.iter().map(|last| last.seq).max().unwrap_or(start);
        let mut messages = Vec::new();
        let mut any_full = false;
        for last in last_of_each.iter().filter(|last| last.seq > start) {
            self.raise_floor(&last.subject, last.seq);
            let unread =
                |stored| MailMessage::read(&stored).filter(|read| !marks.is_read(read.seq));
            let range = ReadRange::From(start + 1);
            let read = self
                .read_limited(&stream, &last.subject, range, PER_SENDER, &doing, unread)
                .await?;
            if read.is_full() {
                any_full = true;
                complete_upto = complete_upto.min(read.last);
            }
            messages.extend(read.items);
        }
        cached.begin_crowded();
        cached.add_read(messages, complete_upto);
        // If everything fits again, the next read of the mailbox is a read of the whole, from the start.
        if !any_full && !cached.is_too_large() {
            cached.crowded = false;
            cached.complete_upto = 0;
        }
        Ok(())
    }

    /// Reads the unconfirmed messages from the stream. Runs in the background, so that no caller has to wait.
    pub(crate) async fn confirm_messages(
        &self,
        subjects: &Subjects,
        member: &MemberName,
        mailbox: &MailboxHandle,
    ) {
        tokio::time::sleep(CONFIRM_DELAY).await;
        let (stream, filter) = (subjects.stream(Stream::Mail), subjects.mailbox(member));
        let from = mailbox.lock().await.complete_upto + 1;
        let doing = format!("read the mail of {member}");
        let map = |stored| MailMessage::read(&stored);
        let range = ReadRange::From(from);
        let read = self.read_limited(&stream, &filter, range, WHOLE, &doing, map).await;
        let mut cached = mailbox.lock().await;
        cached.confirming = false;
        // If the read failed, the next message that the watch receives starts another read.
        let Ok(read) = read else { return };
        let is_full = read.is_full();
        cached.add_read(read.items, read.last);
        if is_full || cached.is_too_large() {
            cached.begin_crowded();
        }
    }
}
