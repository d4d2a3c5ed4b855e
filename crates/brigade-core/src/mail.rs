//! Messages between members: send, broadcast, read, mark as read.
//!
//! ```
//! use std::time::Duration;
//!
//! use brigade_core::mail::{self, InboxFilter, MessageText};
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.for_member("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! mail::send(&lead, "bob", "please look at the parser").await?;
//! mail::send(&lead, "bob", MessageText::from("the tests first").with_summary("order")).await?;
//! assert_eq!(mail::inbox(&lead, &bob.name, InboxFilter::Unread).await?.len(), 2);
//!
//! let mail = mail::receive(&bob, Duration::from_secs(60)).await?;
//! assert_eq!((mail[0].from(), mail[0].text()), ("team-lead".into(), "please look at the parser".into()));
//! assert_eq!(mail::inbox(&lead, &bob.name, InboxFilter::Unread).await?.len(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! Only plain text can be sent with this module. Text that the recipient's program would interpret is rejected:
//! protocol messages and message envelopes. brigade itself creates protocol messages, in
//! [`handshake`](crate::handshake) and [`board`](crate::board), if the seat's role allows it.

use std::time::Duration;

use brigade_wire::backend;
use brigade_wire::body::Body;
use brigade_wire::generation::Generation;
use brigade_wire::member::Member;
use brigade_wire::name::{MemberName, NameError};
use brigade_wire::team::Team;
use thiserror::Error;
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use crate::authority::{self, Denied};
use crate::clock::wire_time;
use crate::event::{Event, MessageKey};
use crate::hash::derived_uuid;
use crate::seat::Seat;
use crate::signature::{KeyAhead, Signer};
use crate::store::{Mail, MailContent, MailQuery, Mark, Outgoing, Receipt, StoreError};

/// The maximum length of a message text in bytes. An inbox of one megabyte stalls Claude Code.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// The text of a message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageText<'w> {
    /// The full text.
    pub text: &'w str,
    /// A short summary for people.
    pub summary: Option<&'w str>,
}

impl<'w> MessageText<'w> {
    /// Adds a short summary for people.
    pub fn with_summary(self, summary: &'w str) -> Self {
        Self { summary: Some(summary), ..self }
    }
}

impl<'w> From<&'w str> for MessageText<'w> {
    fn from(text: &'w str) -> Self {
        Self { text, summary: None }
    }
}

impl<'w> From<&'w String> for MessageText<'w> {
    fn from(text: &'w String) -> Self {
        Self::from(text.as_str())
    }
}

/// A message that the store acknowledged.
#[derive(Debug)]
#[non_exhaustive]
pub struct Sent {
    /// The recipient.
    pub to: MemberName,
    /// The store's receipt for the message.
    pub receipt: Receipt,
    /// Whether the recipient is a lead that currently does not read its inbox: a Claude Code lead of the newer
    /// generation reads its inbox only while a teammate that it started itself is running.
    pub lead_not_reading: bool,
}

impl Sent {
    /// If the message is stored but the recipient does not see it yet, explains why.
    pub fn caveat(&self) -> Option<String> {
        let waits = self.receipt.pending.as_ref();
        let waits = waits.map(|why| format!("not in {}'s inbox yet: {why}", self.to));
        let unheard = || {
            format!(
                "in {0}'s inbox, but {0} reads it only while a teammate that it started itself is running",
                self.to
            )
        };
        waits.or_else(|| self.lead_not_reading.then(unheard))
    }
}

/// Why sending a message or reading an inbox failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MailError {
    /// The recipient is not on the roster.
    #[error("no member named {to:?} in team {team:?}")]
    NoMember {
        /// The name of the recipient.
        to: String,
        /// The name of the team.
        team: String,
        /// The names of all members on the roster.
        members: Vec<String>,
    },
    /// The seat's role does not allow the operation.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The sender is the recipient.
    #[error("cannot send a message to yourself ({to})")]
    ToSelf {
        /// The name of the sender.
        to: MemberName,
    },
    /// The text is empty.
    #[error("the message is empty")]
    Empty,
    /// The text or the summary is too long.
    #[error("the message is {len} bytes long; the limit is {MAX_TEXT_BYTES}")]
    TooLong {
        /// The length of the text or summary in bytes.
        len: usize,
    },
    /// The text is JSON with a `type`. The recipient's program would interpret it instead of showing it.
    #[error(
        "the text is JSON of type {kind:?}, which the recipient would treat as a protocol message"
    )]
    Protocol {
        /// The value of `type`.
        kind: String,
    },
    /// The text contains an envelope tag, which Claude Code 2.1.50 would show to its model unescaped.
    #[error(
        "the message contains a <{ENVELOPE}> tag, so part of it could pass for another message"
    )]
    Envelope,
    /// Sending to several members failed after some of them got the message.
    #[error("sent to {}, but sending to {failed} failed", names(.reached))]
    Partly {
        /// The members who got the message.
        reached: Vec<Sent>,
        /// The first member that did not get the message.
        failed: MemberName,
        /// Why sending to that member failed.
        source: StoreError,
    },
    /// The recipient would reject the message.
    #[error(transparent)]
    KeyAhead(#[from] KeyAhead),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The tag that encloses each message shown to a model.
const ENVELOPE: &str = "teammate-message";

fn names(sent: &[Sent]) -> String {
    let names: Vec<&str> = sent.iter().map(|sent| sent.to.as_str()).collect();
    names.join(", ")
}

/// Sends a message to one member.
pub async fn send<'w>(
    seat: &Seat,
    to: &str,
    text: impl Into<MessageText<'w>>,
) -> Result<Sent, MailError> {
    let mut sent = send_to(seat, &[to], text).await?;
    sent.pop().ok_or_else(|| MailError::NoMember {
        to: to.to_owned(),
        team: seat.team.to_string(),
        members: Vec::new(),
    })
}

