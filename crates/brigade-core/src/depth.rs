//! The mail backlog of a member: how many messages are unread, and how old the oldest of them is.
//!
//! ```
//! use brigade_core::depth::depth;
//! use brigade_core::mail;
//!
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.for_member("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! mail::send(&lead, "bob", "hello").await?;
//! assert_eq!(depth(lead.store.as_ref(), &lead.team, &bob.name).await?.unread, Some(1));
//! # Ok(())
//! # }
//! ```

use crate::pulse::Pulse;
use crate::store::{Mail, MailQuery, NoteKind, RetryStats, Store, StoreError};
use brigade_wire::inbox::{is_read, with_message};
use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use serde::Serialize;

/// A member's unread mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MailBacklog {
    /// The name of the member.
    pub name: MemberName,
    /// The number of unread messages; `None` if the store forbids reading the member's inbox.
    pub unread: Option<usize>,
    /// When the store accepted the oldest unread message. A message that was shown to a model counts as read.
    pub oldest_unshown: Option<Timestamp>,
    /// The retry counters that the member's process last reported, if it reported any.
    pub strain: Option<RetryStats>,
}

/// Counts a member's unread messages and finds the oldest one.
pub async fn depth(
    store: &dyn Store,
    team: &TeamName,
    name: &MemberName,
) -> Result<MailBacklog, StoreError> {
    let unread = match store.inbox(team, name).await {
        Err(StoreError::Forbidden { .. }) => None,
        inbox => {
            let is_unread = |mail: &Mail| !is_read(&mail.json).unwrap_or(false);
            Some(inbox?.into_iter().filter(is_unread).collect::<Vec<_>>())
        }
    };
    let oldest_unshown = match unread.as_deref().and_then(<[Mail]>::first) {
        Some(oldest) => Some(accepted_at(store, team, name, oldest).await?),
        None => None,
    };
    let pulse = match store.get_note(team, name, NoteKind::Pulse).await {
        Err(StoreError::Forbidden { .. }) => None,
        note => note?,
    };
    let pulse: Option<Pulse> = pulse.and_then(|pulse| serde_json::from_slice(&pulse).ok());
    let strain = pulse.and_then(|pulse| pulse.strain);
    let unread = unread.map(|unread| unread.len());
    Ok(MailBacklog { name: name.clone(), unread, oldest_unshown, strain })
}

/// Returns when the store accepted a message, by the store's clock. If another program wrote the message and the
/// journal does not contain it yet, returns the timestamp in the message.
async fn accepted_at(
    store: &dyn Store,
    team: &TeamName,
    of: &MemberName,
    mail: &Mail,
) -> Result<Timestamp, StoreError> {
    let keys = [mail.key];
    let records = store.find_mail(team, of, MailQuery::Messages(&keys)).await?;
    if let Some(record) = records.last() {
        return Ok(record.at);
    }
    let written_at = with_message(&mail.json, |message| message?.timestamp().parse().ok());
    Ok(written_at.ok().flatten().unwrap_or(Timestamp::UNIX_EPOCH))
}
