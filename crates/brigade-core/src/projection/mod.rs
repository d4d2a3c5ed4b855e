//! The state of a team, computed from its events.
//!
//! A [`TeamProjection`] is updated with one journal record after the other. It uses no clock and no store, so a
//! live team and a recorded journal give the same result. It keeps the positions of texts instead of the texts: a
//! journal may contain a million records, of which a screen shows forty.
//!
//! ```
//! use brigade_core::projection::TeamProjection;
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
//! let (mut feed, _) = lead.store.event_stream(&lead.team).await?;
//! let mut picture = TeamProjection::default();
//! while let Some(batch) = feed.next().await {
//!     for (spot, record) in &batch.records {
//!         picture.update(*spot, record);
//!     }
//!     if batch.caught_up {
//!         break;
//!     }
//! }
//! assert_eq!(picture.members().len(), 2);
//! # Ok(())
//! # }
//! ```

mod block_reason;
mod mail;
mod member;
mod message_view;
mod requests;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use brigade_wire::team::Team;
use jiff::Timestamp;
use serde_json::value::RawValue;

pub use self::block_reason::BlockReason;
pub use self::mail::{DeliveryStatus, MessageKind, MessageRef};
pub use self::member::{BusyKind, BusySpan, MemberActivity, MemberDetails, MemberView, WorkRef};
use self::message_view::{MessageFields, MessageSummary};
use self::requests::RequestParties;
pub use self::requests::{RequestAnswer, RequestEntry};
pub use self::tasks::TaskEntry;
use crate::event::{Event, Record, TurnOutcome, WITHDRAWN, WorkEvent};
use crate::graph::Graph;
use crate::store::event_log::RecordRef;

/// Identifies a member. Members are numbered in the order in which the journal first mentions them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberIndex(pub(crate) u16);

/// A time in milliseconds since 1970. The type is compact, because there can be millions of such times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub i64);

impl Millis {
    /// Converts the time to a [`Timestamp`].
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_millisecond(self.0).unwrap_or_default()
    }
}

impl From<Timestamp> for Millis {
    fn from(at: Timestamp) -> Self {
        Self(at.as_millisecond())
    }
}

/// The state of a team.
#[derive(Clone, Debug, Default)]
pub struct TeamProjection {
    people: Vec<MemberView>,
    by_name: HashMap<Box<str>, MemberIndex>,
    lead: Option<MemberIndex>,
    title: String,
    description: String,
    is_there: bool,
    /// When the team was deleted; `None` again once a team with the same name is created.
    deleted: Option<Millis>,
    mail: mail::MessageLog,
    asked: requests::RequestLog,
    board: tasks::TaskCards,
    records: usize,
    first: Option<Millis>,
    last: Option<Millis>,
}

impl TeamProjection {
    /// Applies one record. Records should be roughly in chronological order.
    pub fn update(&mut self, spot: RecordRef, record: &Arc<Record>) {
        let at = Millis::from(record.at);
        self.records += 1;
        self.first.get_or_insert(at);
        self.last = self.last.max(Some(at));
        match &record.event {
            Event::Sent { to, key, message, .. } | Event::Seen { to, key, message } => {
                let (by, to) = (record.by.as_deref(), self.index_of(to));
                self.add_message(at, spot, to, *key, by, message);
            }
            Event::Read { to, key, .. } => {
                let to = self.index_of(to);
                if self.mail.read(to, *key, at)
                    && let Some(person) = self.person_mut(to)
                {
                    person.unread = person.unread.saturating_sub(1);
                }
            }
            Event::Shown { to, key } => {
                let to = self.index_of(to);
                if self.mail.shown(to, *key, at)
                    && let Some(person) = self.person_mut(to)
                {
                    person.unread = person.unread.saturating_sub(1);
                }
            }
            Event::Answered { request_id, kind, to, yes, reason, hand } => {
                let reply = RequestAnswer {
                    at,
                    yes: *yes,
                    decided_by: Some(hand.clone()),
                    reason: reason.clone(),
                };
                let Some(kind) = request_kind(kind) else { return };
                let asker = self.index_of(to);
                let by = record.by.as_deref().filter(|_| hand != WITHDRAWN);
                let answerer = by.map(|by| self.index_of(by));
                let parties = RequestParties { kind, asker, answerer };
                self.apply_answer(request_id, parties, reply);
            }
            Event::Salvaged { .. } => {}
            Event::Task { id, task } => self.board.changed(*id, at, spot, task),
            Event::TaskDeleted { id } => self.board.deleted(*id),
            Event::TeamCreated { team } => self.apply_created(at, team),
            Event::TeamDeleted {} => self.apply_deleted(at),
            Event::Member { name, member, joined } => {
                let who = self.index_of(name);
                self.apply_member(at, who, member, *joined);
            }
            Event::MemberLeft { name } => {
                let who = self.index_of(name);
                self.apply_left(at, who);
            }
            Event::TakenOver { name, .. } => {
                let who = self.index_of(name);
                if let Some(person) = self.person_mut(who) {
                    person.work.push(WorkRef { at, record: spot });
                }
            }
            Event::Worked { name, act } => {
                let who = self.index_of(name);
                if let Some(person) = self.person_mut(who) {
                    person.apply_work(at, spot, act);
                }
            }
        }
    }

