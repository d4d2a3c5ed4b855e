//! Restores a team from the journal after its folder was deleted.
//!
//! Claude Code deletes a team's folder when the lead's session ends. The journal still contains the team's
//! members, board and unread mail.
//!
//! ```
//! use brigade_core::revive::revive;
//! use brigade_core::roster::SkipChecks;
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
//! roster::delete(&lead, SkipChecks::Yes).await?;
//! let revived = revive(&lead).await?.ok_or("the journal is empty")?;
//! assert_eq!(revived.members, ["bob"]);
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use brigade_wire::body::Body;
use brigade_wire::inbox::with_message;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::protocol::Protocol;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::event::{Event, MessageKey, Record};
use crate::mail;
use crate::roster::RosterError;
use crate::seat::Seat;
use crate::store::{NoteKind, Outgoing, StoreError};

/// What [`revive`] restored.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Revived {
    /// The names of the restored members other than the lead.
    pub members: Vec<String>,
    /// The number of restored tasks.
    pub tasks: usize,
    /// The number of restored unread messages.
    pub messages: usize,
}

/// The last state of a team, according to the journal.
struct RecordedTeam {
    config: Vec<u8>,
    created: u64,
    members: Vec<String>,
    tasks: Vec<(TaskId, Vec<u8>)>,
}

/// An unread message that must be sent again.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct UnreadMessage {
    to: String,
    message: Outgoing,
}

/// Restores the seat's team, with the seat as the lead. If the team exists, only completes an interrupted restore.
/// Returns `None` if the journal contains no such team.
pub async fn revive(seat: &Seat) -> Result<Option<Revived>, RosterError> {
    revive_from(seat, &seat.team).await
}

/// Returns the roster of a team before it was last deleted, according to the journal; `None` if the journal contains no such team.
pub async fn last_roster(seat: &Seat) -> Result<Option<Vec<u8>>, RosterError> {
    let history = seat.store.team_history(&seat.team).await?;
    Ok(last_team(&history).map(|recorded| recorded.config))
}

/// Like [`revive`], but restores the team `source` under the name of the seat's team. Then, the caller has to carry over what belongs
/// to single members: their unread messages, and the sessions of their agents.
pub async fn revive_from(seat: &Seat, source: &TeamName) -> Result<Option<Revived>, RosterError> {
    let exists = seat.store.team(&seat.team).await?.is_some();
    let (store, team, me) = (&seat.store, &seat.team, &seat.name);
    let progress = store.get_note(team, me, NoteKind::Revival).await?;
    let was_interrupted = progress.is_some();
    if exists && !was_interrupted {
        return Ok(Some(Revived::default()));
    }
    let Some(mut recorded) = last_team(&store.team_history(source).await?) else {
        return Ok(None);
    };
    if *source != seat.team {
        recorded.config = renamed(&recorded.config, &seat.team).unwrap_or(recorded.config);
    }
    let unread: Vec<UnreadMessage> = match progress {
        Some(progress) => serde_json::from_slice(&progress)
            .map_err(|source| RosterError::UnreadableRevival { team: team.clone(), source })?,
        None => {
            // Save the unread messages before creating the team. Its new inboxes are empty, so after a crash the
            // unread messages would look as if they had been read.
            let unread = if *source == seat.team {
                unread_of_all(seat, &recorded).await?
            } else {
                Vec::new()
            };
            let note = serde_json::to_vec(&unread).unwrap_or_default();
            store.put_note(team, me, NoteKind::Revival, Some(&note)).await?;
            unread
        }
    };
    if !exists || was_interrupted {
        let (config, tasks) = (&recorded.config, &recorded.tasks);
        match store.revive_team(team, config, tasks, &seat.actor()).await {
            // The store has completed what it had not done when the process died.
            Err(StoreError::TeamExists { .. }) if exists => {}
            revived => drop(revived?),
        }
    }
    for UnreadMessage { to, message } in &unread {
        let Ok(to) = to.parse::<MemberName>() else { continue };
        if !mail::is_recorded(seat, &to, message).await? {
            let message = Outgoing { team_created: recorded.created, ..message.clone() };
            seat.store.send(&seat.team, &to, &message).await?;
        }
    }
    store.put_note(team, me, NoteKind::Revival, None).await?;
    let (members, tasks) = (recorded.members, recorded.tasks.len());
    Ok(Some(Revived { members, tasks, messages: unread.len() }))
}

