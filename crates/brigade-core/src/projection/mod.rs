//! What a team looks like, drawn from what happened in it.
//!
//! A [`Picture`] is given one record after the other and nothing else: no clock, no store. Whoever shows a
//! team, live or from a journal, shows this. It keeps where words stand, not the words: a team's
//! journal may have a million records, of which a screen shows forty.
//!
//! ```
//! use brigade_core::projection::Picture;
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
//! let (mut feed, _) = lead.store.chronicle(&lead.team).await?;
//! let mut picture = Picture::default();
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

mod asked;
mod board;
mod face;
mod hold;
mod mail;
mod person;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use brigade_wire::team::Team;
use jiff::Timestamp;
use serde_json::value::RawValue;

pub use self::asked::{Asked, Reply};
pub use self::board::Card;
use self::face::{Message, Said};
pub use self::hold::Hold;
pub use self::mail::{Fate, Kind, Letter};
pub use self::person::{Act, Doing, Entry, Person, Span, Stretch};
use crate::event::{Act as Did, Ending, Event, Record};
use crate::event_log::Spot;
use crate::graph::Graph;

/// Somebody, by the order in which names were first heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who(pub(crate) u16);

/// A time in milliseconds since 1970; a picture has millions of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At(pub i64);

impl At {
    /// As a time.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_millisecond(self.0).unwrap_or_default()
    }
}

impl From<Timestamp> for At {
    fn from(at: Timestamp) -> Self {
        Self(at.as_millisecond())
    }
}

/// What a team looks like.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    people: Vec<Person>,
    by_name: HashMap<Box<str>, Who>,
    lead: Option<Who>,
    title: String,
    description: String,
    is_there: bool,
    /// When it was deleted, until there is one of its name again.
    deleted: Option<At>,
    mail: mail::Mail,
    asked: asked::AllAsked,
    board: board::Cards,
    records: usize,
    first: Option<At>,
    last: Option<At>,
}

impl Picture {
    /// One more thing happened. Records come in order of time, more or less.
    pub fn update(&mut self, spot: Spot, record: &Arc<Record>) {
        let at = At::from(record.at);
        self.records += 1;
        self.first.get_or_insert(at);
        self.last = self.last.max(Some(at));
        match &record.event {
            Event::Sent { to, key, message, .. } | Event::Seen { to, key, message } => {
                let (by, to) = (record.by.as_deref(), self.who(to));
                self.letter(at, spot, to, *key, by, message);
            }
            Event::Read { to, key, .. } => {
                let to = self.who(to);
                if self.mail.read(to, *key, at)
                    && let Some(person) = self.person_mut(to)
                {
                    person.unread = person.unread.saturating_sub(1);
                }
            }
            Event::Shown { to, key } => {
                let to = self.who(to);
                if self.mail.shown(to, *key, at)
                    && let Some(person) = self.person_mut(to)
                {
                    person.unread = person.unread.saturating_sub(1);
                }
            }
            Event::Answered { request_id, to, yes, reason, hand, .. } => {
                let reply =
                    Reply { at, yes: *yes, hand: Some(hand.clone()), reason: reason.clone() };
                let to = self.who(to);
                self.answered(request_id, Some(to), reply);
            }
            Event::Salvaged { .. } => {}
            Event::Task { id, task } => self.board.changed(*id, at, spot, task),
            Event::TaskDeleted { id } => self.board.deleted(*id),
            Event::TeamCreated { team } => self.created(at, team),
            Event::TeamDeleted {} => self.deleted(at),
            Event::Member { name, member, joined } => {
                let who = self.who(name);
                self.entered(at, who, member, *joined);
            }
            Event::MemberLeft { name } => {
                let who = self.who(name);
                self.left(at, who);
            }
            Event::Worked { name, act } => {
                let who = self.who(name);
                if let Some(person) = self.person_mut(who) {
                    person.worked(at, spot, act);
                }
            }
        }
    }