/// Sends a message to several members, once to each, in the given order. Sends nothing if one of them is not on
/// the roster.
pub async fn send_to<'w>(
    seat: &Seat,
    to: &[&str],
    text: impl Into<MessageText<'w>>,
) -> Result<Vec<Sent>, MailError> {
    let text = text.into();
    check_plain_text(text)?;
    let roster = seat.roster().await?;
    let team = roster.team();
    let mut names: Vec<MemberName> = Vec::new();
    for to in to {
        let name = recipient(seat, &team, to)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    send_each(seat, &team, names, text).await
}

/// Sends a message to every member except the sender, in roster order.
pub async fn broadcast<'w>(
    seat: &Seat,
    text: impl Into<MessageText<'w>>,
) -> Result<Vec<Sent>, MailError> {
    let text = text.into();
    check_plain_text(text)?;
    let roster = seat.roster().await?;
    let team = roster.team();
    authority::require_member(seat, &team)?;
    // Skip names that are not safe as file names. Only another program can have added them to the roster.
    let names = team.member_names().into_iter().filter_map(|name| name.parse().ok());
    let others = names.filter(|name: &MemberName| *name != seat.name).collect();
    send_each(seat, &team, others, text).await
}

/// Sends a message only once: if this function is called again with the same seat, recipient and `what`, it sends
/// nothing. `what` identifies the message.
pub async fn send_once<'w>(
    seat: &Seat,
    to: &MemberName,
    what: &str,
    text: impl Into<MessageText<'w>>,
) -> Result<Receipt, MailError> {
    let text = text.into();
    check_plain_text(text)?;
    let roster = seat.roster().await?;
    let team = roster.team();
    let mut message = build_unsigned(seat, &team, text)?;
    let created = team.created_at().unwrap_or_default();
    let id = derived_uuid(&[
        seat.team.as_str().as_bytes(),
        &created.to_le_bytes(),
        seat.name.as_str().as_bytes(),
        to.as_str().as_bytes(),
        what.as_bytes(),
    ]);
    message.msg_id = id.to_string();
    if is_recorded(seat, to, &message).await? {
        return Ok(Receipt { msg_id: message.msg_id, pending: None });
    }
    let message = sign_if_lead(seat, &team, to, message)?;
    Ok(seat.store.send(&seat.team, to, &message).await?)
}

/// Returns whether the history of the member's mailbox contains this message.
pub(crate) async fn is_recorded(
    seat: &Seat,
    to: &MemberName,
    message: &Outgoing,
) -> Result<bool, StoreError> {
    let keys = [message.key()];
    let records = seat.store.find_mail(&seat.team, to, MailQuery::Messages(&keys)).await?;
    Ok(records.iter().any(|record| message.is_added_by(&record.event)))
}

async fn send_each(
    seat: &Seat,
    team: &Team<'_>,
    names: Vec<MemberName>,
    text: MessageText<'_>,
) -> Result<Vec<Sent>, MailError> {
    let mut messages = Vec::new();
    for to in names {
        // Each recipient's message has its own id, as in Claude Code.
        let message = outgoing(seat, team, &to, text)?;
        messages.push((to, message));
    }
    let results = seat.store.send_all(&seat.team, &messages).await;
    let (mut reached, mut failure) = (Vec::new(), None);
    for ((to, _), result) in messages.into_iter().zip(results) {
        match result {
            Ok(receipt) => {
                tracing::info!(team = %seat.team, member = %to, "sent message");
                let leads = team.lead().is_some_and(|lead| lead.is(to.as_str()));
                let unheard = leads && !lead_reads_inbox(seat, team).await?;
                reached.push(Sent { to, receipt, lead_not_reading: unheard });
            }
            Err(source) => drop(failure.get_or_insert((to, source))),
        }
    }
    match failure {
        None => Ok(reached),
        Some((_, source)) if reached.is_empty() => Err(source.into()),
        Some((failed, source)) => Err(MailError::Partly { reached, failed, source }),
    }
}

