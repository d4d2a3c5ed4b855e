//! Implements the `Store` trait with the sibling modules.

use std::time::Duration;

use async_trait::async_trait;
use brigade_wire::inbox::Inbox;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::team::Team;

use super::dir::{Dir, Fsync, PRIVATE};
use super::document::{self, DocumentId};
use super::journal::{self, Journal};
use super::layout::{CONFIG, DECIDED, member_file, note_dir};
use super::lock::{LockWaiter, TryOutcome};
use super::mailbox::{self, MailboxContext, MailboxWork};
use super::revision::revision;
use super::team_state::TeamStateDir;
use super::team_state::seen::LockKind;
use super::teams::InitialTasks;
use super::temp_file::{self, TempFile};
use super::watch::WatchScope;
use super::{FileStore, check_team, lock_mutex, watch};
use brigade_core::event::{Event, MessageKey, Record, UncheckedRecord};
use brigade_core::store::event_log::{EventStream, RecordLookupHandle};
use brigade_core::store::{
    Actor, BoardStore, Document, EventLog, Mail, MailStore, Mark, NoteKind, Notes, Outgoing,
    Question, Receipt, Revision, Store, StoreError, TeamStore, Watch, Written,
};

const ROSTER: DocumentId = DocumentId { kind: LockKind::Roster, task: 0 };
/// Claude Code 2.1.50 reads `config.json` and writes it back without a lock. This is the maximum
/// time between its read and its write. Measured: 124 milliseconds on a busy machine, and once more
/// than 600 milliseconds on an overloaded machine.
const NATIVE_REWRITE_WINDOW: Duration = Duration::from_secs(1);