    /// Who has that name; a name that was not heard before is somebody new.
    fn who(&mut self, name: &str) -> Who {
        if let Some(&who) = self.by_name.get(name) {
            return who;
        }
        // Names beyond the last are all one; nobody leads sixty thousand.
        let next = u16::try_from(self.people.len()).unwrap_or(u16::MAX);
        let who = Who(next);
        if next < u16::MAX {
            self.people.push(Person::new(who, name));
        }
        self.by_name.insert(name.into(), who);
        who
    }

    fn person_mut(&mut self, who: Who) -> Option<&mut Person> {
        self.people.get_mut(usize::from(who.0))
    }

    fn letter(
        &mut self,
        at: At,
        spot: Spot,
        to: Who,
        key: crate::event::MessageKey,
        by: Option<&str>,
        message: &RawValue,
    ) {
        let Some(face) = Message::of(message) else { return };
        let from = self.who(by.filter(|_| face.from.is_empty()).unwrap_or(&face.from));
        let said = Said::of(&face.text);
        let Some(number) = self.mail.add(at, spot, (from, to), key, said.kind) else { return };
        for who in [from, to] {
            if let Some(person) = self.person_mut(who)
                && person.letters.last() != Some(&number)
            {
                person.letters.push(number);
            }
        }
        if let Some(person) = self.person_mut(to) {
            person.unread += 1;
        }
        if let Some(person) = self.person_mut(from) {
            match said.kind {
                Kind::Words => person.said = Some(spot),
                Kind::Idle => person.ended_turn(at),
                _ => {}
            }
        }
        let Some(id) = said.request_id else { return };
        match said.kind {
            Kind::PlanRequest | Kind::PermissionRequest | Kind::ShutdownRequest => {
                if self.asked.ask(Asked {
                    id: id.into_owned(),
                    kind: said.kind,
                    from,
                    to,
                    at,
                    spot,
                    reply: None,
                }) && said.kind != Kind::ShutdownRequest
                    && let Some(person) = self.person_mut(from)
                {
                    person.asks(at, 1);
                }
            }
            Kind::PlanResponse | Kind::PermissionResponse => {
                let reply = Reply { at, yes: said.yes, hand: None, reason: None };
                self.answered(&id, Some(to), reply);
            }
            Kind::ShutdownApproved | Kind::ShutdownRejected => {
                let yes = said.kind == Kind::ShutdownApproved;
                self.answered(&id, None, Reply { at, yes, hand: None, reason: None });
            }
            _ => {}
        }
    }

    /// A request was answered; `asker` is who had made it, where the answer says so.
    fn answered(&mut self, id: &str, asker: Option<Who>, reply: Reply) {
        let at = reply.at;
        let Some((from, kind)) = self.asked.answer(id, asker, reply) else { return };
        if kind != Kind::ShutdownRequest
            && let Some(person) = self.person_mut(from)
        {
            person.asks(at, -1);
        }
    }

    fn created(&mut self, at: At, team: &RawValue) {
        // The board of the earlier team of that name, which could be looked at until now, is not this one's.
        if let Some(deleted) = self.deleted.take() {
            self.board.drop_until(deleted);
        }
        self.board.regroup();
        self.is_there = true;
        let Ok(team) = Team::read(team.get().as_bytes()) else { return };
        self.title = team.name().unwrap_or_default().into_owned();
        self.description = team.description().unwrap_or_default().into_owned();
        // Whoever was in an earlier team of that name is in this one only if it says so.
        for person in &mut self.people {
            person.entry = None;
        }
        for member in team.members() {
            let Some(name) = member.name() else { continue };
            let who = self.who(&name);
            if let Ok(json) = serde_json::from_slice::<&RawValue>(member.json()) {
                self.entered(at, who, json, true);
            }
        }
        self.lead = team
            .lead()
            .and_then(|lead| lead.name().map(std::borrow::Cow::into_owned))
            .map(|name| self.who(&name));
    }