    /// Returns the index for a name. Adds the name if it is new.
    fn index_of(&mut self, name: &str) -> MemberIndex {
        if let Some(&who) = self.by_name.get(name) {
            return who;
        }
        // Names beyond the maximum share one index. Real teams are far smaller.
        let next = u16::try_from(self.people.len()).unwrap_or(u16::MAX);
        let who = MemberIndex(next);
        if next < u16::MAX {
            self.people.push(MemberView::new(who, name));
        }
        self.by_name.insert(name.into(), who);
        who
    }

    fn person_mut(&mut self, who: MemberIndex) -> Option<&mut MemberView> {
        self.people.get_mut(usize::from(who.0))
    }

    fn add_message(
        &mut self,
        at: Millis,
        spot: RecordRef,
        to: MemberIndex,
        key: crate::event::MessageKey,
        by: Option<&str>,
        message: &RawValue,
    ) {
        let Some(fields) = MessageFields::parse(message) else { return };
        let from = self.index_of(by.filter(|_| fields.from.is_empty()).unwrap_or(&fields.from));
        let summary = MessageSummary::parse(&fields.text);
        let kind = (summary.kind, summary.is_counted);
        let Some(number) = self.mail.add(at, spot, (from, to), key, kind) else { return };
        for who in [from, to] {
            if let Some(person) = self.person_mut(who)
                && person.messages.last() != Some(&number)
            {
                person.messages.push(number);
            }
        }
        if let Some(person) = self.person_mut(to)
            && summary.is_counted
        {
            person.unread += 1;
        }
        if let Some(person) = self.person_mut(from) {
            match summary.kind {
                MessageKind::Text => person.last_text = Some(spot),
                MessageKind::Idle => person.apply_idle(at),
                _ => {}
            }
        }
        let Some(id) = summary.request_id else { return };
        match summary.kind {
            MessageKind::PlanRequest
            | MessageKind::PermissionRequest
            | MessageKind::ShutdownRequest => {
                if self.asked.ask(RequestEntry {
                    id: id.into_owned(),
                    kind: summary.kind,
                    from,
                    to,
                    at,
                    record: spot,
                    reply: None,
                }) && summary.kind != MessageKind::ShutdownRequest
                    && let Some(person) = self.person_mut(from)
                {
                    person.add_open_requests(at, 1);
                }
            }
            answer => {
                let (kind, yes) = match answer {
                    MessageKind::PlanResponse => (MessageKind::PlanRequest, summary.yes),
                    MessageKind::PermissionResponse => {
                        (MessageKind::PermissionRequest, summary.yes)
                    }
                    MessageKind::ShutdownApproved => (MessageKind::ShutdownRequest, true),
                    MessageKind::ShutdownRejected => (MessageKind::ShutdownRequest, false),
                    _ => return,
                };
                let parties = RequestParties { kind, asker: to, answerer: Some(from) };
                let reply = RequestAnswer { at, yes, decided_by: None, reason: None };
                self.apply_answer(&id, parties, reply);
            }
        }
    }

    /// Applies an answer to a request.
    fn apply_answer(&mut self, id: &str, parties: RequestParties, reply: RequestAnswer) {
        let at = reply.at;
        let Some((from, kind)) = self.asked.answer(id, parties, reply) else { return };
        if kind != MessageKind::ShutdownRequest
            && let Some(person) = self.person_mut(from)
        {
            person.add_open_requests(at, -1);
        }
    }

    fn apply_created(&mut self, at: Millis, team: &RawValue) {
        // The board of a deleted team stays visible until a team with the same name is created.
        if let Some(deleted) = self.deleted.take() {
            self.board.remove_until(deleted);
        }
        self.board.invalidate_roster();
        self.is_there = true;
        let Ok(team) = Team::read(team.get().as_bytes()) else { return };
        self.title = team.name().unwrap_or_default().into_owned();
        self.description = team.description().unwrap_or_default().into_owned();
        // Members of a previous team with this name are not in the new team unless its roster lists them.
        for person in &mut self.people {
            person.entry = None;
        }
        for member in team.members() {
            let Some(name) = member.name() else { continue };
            let who = self.index_of(&name);
            if let Ok(json) = serde_json::from_slice::<&RawValue>(member.json()) {
                self.apply_member(at, who, json, true);
            }
        }
        self.lead = team
            .lead()
            .and_then(|lead| lead.name().map(std::borrow::Cow::into_owned))
            .map(|name| self.index_of(&name));
    }

