//! Messages between members: send, broadcast, read, mark read.
//!
//! ```
//! use std::time::Duration;
//!
//! use brigade_core::mail::{self, Which, Words};
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.of("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! mail::send(&lead, "bob", "please look at the parser").await?;
//! mail::send(&lead, "bob", Words::from("the tests first").summed_up("order")).await?;
//! assert_eq!(mail::inbox(&lead, &bob.name, Which::Unread).await?.len(), 2);
//!
//! let mail = mail::receive(&bob, Duration::from_secs(60)).await?;
//! assert_eq!((mail[0].from(), mail[0].text()), ("team-lead".into(), "please look at the parser".into()));
//! assert_eq!(mail::inbox(&lead, &bob.name, Which::Unread).await?.len(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! What is sent here is words. A text that its reader's program would take for more than words, an
//! order of the protocol or another's envelope, is refused: those are made by the house, in
//! [`handshake`](crate::handshake) and [`board`](crate::board), from what the seat may do.

use std::time::Duration;

use brigade_wire::Damage;
use brigade_wire::body::Body;
use brigade_wire::generation::Generation;
use brigade_wire::inbox::Inbox;
use brigade_wire::name::{MemberName, NameError};
use brigade_wire::team::Team;
use thiserror::Error;
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use crate::authority::{self, Denied};
use crate::clock::wire_time;
use crate::event::{Event, MessageKey};
use crate::hash::Fnv;
use crate::roster;
use crate::seat::Seat;
use crate::signature::Signer;
use crate::store::{Mail, Mark, Outgoing, Receipt, StoreError};

/// The longest text a message may have. An inbox of a megabyte stalls Claude Code.
pub const MAX_TEXT: usize = 1 << 20;

/// What somebody wants to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'w> {
    /// The message.
    pub text: &'w str,
    /// A few words for people.
    pub summary: Option<&'w str>,
}

impl<'w> Words<'w> {
    /// The same with a few words for people.
    pub fn summed_up(self, summary: &'w str) -> Self {
        Self { summary: Some(summary), ..self }
    }
}

impl<'w> From<&'w str> for Words<'w> {
    fn from(text: &'w str) -> Self {
        Self { text, summary: None }
    }
}

impl<'w> From<&'w String> for Words<'w> {
    fn from(text: &'w String) -> Self {
        Self::from(text.as_str())
    }
}

/// A message that was acknowledged.
#[derive(Debug)]
#[non_exhaustive]
pub struct Sent {
    /// To whom.
    pub to: MemberName,
    /// What the store said.
    pub receipt: Receipt,
    /// Whether it is for a lead that does not read its inbox at the moment: one of the new generation
    /// does so only while a teammate that it started itself is there.
    pub unheard: bool,
}

impl Sent {
    /// What its sender should know: why a message that is safe is not where it is read.
    pub fn caveat(&self) -> Option<String> {
        let waits = self.receipt.waits.as_ref();
        let waits = waits.map(|why| format!("not in {}'s inbox yet: {why}", self.to));
        let unheard = || {
            format!(
                "in {}'s inbox, which it reads only while a teammate that it started itself is there",
                self.to
            )
        };
        waits.or_else(|| self.unheard.then(unheard))
    }
}

