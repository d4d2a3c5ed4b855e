//! Copies mail from the files to the shared store and back, and reports which mail was read.

use std::borrow::Cow;
use std::collections::HashSet;

use brigade_core::wire::inbox::with_message;
use brigade_wire::body::Body;
use brigade_wire::name::MemberName;
use brigade_wire::protocol::Protocol;

use super::notice::message_id;
use super::roster::MemberSides;
use super::{Link, LinkError, LinkEvent};
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::mail::signed;
use brigade_core::rights::check_message;
use brigade_core::store::{Actor, MailStore, Mark, Outgoing, StoreError};

/// A remote member's inbox in the files is emptied when it holds this many messages, because each
/// write rewrites the whole file.
const MAX_INBOX: usize = 64;
/// How far the clocks of two hosts may differ, in milliseconds. Mail that is older than the team by
/// more than this was sent in an earlier team of the same name.
const SKEW_MS: u64 = 5 * 60 * 1000;

/// The link's knowledge of a local member's mailbox, in the files and in the shared store.
#[derive(Debug, Default)]
pub(super) struct MailboxSync {
    local: MailboxKnowledge,
    shared: MailboxKnowledge,
    /// Local records of messages between local members. The shared journal does not have these
    /// records yet.
    unreported: Vec<Record>,
}

/// The link's knowledge of a mailbox in one store.
#[derive(Debug, Default)]
struct MailboxKnowledge {
    /// Messages that were sent to the mailbox in this store.
    sent: HashSet<MessageKey>,
    /// Messages that are in the mailbox of another store. This store only has a record of each.
    seen: HashSet<MessageKey>,
    read: HashSet<MessageKey>,
    shown: HashSet<MessageKey>,
}

impl MailboxKnowledge {
    fn note(&mut self, event: &Event) {
        match event {
            Event::Sent { key, .. } => drop(self.sent.insert(*key)),
            Event::Seen { key, .. } => drop(self.seen.insert(*key)),
            Event::Read { key, .. } => drop(self.read.insert(*key)),
            Event::Shown { key, .. } => drop(self.shown.insert(*key)),
            _ => {}
        }
    }

    fn has(&self, key: MessageKey) -> bool {
        self.sent.contains(&key) || self.seen.contains(&key)
    }
}

impl MailboxSync {
    pub(super) fn note_local(&mut self, record: &Record) {
        if record.event.message().is_some_and(|key| !self.local.has(key)) {
            self.unreported.push(record.clone());
        }
        self.local.note(&record.event);
    }

    pub(super) fn note_shared(&mut self, record: &Record) {
        self.shared.note(&record.event);
    }

    /// Returns whether the message was ever in the local mailbox.
    pub(super) fn had(&self, key: MessageKey) -> bool {
        self.local.has(key)
    }

    /// Returns the messages from the shared store that were read or shown on this host but are not
    /// marked in the shared store yet.
    fn unmarked(&self) -> [(Mark, Vec<MessageKey>); 2] {
        let Self { local, shared, .. } = self;
        let shown: Vec<MessageKey> =
            shared.sent.iter().filter(|key| local.shown.contains(key)).copied().collect();
        let shown: Vec<MessageKey> =
            shown.into_iter().filter(|key| !shared.shown.contains(key)).collect();
        let read = shared.sent.iter().filter(|key| local.read.contains(key));
        let read = read.filter(|key| !shared.read.contains(key) && !shared.shown.contains(key));
        let read = read.filter(|key| !shown.contains(key)).copied().collect();
        [(Mark::Shown, shown), (Mark::Read, read)]
    }
}

impl Link {
    /// Synchronizes the mailbox of a local member.
    pub(super) async fn inward(
        &mut self,
        member: &MemberName,
        sides: &MemberSides,
    ) -> Result<(), LinkError> {
        let mut mailbox = match self.mailboxes.remove(member) {
            Some(mailbox) => mailbox,
            None => self.load_mailbox(member, sides).await?,
        };
        // If `report` fails, it may already have written the journal record, and a retry could write a second
        // record. To prevent a second record, the known state is discarded and read again from both stores next
        // time. That takes long for an old mailbox. Delivering and marking can be retried safely.
        let mut result = self.deliver(member, sides, &mut mailbox).await;
        if result.is_ok() {
            self.report(member, sides, &mut mailbox).await?;
            result = self.mark(member, &mut mailbox).await;
        }
        self.mailboxes.insert(member.clone(), mailbox);
        result
    }