#[async_trait]
impl TeamStore for FileStore {
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        let Some(dir) = Dir::open(&self.teams_path())? else { return Ok(Vec::new()) };
        let mut teams = Vec::new();
        for name in dir.names()? {
            // Skip folders whose names are not team names. Some of these folders are teams that are being
            // deleted.
            let Ok(team) = name.parse::<TeamName>() else { continue };
            let Ok(Some(child)) = dir.child(&name) else { continue };
            if child.stamp(CONFIG)?.is_some() {
                teams.push(team);
            }
        }
        teams.sort();
        Ok(teams)
    }

    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError> {
        match self.native_dirs(team) {
            Ok(native) => {
                let known = *lock_mutex(&native.valid_config);
                let read = |known| document::read(&native.team, CONFIG, known, check_team);
                let mut config = read(known).await?;
                if let Some((torn, stamp)) = &config
                    && known != Some(*stamp)
                    && check_team(&torn.bytes).is_err()
                    && self.repair_roster(team, &native, ROSTER, torn).await?
                {
                    config = read(None).await?;
                }
                let (document, stamp) = config.unzip();
                *lock_mutex(&native.valid_config) = stamp;
                Ok(document)
            }
            Err(StoreError::NoTeam { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written {
        self.create_team_files(team, config, InitialTasks::Empty, by)
    }

    async fn revive_team(
        &self,
        team: &TeamName,
        config: &[u8],
        tasks: &[(TaskId, Vec<u8>)],
        by: &Actor,
    ) -> Written {
        self.create_team_files(team, config, InitialTasks::Restore(tasks), by)
    }

    async fn replace_team(
        &self,
        team: &TeamName,
        config: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        let native = self.native_dirs(team)?;
        let team_state = self.team_state(team)?;
        self.retry(|waiter| {
            let seen = team_state.lock_seen()?;
            if let Some(seen) = &seen {
                seen.note_foreign_roster(at)?;
            }
            let tried = document::try_replace(
                &native.team,
                ROSTER,
                (config, at),
                seen.as_ref(),
                waiter,
                self.sync(),
            )?;
            if let (Some(seen), TryOutcome::Done(())) = (seen, &tried) {
                seen.record_roster(self.clock.as_ref(), Some(by), Some(config))?;
            }
            Ok(tried)
        })
        .await?;
        self.sync_if_power_safe(Some(&native.team))?;
        Ok(revision(config))
    }

    async fn is_ours(&self, team: &TeamName) -> Result<bool, StoreError> {
        // If a program is writing `config.json` in place, `self.team` waits until the write is
        // finished. A half-written file might lack the creation time of the team.
        let Some(config) = self.team(team).await? else { return Ok(false) };
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(false) };
        let created = |bytes: &[u8]| Team::read(bytes).map(|team| team.created_at());
        let created = match created(&config.bytes) {
            Ok(created) => created,
            // The file is still torn. The last seen roster shows when the team was created.
            Err(_) => team_state.last_roster()?.and_then(|last| created(&last).ok().flatten()),
        };
        created.map_or(Ok(false), |created| team_state.is_created_by_us(created))
    }

    async fn undo_window(&self, team: &TeamName) -> Result<Duration, StoreError> {
        Ok(if self.team_state(team)?.is_shared()? { NATIVE_REWRITE_WINDOW } else { Duration::ZERO })
    }

    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        self.delete_team_files(team, by)
    }
}

#[async_trait]
impl MailStore for FileStore {
    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError> {
        let native = self.native_dirs(team)?;
        self.check_deliverable(&native.inboxes, to)?;
        let event = Event::Sent {
            to: to.to_string(),
            key: message.key(),
            team_created: message.team_created,
            power_safe: self.sync() == Fsync::Yes,
            message: mailbox::inbox_entry(message),
        };
        let by = Some(message.from.clone());
        let record = UncheckedRecord { at: self.clock.now(), by, event };
        let mailbox = self.mailbox(team, to)?;
        self.check_room(team, &native.inboxes, to, message).await?;
        let upto = lock_mutex(&mailbox).journal.append(&[record], self.sync())?;
        // The message is now in the journal and counts as acknowledged: it is delivered even if
        // this process dies.
        let work = MailboxWork::Merge { upto };
        let waits = self.do_work_on(team, &native, &mailbox, work).await.err();
        Ok(Receipt { msg_id: message.msg_id.clone(), pending: waits })
    }

    async fn inbox(&self, team: &TeamName, member: &MemberName) -> Result<Vec<Mail>, StoreError> {
        // Deliver pending messages first. If another process holds a lock, these messages stay in
        // the outbox, and the code below reads them there.
        let refreshed = self.do_work(team, member, MailboxWork::Refresh).await;
        if let Err(error) = &refreshed {
            tracing::warn!(%team, member = %member, %error, "cannot refresh the inbox");
        }
        let native = self.native_dirs(team)?;
        let inboxes = &native.inboxes;
        let mailbox = self.mailbox(team, member)?;
        if refreshed.is_ok() {
            lock_mutex(&mailbox).sweep(inboxes)?;
        }
        let file = member_file(member);
        let waiting = {
            let team_created = &|| self.team_created(team);
            let context = MailboxContext { inboxes, clock: self.clock.as_ref(), team_created };
            lock_mutex(&mailbox).undelivered(&context)?
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
                let json = mailbox::inbox_entry(&message).get().as_bytes().to_vec();
                mail.push(Mail { key: message.key(), json });
            }
        }
        Ok(mail)
    }

    async fn mark(
        &self,
        team: &TeamName,
        member: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError> {
        self.do_work(team, member, MailboxWork::Mark { keys, mark }).await
    }

    async fn mailbox_history(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<Vec<Record>, StoreError> {
        // The journal may lack changes that other programs made to the inbox. Record them first.
        self.do_work(team, member, MailboxWork::Refresh).await?;
        let mailbox = self.mailbox(team, member)?;
        let records = lock_mutex(&mailbox).journal.read_from(0)?.records;
        Ok(records)
    }
}

#[async_trait]
impl BoardStore for FileStore {
    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let board = self.board(team)?;
        let team_state = self.team_state(team)?;
        if let (Some(dir), Some(seen)) = (board.dir(), team_state.lock_seen()?) {
            document::clear_locks(dir, &[LockKind::Create, LockKind::Task], &seen)?;
            temp_file::sweep(&team_state.dir, &team_state.dir.names()?, |_| true);
            if let Ok(native) = self.native_dirs(team) {
                document::clear_locks(&native.team, &[LockKind::Roster], &seen)?;
                temp_file::sweep(&native.team, &native.team.names()?, |file| {
                    file.starts_with(CONFIG)
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
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError> {
        let board = self.open_or_create_board(team)?;
        let team_state = self.team_state(team)?;
        let create = |waiter: &mut LockWaiter| {
            let seen = team_state.lock_seen()?;
            let tried = board.try_create(task, seen.as_ref(), waiter)?;
            if let (Some(seen), TryOutcome::Done((id, bytes))) = (seen, &tried) {
                seen.record_task(self.clock.as_ref(), Some(by), id.get(), Some(bytes))?;
            }
            Ok(tried)
        };
        let (id, bytes) = self.retry(create).await?;
        self.sync_if_power_safe(board.dir())?;
        Ok((id, revision(&bytes)))
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
        let team_state = self.team_state(team)?;
        let replace = |waiter: &mut LockWaiter| {
            // Check the revision before waiting for the locks, so that a caller with an outdated
            // revision gets the conflict immediately.
            board.check_revision(id, at)?;
            let seen = team_state.lock_seen()?;
            let tried = board.try_replace(id, task, at, seen.as_ref(), waiter, self.sync())?;
            if let (Some(seen), TryOutcome::Done(())) = (seen, &tried) {
                seen.record_task(self.clock.as_ref(), Some(by), id.get(), Some(task))?;
            }
            Ok(tried)
        };
        self.retry(replace).await?;
        self.sync_if_power_safe(board.dir())?;
        Ok(revision(task))
    }

    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError> {
        let board = self.board(team)?;
        let team_state = self.team_state(team)?;
        let mut task_waiter = LockWaiter::default();
        self.retry(|waiter| {
            let seen = team_state.lock_seen()?;
            let tried = board.try_delete(id, seen.as_ref(), [waiter, &mut task_waiter])?;
            if let (Some(seen), TryOutcome::Done(())) = (seen, &tried) {
                seen.record_task(self.clock.as_ref(), Some(by), id.get(), None)?;
            }
            Ok(tried)
        })
        .await?;
        self.sync_if_power_safe(board.dir())
    }
}

#[async_trait]
impl Notes for FileStore {
    async fn decide(
        &self,
        team: &TeamName,
        question: &Question,
        answer: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        self.team_dir(team)?;
        let dir = self.team_state(team)?.dir.private_child(DECIDED)?;
        let temp = TempFile::next().name(question.as_str());
        // Fsync the answer before the rename. An answer is never replaced, so a truncated answer
        // would stay invalid forever.
        dir.write_temp(&temp, answer, Some(PRIVATE), Fsync::Yes)?;
        let created = dir.rename_new(&temp, question.as_str());
        if !matches!(created, Ok(true)) {
            dir.remove_quietly(&temp);
        }
        if created? {
            self.sync_if_power_safe(Some(&dir))?;
            return Ok(answer.to_vec());
        }
        let existing = dir.read(question.as_str())?;
        existing.map(|answer| answer.bytes).ok_or(StoreError::Conflict)
    }

    async fn decided(
        &self,
        team: &TeamName,
        question: &Question,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.team_dir(team)?;
        let Some(dir) = self.team_state(team)?.dir.child(DECIDED)? else { return Ok(None) };
        Ok(dir.read(question.as_str())?.map(|answer| answer.bytes))
    }

    async fn put_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let dir = self.team_state(team)?.dir.private_child(note_dir(kind))?;
        let name = member_file(member);
        let Some(note) = note else {
            dir.remove(&name)?;
            // Also remove temporary files of processes that were killed while writing this note.
            temp_file::sweep(&dir, &dir.names()?, |file| file == name);
            return Ok(());
        };
        let temp = TempFile::next().name(&name);
        let sync = if kind == NoteKind::Pulse { Fsync::No } else { self.sync() };
        dir.write_temp(&temp, note, Some(PRIVATE), sync)?;
        dir.rename(&temp, &name)?;
        if kind == NoteKind::Pulse { Ok(()) } else { self.sync_if_power_safe(Some(&dir)) }
    }

    async fn get_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(None) };
        let Some(dir) = team_state.dir.child(note_dir(kind))? else { return Ok(None) };
        Ok(dir.read(&member_file(member))?.map(|note| note.bytes))
    }
}

#[async_trait]
impl EventLog for FileStore {
    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError> {
        self.team_dir(team)?;
        self.check_author(team, &event, &by.0).await?;
        self.team_state(team)?.record_event(self.clock.as_ref(), Some(by), event)
    }

    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(Vec::new()) };
        read_journals(&team_state, &WatchScope::All.folders(&team_state))
    }

    async fn history_without_work(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(Vec::new()) };
        read_journals(&team_state, &WatchScope::WithoutWork.folders(&team_state))
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        self.team_dir(team)?;
        watch::start(self, team, WatchScope::All)
    }

    async fn watch_without_work(&self, team: &TeamName) -> Result<Watch, StoreError> {
        self.team_dir(team)?;
        watch::start(self, team, WatchScope::WithoutWork)
    }

    async fn event_stream(
        &self,
        team: &TeamName,
    ) -> Result<(EventStream, RecordLookupHandle), StoreError> {
        self.event_stream(team)
    }
}

