//! Implements [`Store`] on NATS JetStream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::store::{
    Actor, Document, Mail, Mark, Outgoing, Question, Receipt, Revision, Shelf, Store, StoreError,
    Strain, Watch, Written,
};
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::Task;
use brigade_wire::team::Team;

use crate::engine::{Engine, Metrics};
use crate::error::Trouble;
use crate::follow::{self, Followed, Source};
use crate::identity::Role;

use crate::layout::{PULSE, Place, Stream};
use crate::mailbox::Mailboxes;
use crate::options::Options;
use crate::read::Which;
use crate::roster::Roster;
use crate::write::{DELETED, Draft, LIFE, OP};

/// How long to assume that a team still exists. Only affects whether a message to a deleted team is rejected.
const BELIEVED: Duration = Duration::from_secs(2);

/// A store on NATS JetStream.
#[derive(Debug)]
pub struct NatsStore {
    pub(crate) engine: Arc<Engine>,
    pub(crate) shards: u16,
    /// Watched teams, and the current watch generation of each.
    followed: Arc<Followed>,
    rosters: Mutex<HashMap<TeamName, Roster>>,
    lives: Mutex<HashMap<TeamName, (String, Instant)>>,
    mailboxes: Arc<Mailboxes>,
}

impl NatsStore {
    /// Connects to the NATS server. Creates the streams if there are none and the credentials allow it.
    pub async fn connect(options: Options) -> Result<Self, StoreError> {
        let engine = Engine::open(&options).await?;
        let shards = if engine.identity.role == Role::Admin {
            // Check for the streams first: a read from a missing stream is never answered and would time out.
            let found = if engine.has_streams().await? { engine.layout().await? } else { None };
            match found {
                Some(layout) => layout.shards,
                None => engine.make_streams(&options.settings).await?.shards,
            }
        } else {
            engine.identity.settings.shards
        };
        Ok(Self {
            engine: Arc::new(engine),
            shards,
            followed: Arc::default(),
            rosters: Mutex::default(),
            lives: Mutex::default(),
            mailboxes: Arc::default(),
        })
    }

    /// Counters for retries and conflicts of this process.
    pub fn metrics(&self) -> &Metrics {
        &self.engine.metrics
    }

    fn place(&self, team: &TeamName) -> Place {
        Place::of(team, self.shards)
    }

    /// Reads the current roster.
    async fn roster(&self, team: &TeamName) -> Result<Roster, StoreError> {
        let known = locked(&self.rosters).get(team).cloned().unwrap_or_default();
        let roster = self.engine.roster(&self.place(team), known).await?;
        self.remember(team, &roster);
        Ok(roster)
    }

    fn remember(&self, team: &TeamName, roster: &Roster) {
        locked(&self.rosters).insert(team.clone(), roster.clone());
        match roster.life() {
            Some(life) => {
                locked(&self.lives).insert(team.clone(), (life.to_owned(), Instant::now()));
            }
            None => drop(locked(&self.lives).remove(team)),
        }
    }