/// Returns whether the lead currently reads its inbox. A lead of the newer generation reads its inbox only while a
/// teammate that it started itself is running.
pub(crate) async fn lead_reads_inbox(seat: &Seat, team: &Team<'_>) -> Result<bool, StoreError> {
    let lead = team.lead().and_then(|lead| Some(lead.name()?.into_owned()));
    let native = |member: &Member<'_>| {
        member.backend_type().is_some_and(|backend| backend::is_claude_codes(&backend))
            && member.name().as_deref() != lead.as_deref()
    };
    Ok(team.members().any(|member| native(&member)) || !is_led_by_session(seat, team).await?)
}

/// Returns whether a Claude Code session of the newer generation leads the team. Versions before 2.1.311 do not name
/// their process in the file. A session team that brigade restored has no process either, but then brigade leads it.
pub(crate) async fn is_led_by_session(seat: &Seat, team: &Team<'_>) -> Result<bool, StoreError> {
    if team.lead_process().is_some() {
        return Ok(true);
    }
    Ok(team.generation() == Generation::New && !seat.store.is_ours(&seat.team).await?)
}

/// Sends a protocol message to a member. The member may be the sender itself.
pub async fn send_protocol(seat: &Seat, to: &MemberName, text: &str) -> Result<Receipt, MailError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    let message = protocol(seat, &team, to, text)?;
    Ok(seat.store.send(&seat.team, to, &message).await?)
}

/// Returns the messages in a member's inbox: all of them, or only the unread ones.
pub async fn inbox(
    seat: &Seat,
    of: &MemberName,
    which: InboxFilter,
) -> Result<Vec<Mail>, MailError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    if team.member(of.as_str()).is_none() {
        return Err(no_member(seat, &team, of.as_str()));
    }
    let mut mail = seat.store.inbox(&seat.team, of).await?;
    if which == InboxFilter::Unread {
        mail.retain(Mail::is_unread);
    }
    Ok(mail)
}

/// Leaves out the notices that say only that a member is idle, and returns how many there are.
pub fn without_idle_notices(mail: &[Mail]) -> (Vec<&Mail>, usize) {
    let is_notice = |mail: &&Mail| mail.content() == Some(MailContent::IdleNotice);
    let (hidden, shown): (Vec<&Mail>, Vec<&Mail>) = mail.iter().partition(is_notice);
    (shown, hidden.len())
}

/// A filter for the messages of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxFilter {
    /// Selects all messages.
    All,
    /// Selects the messages that are not marked as read.
    Unread,
}

/// Marks messages in the seat's own inbox as read or shown.
pub async fn mark(seat: &Seat, keys: &[MessageKey], mark: Mark) -> Result<(), StoreError> {
    seat.store.mark(&seat.team, &seat.name, keys, mark).await
}

/// Waits for unread mail in the seat's own inbox, marks it as read and returns it. Returns an empty list if no
/// mail arrives within `timeout`.
///
/// A message is returned only once, even if the program crashes before it handles the message. A program that must
/// not lose a message calls [`inbox`] instead, and calls [`mark`] after it has handled the message.
pub async fn receive(seat: &Seat, timeout: Duration) -> Result<Vec<Mail>, MailError> {
    let end = Instant::now() + timeout.min(MAX_WAIT);
    // Start the watch before reading the inbox, so that a message that arrives in between wakes this loop.
    let mut watch = seat.watch_own().await?;
    loop {
        let mail = inbox(seat, &seat.name, InboxFilter::Unread).await?;
        if !mail.is_empty() {
            let keys: Vec<MessageKey> = mail.iter().map(|mail| mail.key).collect();
            mark(seat, &keys, Mark::Read).await?;
            return Ok(mail);
        }
        loop {
            tokio::select! {
                record = watch.next_shared() => match record.as_deref().map(|record| &record.event) {
                    Some(Event::Sent { to, .. } | Event::Seen { to, .. })
                        if to == seat.name.as_str() => break,
                    Some(_) => {}
                    // The watch has ended, so poll from now on.
                    None if Instant::now() < end => {
                        sleep(POLL_INTERVAL.min(end - Instant::now())).await;
                        break;
                    }
                    None => return Ok(Vec::new()),
                },
                () = sleep_until(end) => return Ok(Vec::new()),
            }
        }
    }
}