    async fn load_mailbox(
        &self,
        member: &MemberName,
        sides: &MemberSides,
    ) -> Result<MailboxSync, LinkError> {
        let (config, mut mailbox) = (&self.config, MailboxSync::default());
        for record in
            config.call_shared(config.shared.mailbox_history(&config.team, member)).await?
        {
            mailbox.note_shared(&record);
        }
        let local =
            config.local.mailbox_history(&config.team, member).await.map_err(LinkError::Local)?;
        for record in &local {
            mailbox.note_local(record);
        }
        // The history may contain records from an earlier team of the same name. Leave out those records.
        let created = sides.created.unwrap_or_default().saturating_sub(SKEW_MS);
        let is_current = |record: &Record| {
            u64::try_from(record.at.as_millisecond()).unwrap_or_default() >= created
        };
        mailbox.unreported.retain(is_current);
        Ok(mailbox)
    }

    /// Copies a local member's unread mail from the shared store to the files.
    async fn deliver(
        &self,
        member: &MemberName,
        sides: &MemberSides,
        mailbox: &mut MailboxSync,
    ) -> Result<(), LinkError> {
        let config = &self.config;
        for mail in config.call_shared(config.shared.inbox(&config.team, member)).await? {
            if mailbox.local.has(mail.key) {
                continue;
            }
            let message = with_message(&mail.json, |message| {
                let message = message.filter(|message| !message.read())?;
                let id = message.msg_id()?.into_owned();
                Some(Outgoing::copy_of(&message, id))
            });
            let Ok(Some(message)) = message else { continue };
            if let Err(refused) = check_message(&message.from, sides.lead.as_deref(), &message.text)
            {
                let (from, to) = (message.from, member.to_string());
                self.emit(&LinkEvent::Refused { from, to, why: refused.to_string() });
                mailbox.local.seen.insert(mail.key);
                continue;
            }
            let message = Outgoing { text: without_pane(message.text), ..message };
            let message = Outgoing { team_created: sides.created.unwrap_or_default(), ..message };
            // Sign the lead's message again: the lead's own signature is valid only on the lead's
            // host, and members here verify with other keys.
            let message = match &config.signer {
                Some(signer) if sides.lead.as_deref() == Some(message.from.as_str()) => {
                    signed(signer.as_ref(), member, message.clone()).unwrap_or_else(|error| {
                        tracing::warn!(%error, "cannot sign the lead's message");
                        message
                    })
                }
                _ => message,
            };
            mailbox.shared.sent.insert(mail.key);
            config.local.send(&config.team, member, &message).await.map_err(LinkError::Local)?;
            mailbox.local.sent.insert(mail.key);
            let Outgoing { from, msg_id: id, .. } = message;
            self.emit(&LinkEvent::In { from, to: member.to_string(), id });
        }
        Ok(())
    }

    /// Records mail between local members in the shared journal.
    async fn report(
        &self,
        member: &MemberName,
        sides: &MemberSides,
        mailbox: &mut MailboxSync,
    ) -> Result<(), LinkError> {
        let config = &self.config;
        while let Some(record) = mailbox.unreported.first() {
            if let Event::Sent { key, message, .. } | Event::Seen { key, message, .. } =
                &record.event
                && !mailbox.shared.has(*key)
            {
                let key = *key;
                let from = with_message(message.get().as_bytes(), |message| {
                    message.map(|message| message.from().into_owned())
                });
                let from = from.ok().flatten().filter(|from| sides.is_local(from));
                let by = Actor(from.unwrap_or_else(|| member.to_string()));
                let event = Event::Seen { to: member.to_string(), key, message: message.clone() };
                match config.call_shared(config.shared.record(&config.team, event, &by)).await {
                    Ok(()) => {}
                    // Ignore this error: only the shared journal lacks the record, and the message
                    // itself is in the files.
                    Err(error) if error.is_forbidden() => {}
                    Err(error) => return Err(error),
                }
                mailbox.shared.seen.insert(key);
            }
            mailbox.unreported.remove(0);
        }
        Ok(())
    }

    /// If a native member has read messages on this host, marks them as read in the shared store too.
    async fn mark(&self, member: &MemberName, mailbox: &mut MailboxSync) -> Result<(), LinkError> {
        let config = &self.config;
        for (mark, keys) in mailbox.unmarked() {
            if keys.is_empty() {
                continue;
            }
            config.call_shared(config.shared.mark(&config.team, member, &keys, mark)).await?;
            let marked = if mark == Mark::Shown {
                &mut mailbox.shared.shown
            } else {
                &mut mailbox.shared.read
            };
            marked.extend(keys);
        }
        Ok(())
    }