    /// The team's current incarnation.
    async fn life(&self, team: &TeamName) -> Result<String, StoreError> {
        if let Some((life, at)) = locked(&self.lives).get(team)
            && at.elapsed() < BELIEVED
        {
            return Ok(life.clone());
        }
        let roster = self.roster(team).await?;
        roster.life().map(str::to_owned).ok_or_else(|| StoreError::NoTeam { team: team.clone() })
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
fn shelf_name(shelf: Shelf) -> &'static str {
    match shelf {
        Shelf::Memory => "memory",
        Shelf::Pulse => "pulse",
        Shelf::Revival => "revival",
        Shelf::Home => "home",
    }
}

#[async_trait]
impl Store for NatsStore {
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        if let Some(team) = &self.engine.identity.team {
            let there = self.roster(team).await?.life().is_some();
            return Ok(there.then(|| team.clone()).into_iter().collect());
        }
        let mut last: HashMap<String, (u64, bool)> = HashMap::new();
        for shard in 0..self.shards {
            let filter = format!("tm.{shard}.*.doc.cfg.*");
            let stream = Stream::Team.name(shard);
            let found = self.engine.read(&stream, &filter, Which::LastHeaders, "list the teams");
            for stored in found.await? {
                let Some(team) = stored.subject.split('.').nth(2) else { continue };
                let there = stored.header(OP) != Some(DELETED);
                let entry = last.entry(team.to_owned()).or_default();
                if stored.seq > entry.0 {
                    *entry = (stored.seq, there);
                }
            }
        }
        let there = last.into_iter().filter(|(_, (_, there))| *there);
        let mut teams: Vec<TeamName> = there.filter_map(|(team, _)| team.parse().ok()).collect();
        teams.sort();
        Ok(teams)
    }

    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError> {
        Ok(self.roster(team).await?.document())
    }

    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written {
        let by = &self.author(by);
        let life = uuid::Uuid::new_v4().simple().to_string();
        self.create(team, config, &life, by).await
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
        if self.roster(team).await?.life().is_some() {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        // Write the board first. It becomes visible when a team with this incarnation exists.
        let place = self.place(team);
        let life = uuid::Uuid::new_v4().simple().to_string();
        let mut highest = 0;
        for (id, task) in tasks {
            let (_, seq) = self.engine.task(&place, *id, &life).await?;
            self.engine.set_task(&place, &life, *id, Some(task), seq, by).await?;
            highest = highest.max(id.get());
        }
        let stream = place.stream(Stream::Board);
        let last = self.engine.last(&stream, &place.number(), "read the board").await?;
        let seq = last.map_or(0, |last| last.seq);
        self.engine.set_number(&place, &life, by, highest, seq).await?;
        self.create(team, config, &life, by).await
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
        if roster.life().is_none() {
            return Err(StoreError::NoTeam { team: team.clone() });
        }
        if roster.seq() != at.0 {
            return Err(StoreError::Conflict);
        }
        self.engine.replace_roster(&self.place(team), &roster, config, by).await.map(Revision)
    }

    async fn is_ours(&self, team: &TeamName) -> Result<bool, StoreError> {
        Ok(self.roster(team).await?.life().is_some())
    }

    async fn undo_window(&self, _: &TeamName) -> Result<Duration, StoreError> {
        Ok(Duration::ZERO)
    }

    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        let by = &self.author(by);
        let place = self.place(team);
        loop {
            let roster = self.roster(team).await?;
            if roster.life().is_none() {
                return Err(StoreError::NoTeam { team: team.clone() });
            }
            let draft = Draft::new(place.config_by(&by.0), &[]).with(OP, DELETED);
            let draft = draft.onto(place.roster(), roster.seq());
            match self.engine.write(draft, "delete the team").await {
                Err(StoreError::Conflict) => {}
                written => {
                    locked(&self.lives).remove(team);
                    return written.map(drop);
                }
            }
        }
    }

    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError> {
        let life = self.life(team).await?;
        self.engine.post(&self.place(team), to, message, &life).await?;
        Ok(Receipt { msg_id: message.msg_id.clone(), waits: None })
    }

    async fn inbox(&self, team: &TeamName, of: &MemberName) -> Result<Vec<Mail>, StoreError> {
        let life = self.life(team).await?;
        let mailbox = self.mailboxes.of(team, of);
        let mut known = mailbox.lock().await;
        // Read the generation before the inbox: messages that arrive later are added by the watch.
        let following = self.followed.now(team);
        self.engine.inbox(&self.place(team), of, &life, &mut known, following).await
    }