/// The longest wait: practically forever, but short enough not to overflow an `Instant`.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How often the inbox is polled when it cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Builds a protocol message.
///
/// The message's fields (a plan, a reason, a task subject) may contain a forged message envelope. In that case,
/// `<` is escaped, as JSON allows, so the message need not be rejected.
pub(crate) fn protocol(
    seat: &Seat,
    team: &Team<'_>,
    to: &MemberName,
    text: &str,
) -> Result<Outgoing, MailError> {
    let text = if has_envelope(text) { &text.replace('<', "\\u003c") } else { text };
    outgoing(seat, team, to, MessageText { text, summary: None })
}

/// Rejects empty texts, protocol messages and message envelopes.
fn check_plain_text(text: MessageText<'_>) -> Result<(), MailError> {
    if text.text.is_empty() {
        return Err(MailError::Empty);
    }
    match Body::parse(text.text) {
        Body::Text => {}
        Body::Protocol(protocol) => {
            return Err(MailError::Protocol { kind: protocol.kind().to_owned() });
        }
        Body::Unknown { kind } | Body::Malformed { kind, .. } => {
            return Err(MailError::Protocol { kind });
        }
    }
    if has_envelope(text.text) || text.summary.is_some_and(has_envelope) {
        return Err(MailError::Envelope);
    }
    Ok(())
}

/// Returns whether a text contains an envelope tag, or text that a model could mistake for one.
fn has_envelope(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.match_indices(ENVELOPE).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default().trim_end();
        before.trim_end_matches('/').trim_end().ends_with('<')
    })
}

fn outgoing(
    seat: &Seat,
    team: &Team<'_>,
    to: &MemberName,
    text: MessageText<'_>,
) -> Result<Outgoing, MailError> {
    Ok(sign_if_lead(seat, team, to, build_unsigned(seat, team, text)?)?)
}

fn build_unsigned(
    seat: &Seat,
    team: &Team<'_>,
    text: MessageText<'_>,
) -> Result<Outgoing, MailError> {
    let len = text.text.len().max(text.summary.map_or(0, str::len));
    if len > MAX_TEXT_BYTES {
        return Err(MailError::TooLong { len });
    }
    let from =
        team.member(seat.name.as_str()).ok_or_else(|| authority::not_a_member(seat, team))?;
    Ok(Outgoing {
        msg_id: Uuid::new_v4().to_string(),
        from: seat.name.to_string(),
        text: text.text.to_owned(),
        summary: text.summary.map(str::to_owned),
        timestamp: wire_time(seat.clock.now()),
        color: from.color().and_then(|color| color.parse().ok()),
        msg_v: Outgoing::msg_v(team.generation()),
        lead_sig: None,
        team_created: team.created_at().unwrap_or_default(),
    })
}

/// Signs the message if the seat is the lead. The message must not be changed afterwards.
fn sign_if_lead(
    seat: &Seat,
    team: &Team<'_>,
    to: &MemberName,
    message: Outgoing,
) -> Result<Outgoing, KeyAhead> {
    match &seat.signer {
        Some(signer) if team.lead().is_some_and(|lead| lead.is(seat.name.as_str())) => {
            signed(signer.as_ref(), to, message)
        }
        _ => Ok(message),
    }
}

/// Signs the message if the recipient has a key to verify the lead's messages. A signed message always has the
/// format of the newer generation, even in an older team, because only that format has a field for the signature.
/// Fails if the recipient would reject the signed message.
pub fn signed(
    signer: &dyn Signer,
    to: &MemberName,
    message: Outgoing,
) -> Result<Outgoing, KeyAhead> {
    Ok(match signer.sign(to, &message)? {
        Some(signature) => {
            let msg_v = Outgoing::msg_v(Generation::New);
            Outgoing { lead_sig: Some(signature), msg_v, ..message }
        }
        None => message,
    })
}

/// Looks up a recipient on the roster. Fails if the recipient is the seat itself.
pub(crate) fn recipient(seat: &Seat, team: &Team<'_>, to: &str) -> Result<MemberName, MailError> {
    let absent = || no_member(seat, team, to);
    let name: MemberName = to.parse().map_err(|_: NameError| absent())?;
    if name == seat.name {
        return Err(MailError::ToSelf { to: name });
    }
    team.member(to).map(|_| name).ok_or_else(absent)
}

fn no_member(seat: &Seat, team: &Team<'_>, to: &str) -> MailError {
    let (to, members) = (to.to_owned(), team.member_names());
    MailError::NoMember { to, team: seat.team.to_string(), members }
}
