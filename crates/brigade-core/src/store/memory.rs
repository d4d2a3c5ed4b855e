//! A store in memory, for tests: stricter than the others, so that what passes here leans on nothing
//! a real store does not promise.
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_core::clock::{SteppingClock, Timestamp};
//! use brigade_core::store::memory::MemoryStore;
//!
//! let store = MemoryStore::new(Arc::new(SteppingClock::from(Timestamp::UNIX_EPOCH)));
//! # let _ = store;
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use brigade_wire::inbox::{self, Inbox};
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::Task;
use brigade_wire::team::Team;
use tokio::sync::mpsc;

use super::{
    Actor, Document, Mail, Mark, Outgoing, Question, Receipt, Revision, Shelf, Store, StoreError,
    Watch, Written,
};
use crate::clock::{Clock, SystemClock};
use crate::event::{Event, MessageKey, Record};
use crate::event::{one_line, roster_events};

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    house: Mutex<House>,
}

#[derive(Debug, Default)]
struct House {
    /// Never the same twice, not even for the same bytes.
    revision: u64,
    teams: BTreeMap<TeamName, Held>,
    /// What was written down, of teams that are gone as well.
    journal: BTreeMap<TeamName, Vec<Record>>,
    decisions: BTreeMap<(TeamName, Question), Vec<u8>>,
    notes: BTreeMap<(TeamName, MemberName, Shelf), Vec<u8>>,
    watchers: Vec<(TeamName, mpsc::UnboundedSender<Arc<Record>>)>,
}

#[derive(Debug)]
struct Held {
    config: Document,
    inboxes: BTreeMap<String, Vec<u8>>,
    tasks: BTreeMap<TaskId, Document>,
    last_id: u64,
}

impl Default for MemoryStore {
    /// A store without teams, by the machine's own clock.
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl MemoryStore {
    /// A store without teams.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, house: Mutex::default() }
    }

    fn house(&self) -> MutexGuard<'_, House> {
        self.house.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, house: &mut House, team: &TeamName, by: Option<&Actor>, event: Event) {
        let record = Record { at: self.clock.now(), by: by.map(|by| by.0.clone()), event };
        house.journal.entry(team.clone()).or_default().push(record.clone());
        let record = Arc::new(record);
        house.watchers.retain(|(watched, sender)| {
            watched != team || sender.send(Arc::clone(&record)).is_ok()
        });
    }
}

impl House {
    fn next(&mut self, bytes: &[u8]) -> Document {
        self.revision += 1;
        Document { bytes: bytes.to_vec(), revision: Revision(self.revision) }
    }

    fn held(&mut self, team: &TeamName) -> Result<&mut Held, StoreError> {
        self.teams.get_mut(team).ok_or_else(|| StoreError::NoTeam { team: team.clone() })
    }
}

fn check_team(config: &[u8]) -> Result<(), StoreError> {
    let read = Team::read(config);
    read.map(drop).map_err(|damage| StoreError::Damaged { place: "the new team".into(), damage })
}

fn check_task(task: &[u8]) -> Result<(), StoreError> {
    let read = Task::read(task);
    read.map(drop).map_err(|damage| StoreError::Damaged { place: "the new task".into(), damage })
}

fn read_inbox(bytes: &[u8]) -> Result<Inbox<'_>, StoreError> {
    let damaged = |damage| StoreError::Damaged { place: "an inbox".into(), damage };
    Inbox::read(bytes).map_err(damaged)
}

