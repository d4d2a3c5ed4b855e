//! Implements [`Store`] on NATS JetStream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::store::{
    Actor, BoardStore, Document, EventLog, Mail, MailStore, Mark, NoteKind, Notes, Outgoing,
    Question, Receipt, RetryStats, Revision, Store, StoreError, TeamStore, Watch, Written,
};
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::Task;
use brigade_wire::team::Team;

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::identity::Role;
use crate::watch::{self, WatchGenerations, WatchedFilter};

use crate::layout::{PULSE, Place, Stream};
use crate::mailbox::MailboxCache;
use crate::options::Options;
use crate::read::ReadRange;
use crate::roster::Roster;
use crate::write::{DELETED, INCARNATION, OP, PendingWrite};

/// How long to assume that a team still exists. Only affects whether a message to a deleted team is rejected.
const EXISTENCE_CACHE_TIME: Duration = Duration::from_secs(2);

/// A store on NATS JetStream.
#[derive(Debug)]
pub struct NatsStore {
    pub(crate) connection: Arc<NatsConnection>,
    pub(crate) shards: u16,
    /// Watched teams, and the current watch generation of each.
    generations: Arc<WatchGenerations>,
    rosters: Mutex<HashMap<TeamName, Roster>>,
    incarnations: Mutex<HashMap<TeamName, (String, Instant)>>,
    mailboxes: Arc<MailboxCache>,
}

impl NatsStore {
    /// Connects to the NATS server. Creates the streams if there are none and the credentials allow it.
    pub async fn connect(options: Options) -> Result<Self, StoreError> {
        let connection = NatsConnection::open(&options).await?;
        let shards = if connection.identity.role == Role::Admin {
            // Check for the streams first: a read from a missing stream is never answered and would time out.
            let found =
                if connection.has_streams().await? { connection.layout().await? } else { None };
            match found {
                Some(layout) => layout.shards,
                None => connection.create_streams(&options.settings).await?.shards,
            }
        } else {
            connection.identity.settings.shards
        };
        Ok(Self {
            connection: Arc::new(connection),
            shards,
            generations: Arc::default(),
            rosters: Mutex::default(),
            incarnations: Mutex::default(),
            mailboxes: Arc::default(),
        })
    }

    fn subjects(&self, team: &TeamName) -> Place {
        Place::of(team, self.shards)
    }

    /// Reads the current roster.
    async fn roster(&self, team: &TeamName) -> Result<Roster, StoreError> {
        let cached = locked(&self.rosters).get(team).cloned().unwrap_or_default();
        let roster = self.connection.roster(&self.subjects(team), cached).await?;
        self.remember(team, &roster);
        Ok(roster)
    }

    fn remember(&self, team: &TeamName, roster: &Roster) {
        locked(&self.rosters).insert(team.clone(), roster.clone());
        match roster.incarnation() {
            Some(incarnation) => {
                locked(&self.incarnations)
                    .insert(team.clone(), (incarnation.to_owned(), Instant::now()));
            }
            None => drop(locked(&self.incarnations).remove(team)),
        }
    }

