//! Bringing back a team whose folder is gone, from what was written down about it.
//!
//! Claude Code deletes a team's folder when its session ends. Who was on the team, the board, and the
//! mail that nobody read are still in the journal.
//!
//! ```
//! use brigade_core::revive::revive;
//! use brigade_core::roster::Force;
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
//! roster::delete(&lead, Force::Yes).await?;
//! let revived = revive(&lead).await?.ok_or("nothing was written down")?;
//! assert_eq!(revived.members, ["bob"]);
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use brigade_wire::name::{MemberName, TaskId};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::event::{Event, MessageKey, Record};
use crate::mail::with_message;
use crate::roster::RosterError;
use crate::seat::Seat;
use crate::store::{Outgoing, Shelf};

/// What was brought back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Revived {
    /// Members, beside the lead.
    pub members: Vec<String>,
    /// How many tasks.
    pub tasks: usize,
    /// How many messages that nobody had read.
    pub messages: usize,
}

/// A team as it was last written down.
struct Was {
    config: Vec<u8>,
    created: u64,
    members: Vec<String>,
    tasks: Vec<(TaskId, Vec<u8>)>,
}

/// A message that is to be there again.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Unread {
    to: String,
    message: Outgoing,
}

/// Brings the seat's team back, with the seat as its lead. A team that is there is only seen to: what
/// somebody who died had begun is ended. `None` if nothing was ever written down about it.
pub async fn revive(seat: &Seat) -> Result<Option<Revived>, RosterError> {
    let history = seat.store.proceedings(&seat.team).await?;
    let Some(was) = last_team(&history) else { return Ok(None) };
    let is_there = seat.store.team(&seat.team).await?.is_some();
    let (store, team, me) = (&seat.store, &seat.team, &seat.name);
    let begun = store.kept(team, me, Shelf::Revival).await?;
    let unread: Vec<Unread> = match begun {
        None if is_there => return Ok(Some(Revived::default())),
        Some(begun) => serde_json::from_slice(&begun).unwrap_or_default(),
        None => {
            // What is to be sent is written down first: with the team, its inboxes are there again,
            // and they are empty.
            let unread = unread(seat, &was, &history);
            let note = serde_json::to_vec(&unread).unwrap_or_default();
            store.keep(team, me, Shelf::Revival, Some(&note)).await?;
            unread
        }
    };
    if !is_there {
        seat.store.revive_team(&seat.team, &was.config, &was.tasks, &seat.actor()).await?;
    }
    for Unread { to, message } in &unread {
        let Ok(to) = to.parse::<MemberName>() else { continue };
        let records = seat.store.mailbox_history(&seat.team, &to).await?;
        if !records.iter().any(|record| record.event.message() == Some(message.key())) {
            let message = Outgoing { team_created: was.created, ..message.clone() };
            seat.store.send(&seat.team, &to, &message).await?;
        }
    }
    store.keep(team, me, Shelf::Revival, None).await?;
    let (members, tasks) = (was.members, was.tasks.len());
    Ok(Some(Revived { members, tasks, messages: unread.len() }))
}

/// The team as it was before it was deleted last.
fn last_team(history: &[Record]) -> Option<Was> {
    let mut was: Option<(Pairs, BTreeMap<u64, Vec<u8>>)> = None;
    for record in history {
        match &record.event {
            Event::TeamCreated { team } => {
                let Ok(config) = serde_json::from_str::<Pairs>(team.get()) else { continue };
                let same =
                    was.as_ref().is_some_and(|(known, _)| created(known) == created(&config));
                let tasks = was.take().filter(|_| same).map(|(_, tasks)| tasks);
                was = Some((config, tasks.unwrap_or_default()));
            }
            Event::Member { name, member, .. } => {
                if let Some((config, _)) = &mut was {
                    put_member(config, name, Some(member));
                }
            }
            Event::MemberLeft { name } => {
                if let Some((config, _)) = &mut was {
                    put_member(config, name, None);
                }
            }
            Event::Task { id, task } => {
                if let Some((_, tasks)) = &mut was {
                    tasks.insert(*id, task.get().as_bytes().to_vec());
                }
            }
            Event::TaskDeleted { id } => {
                if let Some((_, tasks)) = &mut was {
                    tasks.remove(id);
                }
            }
            _ => {}
        }
    }
    let (mut config, tasks) = was?;
    let created = created(&config).unwrap_or_default();
    // Its lead's process is no more, and nobody is to wait for it.
    config.0.retain(|(name, _)| name != "leadProcess");
    let lead = field::<String>(&config, "leadAgentId").unwrap_or_default();
    let members = members(&config).into_iter();
    let members = members.filter(|member| member.id.as_deref() != Some(lead.as_str()));
    let members = members.filter_map(|member| member.name).collect();
    let tasks = tasks.into_iter().filter_map(|(id, task)| Some((TaskId::new(id)?, task)));
    Some(Was {
        config: serde_json::to_vec(&config).ok()?,
        created,
        members,
        tasks: tasks.collect(),
    })
}

