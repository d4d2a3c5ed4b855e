//! Mail: what goes out, what comes in, and what was read of it.

use std::borrow::Cow;
use std::collections::HashSet;

use brigade_wire::name::MemberName;

use super::roster::Sides;
use super::tell::id_of;
use super::{Link, LinkError, News};
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::mail::{signed, with_message};
use brigade_core::store::{Actor, Mark, Outgoing, Store as _, StoreError};

/// How many messages the inbox of a remote member may hold before they are taken out: whoever writes to it
/// writes all of it.
const MANY: usize = 64;
/// How far the clocks of two hosts may be apart before mail of this team counts as that of an earlier
/// one of its name.
const SKEW_MS: u64 = 5 * 60 * 1000;

/// What is known of a local member's mailbox, on both sides.
#[derive(Debug, Default)]
pub(super) struct Post {
    here: Known,
    there: Known,
    /// What came here from here, and the far journal does not have yet.
    untold: Vec<Record>,
}

/// What one side knows of a mailbox.
#[derive(Debug, Default)]
struct Known {
    /// The messages that came into it.
    sent: HashSet<MessageKey>,
    /// Those that were only seen in it: they are elsewhere.
    seen: HashSet<MessageKey>,
    read: HashSet<MessageKey>,
    shown: HashSet<MessageKey>,
}

impl Known {
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

impl Post {
    pub(super) fn note_here(&mut self, record: &Record) {
        if record.event.message().is_some_and(|key| !self.here.has(key)) {
            self.untold.push(record.clone());
        }
        self.here.note(&record.event);
    }

    pub(super) fn note_there(&mut self, record: &Record) {
        self.there.note(&record.event);
    }

    /// Whether the message came here at any time.
    pub(super) fn had(&self, key: MessageKey) -> bool {
        self.here.has(key)
    }

    /// What was done here with mail from elsewhere, and the far store does not know yet.
    fn unmarked(&self) -> [(Mark, Vec<MessageKey>); 2] {
        let Self { here, there, .. } = self;
        let shown: Vec<MessageKey> =
            there.sent.iter().filter(|key| here.shown.contains(key)).copied().collect();
        let shown: Vec<MessageKey> =
            shown.into_iter().filter(|key| !there.shown.contains(key)).collect();
        let read = there.sent.iter().filter(|key| here.read.contains(key));
        let read = read.filter(|key| !there.read.contains(key) && !there.shown.contains(key));
        let read = read.filter(|key| !shown.contains(key)).copied().collect();
        [(Mark::Shown, shown), (Mark::Read, read)]
    }
}

impl Link {
    /// Sees to the mailbox of a local member.
    pub(super) async fn inward(&mut self, of: &MemberName, sides: &Sides) -> Result<(), LinkError> {
        let mut post = match self.posts.remove(of) {
            Some(post) => post,
            None => self.look_up(of, sides).await?,
        };
        // A line in the far journal of which it is not known whether it stands would be written twice, so both
        // sides are asked again, which takes as long as the mailbox is old. A message is delivered once and marked
        // once however often that is tried.
        let mut done = self.deliver(of, sides, &mut post).await;
        if done.is_ok() {
            self.report(of, sides, &mut post).await?;
            done = self.mark(of, &mut post).await;
        }
        self.posts.insert(of.clone(), post);
        done
    }

    async fn look_up(&self, of: &MemberName, sides: &Sides) -> Result<Post, LinkError> {
        let (ends, mut post) = (&self.ends, Post::default());
        for record in ends.far(ends.far.mailbox_history(&ends.team, of)).await? {
            post.note_there(&record);
        }
        let here = ends.local.mailbox_history(&ends.team, of).await.map_err(LinkError::Here)?;
        for record in &here {
            post.note_here(record);
        }
        // An earlier team of the name has left its history.
        let created = sides.created.unwrap_or_default().saturating_sub(SKEW_MS);
        let this = |record: &Record| {
            u64::try_from(record.at.as_millisecond()).unwrap_or_default() >= created
        };
        post.untold.retain(this);
        Ok(post)
    }

    /// Puts into the files what waits for a local member.
    async fn deliver(
        &self,
        of: &MemberName,
        sides: &Sides,
        post: &mut Post,
    ) -> Result<(), LinkError> {
        let ends = &self.ends;
        for mail in ends.far(ends.far.inbox(&ends.team, of)).await? {
            if post.here.has(mail.key) {
                continue;
            }
            let message = with_message(&mail.json, |message| {
                let message = message.filter(|message| !message.read())?;
                let id = message.msg_id()?.into_owned();
                Some(Outgoing::again(&message, id))
            });
            let Ok(Some(message)) = message else { continue };
            let message = Outgoing { team_created: sides.created.unwrap_or_default(), ..message };
            // The lead's own signature is for the readers of its host; here it is known by other keys.
            let message = match &ends.signer {
                Some(signer) if sides.lead.as_deref() == Some(message.from.as_str()) => {
                    signed(signer.as_ref(), of, message)
                }
                _ => message,
            };
            post.there.sent.insert(mail.key);
            ends.local.send(&ends.team, of, &message).await.map_err(LinkError::Here)?;
            post.here.sent.insert(mail.key);
            let Outgoing { from, msg_id: id, .. } = message;
            self.say(&News::In { from, to: of.to_string(), id });
        }
        Ok(())
    }