    /// The team's current incarnation.
    async fn incarnation(&self, team: &TeamName) -> Result<String, StoreError> {
        if let Some((incarnation, at)) = locked(&self.incarnations).get(team)
            && at.elapsed() < EXISTENCE_CACHE_TIME
        {
            return Ok(incarnation.clone());
        }
        let roster = self.roster(team).await?;
        roster
            .incarnation()
            .map(str::to_owned)
            .ok_or_else(|| StoreError::NoTeam { team: team.clone() })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_team(config: &[u8]) -> Result<(), StoreError> {
    let read = Team::read(config);
    read.map(drop).map_err(|damage| StoreError::Damaged { place: "the new team".into(), damage })
}

fn check_task(task: &[u8]) -> Result<(), StoreError> {
    let read = Task::read(task);
    read.map(drop).map_err(|damage| StoreError::Damaged { place: "the new task".into(), damage })
}

/// The subject token of a note kind.
fn note_token(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::Memory => "memory",
        NoteKind::Pulse => "pulse",
        NoteKind::Revival => "revival",
        NoteKind::Home => "home",
    }
}

#[async_trait]
impl TeamStore for NatsStore {
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        if let Some(team) = &self.connection.identity.team {
            let exists = self.roster(team).await?.incarnation().is_some();
            return Ok(exists.then(|| team.clone()).into_iter().collect());
        }
        let mut last: HashMap<String, (u64, bool)> = HashMap::new();
        for shard in 0..self.shards {
            let filter = format!("tm.{shard}.*.doc.cfg.*");
            let stream = Stream::Team.name(shard);
            let found =
                self.connection.read(&stream, &filter, ReadRange::LastHeaders, "list the teams");
            for stored in found.await? {
                let Some(team) = stored.subject.split('.').nth(2) else { continue };
                let exists = stored.header(OP) != Some(DELETED);
                let entry = last.entry(team.to_owned()).or_default();
                if stored.seq > entry.0 {
                    *entry = (stored.seq, exists);
                }
            }
        }
        let exists = last.into_iter().filter(|(_, (_, exists))| *exists);
        let mut teams: Vec<TeamName> = exists.filter_map(|(team, _)| team.parse().ok()).collect();
        teams.sort();
        Ok(teams)
    }

    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError> {
        Ok(self.roster(team).await?.document())
    }

    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written {
        let by = &self.author(by);
        let incarnation = uuid::Uuid::new_v4().simple().to_string();
        self.create(team, config, &incarnation, by).await
    }

    async fn revive_team(
        &self,
        team: &TeamName,
        config: &[u8],
        tasks: &[(TaskId, Vec<u8>)],
        by: &Actor,
    ) -> Written {
        let by = &self.author(by);
        check_team(config)?;
        if self.roster(team).await?.incarnation().is_some() {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        // Write the board first. It becomes visible when a team with this incarnation exists.
        let subjects = self.subjects(team);
        let incarnation = uuid::Uuid::new_v4().simple().to_string();
        let mut highest = 0;
        for (id, task) in tasks {
            let (_, seq) = self.connection.task(&subjects, *id, &incarnation).await?;
            self.connection.set_task(&subjects, &incarnation, *id, Some(task), seq, by).await?;
            highest = highest.max(id.get());
        }
        let stream = subjects.stream(Stream::Board);
        let last = self.connection.last(&stream, &subjects.number(), "read the board").await?;
        let seq = last.map_or(0, |last| last.seq);
        self.connection.set_number(&subjects, &incarnation, by, highest, seq).await?;
        self.create(team, config, &incarnation, by).await
    }

    async fn replace_team(
        &self,
        team: &TeamName,
        config: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        let by = &self.author(by);
        check_team(config)?;
        let roster = self.roster(team).await?;
        if roster.incarnation().is_none() {
            return Err(StoreError::NoTeam { team: team.clone() });
        }
        if roster.seq() != at.0 {
            return Err(StoreError::Conflict);
        }
        self.connection
            .replace_roster(&self.subjects(team), &roster, config, by)
            .await
            .map(Revision)
    }

    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        let by = &self.author(by);
        let subjects = self.subjects(team);
        loop {
            let roster = self.roster(team).await?;
            if roster.incarnation().is_none() {
                return Err(StoreError::NoTeam { team: team.clone() });
            }
            let pending =
                PendingWrite::new(subjects.config_by(&by.0), &[]).with_header(OP, DELETED);
            let pending = pending.expect_last(subjects.roster(), roster.seq());
            match self.connection.write(pending, "delete the team").await {
                Err(StoreError::Conflict) => {}
                written => {
                    locked(&self.incarnations).remove(team);
                    return written.map(drop);
                }
            }
        }
    }
}

#[async_trait]
impl MailStore for NatsStore {
    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError> {
        let incarnation = self.incarnation(team).await?;
        self.connection.post(&self.subjects(team), to, message, &incarnation).await?;
        Ok(Receipt { msg_id: message.msg_id.clone(), waits: None })
    }

    async fn inbox(&self, team: &TeamName, member: &MemberName) -> Result<Vec<Mail>, StoreError> {
        let incarnation = self.incarnation(team).await?;
        let mailbox = self.mailboxes.get_or_create(team, member);
        let mut cached = mailbox.lock().await;
        // Read the generation before the inbox: messages that arrive later are added by the watch.
        let generation = self.generations.now(team);
        self.connection
            .inbox(&self.subjects(team), member, &incarnation, &mut cached, generation)
            .await
    }