#[async_trait]
impl Store for MemoryStore {
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        Ok(self.house().teams.keys().cloned().collect())
    }

    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError> {
        Ok(self.house().teams.get(team).map(|held| held.config.clone()))
    }

    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written {
        check_team(config)?;
        let mut house = self.house();
        if house.teams.contains_key(team) {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        let config = house.next(config);
        let revision = config.revision;
        let created = Event::TeamCreated { team: one_line(&config.bytes) };
        let (inboxes, tasks) = (BTreeMap::new(), BTreeMap::new());
        house.teams.insert(team.clone(), Held { config, inboxes, tasks, last_id: 0 });
        self.note(&mut house, team, Some(by), created);
        Ok(revision)
    }

    async fn revive_team(
        &self,
        team: &TeamName,
        config: &[u8],
        tasks: &[(TaskId, Vec<u8>)],
        by: &Actor,
    ) -> Written {
        let revision = self.create_team(team, config, by).await?;
        let mut house = self.house();
        for (id, task) in tasks {
            let document = house.next(task);
            let held = house.held(team)?;
            held.tasks.insert(*id, document);
            held.last_id = held.last_id.max(id.get());
            let made = Event::Task { id: id.get(), task: one_line(task) };
            self.note(&mut house, team, Some(by), made);
        }
        Ok(revision)
    }

    async fn replace_team(
        &self,
        team: &TeamName,
        config: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        check_team(config)?;
        let mut house = self.house();
        let next = house.next(config);
        let held = house.held(team)?;
        if held.config.revision != at {
            return Err(StoreError::Conflict);
        }
        let before = std::mem::replace(&mut held.config, next.clone());
        for event in roster_events(&before.bytes, &next.bytes) {
            self.note(&mut house, team, Some(by), event);
        }
        Ok(next.revision)
    }

    async fn is_ours(&self, team: &TeamName) -> Result<bool, StoreError> {
        Ok(self.house().teams.contains_key(team))
    }

    async fn undo_window(&self, _: &TeamName) -> Result<Duration, StoreError> {
        Ok(Duration::ZERO)
    }

    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        let mut house = self.house();
        house.held(team)?;
        house.teams.remove(team);
        self.note(&mut house, team, Some(by), Event::TeamDeleted {});
        Ok(())
    }

    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError> {
        let mut house = self.house();
        let held = house.held(team)?;
        let bytes = held.inboxes.entry(to.to_string()).or_insert_with(|| inbox::EMPTY.to_vec());
        let receipt = Receipt { msg_id: message.msg_id.clone(), waits: None };
        if MessageKey::all(read_inbox(bytes)?.messages()).iter().any(|(k, _)| *k == message.key()) {
            return Ok(receipt);
        }
        let new = message.as_new();
        let damaged = |damage| StoreError::Damaged { place: "an inbox".into(), damage };
        inbox::append(bytes, std::slice::from_ref(&new)).map_err(damaged)?;
        let event = Event::Sent {
            to: to.to_string(),
            key: message.key(),
            team_created: message.team_created,
            power_safe: false,
            message: one_line(serde_json::to_string(&new).unwrap_or_default().as_bytes()),
        };
        self.note(&mut house, team, Some(&Actor(message.from.clone())), event);
        Ok(receipt)
    }

    async fn inbox(&self, team: &TeamName, of: &MemberName) -> Result<Vec<Mail>, StoreError> {
        let mut house = self.house();
        let Some(bytes) = house.held(team)?.inboxes.get(of.as_str()) else { return Ok(Vec::new()) };
        let inbox = read_inbox(bytes)?;
        let all = MessageKey::all(inbox.messages());
        Ok(all.into_iter().map(|(key, m)| Mail { key, json: m.json().to_vec() }).collect())
    }

    async fn mark(
        &self,
        team: &TeamName,
        of: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError> {
        let mut house = self.house();
        let to = of.to_string();
        let Some(bytes) = house.held(team)?.inboxes.get_mut(&to) else { return Ok(()) };
        let inbox = read_inbox(bytes)?;
        let all = MessageKey::all(inbox.messages());
        let marked: Vec<(MessageKey, bool)> = all
            .iter()
            .filter(|(key, _)| keys.contains(key))
            .map(|(key, message)| (*key, message.read()))
            .collect();
        let chosen: Vec<usize> = all
            .iter()
            .filter(|(key, _)| keys.contains(key))
            .map(|(_, message)| message.index())
            .collect();
        *bytes = inbox.with_read(|message| chosen.contains(&message.index())).into_owned();
        for (key, was_read) in marked {
            if !was_read {
                self.note(&mut house, team, None, Event::Read { to: to.clone(), key, gone: false });
            }
            if mark == Mark::Shown {
                self.note(&mut house, team, None, Event::Shown { to: to.clone(), key });
            }
        }
        Ok(())
    }

    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let mut house = self.house();
        let tasks = &house.held(team)?.tasks;
        Ok(tasks.iter().map(|(&id, document)| (id, document.clone())).collect())
    }

    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError> {
        Ok(self.house().held(team)?.tasks.get(&id).cloned())
    }

    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError> {
        let mut house = self.house();
        let held = house.held(team)?;
        held.last_id += 1;
        let no_id = || StoreError::Conflict;
        let id = TaskId::new(held.last_id).ok_or_else(no_id)?;
        let bytes = task(id);
        check_task(&bytes)?;
        let document = house.next(&bytes);
        let revision = document.revision;
        house.held(team)?.tasks.insert(id, document);
        let event = Event::Task { id: id.get(), task: one_line(&bytes) };
        self.note(&mut house, team, Some(by), event);
        Ok((id, revision))
    }

    async fn replace_task(
        &self,
        team: &TeamName,
        id: TaskId,
        task: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        check_task(task)?;
        let mut house = self.house();
        let next = house.next(task);
        let held = house.held(team)?.tasks.get_mut(&id).ok_or(StoreError::NoTask { id })?;
        if held.revision != at {
            return Err(StoreError::Conflict);
        }
        *held = next.clone();
        let event = Event::Task { id: id.get(), task: one_line(task) };
        self.note(&mut house, team, Some(by), event);
        Ok(next.revision)
    }

    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError> {
        let mut house = self.house();
        house.held(team)?.tasks.remove(&id).ok_or(StoreError::NoTask { id })?;
        self.note(&mut house, team, Some(by), Event::TaskDeleted { id: id.get() });
        Ok(())
    }

    async fn decide(
        &self,
        team: &TeamName,
        question: &Question,
        answer: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let mut house = self.house();
        house.held(team)?;
        let asked = (team.clone(), question.clone());
        Ok(house.decisions.entry(asked).or_insert_with(|| answer.to_vec()).clone())
    }

    async fn decided(
        &self,
        team: &TeamName,
        question: &Question,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut house = self.house();
        house.held(team)?;
        Ok(house.decisions.get(&(team.clone(), question.clone())).cloned())
    }

    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError> {
        let mut house = self.house();
        house.held(team)?;
        self.note(&mut house, team, Some(by), event);
        Ok(())
    }

    async fn keep(
        &self,
        team: &TeamName,
        of: &MemberName,
        shelf: Shelf,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let key = (team.clone(), of.clone(), shelf);
        match note {
            Some(note) => self.house().notes.insert(key, note.to_vec()),
            None => self.house().notes.remove(&key),
        };
        Ok(())
    }

    async fn kept(
        &self,
        team: &TeamName,
        of: &MemberName,
        shelf: Shelf,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.house().notes.get(&(team.clone(), of.clone(), shelf)).cloned())
    }

    async fn mailbox_history(
        &self,
        team: &TeamName,
        of: &MemberName,
    ) -> Result<Vec<Record>, StoreError> {
        let records = self.history(team).await?;
        let about = |record: &Record| record.event.mailbox() == Some(of.as_str());
        Ok(records.into_iter().filter(about).collect())
    }

    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        Ok(self.house().journal.get(team).cloned().unwrap_or_default())
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        let mut house = self.house();
        house.held(team)?;
        let (sender, receiver) = mpsc::unbounded_channel();
        house.watchers.push((team.clone(), sender));
        Ok(Watch::new(receiver, ()))
    }
}