/// Returns copies of the unread messages to the members of the recorded team and to the seat, in the order in which they were sent.
async fn unread_of_all(
    seat: &Seat,
    recorded: &RecordedTeam,
) -> Result<Vec<UnreadMessage>, StoreError> {
    let members = recorded.members.iter().filter_map(|name| name.parse::<MemberName>().ok());
    let members: Vec<MemberName> = members.chain([seat.name.clone()]).collect();
    let records = seat.store.unread_history(&seat.team, &members).await?;
    let unread = records.iter().filter(|record| record.belongs_to_team(recorded.created));
    let copies = unread.filter_map(|record| match &record.event {
        Event::Sent { to, message, .. } | Event::Seen { to, message, .. } => {
            let message = copy(message, Uuid::new_v4().to_string())?;
            Some(UnreadMessage { to: to.clone(), message })
        }
        _ => None,
    });
    Ok(copies.collect())
}

/// Returns the state of the team before it was last deleted.
fn last_team(history: &[Record]) -> Option<RecordedTeam> {
    let mut recorded: Option<(OrderedObject, BTreeMap<u64, Vec<u8>>)> = None;
    let mut is_deleted = false;
    // The tasks that disappeared with the team. Claude Code keeps the board of a session that it can resume.
    let mut deleted_tasks: HashSet<u64> = HashSet::new();
    for record in history {
        match &record.event {
            Event::TeamDeleted {} => is_deleted = true,
            // The board and the members disappear with the team. That is no reason not to restore them.
            Event::TaskDeleted { id } if is_deleted => drop(deleted_tasks.insert(*id)),
            Event::MemberLeft { .. } if is_deleted => {}
            Event::TeamCreated { team } => {
                is_deleted = false;
                let Ok(config) = serde_json::from_str::<OrderedObject>(team.get()) else {
                    continue;
                };
                let deleted = std::mem::take(&mut deleted_tasks);
                let tasks = match recorded.take() {
                    Some((known, tasks)) if created(&known) == created(&config) => tasks,
                    Some((known, mut tasks)) if is_same_session(&known, &config) => {
                        tasks.retain(|id, _| !deleted.contains(id));
                        tasks
                    }
                    _ => BTreeMap::new(),
                };
                recorded = Some((config, tasks));
            }
            Event::Member { name, member, .. } => {
                if let Some((config, _)) = &mut recorded {
                    put_member(config, name, Some(member));
                }
            }
            Event::MemberLeft { name } => {
                if let Some((config, _)) = &mut recorded {
                    put_member(config, name, None);
                }
            }
            Event::Task { id, task } => {
                if let Some((_, tasks)) = &mut recorded {
                    tasks.insert(*id, task.get().as_bytes().to_vec());
                }
            }
            Event::TaskDeleted { id } => {
                if let Some((_, tasks)) = &mut recorded {
                    tasks.remove(id);
                }
            }
            _ => {}
        }
    }
    let (mut config, tasks) = recorded?;
    let created = created(&config).unwrap_or_default();
    // The lead's process has ended, so Claude Code must not wait for it.
    config.0.retain(|(name, _)| name != "leadProcess");
    let lead = field::<String>(&config, "leadAgentId").unwrap_or_default();
    let members = members(&config).into_iter();
    let members = members.filter(|member| member.id.as_deref() != Some(lead.as_str()));
    let members = members.filter_map(|member| member.name).collect();
    let tasks = tasks.into_iter().filter_map(|(id, task)| Some((TaskId::new(id)?, task)));
    Some(RecordedTeam {
        config: serde_json::to_vec(&config).ok()?,
        created,
        members,
        tasks: tasks.collect(),
    })
}