    async fn mark(
        &self,
        team: &TeamName,
        member: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError> {
        let incarnation = self.incarnation(team).await?;
        let mailbox = self.mailboxes.get_or_create(team, member);
        let mut cached = mailbox.lock().await;
        self.connection
            .mark(&self.subjects(team), member, keys, mark, &incarnation, &mut cached)
            .await
    }

    async fn mailbox_history(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<Vec<Record>, StoreError> {
        let subjects = self.subjects(team);
        let records =
            self.read_records(&subjects, self.visible_mailbox_filters(&subjects, member)).await?;
        // The history also includes events about this mailbox that members recorded on its host.
        let noted = self.read_records(&subjects, vec![(Stream::Mail, subjects.records())]).await?;
        let about = |record: &Record| record.event.mailbox() == Some(member.as_str());
        let mut all: Vec<Record> =
            records.into_iter().chain(noted.into_iter().filter(about)).collect();
        all.sort_by_key(|record| record.at);
        Ok(all)
    }
}

#[async_trait]
impl BoardStore for NatsStore {
    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let incarnation = self.incarnation(team).await?;
        self.connection.tasks(&self.subjects(team), &incarnation).await
    }

    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError> {
        let incarnation = self.incarnation(team).await?;
        Ok(self.connection.task(&self.subjects(team), id, &incarnation).await?.0)
    }

    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError> {
        let (subjects, incarnation) = (self.subjects(team), self.incarnation(team).await?);
        loop {
            let id = self.connection.next_number(&subjects, &incarnation, by).await?;
            let bytes = task(id);
            check_task(&bytes)?;
            match self.connection.set_task(&subjects, &incarnation, id, Some(&bytes), 0, by).await {
                // A task with this number exists from an earlier team of the same name.
                Err(StoreError::Conflict) => {
                    let (exists, seq) = self.connection.task(&subjects, id, &incarnation).await?;
                    if exists.is_none() {
                        let expected_last = seq;
                        let written = self
                            .connection
                            .set_task(&subjects, &incarnation, id, Some(&bytes), expected_last, by)
                            .await?;
                        return Ok((id, Revision(written)));
                    }
                }
                written => return Ok((id, Revision(written?))),
            }
        }
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
        let (subjects, incarnation) = (self.subjects(team), self.incarnation(team).await?);
        match self.connection.set_task(&subjects, &incarnation, id, Some(task), at.0, by).await {
            Err(StoreError::Conflict) => {
                match self.connection.task(&subjects, id, &incarnation).await?.0 {
                    Some(_) => Err(StoreError::Conflict),
                    None => Err(StoreError::NoTask { id }),
                }
            }
            written => written.map(Revision),
        }
    }

    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError> {
        let (subjects, incarnation) = (self.subjects(team), self.incarnation(team).await?);
        loop {
            let (exists, seq) = self.connection.task(&subjects, id, &incarnation).await?;
            exists.ok_or(StoreError::NoTask { id })?;
            match self.connection.set_task(&subjects, &incarnation, id, None, seq, by).await {
                Err(StoreError::Conflict) => {}
                written => return written.map(drop),
            }
        }
    }
}

#[async_trait]
impl Notes for NatsStore {
    async fn decide(
        &self,
        team: &TeamName,
        question: &Question,
        answer: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        self.incarnation(team).await?;
        let subject = self.subjects(team).decision(question.of(), question.as_str());
        let pending = PendingWrite::new(subject.clone(), answer).expect_last(subject, 0);
        match self.connection.write(pending, "decide").await {
            Ok(_) => Ok(answer.to_vec()),
            // The replicas are still agreeing on the other answer; wait until it can be read.
            Err(StoreError::Conflict) => loop {
                if let Some(first) = self.decided(team, question).await? {
                    return Ok(first);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            },
            Err(error) => Err(error),
        }
    }

    async fn decided(
        &self,
        team: &TeamName,
        question: &Question,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.incarnation(team).await?;
        let subjects = self.subjects(team);
        let subject = subjects.decision(question.of(), question.as_str());
        let stream = subjects.stream(Stream::Team);
        let found = self.connection.last(&stream, &subject, "read a decision").await?;
        Ok(found.map(|found| found.payload.to_vec()))
    }

    async fn put_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let subjects = self.subjects(team);
        let text = note.unwrap_or_default();
        let pending = match kind {
            NoteKind::Pulse => {
                let ttl = format!("{}s", PULSE.as_secs());
                PendingWrite::new(subjects.pulse(member), text).with_header("Nats-TTL", ttl)
            }
            _ => PendingWrite::new(subjects.note(member, note_token(kind)), text),
        };
        let pending = if note.is_none() { pending.with_header(OP, DELETED) } else { pending };
        self.connection.write(pending, "store a note").await.map(drop)
    }

