//! How much waits in a mailbox, and for how long already: what an operator looks at first.
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
//! # let bob = lead.of("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! mail::send(&lead, "bob", "hello").await?;
//! assert_eq!(depth(lead.store.as_ref(), &lead.team, &bob.name).await?.unread, Some(1));
//! # Ok(())
//! # }
//! ```

use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use serde::Serialize;

use crate::mail::{is_read, with_message};
use crate::pulse::Pulse;
use crate::store::{Mail, Shelf, Store, StoreError, Strain};

/// What waits in a mailbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Depth {
    /// Whose it is.
    pub name: MemberName,
    /// Messages that nobody has read; `None` for a mailbox this seat may not look into.
    pub unread: Option<usize>,
    /// When the oldest of them was taken for the mailbox: neither was it shown to a model, nor marked
    /// read by hand.
    pub oldest_unshown: Option<Timestamp>,
    /// What the member's process had to do twice, as it said last; `None` if it runs nowhere.
    pub strain: Option<Strain>,
}

/// What waits in a mailbox.
pub async fn depth(
    store: &dyn Store,
    team: &TeamName,
    name: &MemberName,
) -> Result<Depth, StoreError> {
    let unread = match store.inbox(team, name).await {
        Err(StoreError::Forbidden { .. }) => None,
        inbox => {
            let waits = |mail: &Mail| !is_read(&mail.json).unwrap_or(false);
            Some(inbox?.into_iter().filter(waits).collect::<Vec<_>>())
        }
    };
    let oldest_unshown = match unread.as_deref().and_then(<[Mail]>::first) {
        Some(oldest) => Some(taken(store, team, name, oldest).await?),
        None => None,
    };
    let pulse = match store.kept(team, name, Shelf::Pulse).await {
        Err(StoreError::Forbidden { .. }) => None,
        kept => kept?,
    };
    let pulse: Option<Pulse> = pulse.and_then(|pulse| serde_json::from_slice(&pulse).ok());
    let strain = pulse.and_then(|pulse| pulse.strain);
    let unread = unread.map(|unread| unread.len());
    Ok(Depth { name: name.clone(), unread, oldest_unshown, strain })
}

/// When a message was taken for the mailbox, by the clock of the store. What another program wrote, and
/// nobody has written down yet, is as old as it says.
async fn taken(
    store: &dyn Store,
    team: &TeamName,
    of: &MemberName,
    mail: &Mail,
) -> Result<Timestamp, StoreError> {
    let records = store.mailbox_history(team, of).await?;
    let found = records.iter().rfind(|record| record.event.message() == Some(mail.key));
    if let Some(record) = found {
        return Ok(record.at);
    }
    let said = with_message(&mail.json, |message| message?.timestamp().parse().ok());
    Ok(said.ok().flatten().unwrap_or(Timestamp::UNIX_EPOCH))
}