impl Store for FileStore {}

impl FileStore {
    /// Stores a task from another store, with its number in that store. Returns a conflict if this
    /// store already has a task with that number.
    pub async fn insert_task(
        &self,
        team: &TeamName,
        id: TaskId,
        task: &[u8],
        by: &Actor,
    ) -> Written {
        let board = self.open_or_create_board(team)?;
        let team_state = self.team_state(team)?;
        self.retry(|waiter| {
            let seen = team_state.lock_seen()?;
            let tried = board.try_insert(id, task, seen.as_ref(), waiter)?;
            if let (Some(seen), TryOutcome::Done(())) = (seen, &tried) {
                seen.record_task(self.clock.as_ref(), Some(by), id.get(), Some(task))?;
            }
            Ok(tried)
        })
        .await?;
        self.sync_if_power_safe(board.dir())?;
        Ok(revision(task))
    }

    /// Empties an inbox if it holds enough messages and all of them are read. The journal keeps the
    /// messages. Call this for an inbox whose owner reads from another store, because no other code
    /// shortens that inbox.
    pub async fn prune_inbox(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<(), StoreError> {
        self.do_work(team, member, MailboxWork::Prune).await
    }
}

/// Reads the team's own journal and the journals in the given folders, sorted by time.
fn read_journals(team_state: &TeamStateDir, folders: &[&Dir]) -> Result<Vec<Record>, StoreError> {
    let mut records = team_state.journal.read_from(0)?.records;
    for folder in folders {
        for name in journal::names(folder)? {
            records.extend(Journal::open(folder, &name)?.read_from(0)?.records);
        }
    }
    records.sort_by_key(|record| record.at);
    Ok(records)
}
