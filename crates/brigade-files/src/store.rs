//! The store's operations, each made of the parts beside this file.

use std::time::Duration;

use async_trait::async_trait;
use brigade_wire::inbox::Inbox;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::team::Team;

use super::dir::{Dir, PRIVATE, Sync};
use super::document::{self, Tried, Which};
use super::journal::Journal;
use super::lock::Patience;
use super::mailbox::{self, Work, World};
use super::own::{Own, Slot};
use super::teams::Board;
use super::watch::Scope;
use super::{FileStore, check_team, held, state, watch};
use brigade_core::event::{Event, MessageKey, Record};
use brigade_core::event_log::{Feed, Library};
use brigade_core::store::{
    Actor, Document, Mail, Mark, Outgoing, Question, Receipt, Revision, Shelf, Store, StoreError,
    Watch, Written,
};

/// The folder of answers that were given once for all.
pub(super) const DECIDED: &str = "decided";
const ROSTER: Which = Which { slot: Slot::Roster, task: 0 };
/// Claude Code 2.1.50 reads `config.json` and writes it in place without a lock. Between the two 124
/// milliseconds were seen on a busy machine, and once more than 600 on one that was overloaded.
const NATIVE_WRITE: Duration = Duration::from_secs(1);

#[async_trait]
impl Store for FileStore {
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        let Some(dir) = Dir::open(&self.teams_path())? else { return Ok(Vec::new()) };
        let mut teams = Vec::new();
        for name in dir.names()? {
            // A name that is no team name is not one of ours, or is being deleted.
            let Ok(team) = name.parse::<TeamName>() else { continue };
            let Ok(Some(child)) = dir.child(&name) else { continue };
            if child.stamp("config.json")?.is_some() {
                teams.push(team);
            }
        }
        teams.sort();
        Ok(teams)
    }

    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError> {
        match self.native(team) {
            Ok(native) => {
                let known = *held(&native.whole);
                let read = |known| document::read(&native.team, "config.json", known, check_team);
                let mut config = read(known).await?;
                if let Some((torn, stamp)) = &config
                    && known != Some(*stamp)
                    && check_team(&torn.bytes).is_err()
                    && self.mend_roster(team, &native, ROSTER, torn).await?
                {
                    config = read(None).await?;
                }
                let (document, stamp) = config.unzip();
                *held(&native.whole) = stamp;
                Ok(document)
            }
            Err(StoreError::NoTeam { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written {
        self.make_team(team, config, Board::Empty, by)
    }

    async fn revive_team(
        &self,
        team: &TeamName,
        config: &[u8],
        tasks: &[(TaskId, Vec<u8>)],
        by: &Actor,
    ) -> Written {
        self.make_team(team, config, Board::Of(tasks), by)
    }

    async fn replace_team(
        &self,
        team: &TeamName,
        config: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        let native = self.native(team)?;
        let own = self.own(team)?;
        self.wait(|patience| {
            let seen = own.seen()?;
            if let Some(seen) = &seen {
                seen.check_shared(at)?;
            }
            let tried = document::try_replace(
                &native.team,
                ROSTER,
                (config, at),
                seen.as_ref(),
                patience,
                self.sync(),
            )?;
            if let (Some(seen), Tried::Done(())) = (seen, &tried) {
                seen.roster(self.clock.as_ref(), Some(by), Some(config))?;
            }
            Ok(tried)
        })
        .await?;
        self.settle(Some(&native.team))?;
        Ok(document::revision(config))
    }

    async fn is_ours(&self, team: &TeamName) -> Result<bool, StoreError> {
        // With patience: while Claude Code writes it in place the team is nobody else's.
        let Some(config) = self.team(team).await? else { return Ok(false) };
        let Some(own) = self.own_if_there(team)? else { return Ok(false) };
        let created = |bytes: &[u8]| Team::read(bytes).map(|team| team.created_at());
        let created = match created(&config.bytes) {
            Ok(created) => created,
            // Torn once more since: what was seen last says whose it is.
            Err(_) => own.last_roster()?.and_then(|last| created(&last).ok().flatten()),
        };
        Ok(created.is_some() && created == own.created()?)
    }

    async fn undo_window(&self, team: &TeamName) -> Result<Duration, StoreError> {
        Ok(if self.own(team)?.is_shared()? { NATIVE_WRITE } else { Duration::ZERO })
    }

    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        self.unmake_team(team, by)
    }

    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError> {
        let native = self.native(team)?;
        self.check_deliverable(&native.inboxes, to)?;
        let event = Event::Sent {
            to: to.to_string(),
            key: message.key(),
            team_created: message.team_created,
            power_safe: self.sync() == Sync::Yes,
            message: mailbox::entry(message),
        };
        let by = Some(message.from.clone());
        let record = Record { at: self.clock.now(), by, event };
        let mailbox = self.mailbox(team, to)?;
        let upto = held(&mailbox).journal.append(&[record], self.sync())?;
        // From here on it is acknowledged, whatever becomes of us.
        let work = Work::Merge { upto };
        let waits = self.work_on(team, &native, &mailbox, work).await.err();
        Ok(Receipt { msg_id: message.msg_id.clone(), waits })
    }

    async fn inbox(&self, team: &TeamName, of: &MemberName) -> Result<Vec<Mail>, StoreError> {
        // First what waits; if a lock is held, it is shown from the outbox.
        let looked = self.work(team, of, Work::Look).await;
        if let Err(error) = &looked {
            tracing::warn!(%team, member = %of, %error, "the inbox could not be brought up to date");
        }
        let native = self.native(team)?;
        let inboxes = &native.inboxes;
        let mailbox = self.mailbox(team, of)?;
        if looked.is_ok() {
            held(&mailbox).sweep(inboxes)?;
        }
        let file = format!("{of}.json");
        let waiting = {
            let team_created = &|| self.team_created(team);
            let world = World { inboxes, clock: self.clock.as_ref(), team_created };
            held(&mailbox).waiting(&world)?
        };
        let check = |bytes: &[u8]| Inbox::read(bytes).map(drop);
        let mut mail = match document::read(inboxes, &file, None, check).await? {
            Some((document, _)) => {
                let inbox = Inbox::read(&document.bytes).map_err(|damage| {
                    let place = inboxes.path(&file).display().to_string();
                    StoreError::Damaged { place, damage }
                })?;
                let all = MessageKey::all(inbox.messages());
                all.iter().map(|(key, m)| Mail { key: *key, json: m.json().to_vec() }).collect()
            }
            None => Vec::new(),
        };
        for message in waiting {
            if !mail.iter().any(|mail: &Mail| mail.key == message.key()) {
                let json = mailbox::entry(&message).get().as_bytes().to_vec();
                mail.push(Mail { key: message.key(), json });
            }
        }
        Ok(mail)
    }

    async fn mark(
        &self,
        team: &TeamName,
        of: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError> {
        self.work(team, of, Work::Mark { keys, mark }).await
    }

    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let board = self.board(team)?;
        let own = self.own(team)?;
        if let (Some(dir), Some(seen)) = (board.dir(), own.seen()?) {
            document::clear_locks(dir, &[Slot::Create, Slot::Task], &seen)?;
            state::sweep(&own.dir, &own.dir.names()?, |_| true);
            if let Ok(native) = self.native(team) {
                document::clear_locks(&native.team, &[Slot::Roster], &seen)?;
                state::sweep(&native.team, &native.team.names()?, |of| {
                    of.starts_with("config.json")
                });
            }
        }
        board.tasks()
    }

    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError> {
        self.board(team)?.task(id).await
    }

    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + std::marker::Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError> {
        let board = self.board_made(team)?;
        let own = self.own(team)?;
        let create = |patience: &mut Patience| {
            let seen = own.seen()?;
            let tried = board.try_create(task, seen.as_ref(), patience)?;
            if let (Some(seen), Tried::Done((id, bytes))) = (seen, &tried) {
                seen.task(self.clock.as_ref(), Some(by), id.get(), Some(bytes))?;
            }
            Ok(tried)
        };
        let (id, bytes) = self.wait(create).await?;
        self.settle(board.dir())?;
        Ok((id, document::revision(&bytes)))
    }

    async fn replace_task(
        &self,
        team: &TeamName,
        id: TaskId,
        task: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        let board = self.board(team)?;
        let own = self.own(team)?;
        let replace = |patience: &mut Patience| {
            // Who comes too late need not queue for the locks to hear of it.
            board.check_revision(id, at)?;
            let seen = own.seen()?;
            let tried = board.try_replace(id, task, at, seen.as_ref(), patience, self.sync())?;
            if let (Some(seen), Tried::Done(())) = (seen, &tried) {
                seen.task(self.clock.as_ref(), Some(by), id.get(), Some(task))?;
            }
            Ok(tried)
        };
        self.wait(replace).await?;
        self.settle(board.dir())?;
        Ok(document::revision(task))
    }

    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError> {
        let board = self.board(team)?;
        let own = self.own(team)?;
        let mut other = Patience::default();
        self.wait(|patience| {
            let seen = own.seen()?;
            let tried = board.try_delete(id, seen.as_ref(), [patience, &mut other])?;
            if let (Some(seen), Tried::Done(())) = (seen, &tried) {
                seen.task(self.clock.as_ref(), Some(by), id.get(), None)?;
            }
            Ok(tried)
        })
        .await?;
        self.settle(board.dir())
    }

    async fn decide(
        &self,
        team: &TeamName,
        question: &Question,
        answer: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        self.team_dir(team)?;
        let dir = self.own(team)?.dir.own_child(DECIDED)?;
        let temp = state::Temp::next().name(question.as_str());
        // On the disk before it has its name, for an answer cut short would be no answer for ever.
        dir.write_temp(&temp, answer, Some(PRIVATE), Sync::Yes)?;
        let first = dir.rename_new(&temp, question.as_str());
        if !matches!(first, Ok(true)) {
            dir.remove_quietly(&temp);
        }
        if first? {
            self.settle(Some(&dir))?;
            return Ok(answer.to_vec());
        }
        let first = dir.read(question.as_str())?;
        first.map(|first| first.bytes).ok_or(StoreError::Conflict)
    }

    async fn decided(
        &self,
        team: &TeamName,
        question: &Question,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.team_dir(team)?;
        let Some(dir) = self.own(team)?.dir.child(DECIDED)? else { return Ok(None) };
        Ok(dir.read(question.as_str())?.map(|answer| answer.bytes))
    }

    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError> {
        self.team_dir(team)?;
        self.own(team)?.note(self.clock.as_ref(), Some(by), event)
    }

    async fn keep(
        &self,
        team: &TeamName,
        of: &MemberName,
        shelf: Shelf,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let dir = self.own(team)?.dir.own_child(shelf_dir(shelf))?;
        let name = format!("{of}.json");
        let Some(note) = note else {
            dir.remove(&name)?;
            // Nobody comes back to what a process was writing when it was killed.
            state::sweep(&dir, &dir.names()?, |of| of == name);
            return Ok(());
        };
        let temp = state::Temp::next().name(&name);
        let sync = if shelf == Shelf::Pulse { Sync::No } else { self.sync() };
        dir.write_temp(&temp, note, Some(PRIVATE), sync)?;
        dir.rename(&temp, &name)?;
        if shelf == Shelf::Pulse { Ok(()) } else { self.settle(Some(&dir)) }
    }

    async fn kept(
        &self,
        team: &TeamName,
        of: &MemberName,
        shelf: Shelf,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(own) = self.own_if_there(team)? else { return Ok(None) };
        let Some(dir) = own.dir.child(shelf_dir(shelf))? else { return Ok(None) };
        Ok(dir.read(&format!("{of}.json"))?.map(|note| note.bytes))
    }

    async fn mailbox_history(
        &self,
        team: &TeamName,
        of: &MemberName,
    ) -> Result<Vec<Record>, StoreError> {
        // First what others put there.
        self.work(team, of, Work::Look).await?;
        let mailbox = self.mailbox(team, of)?;
        let records = held(&mailbox).journal.read_from(0)?.records;
        Ok(records)
    }

    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let Some(own) = self.own_if_there(team)? else { return Ok(Vec::new()) };
        journals(&own, &Scope::All.folders(&own))
    }

    async fn proceedings(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let Some(own) = self.own_if_there(team)? else { return Ok(Vec::new()) };
        journals(&own, &Scope::Proceedings.folders(&own))
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        self.team_dir(team)?;
        watch::start(self, team, Scope::All)
    }

    async fn watch_proceedings(&self, team: &TeamName) -> Result<Watch, StoreError> {
        self.team_dir(team)?;
        watch::start(self, team, Scope::Proceedings)
    }

    async fn chronicle(&self, team: &TeamName) -> Result<(Feed, Library), StoreError> {
        self.chronicle_of(team)
    }
}

impl FileStore {
    /// Puts a task that was made elsewhere under the number it has there. If there is one of that number,
    /// that is a conflict.
    pub async fn place_task(
        &self,
        team: &TeamName,
        id: TaskId,
        task: &[u8],
        by: &Actor,
    ) -> Written {
        let board = self.board_made(team)?;
        let own = self.own(team)?;
        self.wait(|patience| {
            let seen = own.seen()?;
            let tried = board.try_place(id, task, seen.as_ref(), patience)?;
            if let (Some(seen), Tried::Done(())) = (seen, &tried) {
                seen.task(self.clock.as_ref(), Some(by), id.get(), Some(task))?;
            }
            Ok(tried)
        })
        .await?;
        self.settle(board.dir())?;
        Ok(document::revision(task))
    }

    /// Takes the messages out of an inbox that has nothing but read ones, and enough of them. The journal
    /// has them. For an inbox whose owner reads elsewhere, for nobody else makes it shorter.
    pub async fn tidy(&self, team: &TeamName, of: &MemberName) -> Result<(), StoreError> {
        self.work(team, of, Work::Tidy).await
    }
}

/// What stands in the team's own journal and in those of some folders, in order of time.
fn journals(own: &Own, folders: &[&Dir]) -> Result<Vec<Record>, StoreError> {
    let mut records = own.log.read_from(0)?.records;
    for folder in folders {
        for name in folder.names()?.iter().filter(|name| name.ends_with(".jsonl")) {
            records.extend(Journal::open(folder, name)?.read_from(0)?.records);
        }
    }
    records.sort_by_key(|record| record.at);
    Ok(records)
}

/// Where the notes of members are.
fn shelf_dir(shelf: Shelf) -> &'static str {
    match shelf {
        Shelf::Memory => "kept",
        Shelf::Pulse => "pulse",
        Shelf::Revival => "revival",
        Shelf::Home => "home",
    }
}