/// Returns the roster of a team for a team of another name.
fn renamed(config: &[u8], team: &TeamName) -> Option<Vec<u8>> {
    let mut config: OrderedObject = serde_json::from_slice(config).ok()?;
    let id = |name: &str| format!("{name}@{team}");
    let mut members: Vec<OrderedObject> = field(&config, "members")?;
    let lead: String = field(&config, "leadAgentId")?;
    for member in &mut members {
        let name: String = field(member, "name")?;
        if field::<String>(member, "agentId")? == lead {
            config.set("leadAgentId", &id(&name))?;
        }
        member.set("agentId", &id(&name))?;
    }
    config.set("name", team)?;
    config.set("members", &members)?;
    serde_json::to_vec(&config).ok()
}

/// Sends the messages that a member of an ended team had not read, and those of the member that the lead had not read, to
/// the member's new team. `created` is when the ended team was created. Leaves out the messages in `known`. If the
/// process dies, the next call sends the rest.
pub async fn resend_unread(
    from: &Seat,
    created: u64,
    to: &Seat,
    known: &HashSet<MessageKey>,
) -> Result<usize, RosterError> {
    let roster = to.roster().await?;
    let team = roster.team();
    let (lead, team_created) =
        (team.lead().and_then(|lead| lead.name()?.parse().ok()), team.created_at());
    let lead: Option<MemberName> = lead;
    let mut history = from.store.history_without_work(&from.team).await?;
    if from.team == to.team {
        // Messages of the new team are in the same journal.
        let new = team_created.unwrap_or_default();
        history.retain(|record| created == new || !record.belongs_to_team(new));
    }
    let me = from.name.as_str();
    let is_lead = |name: &str| lead.as_ref().is_some_and(|lead| name == lead.as_str());
    let chooses = |to: &str, sender: &str| to == me || (sender == me && is_lead(to));
    let unread = unread(&history, created, |name| name == me, chooses);
    let unread = unread.into_iter().filter(|(_, _, message)| stays_valid(message));
    let mut sent = 0;
    for (recipient, key, message) in unread {
        let Ok(recipient) = recipient.parse::<MemberName>() else { continue };
        let id = format!("{key} from the team of {created}");
        let Some(message) = copy(message, id).filter(|_| !known.contains(&key)) else { continue };
        if !mail::is_recorded(to, &recipient, &message).await? {
            let message = Outgoing { team_created: team_created.unwrap_or_default(), ..message };
            to.store.send(&to.team, &recipient, &message).await?;
            sent += 1;
        }
    }
    Ok(sent)
}

/// Returns whether a message still means something in another team: a text, or the assignment of a task. Requests and their answers
/// belong to a turn that has ended.
fn stays_valid(message: &RawValue) -> bool {
    let valid = with_message(message.get().as_bytes(), |message| {
        message.is_some_and(|message| {
            !matches!(message.body(), Body::Protocol(protocol)
                if !matches!(protocol, Protocol::TaskAssignment(_)))
        })
    });
    valid.unwrap_or(false)
}

