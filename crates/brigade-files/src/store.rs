//! Implements the `Store` trait with the sibling modules.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use brigade_wire::inbox::Inbox;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::team::ParsedTeam;
use jiff::Timestamp;

use super::config_file::ReadConfig;
use super::dir::{Dir, Fsync, PRIVATE, is_read_only};
use super::document::{self, ROSTER};
use super::incomplete::{NOT_LOGGED, NOT_SYNCED};
use super::journal::{self, Journal};
use super::layout::{CONFIG, DECIDED, member_file, note_dir};
use super::lock::TryOutcome;
use super::mailbox::{self, MailboxContext, MailboxWork};
use super::revision::revision;
use super::team_state::TeamStateDir;
use super::team_state::intent::IntendedDocument;
use super::teams::InitialTasks;
use super::temp_file::{self, TempFile};
use super::watch::WatchScope;
use super::{FileStore, check_team, last_seen, lock_mutex, watch};
use brigade_core::event::{Event, MessageKey, Record, UncheckedRecord};
use brigade_core::store::event_log::{EventStream, RecordLookupHandle};
use brigade_core::store::{
    Actor, Document, EventLog, FoundRequest, IncompleteWrite, Mail, MailQuery, MailStore, Mark,
    MovedTasks, NoteKind, Notes, Outgoing, Question, Receipt, ReportIndexing, RequestQuery,
    Revision, SearchQuery, SearchResults, Store, StoreError, TeamStore, Watch, Written,
    damaged_team,
};

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

    async fn recorded_teams(&self) -> Result<Vec<TeamName>, StoreError> {
        let mut teams = self.teams().await?;
        teams.extend(self.teams_with_history()?);
        teams.sort();
        teams.dedup();
        Ok(teams)
    }

    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError> {
        Ok(self.read_config(team).await?.map(|config| match config {
            ReadConfig::Valid(version) => version.to_document(),
            ReadConfig::Torn(document) => document,
        }))
    }

    async fn roster(&self, team: &TeamName) -> Result<Option<Arc<ParsedTeam>>, StoreError> {
        match self.read_config(team).await? {
            None => Ok(None),
            Some(ReadConfig::Valid(version)) => Ok(Some(version.roster)),
            Some(ReadConfig::Torn(document)) => {
                let roster = ParsedTeam::read(document.bytes);
                roster.map(Arc::new).map(Some).map_err(|(damage, _)| damaged_team(team, damage))
            }
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
                // Record the change that led to this version first, under the name of its author.
                if let Some(now) = native.team.read(CONFIG)?
                    && revision(&now.bytes) == at
                    && check_team(&now.bytes).is_ok()
                {
                    let now = Some((&native.team, now.bytes.as_slice()));
                    seen.record_roster(self.clock.as_ref(), None, now)?;
                }
                seen.intend(by, IntendedDocument::Roster, Some(config))?;
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
                let roster = Some((&native.team, config));
                let recorded = seen.record_roster(self.clock.as_ref(), Some(by), roster);
                self.after_commit(recorded, NOT_LOGGED, || roster_changed(team));
            }
            Ok(tried)
        })
        .await?;
        let synced = self.sync_if_power_safe(Some(&native.team));
        self.after_commit(synced, NOT_SYNCED, || roster_changed(team));
        Ok(revision(config))
    }

    async fn is_ours(&self, team: &TeamName) -> Result<bool, StoreError> {
        // If a program is writing `config.json` in place, `read_config` waits until the write is
        // finished. A half-written file might lack the creation time of the team.
        let Some(config) = self.read_config(team).await? else { return Ok(false) };
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(false) };
        let (created, bytes) = match &config {
            ReadConfig::Valid(version) => {
                (version.roster.team().created_at(), version.roster.bytes())
            }
            ReadConfig::Torn(torn) => (last_seen::created_at(&torn.bytes), torn.bytes.as_slice()),
        };
        let created = match created {
            Some(created) => Some(created),
            // The file is still torn. If it belongs to the team that was last seen, the last seen
            // roster shows when the team was created.
            None => {
                let folder = self.team_dir(team)?;
                let last = team_state.last_roster()?.unwrap_or_default();
                let is_same = last_seen::is_same_team(&team_state.dir, &folder, bytes, &last)?;
                last_seen::created_at(&last).filter(|_| is_same)
            }
        };
        created.map_or(Ok(false), |created| team_state.is_created_by_us(created))
    }

    async fn undo_window(&self, team: &TeamName) -> Result<Duration, StoreError> {
        let is_shared = self.team_state(team)?.is_shared()?;
        Ok(if is_shared { NATIVE_REWRITE_WINDOW } else { Duration::ZERO })
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
        self.check_deliverable(native.inboxes()?, to)?;
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
        self.check_room(team, native.inboxes()?, to, message).await?;
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
        // On a read-only file system, the folder may be missing and cannot be created.
        let Some(inboxes) = &native.inboxes else { return Ok(Vec::new()) };
        let mailbox = self.readable_mailbox(team, member)?;
        let file = member_file(member);
        let mut waiting = Vec::new();
        if let Some(mailbox) = mailbox {
            if refreshed.is_ok() {
                lock_mutex(&mailbox).sweep(inboxes)?;
            }
            let team_created = &|| self.team_created(team);
            let context = MailboxContext { inboxes, clock: self.clock.as_ref(), team_created };
            waiting = lock_mutex(&mailbox).undelivered(&context)?;
        }
        let check = |bytes: &[u8]| Inbox::read(bytes).map(drop);
        let mut mail = match document::read(inboxes, &file, check).await? {
            Some(document) => {
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
        self.record_inbox_changes(team, member).await?;
        let Some(mailbox) = self.readable_mailbox(team, member)? else { return Ok(Vec::new()) };
        let records = lock_mutex(&mailbox).journal.read_from(0)?.records;
        Ok(records)
    }

    async fn find_mail(
        &self,
        team: &TeamName,
        member: &MemberName,
        query: MailQuery<'_>,
    ) -> Result<Vec<Record>, StoreError> {
        self.search_mail(team, member, query).await
    }

    async fn find_requests(
        &self,
        team: &TeamName,
        member: &MemberName,
        created: u64,
        query: RequestQuery<'_>,
    ) -> Result<Vec<FoundRequest>, StoreError> {
        self.search_requests(team, member, created, query).await
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
        let Some(team_state) = self.readable_team_state(team)? else { return Ok(None) };
        let Some(dir) = team_state.dir.child(DECIDED)? else { return Ok(None) };
        Ok(dir.read(question.as_str())?.map(|answer| answer.bytes))
    }

    async fn put_note(
        &self,
        team: &TeamName,
        member: &MemberName,
        kind: NoteKind,
        note: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let team_state = self.team_state(team)?;
        let dir = team_state.dir.private_child(note_dir(kind))?;
        let name = member_file(member);
        let Some(note) = note else {
            dir.remove(&name)?;
            // Also remove temporary files of processes that were killed while writing this note.
            temp_file::sweep(&dir, &dir.names()?, |file| file == name);
            return Ok(());
        };
        team_state.sweep_note(&dir, &name)?;
        let temp = TempFile::next().name(&name);
        if kind == NoteKind::Pulse {
            dir.write_temp(&temp, note, Some(PRIVATE), Fsync::No)?;
            return dir.replace_volatile(&temp, &name);
        }
        dir.write_temp(&temp, note, Some(PRIVATE), self.sync())?;
        dir.rename(&temp, &name)?;
        self.sync_if_power_safe(Some(&dir))
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

    async fn team_history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(Vec::new()) };
        read_journals(&team_state, &[])
    }

    async fn task_history(&self, team: &TeamName, ids: &[u64]) -> Result<Vec<Record>, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(Vec::new()) };
        let mut records = team_state.journal.read_wanted(|line| !has_other_subject(line, ids))?;
        records.retain(|record| record.event.is_about_tasks(ids));
        records.sort_by_key(|record| record.at);
        Ok(records)
    }

    async fn unread_history(
        &self,
        team: &TeamName,
        members: &[MemberName],
    ) -> Result<Vec<Record>, StoreError> {
        self.search_unread(team, members)
    }

    async fn recorded_answers(
        &self,
        team: &TeamName,
        by: &MemberName,
        ids: &[&str],
    ) -> Result<HashSet<String>, StoreError> {
        self.search_answers(team, by, ids)
    }

    async fn last_events(&self, team: &TeamName, count: usize) -> Result<Vec<Record>, StoreError> {
        self.last_records(team, count)
    }

    async fn search(
        &self,
        team: &TeamName,
        query: &SearchQuery,
        report: ReportIndexing<'_>,
    ) -> Result<SearchResults, StoreError> {
        self.search_texts(team, query, report)
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        self.team_dir(team)?;
        watch::start(self, team, WatchScope::All)
    }

    async fn watch_without_work(&self, team: &TeamName) -> Result<Watch, StoreError> {
        self.team_dir(team)?;
        watch::start(self, team, WatchScope::WithoutWork)
    }

    async fn watch_member(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<Watch, StoreError> {
        self.team_dir(team)?;
        watch::member::start(self, team, member)
    }

    async fn event_stream(
        &self,
        team: &TeamName,
    ) -> Result<(EventStream, RecordLookupHandle), StoreError> {
        self.stream_events(team, None, true).map(|(stream, lookup, _)| (stream, lookup))
    }

    async fn recent_event_stream(
        &self,
        team: &TeamName,
        bytes: u64,
        work: bool,
    ) -> Result<(EventStream, Option<Timestamp>), StoreError> {
        self.stream_events(team, Some(bytes), work).map(|(stream, _, complete)| (stream, complete))
    }
}