    /// Tells the far journal what went from one to another on this host.
    async fn report(
        &self,
        of: &MemberName,
        sides: &Sides,
        post: &mut Post,
    ) -> Result<(), LinkError> {
        let ends = &self.ends;
        while let Some(record) = post.untold.first() {
            if let Event::Sent { key, message, .. } | Event::Seen { key, message, .. } =
                &record.event
                && !post.there.has(*key)
            {
                let key = *key;
                let from = with_message(message.get().as_bytes(), |message| {
                    message.map(|message| message.from().into_owned())
                });
                let from = from.ok().flatten().filter(|from| sides.is_local(from));
                let by = Actor(from.unwrap_or_else(|| of.to_string()));
                let event = Event::Seen { to: of.to_string(), key, message: message.clone() };
                match ends.far(ends.far.record(&ends.team, event, &by)).await {
                    Ok(()) => {}
                    // A line less in a journal; the mail itself is here.
                    Err(error) if error.is_forbidden() => {}
                    Err(error) => return Err(error),
                }
                post.there.seen.insert(key);
            }
            post.untold.remove(0);
        }
        Ok(())
    }

    /// Tells the far store what natives here have read.
    async fn mark(&self, of: &MemberName, post: &mut Post) -> Result<(), LinkError> {
        let ends = &self.ends;
        for (mark, keys) in post.unmarked() {
            if keys.is_empty() {
                continue;
            }
            ends.far(ends.far.mark(&ends.team, of, &keys, mark)).await?;
            let marked =
                if mark == Mark::Shown { &mut post.there.shown } else { &mut post.there.read };
            marked.extend(keys);
        }
        Ok(())
    }

    /// Sees to the inbox here of a remote member: what local members wrote to it goes out.
    ///
    /// It is marked only `at_rest`. To mark it takes Claude Code's lock, and a native of the old generation
    /// loses what it wants to write at that moment; meanwhile it is known what went out.
    pub(super) async fn outward(
        &mut self,
        to: &MemberName,
        sides: &Sides,
        at_rest: bool,
    ) -> Result<(), LinkError> {
        let ends = self.ends.clone();
        let inbox = ends.local.inbox(&ends.team, to).await.map_err(LinkError::Here)?;
        let count = inbox.len();
        let mut unread = Vec::new();
        for mail in inbox {
            let message = with_message(&mail.json, |message| {
                let message = message.filter(|message| !message.read())?;
                let id = message.msg_id().map(Cow::into_owned);
                let id = id.unwrap_or_else(|| {
                    let key = mail.key.to_string();
                    id_of(&[ends.team.as_str(), to.as_str(), &key], sides.created)
                });
                Some(Outgoing::again(&message, id))
            });
            if let Ok(Some(message)) = message {
                unread.push((mail.key, message));
            }
        }
        if unread.is_empty() {
            return Ok(());
        }
        let mut sent = match self.sent.remove(to) {
            Some(sent) => sent,
            None => {
                let history = ends.far(ends.far.mailbox_history(&ends.team, to)).await?;
                history.iter().filter_map(|record| record.event.message()).collect()
            }
        };
        let mut keys = Vec::new();
        for (key, message) in unread {
            let message = Outgoing { team_created: sides.created.unwrap_or_default(), ..message };
            self.carry(to, sides, message, &mut sent).await?;
            keys.push(key);
        }
        self.sent.insert(to.clone(), sent);
        if at_rest {
            let marked = ends.local.mark(&ends.team, to, &keys, Mark::Read).await;
            marked.map_err(LinkError::Here)?;
            if count >= MANY {
                ends.local.tidy(&ends.team, to).await.map_err(LinkError::Here)?;
            }
        }
        Ok(())
    }

    /// Carries one message out, unless it is out already or not for us to carry.
    async fn carry(
        &mut self,
        to: &MemberName,
        sides: &Sides,
        message: Outgoing,
        sent: &mut HashSet<MessageKey>,
    ) -> Result<(), LinkError> {
        if sent.contains(&message.key()) {
            return Ok(());
        }
        let refused = |from: String, why: String| News::Refused { from, to: to.to_string(), why };
        let key = message.key();
        if !sides.is_local(&message.from) {
            self.say(&refused(message.from, "its sender does not live here".into()));
            sent.insert(key);
            return Ok(());
        }
        let ends = &self.ends;
        match ends.far(ends.far.send(&ends.team, to, &message)).await {
            Ok(_) => {
                sent.insert(key);
                let Outgoing { from, msg_id: id, .. } = message;
                self.say(&News::Out { from, to: to.to_string(), id });
                Ok(())
            }
            Err(LinkError::Far(error @ StoreError::Forbidden { .. })) => {
                let text = format!("your message to {to} was not carried to its host: {error}");
                self.say(&refused(message.from.clone(), error.to_string()));
                if let Ok(from) = message.from.parse() {
                    self.tell(&from, &["refused", &message.msg_id], &text, sides).await?;
                }
                sent.insert(key);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