/// Returns the unread messages of the team that was created at `created`, each with its recipient and key. `chooses` decides by
/// the recipient and the sender which messages are returned. Claude Code removes read messages from an inbox. A member for which
/// `marks_read` returns true only marks them: a message that disappears from its inbox disappeared with the team.
fn unread(
    history: &[Record],
    created: u64,
    marks_read: impl Fn(&str) -> bool,
    chooses: impl Fn(&str, &str) -> bool,
) -> Vec<(&str, MessageKey, &RawValue)> {
    let read: HashSet<(&str, MessageKey)> = history
        .iter()
        .filter_map(|record| match &record.event {
            Event::Read { to, gone: true, .. } if marks_read(to) => None,
            Event::Read { to, key, .. } | Event::Shown { to, key } => Some((to.as_str(), *key)),
            _ => None,
        })
        .collect();
    let mut unread = Vec::new();
    for record in history {
        let (to, key, message) = match &record.event {
            Event::Sent { to, key, message, .. } | Event::Seen { to, key, message }
                if record.belongs_to_team(created) =>
            {
                (to.as_str(), *key, message)
            }
            _ => continue,
        };
        let sender = record.event.sender();
        if !read.contains(&(to, key)) && chooses(to, sender.as_deref().unwrap_or_default()) {
            unread.push((to, key, &**message));
        }
    }
    unread
}

/// Copies a message under a new id, because the store may have recorded the old id as removed from the inbox. The
/// copy is unsigned, because the lead that signed the message is gone.
fn copy(message: &RawValue, id: String) -> Option<Outgoing> {
    let read =
        with_message(message.get().as_bytes(), |message| Some(Outgoing::copy_of(&message?, id)));
    read.ok().flatten()
}

/// A JSON object whose fields keep their order.
struct OrderedObject(Vec<(String, Box<RawValue>)>);

impl OrderedObject {
    /// Sets a field that the object has.
    fn set(&mut self, name: &str, value: &impl Serialize) -> Option<()> {
        let (_, field) = self.0.iter_mut().find(|(field, _)| field == name)?;
        *field = serde_json::value::to_raw_value(value).ok()?;
        Some(())
    }
}

#[derive(Deserialize)]
struct MemberId {
    #[serde(rename = "agentId")]
    id: Option<String>,
    name: Option<String>,
}

fn field<T: for<'d> Deserialize<'d>>(object: &OrderedObject, name: &str) -> Option<T> {
    let (_, value) = object.0.iter().find(|(field, _)| field == name)?;
    serde_json::from_str(value.get()).ok()
}

fn created(config: &OrderedObject) -> Option<u64> {
    field(config, "createdAt")
}

/// Returns whether the same Claude Code session created both teams. A resumed session creates its team again, with another
/// creation time, and continues with the same board.
fn is_same_session(a: &OrderedObject, b: &OrderedObject) -> bool {
    let session = |config| field::<String>(config, "leadSessionId").filter(|id| !id.is_empty());
    session(a).is_some() && session(a) == session(b)
}

fn members(config: &OrderedObject) -> Vec<MemberId> {
    field(config, "members").unwrap_or_default()
}

/// Sets a member's entry: replaces or appends it, or removes it if `entry` is `None`.
fn put_member(config: &mut OrderedObject, name: &str, entry: Option<&RawValue>) {
    let mut entries: Vec<Box<RawValue>> = field(config, "members").unwrap_or_default();
    let has_name = |entry: &RawValue| {
        serde_json::from_str::<MemberId>(entry.get())
            .is_ok_and(|entry| entry.name.as_deref() == Some(name))
    };
    let at = entries.iter().position(|entry| has_name(entry));
    match (at, entry) {
        (Some(at), Some(entry)) => {
            if let Some(old) = entries.get_mut(at) {
                *old = entry.to_owned();
            }
        }
        (None, Some(entry)) => entries.push(entry.to_owned()),
        (Some(at), None) => {
            entries.remove(at);
        }
        (None, None) => {}
    }
    if let (Some((_, members)), Ok(entries)) = (
        config.0.iter_mut().find(|(field, _)| field == "members"),
        serde_json::value::to_raw_value(&entries),
    ) {
        *members = entries;
    }
}

impl<'de> Deserialize<'de> for OrderedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OrderedObjectVisitor;
        impl<'de> Visitor<'de> for OrderedObjectVisitor {
            type Value = OrderedObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedObject, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(OrderedObject(pairs))
            }
        }
        deserializer.deserialize_map(OrderedObjectVisitor)
    }
}

impl Serialize for OrderedObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
