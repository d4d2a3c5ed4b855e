//! Searches in the journals of a team. A search reads the records that the index names, and the records that the index does not
//! contain yet.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use brigade_wire::name::{MemberName, TeamName};

use super::deleted_records::DeletedRange;
use super::dir::is_read_only;
use super::index::{self, Index, IndexSearch, IndexedJournal, IndexedRequest};
use super::journal::{self, Journal};
use super::layout::member_journal;
use super::mailbox::MailboxWork;
use super::team_state::TeamStateDir;
use super::{FileStore, lock_mutex};
use brigade_core::event::{Event, MessageKey, Record, Topic, TopicKind};
use brigade_core::store::{FoundRequest, MailQuery, RequestQuery, StoreError};

/// If the index contains more unsettled requests than this, their answers are probably not indexed yet.
const MANY_UNSETTLED: usize = 32;

/// How many bytes at the end of a journal to read first for the last records.
const LAST_BYTES: u64 = 64 << 10;

impl FileStore {
    /// Writes the changes that other programs made to the inbox to the journal, so that a search finds them.
    pub(super) async fn record_inbox_changes(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<(), StoreError> {
        match self.do_work(team, member, MailboxWork::Refresh).await {
            Err(error) if !is_read_only(&error) => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) async fn search_mail(
        &self,
        team: &TeamName,
        member: &MemberName,
        query: MailQuery<'_>,
    ) -> Result<Vec<Record>, StoreError> {
        self.record_inbox_changes(team, member).await?;
        let Some(mailbox) = self.readable_mailbox(team, member)? else { return Ok(Vec::new()) };
        let mailbox = lock_mutex(&mailbox);
        let (team, name) = (&mailbox.team_state.dir, index::mailbox(member.as_str()));
        let search = |db: &_, indexed, _: &_| index::search_mail(db, indexed, query);
        let IndexSearch { deleted, mut indexed, found: offsets } =
            Index::search(team, &name, &mailbox.journal, search)?;
        let expected = offsets.len();
        let mut found = records_at(&mailbox.journal, offsets)?;
        found.retain(|record| query.matches(&record.event));
        if found.len() != expected {
            tracing::warn!(%member, "the index is wrong; reading the whole journal");
            indexed = IndexedJournal::unindexed(&mailbox.journal, &deleted)?;
            found.clear();
        }
        mailbox.journal.scan(indexed.upto.offset, |_, record| {
            if query.matches(&record.event) {
                found.push(record);
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    pub(super) async fn search_requests(
        &self,
        team: &TeamName,
        member: &MemberName,
        created: u64,
        query: RequestQuery<'_>,
    ) -> Result<Vec<FoundRequest>, StoreError> {
        self.record_inbox_changes(team, member).await?;
        let Some(mailbox) = self.readable_mailbox(team, member)? else { return Ok(Vec::new()) };
        let mailbox = lock_mutex(&mailbox);
        let (journal, name) = (&mailbox.journal, index::mailbox(member.as_str()));
        loop {
            let (deleted, found) = requests(&mailbox.team_state, &name, journal, created, query)?;
            // If another process has deleted records meanwhile, the numbers may be wrong.
            if DeletedRange::in_journal(&mailbox.team_state.dir, &name, journal)? == deleted {
                return Ok(found);
            }
        }
    }

    pub(super) fn search_answers(
        &self,
        team: &TeamName,
        by: &MemberName,
        ids: &[&str],
    ) -> Result<HashSet<String>, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(HashSet::new()) };
        let journal = &team_state.journal;
        let search = |db: &_, _, _: &_| index::search_answered(db, by.as_str(), ids);
        let IndexSearch { indexed, found, .. } =
            Index::search(&team_state.dir, index::TEAM, journal, search)?;
        let mut found: HashSet<String> = found.into_iter().collect();
        journal.scan(indexed.upto.offset, |_, record| {
            if let Event::Answered { request_id, .. } = &record.event
                && record.by.as_deref() == Some(by.as_str())
                && ids.contains(&request_id.as_str())
            {
                found.insert(request_id.clone());
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    pub(super) fn search_unread(
        &self,
        team: &TeamName,
        members: &[MemberName],
    ) -> Result<Vec<Record>, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for member in members.iter().collect::<HashSet<_>>() {
            // Opening a journal creates it.
            if team_state.mail.stamp(&member_journal(member))?.is_some() {
                found.extend(unread(&team_state, member)?);
            }
        }
        found.sort_by_key(|record| record.at);
        Ok(found)
    }

    /// Returns the last records of the team's own journal and the journals of its mailboxes.
    pub(super) fn last_records(
        &self,
        team: &TeamName,
        count: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let Some(team_state) = self.existing_team_state(team)? else { return Ok(Vec::new()) };
        let mut records = last_of(&team_state.journal, count)?;
        for name in journal::names(&team_state.mail)? {
            records.extend(last_of(&Journal::open(&team_state.mail, &name)?, count)?);
        }
        records.sort_by_key(|record| record.at);
        Ok(records.split_off(records.len().saturating_sub(count)))
    }
}

/// Returns the requests that the query selects, and the deleted records of the journal.
fn requests(
    team_state: &TeamStateDir,
    name: &str,
    journal: &Journal,
    created: u64,
    query: RequestQuery<'_>,
) -> Result<(DeletedRange, Vec<FoundRequest>), StoreError> {
    let search = || {
        let search = |db: &_, indexed, deleted: &_| {
            index::search_requests(db, indexed, deleted, created, query)
        };
        Index::search(&team_state.dir, name, journal, search)
    };
    let mut searched = search()?;
    let is_unsettled = matches!(query, RequestQuery::Unsettled);
    if is_unsettled && searched.found.1.len() > MANY_UNSETTLED {
        // The answers to some of them may be in a part of the other journals that is not indexed yet.
        index_answers(team_state, searched.found.1.iter().map(|request| &request.sender))?;
        searched = search()?;
    }
    let IndexSearch { deleted, indexed, found: (first, requests) } = searched;
    let mut found = Vec::new();
    for IndexedRequest { position, offset, .. } in requests {
        if let Some(record) = journal.record_at(offset)? {
            found.push((position, offset, record));
        }
    }
    let mut position = indexed.requests;
    let mut first = deleted.first_request_of(created).or(first);
    journal.scan(indexed.upto.offset, |offset, record| {
        if Topic::of_event(&record.event).is_some_and(|topic| topic.kind == TopicKind::Request) {
            position += 1;
            if record.belongs_to_team(created) {
                first.get_or_insert(position);
                found.push((position, offset, record));
            }
        }
        ControlFlow::Continue(())
    })?;
    let first = first.unwrap_or(1);
    let numbered = found.into_iter().filter_map(|(position, offset, record)| {
        let is_settled = is_unsettled && deleted.is_settled(offset, record.at);
        let number = usize::try_from((position + 1).saturating_sub(first)).unwrap_or_default();
        let found = FoundRequest { number, record };
        let is_selected = found.record.belongs_to_team(created) && found.is_selected(query);
        (is_selected && !is_settled).then_some(found)
    });
    Ok((deleted, numbered.collect()))
}

/// Indexes the answers to requests from these members.
fn index_answers<'m>(
    team_state: &TeamStateDir,
    askers: impl Iterator<Item = &'m String>,
) -> Result<(), StoreError> {
    Index::update(&team_state.dir, index::TEAM, &team_state.journal);
    for asker in askers.collect::<HashSet<_>>() {
        // The name comes from a message, and may not be a member's.
        let Ok(asker) = asker.parse::<MemberName>() else { continue };
        let file = member_journal(&asker);
        if team_state.mail.stamp(&file)?.is_some() {
            let journal = Journal::open(&team_state.mail, &file)?;
            Index::update(&team_state.dir, &index::mailbox(asker.as_str()), &journal);
        }
    }
    Ok(())
}

/// Returns the unread messages of one member.
fn unread(team_state: &TeamStateDir, member: &MemberName) -> Result<Vec<Record>, StoreError> {
    let journal = Journal::open(&team_state.mail, &member_journal(member))?;
    let name = index::mailbox(member.as_str());
    let search = |db: &_, indexed: IndexedJournal, _: &_| {
        let unread = index::search_unread(db, indexed)?;
        // A message after the indexed part may repeat one before.
        let mut keys: HashMap<MessageKey, bool> = HashMap::new();
        journal.scan(indexed.upto.offset, |_, record| {
            keys.extend(record.event.message().map(|key| (key, false)));
            ControlFlow::Continue(())
        })?;
        for (key, is_known) in &mut keys {
            let found = index::search_mail(db, indexed, MailQuery::Messages(&[*key]))?;
            *is_known = !found.is_empty();
        }
        Ok((unread, keys))
    };
    let IndexSearch { indexed, found: (offsets, known), .. } =
        Index::search(&team_state.dir, &name, &journal, search)?;
    let mut found = records_at(&journal, offsets)?;
    let mut again: HashSet<MessageKey> =
        known.into_iter().filter(|(_, is_known)| *is_known).map(|(key, _)| key).collect();
    journal.scan(indexed.upto.offset, |_, record| {
        match &record.event {
            Event::Sent { key, .. } | Event::Seen { key, .. } if again.insert(*key) => {
                found.push(record);
            }
            Event::Read { key, .. } | Event::Shown { key, .. } => {
                found.retain(|record| record.event.message() != Some(*key));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

fn records_at(journal: &Journal, offsets: Vec<u64>) -> Result<Vec<Record>, StoreError> {
    let mut records = Vec::with_capacity(offsets.len());
    for offset in offsets {
        records.extend(journal.record_at(offset)?);
    }
    Ok(records)
}

/// Returns the last `count` records of a journal.
fn last_of(journal: &Journal, count: usize) -> Result<Vec<Record>, StoreError> {
    let len = journal.len()?;
    let mut bytes = LAST_BYTES;
    loop {
        let mut records = journal.last_records(bytes)?;
        if records.len() >= count || bytes >= len {
            return Ok(records.split_off(records.len().saturating_sub(count)));
        }
        bytes = bytes.saturating_mul(4);
    }
}
