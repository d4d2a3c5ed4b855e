//! Adds records to the index.

use rusqlite::{Statement, Transaction};

use super::{IndexedJournal, TEAM};
use crate::deleted_records::DeletedRange;
use crate::sqlite_file::{IndexError, signed};
use brigade_core::event::{Event, MessageKey, Record, Topic, TopicKind, WITHDRAWN};

/// Stands for any asked member: a member withdraws a request without naming the asked member.
const ANY_MEMBER: &str = "";

/// Adds the records of one journal.
pub(super) struct IndexWriter<'t> {
    /// The owner of the mailbox; empty for the journal of the team.
    owner: &'t str,
    source: i64,
    requests: u64,
    /// The answers to some requests may be among the deleted records.
    deleted: DeletedRange,
    add_message: Statement<'t>,
    find_message: Statement<'t>,
    add_shown: Statement<'t>,
    add_unread: Statement<'t>,
    remove_unread: Statement<'t>,
    add_topic: Statement<'t>,
    add_request: Statement<'t>,
    add_answered: Statement<'t>,
    find_settled: Statement<'t>,
    add_settled: Statement<'t>,
    close_requests_to: Statement<'t>,
    close_requests: Statement<'t>,
}

impl<'t> IndexWriter<'t> {
    pub(super) fn new(
        transaction: &'t Transaction<'t>,
        name: &'t str,
        indexed: IndexedJournal,
        deleted: DeletedRange,
    ) -> Result<Self, IndexError> {
        let prepare = |sql| transaction.prepare(sql);
        Ok(Self {
            owner: if name == TEAM { "" } else { mailbox_owner(name) },
            source: indexed.id,
            requests: indexed.requests,
            deleted,
            add_message: prepare("INSERT OR IGNORE INTO message VALUES (?1, ?2, ?3)")?,
            find_message: prepare("SELECT 1 FROM message WHERE source = ?1 AND key = ?2")?,
            add_shown: prepare("INSERT OR IGNORE INTO shown VALUES (?1, ?2, ?3)")?,
            add_unread: prepare("INSERT OR IGNORE INTO unread VALUES (?1, ?2, ?3)")?,
            remove_unread: prepare("DELETE FROM unread WHERE source = ?1 AND key = ?2")?,
            add_topic: prepare("INSERT OR IGNORE INTO topic VALUES (?1, ?2, ?3, ?4)")?,
            add_request: prepare(
                "INSERT OR REPLACE INTO request VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?,
            add_answered: prepare("INSERT OR IGNORE INTO answered VALUES (?1, ?2)")?,
            find_settled: prepare(
                "SELECT max(at) FROM settled WHERE asked IN (?1, '') AND asker = ?2 AND id = ?3",
            )?,
            add_settled: prepare(
                "INSERT INTO settled VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
            )?,
            close_requests_to: prepare(
                "UPDATE request SET open = 0 WHERE id = ?2 AND sender = ?3 AND at <= ?4
                AND source = (SELECT id FROM source WHERE name = ?1)",
            )?,
            close_requests: prepare(
                "UPDATE request SET open = 0 WHERE id = ?1 AND sender = ?2 AND at <= ?3
                AND source IN (SELECT id FROM source)",
            )?,
        })
    }

    /// Returns the number of requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Adds a record at this offset.
    pub(super) fn add(&mut self, offset: u64, record: &Record) -> Result<(), IndexError> {
        match &record.event {
            Event::Sent { key, .. } | Event::Seen { key, .. } => {
                self.message(*key, offset)?;
                if let Some(topic) = Topic::of_event(&record.event) {
                    self.topic(&topic, offset, record)?;
                }
            }
            Event::Shown { key, .. } => {
                self.add_shown.execute((self.source, bits(*key), signed(offset)))?;
                self.remove_unread.execute((self.source, bits(*key)))?;
            }
            Event::Read { key, .. } => {
                self.remove_unread.execute((self.source, bits(*key)))?;
            }
            Event::Answered { request_id, to, hand, .. } => {
                let Some(by) = record.by.as_deref() else { return Ok(()) };
                self.add_answered.execute((by, request_id))?;
                // A member can withdraw only its own requests.
                let is_withdrawn = hand == WITHDRAWN && by == to;
                self.settle(if is_withdrawn { ANY_MEMBER } else { by }, to, request_id, record)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn message(&mut self, key: MessageKey, offset: u64) -> Result<(), IndexError> {
        let is_new = !self.find_message.exists((self.source, bits(key)))?;
        self.add_message.execute((self.source, bits(key), signed(offset)))?;
        if is_new {
            self.add_unread.execute((self.source, bits(key), signed(offset)))?;
        }
        Ok(())
    }

    fn topic(&mut self, topic: &Topic, offset: u64, record: &Record) -> Result<(), IndexError> {
        if topic.kind == TopicKind::Request {
            return self.request(topic, offset, record);
        }
        let kind = kind_number(topic.kind);
        self.add_topic.execute((self.source, kind, &topic.id, signed(offset)))?;
        // Claude Code answers a request with a message and records nothing else.
        let is_answer = matches!(topic.kind, TopicKind::PlanAnswer | TopicKind::PermissionAnswer);
        if is_answer && topic.sender != ANY_MEMBER && matches!(record.event, Event::Seen { .. }) {
            self.settle(&topic.sender, self.owner, &topic.id, record)?;
        }
        Ok(())
    }

    fn request(&mut self, topic: &Topic, offset: u64, record: &Record) -> Result<(), IndexError> {
        self.requests += 1;
        let at = record.at.as_millisecond();
        // A request through brigade names its team. Another one belongs to the team that existed when it was found.
        let team = match record.event {
            Event::Sent { team_created, .. } => signed(team_created),
            _ => at,
        };
        let settled: Option<i64> = self
            .find_settled
            .query_row((self.owner, &topic.sender, &topic.id), |row| row.get(0))?;
        let is_open = !self.deleted.is_settled(offset, record.at)
            && settled.is_none_or(|settled| settled < at);
        self.add_request.execute((
            self.source,
            signed(self.requests),
            &topic.id,
            &topic.sender,
            at,
            team,
            signed(offset),
            is_open,
        ))?;
        Ok(())
    }

    /// Notes that a request was answered or withdrawn. A later request with the same id is another request.
    fn settle(
        &mut self,
        asked: &str,
        asker: &str,
        id: &str,
        record: &Record,
    ) -> Result<(), IndexError> {
        let at = record.at.as_millisecond();
        self.add_settled.execute((asked, asker, id, at))?;
        if asked == ANY_MEMBER {
            self.close_requests.execute((id, asker, at))?;
        } else {
            self.close_requests_to.execute((mailbox(asked), id, asker, at))?;
        }
        Ok(())
    }
}

/// Returns the name in the index of the journal of this member's mailbox.
pub(crate) fn mailbox(member: &str) -> String {
    format!("mail/{member}")
}

fn mailbox_owner(name: &str) -> &str {
    name.strip_prefix("mail/").unwrap_or_default()
}

pub(super) fn bits(key: MessageKey) -> i64 {
    signed(key.bits())
}

/// Returns the number of a kind in the index. It must not change.
pub(super) fn kind_number(kind: TopicKind) -> i64 {
    match kind {
        TopicKind::Request => 0,
        TopicKind::ShutdownAnswer => 1,
        TopicKind::PlanAnswer => 2,
        TopicKind::PermissionAnswer => 3,
        TopicKind::Assignment => 4,
    }
}
