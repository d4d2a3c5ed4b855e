//! A store in memory, for tests. It is stricter than other stores, so that code tested with it relies only on what
//! every store guarantees.
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

use crate::store::{BoardStore, EventLog, MailStore, Notes, TeamStore};
use async_trait::async_trait;
use brigade_wire::inbox::{self, Inbox};
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::Task;
use brigade_wire::team::Team;
use tokio::sync::mpsc;

use super::{
    Actor, BoardSize, Document, Mail, Mark, NoteKind, Outgoing, Question, Receipt, Revision, Store,
    StoreError, Watch, Written,
};
use crate::clock::{Clock, SystemClock};
use crate::event::{Event, EventAuthor, MessageKey, Record, UncheckedRecord};
use crate::event::{one_line, roster_events};

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    /// Increases with every write, even if the bytes do not change.
    revision: u64,
    teams: BTreeMap<TeamName, StoredTeam>,
    /// The recorded events of each team, including deleted teams.
    journal: BTreeMap<TeamName, Vec<Record>>,
    decisions: BTreeMap<(TeamName, Question), Vec<u8>>,
    notes: BTreeMap<(TeamName, MemberName, NoteKind), Vec<u8>>,
    watchers: Vec<(TeamName, mpsc::UnboundedSender<Arc<Record>>)>,
}

#[derive(Debug)]
struct StoredTeam {
    config: Document,
    inboxes: BTreeMap<String, Vec<u8>>,
    tasks: BTreeMap<TaskId, Document>,
    last_id: u64,
}

impl Default for MemoryStore {
    /// Creates an empty store with the system clock.
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl MemoryStore {
    /// Creates an empty store with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_event(
        &self,
        state: &mut MemoryState,
        team: &TeamName,
        by: Option<&Actor>,
        event: Event,
    ) {
        let by = by.map(|by| by.0.clone());
        let record = UncheckedRecord { at: self.clock.now(), by, event }.from_document();
        state.journal.entry(team.clone()).or_default().push(record.clone());
        let record = Arc::new(record);
        state.watchers.retain(|(watched, sender)| {
            watched != team || sender.send(Arc::clone(&record)).is_ok()
        });
    }
}

impl MemoryState {
    fn new_document(&mut self, bytes: &[u8]) -> Document {
        self.revision += 1;
        Document { bytes: bytes.to_vec(), revision: Revision(self.revision) }
    }

    fn team_mut(&mut self, team: &TeamName) -> Result<&mut StoredTeam, StoreError> {
        self.teams.get_mut(team).ok_or_else(|| StoreError::NoTeam { team: team.clone() })
    }
}

impl StoredTeam {
    fn check_author(&self, event: &Event, name: &str) -> Result<(), StoreError> {
        let team = Team::read(&self.config.bytes).ok();
        let leads = team.as_ref().and_then(Team::lead).is_some_and(|lead| lead.is(name));
        let members = team.map(|team| team.member_names());
        let author = EventAuthor { name, leads, answers: true, members: members.as_deref() };
        Ok(event.check_author(author)?)
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
impl TeamStore for MemoryStore {
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        Ok(self.state().teams.keys().cloned().collect())
    }

    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError> {
        Ok(self.state().teams.get(team).map(|stored| stored.config.clone()))
    }

    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written {
        check_team(config)?;
        let mut state = self.state();
        if state.teams.contains_key(team) {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        let config = state.new_document(config);
        let revision = config.revision;
        let created = Event::TeamCreated { team: one_line(&config.bytes) };
        let (inboxes, tasks) = (BTreeMap::new(), BTreeMap::new());
        state.teams.insert(team.clone(), StoredTeam { config, inboxes, tasks, last_id: 0 });
        self.record_event(&mut state, team, Some(by), created);
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
        let mut state = self.state();
        for (id, task) in tasks {
            let document = state.new_document(task);
            let stored = state.team_mut(team)?;
            stored.tasks.insert(*id, document);
            stored.last_id = stored.last_id.max(id.get());
            let made = Event::Task { id: id.get(), task: one_line(task) };
            self.record_event(&mut state, team, Some(by), made);
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
        let mut state = self.state();
        let next = state.new_document(config);
        let stored = state.team_mut(team)?;
        if stored.config.revision != at {
            return Err(StoreError::Conflict);
        }
        let before = std::mem::replace(&mut stored.config, next.clone());
        for event in roster_events(&before.bytes, &next.bytes) {
            self.record_event(&mut state, team, Some(by), event);
        }
        Ok(next.revision)
    }

    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        let mut state = self.state();
        state.team_mut(team)?;
        state.teams.remove(team);
        self.record_event(&mut state, team, Some(by), Event::TeamDeleted {});
        Ok(())
    }
}

#[async_trait]
impl MailStore for MemoryStore {
    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError> {
        let mut state = self.state();
        let stored = state.team_mut(team)?;
        let bytes = stored.inboxes.entry(to.to_string()).or_insert_with(|| inbox::EMPTY.to_vec());
        let receipt = Receipt { msg_id: message.msg_id.clone(), pending: None };
        if MessageKey::all(read_inbox(bytes)?.messages()).iter().any(|(k, _)| *k == message.key()) {
            return Ok(receipt);
        }
        let new = message.to_inbox_entry();
        let damaged = |damage| StoreError::Damaged { place: "an inbox".into(), damage };
        inbox::append(bytes, std::slice::from_ref(&new)).map_err(damaged)?;
        let event = Event::Sent {
            to: to.to_string(),
            key: message.key(),
            team_created: message.team_created,
            power_safe: false,
            message: one_line(serde_json::to_string(&new).unwrap_or_default().as_bytes()),
        };
        self.record_event(&mut state, team, Some(&Actor(message.from.clone())), event);
        Ok(receipt)
    }

    async fn inbox(&self, team: &TeamName, member: &MemberName) -> Result<Vec<Mail>, StoreError> {
        let mut state = self.state();
        let Some(bytes) = state.team_mut(team)?.inboxes.get(member.as_str()) else {
            return Ok(Vec::new());
        };
        let inbox = read_inbox(bytes)?;
        let all = MessageKey::all(inbox.messages());
        Ok(all.into_iter().map(|(key, m)| Mail { key, json: m.json().to_vec() }).collect())
    }

    async fn mark(
        &self,
        team: &TeamName,
        member: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        let to = member.to_string();
        let Some(bytes) = state.team_mut(team)?.inboxes.get_mut(&to) else { return Ok(()) };
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
                self.record_event(
                    &mut state,
                    team,
                    None,
                    Event::Read { to: to.clone(), key, gone: false },
                );
            }
            if mark == Mark::Shown {
                self.record_event(&mut state, team, None, Event::Shown { to: to.clone(), key });
            }
        }
        Ok(())
    }