/// Why a message was not sent, or an inbox not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MailError {
    /// Nobody of that name.
    #[error("no member {to:?} in team {team}")]
    NoMember {
        /// Whom it was for.
        to: String,
        /// Which team.
        team: String,
        /// Who is there.
        members: Vec<String>,
    },
    /// It is not for the seat to do.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A message to oneself is a mistake.
    #[error("a message to oneself ({to})")]
    ToSelf {
        /// Whom it was for.
        to: MemberName,
    },
    /// Nothing to say.
    #[error("the message is empty")]
    Empty,
    /// Too much to say.
    #[error("the message has {len} bytes; at most {MAX_TEXT} are taken")]
    TooLong {
        /// Its length.
        len: usize,
    },
    /// JSON with a `type` is an order to the program that reads it, not words for its model.
    #[error("the text is JSON of type {kind:?}, which would be taken for an order of the protocol")]
    Protocol {
        /// The type it names.
        kind: String,
    },
    /// Claude Code 2.1.50 puts texts before its model as they are.
    #[error("the message has a <{ENVELOPE}> tag in it, and would pass for somebody else's")]
    Envelope,
    /// A message to several reached some, and then failed.
    #[error("sent to {}, and then failed for {failed}", names(.reached))]
    Partly {
        /// Who has it.
        reached: Vec<Sent>,
        /// Who has not.
        failed: MemberName,
        /// Why.
        source: StoreError,
    },
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The tag around a message, as a model sees it.
const ENVELOPE: &str = "teammate-message";

fn names(sent: &[Sent]) -> String {
    let names: Vec<&str> = sent.iter().map(|sent| sent.to.as_str()).collect();
    names.join(", ")
}

/// Sends a message to one member.
pub async fn send<'w>(
    seat: &Seat,
    to: &str,
    words: impl Into<Words<'w>>,
) -> Result<Sent, MailError> {
    let mut sent = send_to(seat, &[to], words).await?;
    sent.pop().ok_or_else(|| MailError::NoMember {
        to: to.to_owned(),
        team: seat.team.to_string(),
        members: Vec::new(),
    })
}

/// Sends a message to some members, each once, in the order given. If one of them is not there,
/// nobody gets it.
pub async fn send_to<'w>(
    seat: &Seat,
    to: &[&str],
    words: impl Into<Words<'w>>,
) -> Result<Vec<Sent>, MailError> {
    let words = words.into();
    check(words)?;
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    let mut names: Vec<MemberName> = Vec::new();
    for to in to {
        let name = recipient(seat, &team, to)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    send_each(seat, &team, names, words).await
}

/// Sends a message to every other member, in the order of the roster.
pub async fn broadcast<'w>(
    seat: &Seat,
    words: impl Into<Words<'w>>,
) -> Result<Vec<Sent>, MailError> {
    let words = words.into();
    check(words)?;
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::member(seat, &team)?;
    // A name no inbox can be made of safely was not given by us; its owner hears nothing.
    let names = member_names(&team).into_iter().filter_map(|name| name.parse().ok());
    let others = names.filter(|name: &MemberName| *name != seat.name).collect();
    send_each(seat, &team, others, words).await
}

/// Sends a message that is sent once, however often this is called: `what` is its name among those the
/// sender so sends to this member in this team.
pub async fn send_once<'w>(
    seat: &Seat,
    to: &MemberName,
    what: &str,
    words: impl Into<Words<'w>>,
) -> Result<Receipt, MailError> {
    let words = words.into();
    check(words)?;
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    let mut message = unsigned(seat, &team, words)?;
    let created = team.created_at().unwrap_or_default();
    let half = |salt: &str| {
        let name = Fnv::default().field(salt.as_bytes()).field(seat.team.as_str().as_bytes());
        let name = name.field(&created.to_le_bytes()).field(seat.name.as_str().as_bytes());
        name.field(to.as_str().as_bytes()).field(what.as_bytes()).finish()
    };
    let id = (u128::from(half("high")) << 64) | u128::from(half("low"));
    message.msg_id = uuid::Builder::from_custom_bytes(id.to_be_bytes()).into_uuid().to_string();
    let records = seat.store.mailbox_history(&seat.team, to).await?;
    if records.iter().any(|record| record.event.message() == Some(message.key())) {
        return Ok(Receipt { msg_id: message.msg_id, waits: None });
    }
    let message = sealed(seat, &team, to, message);
    Ok(seat.store.send(&seat.team, to, &message).await?)
}

