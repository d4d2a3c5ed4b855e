//! Checks before a write: whether the recipient has room for a message, and whether a member may record an event.

use std::collections::HashMap;
use std::sync::Arc;

use brigade_core::event::{Event, EventAuthor};
use brigade_core::rights::Recorder;
use brigade_core::store::mailbox_limit::{MailPriority, MailboxUse, UNLIMITED_BYTES, UnreadMail};
use brigade_core::store::{Outgoing, StoreError, TeamStore as _};
use brigade_wire::inbox::Inbox;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;

use super::dir::Dir;
use super::layout::member_file;
use super::mailbox::{CountedMail, FileMailbox, MailboxContext};
use super::{FileStore, lock_mutex};

/// Each record of a message in a journal has more bytes than this.
const MIN_RECORD_BYTES: usize = 100;

/// Returns the most that a mailbox may hold if its journal has grown by this many bytes since its mail was counted. Every
/// message of brigade is in the journal.
fn at_most(counted: MailboxUse, grown: u64) -> MailboxUse {
    let grown = usize::try_from(grown).unwrap_or(usize::MAX / 2);
    let UnreadMail { messages, bytes } = counted.from_sender;
    let messages = messages + grown / MIN_RECORD_BYTES;
    let from_sender = UnreadMail { messages, bytes: bytes + grown };
    MailboxUse { from_sender, bytes: counted.bytes + grown }
}

impl CountedMail {
    fn used_by(&self, sender: &str) -> MailboxUse {
        let from_sender = self.senders.get(sender).copied().unwrap_or_default();
        MailboxUse { from_sender, bytes: self.senders.values().map(|mail| mail.bytes).sum() }
    }
}

impl FileStore {
    /// Checks that the recipient has room for a message. Small mailboxes are not read.
    pub(crate) async fn check_room(
        &self,
        team: &TeamName,
        inboxes: &Dir,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<(), StoreError> {
        let mailbox = self.mailbox(team, to)?;
        let waiting = lock_mutex(&mailbox).outbox_len()?;
        let stamp = inboxes.stamp(&member_file(to))?.unwrap_or_default();
        if stamp.size + waiting < UNLIMITED_BYTES as u64 {
            return Ok(());
        }
        let config = self.team(team).await?;
        let from_lead = |team: Team<'_>| team.lead().is_some_and(|lead| lead.is(&message.from));
        let from_lead = config.is_some_and(|config| Team::read(&config.bytes).is_ok_and(from_lead));
        let priority = MailPriority::for_message(from_lead, &message.text);
        let check = |used: MailboxUse| used.check(priority, to, &message.from);
        let files = (stamp, lock_mutex(&mailbox).journal.len()?, waiting);
        if let Some(counted) = lock_mutex(&mailbox).counted.clone() {
            let used = counted.used_by(&message.from);
            if counted.files == files {
                return Ok(check(used)?);
            }
            let grown = files.1.checked_sub(counted.files.1);
            if grown.is_some_and(|grown| check(at_most(used, grown)).is_ok()) {
                return Ok(());
            }
        }
        let senders = self.count_unread(team, inboxes, &lock_mutex(&mailbox), waiting)?;
        let counted = Arc::new(CountedMail { files, senders });
        lock_mutex(&mailbox).counted = Some(Arc::clone(&counted));
        Ok(check(counted.used_by(&message.from))?)
    }

    /// Counts the unread mail of each sender, in the inbox and in the outbox.
    fn count_unread(
        &self,
        team: &TeamName,
        inboxes: &Dir,
        mailbox: &FileMailbox,
        waiting: u64,
    ) -> Result<HashMap<String, UnreadMail>, StoreError> {
        let mut senders: HashMap<String, UnreadMail> = HashMap::new();
        let mut count = |from: String, bytes: usize| senders.entry(from).or_default().add(bytes);
        let inbox = inboxes.read(&mailbox.file())?;
        // A damaged inbox is repaired when the message is delivered.
        if let Some(Ok(inbox)) = inbox.as_ref().map(|inbox| Inbox::read(&inbox.bytes)) {
            for unread in inbox.messages().filter(|message| !message.read()) {
                count(unread.from().into_owned(), unread.text().len());
            }
        }
        if waiting > 0 {
            let team_created = &|| self.team_created(team);
            let context = MailboxContext { inboxes, clock: self.clock.as_ref(), team_created };
            for waiting in mailbox.undelivered(&context)? {
                let len = waiting.text.len();
                count(waiting.from, len);
            }
        }
        Ok(senders)
    }

    /// Checks that a member may record an event.
    pub(crate) async fn check_author(
        &self,
        team: &TeamName,
        event: &Event,
        name: &str,
    ) -> Result<(), StoreError> {
        // Members record work often, and the roster says nothing about whose work it is.
        let config = match event.kind().recorded_by() {
            Recorder::MemberItself => None,
            _ => self.team(team).await?,
        };
        let roster = config.as_ref().and_then(|config| Team::read(&config.bytes).ok());
        let leads = roster.as_ref().and_then(Team::lead).is_some_and(|lead| lead.is(name));
        let members = roster.map(|roster| roster.member_names());
        let author = EventAuthor { name, leads, answers: true, members: members.as_deref() };
        Ok(event.check_author(author)?)
    }
}