    async fn mailbox_history(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<Vec<Record>, StoreError> {
        let records = self.history(team).await?;
        let is_mailbox = |record: &Record| record.event.mailbox() == Some(member.as_str());
        Ok(records.into_iter().filter(is_mailbox).collect())
    }
}

#[async_trait]
impl BoardStore for MemoryStore {
    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let mut state = self.state();
        let tasks = &state.team_mut(team)?.tasks;
        Ok(tasks.iter().map(|(&id, document)| (id, document.clone())).collect())
    }

    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError> {
        Ok(self.state().team_mut(team)?.tasks.get(&id).cloned())
    }

    async fn board_size(&self, team: &TeamName) -> Result<BoardSize, StoreError> {
        let mut state = self.state();
        let tasks = state.team_mut(team)?.tasks.values();
        Ok(BoardSize::total(tasks.map(|document| document.bytes.len())))
    }

    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError> {
        let mut state = self.state();
        let stored = state.team_mut(team)?;
        stored.last_id += 1;
        let no_id = || StoreError::Conflict;
        let id = TaskId::new(stored.last_id).ok_or_else(no_id)?;
        let bytes = task(id);
        check_task(&bytes)?;
        let document = state.new_document(&bytes);
        let revision = document.revision;
        state.team_mut(team)?.tasks.insert(id, document);
        let event = Event::Task { id: id.get(), task: one_line(&bytes) };
        self.record_event(&mut state, team, Some(by), event);
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
        let mut state = self.state();
        let next = state.new_document(task);
        let stored = state.team_mut(team)?.tasks.get_mut(&id).ok_or(StoreError::NoTask { id })?;
        if stored.revision != at {
            return Err(StoreError::Conflict);
        }
        *stored = next.clone();
        let event = Event::Task { id: id.get(), task: one_line(task) };
        self.record_event(&mut state, team, Some(by), event);
        Ok(next.revision)
    }

    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError> {
        let mut state = self.state();
        state.team_mut(team)?.tasks.remove(&id).ok_or(StoreError::NoTask { id })?;
        self.record_event(&mut state, team, Some(by), Event::TaskDeleted { id: id.get() });
        Ok(())
    }
}

#[async_trait]
impl Notes for MemoryStore {
    async fn decide(
        &self,
        team: &TeamName,
        question: &Question,
        answer: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let mut state = self.state();
        state.team_mut(team)?;
        let key = (team.clone(), question.clone());
        Ok(state.decisions.entry(key).or_insert_with(|| answer.to_vec()).clone())
    }

    async fn decided(
        &self,
        team: &TeamName,
        question: &Question,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut state = self.state();
        state.team_mut(team)?;
        Ok(state.decisions.get(&(team.clone(), question.clone())).cloned())
    }

    async fn put_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let key = (team.clone(), member.clone(), kind);
        match note {
            Some(note) => self.state().notes.insert(key, note.to_vec()),
            None => self.state().notes.remove(&key),
        };
        Ok(())
    }

    async fn get_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state().notes.get(&(team.clone(), member.clone(), kind)).cloned())
    }
}

#[async_trait]
impl EventLog for MemoryStore {
    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError> {
        let mut state = self.state();
        state.team_mut(team)?.check_author(&event, &by.0)?;
        self.record_event(&mut state, team, Some(by), event);
        Ok(())
    }

    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        Ok(self.state().journal.get(team).cloned().unwrap_or_default())
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        let mut state = self.state();
        state.team_mut(team)?;
        let (sender, receiver) = mpsc::unbounded_channel();
        state.watchers.push((team.clone(), sender));
        Ok(Watch::new(receiver, ()))
    }
}

impl Store for MemoryStore {}