async fn send_each(
    seat: &Seat,
    team: &Team<'_>,
    names: Vec<MemberName>,
    words: Words<'_>,
) -> Result<Vec<Sent>, MailError> {
    let mut reached = Vec::new();
    for to in names {
        // Each copy is a message of its own, as Claude Code has it.
        let message = outgoing(seat, team, &to, words)?;
        match seat.store.send(&seat.team, &to, &message).await {
            Ok(receipt) => {
                tracing::info!(team = %seat.team, member = %to, "sent");
                let leads = team.lead().is_some_and(|lead| lead.is(to.as_str()));
                let unheard = leads && !roster::listens(team);
                reached.push(Sent { to, receipt, unheard });
            }
            Err(source) if reached.is_empty() => return Err(source.into()),
            Err(source) => return Err(MailError::Partly { reached, failed: to, source }),
        }
    }
    Ok(reached)
}

/// Sends words of the protocol to a member, who may be the sender.
pub async fn send_protocol(seat: &Seat, to: &MemberName, text: &str) -> Result<Receipt, MailError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    let message = protocol(seat, &team, to, text)?;
    Ok(seat.store.send(&seat.team, to, &message).await?)
}

/// The messages in a member's inbox.
pub async fn inbox(seat: &Seat, of: &MemberName, which: Which) -> Result<Vec<Mail>, MailError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    if team.member(of.as_str()).is_none() {
        return Err(no_member(seat, &team, of.as_str()));
    }
    let mut mail = seat.store.inbox(&seat.team, of).await?;
    if which == Which::Unread {
        mail.retain(Mail::is_unread);
    }
    Ok(mail)
}

/// Which messages of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that are there.
    All,
    /// Those not marked read.
    Unread,
}

/// Marks messages of the seat's own inbox.
pub async fn mark(seat: &Seat, keys: &[MessageKey], mark: Mark) -> Result<(), StoreError> {
    seat.store.mark(&seat.team, &seat.name, keys, mark).await
}

/// Waits for mail of the seat's own and marks it read: gives what is unread as soon as there is any, or
/// nothing when `patience` is at its end.
///
/// What it gave and the program did not come to is not given again. A program that must not lose any reads
/// with [`inbox`], and calls [`mark`] when it is through with a message.
pub async fn receive(seat: &Seat, patience: Duration) -> Result<Vec<Mail>, MailError> {
    let end = Instant::now() + patience.min(LONGEST);
    // First the watch, then the look: what comes in between wakes us.
    let mut watch = seat.store.watch_proceedings(&seat.team).await?;
    loop {
        let mail = inbox(seat, &seat.name, Which::Unread).await?;
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
                    // Nothing wakes us any more, so that we look again now and then.
                    None if Instant::now() < end => {
                        sleep(LOOK.min(end - Instant::now())).await;
                        break;
                    }
                    None => return Ok(Vec::new()),
                },
                () = sleep_until(end) => return Ok(Vec::new()),
            }
        }
    }
}

/// For ever, as far as a clock can count.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How often an inbox is looked at that can no longer be watched.
const LOOK: Duration = Duration::from_secs(1);

/// Whether an entry of an inbox is marked read.
pub fn is_read(json: &[u8]) -> Result<bool, Damage> {
    with_message(json, |message| message.is_none_or(|message| message.read()))
}