    async fn mark(
        &self,
        team: &TeamName,
        of: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError> {
        let life = self.life(team).await?;
        let mailbox = self.mailboxes.of(team, of);
        let mut known = mailbox.lock().await;
        self.engine.mark(&self.place(team), of, keys, mark, &life, &mut known).await
    }

    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let life = self.life(team).await?;
        self.engine.tasks(&self.place(team), &life).await
    }

    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError> {
        let life = self.life(team).await?;
        Ok(self.engine.task(&self.place(team), id, &life).await?.0)
    }

    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError> {
        let (place, life) = (self.place(team), self.life(team).await?);
        loop {
            let id = self.engine.next_number(&place, &life, by).await?;
            let bytes = task(id);
            check_task(&bytes)?;
            match self.engine.set_task(&place, &life, id, Some(&bytes), 0, by).await {
                // A task with this number exists from an earlier team of the same name.
                Err(StoreError::Conflict) => {
                    let (there, seq) = self.engine.task(&place, id, &life).await?;
                    if there.is_none() {
                        let onto = seq;
                        let written =
                            self.engine.set_task(&place, &life, id, Some(&bytes), onto, by).await?;
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
        let (place, life) = (self.place(team), self.life(team).await?);
        match self.engine.set_task(&place, &life, id, Some(task), at.0, by).await {
            Err(StoreError::Conflict) => match self.engine.task(&place, id, &life).await?.0 {
                Some(_) => Err(StoreError::Conflict),
                None => Err(StoreError::NoTask { id }),
            },
            written => written.map(Revision),
        }
    }

    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError> {
        let (place, life) = (self.place(team), self.life(team).await?);
        loop {
            let (there, seq) = self.engine.task(&place, id, &life).await?;
            there.ok_or(StoreError::NoTask { id })?;
            match self.engine.set_task(&place, &life, id, None, seq, by).await {
                Err(StoreError::Conflict) => {}
                written => return written.map(drop),
            }
        }
    }

    async fn decide(
        &self,
        team: &TeamName,
        question: &Question,
        answer: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        self.life(team).await?;
        let subject = self.place(team).decision(question.of(), question.as_str());
        let draft = Draft::new(subject.clone(), answer).onto(subject, 0);
        match self.engine.write(draft, "decide").await {
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
        self.life(team).await?;
        let place = self.place(team);
        let subject = place.decision(question.of(), question.as_str());
        let stream = place.stream(Stream::Team);
        let found = self.engine.last(&stream, &subject, "read a decision").await?;
        Ok(found.map(|found| found.payload.to_vec()))
    }

    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError> {
        let life = self.life(team).await?;
        let text = serde_json::to_vec(&event)
            .map_err(|error| Trouble::Garbled(error.to_string()).doing("record an event"))?;
        let id = Some(uuid::Uuid::new_v4().to_string());
        let place = self.place(team);
        let subject = match event {
            Event::Worked { .. } => place.work_by(&by.0),
            _ => place.record(&by.0),
        };
        let draft = Draft { id, ..Draft::new(subject, &text) }.with(LIFE, life);
        self.engine.write(draft, "record an event").await.map(drop)
    }

    async fn keep(
        &self,
        team: &TeamName,
        of: &MemberName,
        shelf: Shelf,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let place = self.place(team);
        let text = note.unwrap_or_default();
        let draft = match shelf {
            Shelf::Pulse => {
                let ttl = format!("{}s", PULSE.as_secs());
                Draft::new(place.pulse(of), text).with("Nats-TTL", ttl)
            }
            _ => Draft::new(place.note(of, shelf_name(shelf)), text),
        };
        let draft = if note.is_none() { draft.with(OP, DELETED) } else { draft };
        self.engine.write(draft, "store a note").await.map(drop)
    }

    async fn kept(
        &self,
        team: &TeamName,
        of: &MemberName,
        shelf: Shelf,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let place = self.place(team);
        let (stream, subject) = match shelf {
            Shelf::Pulse => (Stream::Live, place.pulse(of)),
            _ => (Stream::Notes, place.note(of, shelf_name(shelf))),
        };
        let found = self.engine.last(&place.stream(stream), &subject, "read a note").await?;
        let found = found.filter(|found| found.header(OP) != Some(DELETED));
        Ok(found.map(|found| found.payload.to_vec()))
    }

    async fn mailbox_history(
        &self,
        team: &TeamName,
        of: &MemberName,
    ) -> Result<Vec<Record>, StoreError> {
        let place = self.place(team);
        let records = self.tell(&place, self.subjects_of(&place, of)).await?;
        // The history also includes events about this mailbox that members recorded on its host.
        let noted = self.tell(&place, vec![(Stream::Mail, place.records())]).await?;
        let about = |record: &Record| record.event.mailbox() == Some(of.as_str());
        let mut all: Vec<Record> =
            records.into_iter().chain(noted.into_iter().filter(about)).collect();
        all.sort_by_key(|record| record.at);
        Ok(all)
    }

    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let place = self.place(team);
        let subjects = self.subjects(&place);
        self.tell(&place, subjects).await
    }

    async fn proceedings(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let place = self.place(team);
        let subjects = self.subjects_but_work(&place);
        self.tell(&place, subjects).await
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        let place = self.place(team);
        let subjects = self.subjects(&place);
        self.follow(&place, subjects).await
    }

    async fn watch_proceedings(&self, team: &TeamName) -> Result<Watch, StoreError> {
        let place = self.place(team);
        let subjects = self.subjects_but_work(&place);
        self.follow(&place, subjects).await
    }

    fn strain(&self) -> Option<Strain> {
        Some(self.engine.metrics.strain())
    }
}

impl NatsStore {
    async fn follow(
        &self,
        place: &Place,
        subjects: Vec<(Stream, String)>,
    ) -> Result<Watch, StoreError> {
        self.life(&place.team).await?;
        let sources = subjects.into_iter();
        let sources = sources.map(|(stream, filter)| Source::new(place, stream, filter)).collect();
        let (followed, mailboxes) = (Arc::clone(&self.followed), Arc::clone(&self.mailboxes));
        follow::follow(Arc::clone(&self.engine), place, sources, followed, mailboxes).await
    }

    async fn create(&self, team: &TeamName, config: &[u8], life: &str, by: &Actor) -> Written {
        check_team(config)?;
        let place = self.place(team);
        loop {
            let roster = self.roster(team).await?;
            if roster.life().is_some() {
                return Err(StoreError::TeamExists { team: team.clone() });
            }
            let draft = Draft::new(place.config_by(&by.0), config).with(LIFE, life);
            match self
                .engine
                .write(draft.onto(place.roster(), roster.seq()), "create the team")
                .await
            {
                Err(StoreError::Conflict) => {}
                written => return written.map(Revision),
            }
        }
    }
}