impl Store for FileStore {
    fn incomplete_writes(&self) -> Vec<IncompleteWrite> {
        std::mem::take(&mut *lock_mutex(&self.incomplete))
    }

    fn moved_tasks(&self) -> Vec<MovedTasks> {
        std::mem::take(&mut *lock_mutex(&self.moved))
    }
}

fn roster_changed(team: &TeamName) -> String {
    format!("the roster of team {team} was changed")
}

impl FileStore {
    /// Reads the team's `config.json`. Repairs the file if its writer died.
    async fn read_config(&self, team: &TeamName) -> Result<Option<ReadConfig>, StoreError> {
        let native = match self.native_dirs(team) {
            Ok(native) => native,
            Err(StoreError::NoTeam { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let read = native.config.read(&native.team).await?;
        let Some(ReadConfig::Torn(torn)) = &read else { return Ok(read) };
        match self.repair_roster(team, &native, ROSTER, torn).await {
            Ok(true) => native.config.read(&native.team).await,
            Ok(false) => Ok(read),
            Err(error) if is_read_only(&error) => Ok(read),
            Err(error) => Err(error),
        }
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

/// Returns whether a line of the journal is certainly about an answer, or about another task than these. Most lines are. Their first bytes
/// show it, so that they need not be parsed.
fn has_other_subject(line: &[u8], ids: &[u64]) -> bool {
    const EVENT: &[u8] = b"\"event\":{";
    const TASK: &[u8] = b"\"task\":{\"id\":";
    let Some(at) = memchr::memmem::find(line, EVENT) else { return false };
    let event = line.get(at + EVENT.len()..).unwrap_or_default();
    if event.starts_with(b"\"answered\":") {
        return true;
    }
    let Some(id) = event.strip_prefix(TASK) else { return false };
    let digits = id.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let id = std::str::from_utf8(id.get(..digits).unwrap_or_default()).ok();
    id.and_then(|id| id.parse().ok()).is_some_and(|id: u64| !ids.contains(&id))
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