    /// Applies the deletion of the team. Also forgets the message keys, so that later events of a new team with
    /// the same name do not mark the old messages as read.
    fn apply_deleted(&mut self, at: Millis) {
        (self.is_there, self.deleted) = (false, Some(at));
        self.mail.forget_keys();
        for person in &mut self.people {
            person.unread = 0;
        }
        let all: Vec<MemberIndex> = self.people.iter().map(|person| person.index).collect();
        for who in all {
            self.apply_left(at, who);
        }
    }

    fn apply_member(&mut self, at: Millis, who: MemberIndex, member: &RawValue, joined: bool) {
        // A journal may begin after the team was created, so a roster entry also proves that the team exists.
        self.is_there = true;
        if let Some(person) = self.person_mut(who) {
            let is_new = person.entry.is_none();
            person.apply_entry(at, member, joined);
            if is_new {
                self.board.invalidate_roster();
            }
        }
    }

    fn apply_left(&mut self, at: Millis, who: MemberIndex) {
        self.board.invalidate_roster();
        let open = self.asked.close_requests_of(who, at);
        if let Some(person) = self.person_mut(who) {
            person.add_open_requests(at, -i32::try_from(open).unwrap_or(i32::MAX));
            person.apply_left(at);
        }
    }
}

/// Returns the type of request that an `answered` event names.
fn request_kind(name: &str) -> Option<MessageKind> {
    match name {
        "plan" => Some(MessageKind::PlanRequest),
        "permission" => Some(MessageKind::PermissionRequest),
        "shutdown" => Some(MessageKind::ShutdownRequest),
        _ => None,
    }
}

/// Queries about the state of the team.
impl TeamProjection {
    /// Returns whether the team exists, according to the events.
    pub fn exists(&self) -> bool {
        self.is_there
    }

    /// Returns the name of the team, if the journal contains its creation.
    pub fn title(&self) -> Option<&str> {
        Some(self.title.as_str()).filter(|title| !title.is_empty())
    }

    /// Returns the team's description.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns a member by index.
    pub fn member(&self, who: MemberIndex) -> Option<&MemberView> {
        self.people.get(usize::from(who.0))
    }

    /// Returns a member's name.
    pub fn name(&self, who: MemberIndex) -> &str {
        self.member(who).map_or("?", |person| &person.name)
    }

    /// Returns a member by name.
    pub fn member_named(&self, name: &str) -> Option<&MemberView> {
        self.member(*self.by_name.get(name)?)
    }

    /// Returns every name that occurs in the events, whether it belongs to a member or not.
    pub fn all_members(&self) -> &[MemberView] {
        &self.people
    }

    /// Returns the current members: the lead first, then the others in the order in which they joined.
    pub fn members(&self) -> Vec<&MemberView> {
        let mut members: Vec<&MemberView> =
            self.people.iter().filter(|person| person.entry.is_some()).collect();
        members.sort_by_key(|person| (!self.is_lead(person.index), person.joined, person.index));
        members
    }

    /// Returns whether this member is the lead.
    pub fn is_lead(&self, who: MemberIndex) -> bool {
        self.lead == Some(who)
    }

    /// Returns the lead.
    pub fn lead(&self) -> Option<&MemberView> {
        self.lead.and_then(|who| self.member(who))
    }

    /// Returns every message, oldest first. The index in the slice is the message's number.
    pub fn messages(&self) -> &[MessageRef] {
        self.mail.letters()
    }

    /// Returns every request, oldest first.
    pub fn requests(&self) -> &[RequestEntry] {
        self.asked.all()
    }

    /// Returns the number of requests and the number of answered requests. As long as neither changes, the set of
    /// open requests does not change either.
    pub fn request_counts(&self) -> (usize, usize) {
        (self.asked.all().len(), self.asked.answered())
    }

    /// Returns the tasks on the board, ordered by number.
    pub fn tasks(&self) -> impl Iterator<Item = &TaskEntry> {
        self.board.cards()
    }

    /// Returns one task; `None` if it is not on the board.
    pub fn task(&self, id: u64) -> Option<&TaskEntry> {
        self.board.card(id)
    }

    /// Returns the dependency graph of the tasks.
    pub fn graph(&self) -> &Graph {
        self.board.graph()
    }

    /// Returns why a task makes no progress; `None` if the task makes progress or is completed.
    pub fn block_reason(&self, id: u64) -> Option<&BlockReason> {
        self.board
            .hold(id, |owner| self.member_named(owner).is_some_and(|person| person.entry.is_some()))
    }

    /// Returns a number that changes whenever the tasks or the roster change, so that callers can cache results.
    pub fn board_revision(&self) -> u64 {
        self.board.revision()
    }

    /// Returns the number of records applied.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Returns the times of the first and the last record.
    pub fn span(&self) -> Option<(Millis, Millis)> {
        Some((self.first?, self.last?))
    }
}