/// The messages of every member that nobody has read, each as one to be sent anew.
fn unread(seat: &Seat, was: &Was, history: &[Record]) -> Vec<Unread> {
    let read: HashSet<(&str, MessageKey)> = history
        .iter()
        .filter_map(|record| match &record.event {
            Event::Read { to, key, .. } | Event::Shown { to, key } => Some((to.as_str(), *key)),
            _ => None,
        })
        .collect();
    let is_there = |name: &str| name == seat.name.as_str() || was.members.iter().any(|m| m == name);
    let mut unread = Vec::new();
    for record in history {
        let (to, key, message) = match &record.event {
            Event::Sent { to, key, team_created, message, .. } if *team_created == was.created => {
                (to, *key, message)
            }
            Event::Seen { to, key, message } if millis(record) >= was.created => {
                (to, *key, message)
            }
            _ => continue,
        };
        if is_there(to)
            && !read.contains(&(to.as_str(), key))
            && let Some(message) = again(message)
        {
            unread.push(Unread { to: to.clone(), message });
        }
    }
    unread
}

fn millis(record: &Record) -> u64 {
    u64::try_from(record.at.as_millisecond()).unwrap_or_default()
}

/// The same words by the same member, as a message of its own: the one they were in may be known as
/// taken out of the inbox. A lead that signed is no more, so nothing is signed.
fn again(message: &RawValue) -> Option<Outgoing> {
    let read = with_message(message.get().as_bytes(), |message| {
        Some(Outgoing::again(&message?, Uuid::new_v4().to_string()))
    });
    read.ok().flatten()
}

/// An object of JSON with its fields in their order.
struct Pairs(Vec<(String, Box<RawValue>)>);

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "agentId")]
    id: Option<String>,
    name: Option<String>,
}

fn field<T: for<'d> Deserialize<'d>>(object: &Pairs, name: &str) -> Option<T> {
    let (_, value) = object.0.iter().find(|(its, _)| its == name)?;
    serde_json::from_str(value.get()).ok()
}

fn created(config: &Pairs) -> Option<u64> {
    field(config, "createdAt")
}

fn members(config: &Pairs) -> Vec<Entry> {
    field(config, "members").unwrap_or_default()
}

/// Puts a member's entry in place of the one of its name, or behind the others; or takes it out.
fn put_member(config: &mut Pairs, name: &str, entry: Option<&RawValue>) {
    let mut entries: Vec<Box<RawValue>> = field(config, "members").unwrap_or_default();
    let is = |its: &RawValue| {
        serde_json::from_str::<Entry>(its.get()).is_ok_and(|its| its.name.as_deref() == Some(name))
    };
    let at = entries.iter().position(|its| is(its));
    match (at, entry) {
        (Some(at), Some(entry)) => {
            if let Some(there) = entries.get_mut(at) {
                *there = entry.to_owned();
            }
        }
        (None, Some(entry)) => entries.push(entry.to_owned()),
        (Some(at), None) => {
            entries.remove(at);
        }
        (None, None) => {}
    }
    if let (Some((_, members)), Ok(entries)) = (
        config.0.iter_mut().find(|(its, _)| its == "members"),
        serde_json::value::to_raw_value(&entries),
    ) {
        *members = entries;
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