/// Looks at one entry of an inbox; `None` if it is no message.
pub fn with_message<T>(
    json: &[u8],
    look: impl FnOnce(Option<brigade_wire::message::Message<'_>>) -> T,
) -> Result<T, Damage> {
    let inbox = [b"[".as_slice(), json, b"]"].concat();
    let inbox = Inbox::read(&inbox)?;
    Ok(look(inbox.messages().next()))
}

/// Words of the protocol, ready to be sent.
///
/// In them, too, somebody may have written another's envelope: in a plan, a reason, the subject of a
/// task. JSON has a second spelling for the character it begins with, so nothing has to be refused.
pub(crate) fn protocol(
    seat: &Seat,
    team: &Team<'_>,
    to: &MemberName,
    text: &str,
) -> Result<Outgoing, MailError> {
    let text = if has_envelope(text) { &text.replace('<', "\\u003c") } else { text };
    outgoing(seat, team, to, Words { text, summary: None })
}

/// Refuses what is not words.
fn check(words: Words<'_>) -> Result<(), MailError> {
    if words.text.is_empty() {
        return Err(MailError::Empty);
    }
    match Body::parse(words.text) {
        Body::Text => {}
        Body::Protocol(protocol) => {
            return Err(MailError::Protocol { kind: protocol.kind().to_owned() });
        }
        Body::Unknown { kind } | Body::Malformed { kind, .. } => {
            return Err(MailError::Protocol { kind });
        }
    }
    if has_envelope(words.text) || words.summary.is_some_and(has_envelope) {
        return Err(MailError::Envelope);
    }
    Ok(())
}

/// Whether a text has the tag of an envelope in it, as a model might read it.
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
    words: Words<'_>,
) -> Result<Outgoing, MailError> {
    Ok(sealed(seat, team, to, unsigned(seat, team, words)?))
}

fn unsigned(seat: &Seat, team: &Team<'_>, words: Words<'_>) -> Result<Outgoing, MailError> {
    let len = words.text.len().max(words.summary.map_or(0, str::len));
    if len > MAX_TEXT {
        return Err(MailError::TooLong { len });
    }
    let from = team.member(seat.name.as_str()).ok_or_else(|| authority::absent(seat, team))?;
    Ok(Outgoing {
        msg_id: Uuid::new_v4().to_string(),
        from: seat.name.to_string(),
        text: words.text.to_owned(),
        summary: words.summary.map(str::to_owned),
        timestamp: wire_time(seat.clock.now()),
        color: from.color().and_then(|color| color.parse().ok()),
        msg_v: Outgoing::msg_v(team.generation()),
        lead_sig: None,
        team_created: team.created_at().unwrap_or_default(),
    })
}

/// The message with the lead's signature, where the seat is the lead's. Nothing in it may change
/// from here on.
fn sealed(seat: &Seat, team: &Team<'_>, to: &MemberName, message: Outgoing) -> Outgoing {
    match &seat.signer {
        Some(signer) if team.lead().is_some_and(|lead| lead.is(seat.name.as_str())) => {
            signed(signer.as_ref(), to, message)
        }
        _ => message,
    }
}

/// The message with the lead's signature, if its reader knows the lead by a key. Then it has the form
/// of the new generation, whatever the team's: only that one signs.
pub fn signed(signer: &dyn Signer, to: &MemberName, message: Outgoing) -> Outgoing {
    match signer.sign(to, &message) {
        Some(signature) => {
            let msg_v = Outgoing::msg_v(Generation::New);
            Outgoing { lead_sig: Some(signature), msg_v, ..message }
        }
        None => message,
    }
}

/// The member that is meant, who is not the seat itself.
pub(crate) fn recipient(seat: &Seat, team: &Team<'_>, to: &str) -> Result<MemberName, MailError> {
    let absent = || no_member(seat, team, to);
    let name: MemberName = to.parse().map_err(|_: NameError| absent())?;
    if name == seat.name {
        return Err(MailError::ToSelf { to: name });
    }
    team.member(to).map(|_| name).ok_or_else(absent)
}

fn no_member(seat: &Seat, team: &Team<'_>, to: &str) -> MailError {
    let (to, members) = (to.to_owned(), member_names(team));
    MailError::NoMember { to, team: seat.team.to_string(), members }
}

/// The members' names, in the order of the roster.
pub(crate) fn member_names(team: &Team<'_>) -> Vec<String> {
    team.members().filter_map(|member| Some(member.name()?.into_owned())).collect()
}