    /// With the team goes what nobody had read. That it is not there in the next one of that name is nobody's deed.
    fn deleted(&mut self, at: At) {
        (self.is_there, self.deleted) = (false, Some(at));
        self.mail.close();
        for person in &mut self.people {
            person.unread = 0;
        }
        let everybody: Vec<Who> = self.people.iter().map(|person| person.who).collect();
        for who in everybody {
            self.left(at, who);
        }
    }

    fn entered(&mut self, at: At, who: Who, member: &RawValue, joined: bool) {
        // A journal may begin in the middle of a team's life.
        self.is_there = true;
        if let Some(person) = self.person_mut(who) {
            let is_new = person.entry.is_none();
            person.enter(at, member, joined);
            if is_new {
                self.board.regroup();
            }
        }
    }

    fn left(&mut self, at: At, who: Who) {
        self.board.regroup();
        let open = self.asked.drop_of(who, at);
        if let Some(person) = self.person_mut(who) {
            person.asks(at, -i32::try_from(open).unwrap_or(i32::MAX));
            person.leave(at);
        }
    }
}

/// Looking.
impl Picture {
    /// Whether there is a team, as far as was heard.
    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// What the team is called, if its beginning was heard.
    pub fn title(&self) -> Option<&str> {
        Some(self.title.as_str()).filter(|title| !title.is_empty())
    }

    /// What the team is for.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Somebody.
    pub fn person(&self, who: Who) -> Option<&Person> {
        self.people.get(usize::from(who.0))
    }

    /// Somebody's name.
    pub fn name(&self, who: Who) -> &str {
        self.person(who).map_or("?", |person| &person.name)
    }

    /// Who has that name.
    pub fn called(&self, name: &str) -> Option<&Person> {
        self.person(*self.by_name.get(name)?)
    }

    /// Everybody who was ever heard of, members or not.
    pub fn people(&self) -> &[Person] {
        &self.people
    }

    /// The members, the lead first, then as they joined.
    pub fn members(&self) -> Vec<&Person> {
        let mut members: Vec<&Person> =
            self.people.iter().filter(|person| person.entry.is_some()).collect();
        members.sort_by_key(|person| (!self.leads(person.who), person.joined, person.who));
        members
    }

    /// Whether somebody leads the team.
    pub fn leads(&self, who: Who) -> bool {
        self.lead == Some(who)
    }

    /// Who leads the team.
    pub fn lead(&self) -> Option<&Person> {
        self.lead.and_then(|who| self.person(who))
    }

    /// Every message, by number, oldest first.
    pub fn letters(&self) -> &[Letter] {
        self.mail.letters()
    }

    /// Every request, oldest first.
    pub fn asked(&self) -> &[Asked] {
        self.asked.all()
    }

    /// How many requests were made, and how many of them were answered: while neither changes, what waits
    /// is the same.
    pub fn asked_so_far(&self) -> (usize, usize) {
        (self.asked.all().len(), self.asked.answered())
    }

    /// The tasks on the board, by number.
    pub fn cards(&self) -> impl Iterator<Item = &Card> {
        self.board.cards()
    }

    /// A task.
    pub fn card(&self, id: u64) -> Option<&Card> {
        self.board.card(id)
    }

    /// What the tasks' dependencies mean.
    pub fn graph(&self) -> &Graph {
        self.board.graph()
    }

    /// Why a task does not go on; `None` if it does, or is done.
    pub fn hold(&self, id: u64) -> Option<&Hold> {
        self.board.hold(id, |owner| self.called(owner).is_some_and(|person| person.entry.is_some()))
    }

    /// A number that changes with the tasks, and with who is on the team: as long as it is the same, so is
    /// what was made of them.
    pub fn board_revision(&self) -> u64 {
        self.board.revision()
    }

    /// How many things happened.
    pub fn records(&self) -> usize {
        self.records
    }

    /// When the first thing and the last thing happened.
    pub fn span(&self) -> Option<(At, At)> {
        Some((self.first?, self.last?))
    }
}