    async fn get_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let subjects = self.subjects(team);
        let (stream, subject) = match kind {
            NoteKind::Pulse => (Stream::Live, subjects.pulse(member)),
            _ => (Stream::Notes, subjects.note(member, note_token(kind))),
        };
        let found = self.connection.last(&subjects.stream(stream), &subject, "read a note").await?;
        let found = found.filter(|found| found.header(OP) != Some(DELETED));
        Ok(found.map(|found| found.payload.to_vec()))
    }
}

#[async_trait]
impl EventLog for NatsStore {
    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError> {
        let incarnation = self.incarnation(team).await?;
        let text = serde_json::to_vec(&event).map_err(|error| {
            NatsError::Malformed(error.to_string()).while_doing("record an event")
        })?;
        let id = Some(uuid::Uuid::new_v4().to_string());
        let subjects = self.subjects(team);
        let subject = match event {
            Event::Worked { .. } => subjects.work_by(&by.0),
            _ => subjects.record(&by.0),
        };
        let pending = PendingWrite { id, ..PendingWrite::new(subject, &text) }
            .with_header(INCARNATION, incarnation);
        self.connection.write(pending, "record an event").await.map(drop)
    }

    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let subjects = self.subjects(team);
        let filters = self.visible_filters(&subjects);
        self.read_records(&subjects, filters).await
    }

    async fn history_without_work(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let subjects = self.subjects(team);
        let filters = self.visible_filters_without_work(&subjects);
        self.read_records(&subjects, filters).await
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        let subjects = self.subjects(team);
        let filters = self.visible_filters(&subjects);
        self.follow(&subjects, filters).await
    }

    async fn watch_without_work(&self, team: &TeamName) -> Result<Watch, StoreError> {
        let subjects = self.subjects(team);
        let filters = self.visible_filters_without_work(&subjects);
        self.follow(&subjects, filters).await
    }
}

impl Store for NatsStore {
    fn retry_stats(&self) -> Option<RetryStats> {
        Some(self.connection.counters.retry_stats())
    }
}

impl NatsStore {
    async fn follow(
        &self,
        subjects: &Place,
        filters: Vec<(Stream, String)>,
    ) -> Result<Watch, StoreError> {
        self.incarnation(&subjects.team).await?;
        let sources = filters.into_iter();
        let sources =
            sources.map(|(stream, filter)| WatchedFilter::new(subjects, stream, filter)).collect();
        let (generations, mailboxes) = (Arc::clone(&self.generations), Arc::clone(&self.mailboxes));
        watch::follow(Arc::clone(&self.connection), subjects, sources, generations, mailboxes).await
    }

    async fn create(
        &self,
        team: &TeamName,
        config: &[u8],
        incarnation: &str,
        by: &Actor,
    ) -> Written {
        check_team(config)?;
        let subjects = self.subjects(team);
        loop {
            let roster = self.roster(team).await?;
            if roster.incarnation().is_some() {
                return Err(StoreError::TeamExists { team: team.clone() });
            }
            let pending = PendingWrite::new(subjects.config_by(&by.0), config)
                .with_header(INCARNATION, incarnation);
            match self
                .connection
                .write(pending.expect_last(subjects.roster(), roster.seq()), "create the team")
                .await
            {
                Err(StoreError::Conflict) => {}
                written => return written.map(Revision),
            }
        }
    }
}