    /// Copies mail from a remote member's local inbox to the shared store, but only mail from local members.
    ///
    /// Marks the copied messages only if `at_rest`: marking takes Claude Code's lock, and Claude
    /// Code 2.1.50 loses a message that it tries to write at that moment. The link remembers which
    /// messages it has copied but not yet marked.
    pub(super) async fn outward(
        &mut self,
        to: &MemberName,
        sides: &MemberSides,
        at_rest: bool,
    ) -> Result<(), LinkError> {
        let config = self.config.clone();
        let inbox = config.local.inbox(&config.team, to).await.map_err(LinkError::Local)?;
        let count = inbox.len();
        let mut unread = Vec::new();
        for mail in inbox {
            let message = with_message(&mail.json, |message| {
                let message = message.filter(|message| !message.read())?;
                let id = message.msg_id().map(Cow::into_owned);
                let id = id.unwrap_or_else(|| {
                    let key = mail.key.to_string();
                    message_id(&[config.team.as_str(), to.as_str(), &key], sides.created)
                });
                Some(Outgoing::copy_of(&message, id))
            });
            if let Ok(Some(message)) = message {
                unread.push((mail.key, message));
            }
        }
        if unread.is_empty() {
            return Ok(());
        }
        let mut sent = match self.forwarded.remove(to) {
            Some(sent) => sent,
            None => {
                let history =
                    config.call_shared(config.shared.mailbox_history(&config.team, to)).await?;
                // A member on another host can use the id of a message that was not copied yet.
                let is_local = |sender: String| sides.is_local(&sender);
                let from_here = |record: &&Record| record.event.sender().is_some_and(is_local);
                history
                    .iter()
                    .filter(from_here)
                    .filter_map(|record| record.event.message())
                    .collect()
            }
        };
        let mut keys = Vec::new();
        for (key, message) in unread {
            let message = Outgoing { team_created: sides.created.unwrap_or_default(), ..message };
            self.forward(to, sides, message, &mut sent).await?;
            keys.push(key);
        }
        self.forwarded.insert(to.clone(), sent);
        if at_rest {
            let marked = config.local.mark(&config.team, to, &keys, Mark::Read).await;
            marked.map_err(LinkError::Local)?;
            if count >= MAX_INBOX {
                config.local.prune_inbox(&config.team, to).await.map_err(LinkError::Local)?;
            }
        }
        Ok(())
    }

    /// Copies one message to the shared store, unless it was already copied or its sender is not
    /// local.
    async fn forward(
        &mut self,
        to: &MemberName,
        sides: &MemberSides,
        message: Outgoing,
        sent: &mut HashSet<MessageKey>,
    ) -> Result<(), LinkError> {
        if sent.contains(&message.key()) {
            return Ok(());
        }
        let refused =
            |from: String, why: String| LinkEvent::Refused { from, to: to.to_string(), why };
        let key = message.key();
        if !sides.is_local(&message.from) {
            self.emit(&refused(message.from, "its sender does not run on this host".into()));
            sent.insert(key);
            return Ok(());
        }
        let config = &self.config;
        match config.call_shared(config.shared.send(&config.team, to, &message)).await {
            Ok(_) => {
                sent.insert(key);
                let Outgoing { from, msg_id: id, .. } = message;
                self.emit(&LinkEvent::Out { from, to: to.to_string(), id });
                Ok(())
            }
            Err(LinkError::Shared(error @ StoreError::Forbidden { .. })) => {
                let text = format!("Your message was not forwarded to the host of {to}: {error}");
                self.emit(&refused(message.from.clone(), error.to_string()));
                if let Ok(from) = message.from.parse() {
                    self.notify(&from, &["refused", &message.msg_id], &text, sides).await?;
                }
                sent.insert(key);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Removes the terminal pane from a member's consent to shut down. Claude Code closes the pane with that id on its
/// own host, where the id may belong to another program.
fn without_pane(text: String) -> String {
    match Body::parse(&text) {
        Body::Protocol(Protocol::ShutdownApproved(mut answer)) if answer.pane_id.is_some() => {
            (answer.pane_id, answer.backend_type) = (None, None);
            Protocol::from(answer).to_text()
        }
        _ => text,
    }
}
