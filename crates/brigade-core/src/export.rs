//! Exports a whole team as lines of text, and imports it into the same store or another one.
//!
//! The first line is a header. The last line contains counts, so that a truncated file is detected. The lines
//! between them hold `config.json` and the tasks byte for byte, every message with its state, the members' notes,
//! the decisions about requests, and the remaining journal records.
//!
//! ```
//! use std::io::Cursor;
//!
//! use brigade_core::export::{export, import};
//!
//! # use std::sync::Arc;
//! # use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! # use brigade_core::seat::Seat;
//! # use brigade_core::store::memory::MemoryStore;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! # roster::create(&lead, TeamPlan::new("an example", "/")).await?;
//! # let bob = lead.for_member("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! let mut lines = Vec::new();
//! export(lead.store.as_ref(), &lead.team, lead.clock.now(), &mut lines).await?;
//! let other_store = MemoryStore::default();
//! let imported = import(&other_store, &mut Cursor::new(lines), None).await?;
//! assert_eq!(imported.team, lead.team);
//! # Ok(())
//! # }
//! ```

mod import;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use brigade_wire::body::Body;
use brigade_wire::inbox::{is_read, with_message};
use brigade_wire::message::Message;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

pub use self::import::{ImportError, Imported, import};
use crate::event::{Event, MessageKey, Record, UncheckedRecord, one_line};
use crate::handshake::{RequestKind, request};
use crate::store::{NoteKind, Question, Store, StoreError};

/// The version of the export format.
const VERSION: u32 = 1;

/// One line of an export.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExportLine {
    /// The header, which is the first line.
    BrigadeTeam(ExportHeader),
    /// The team's `config.json`, as text.
    Config(String),
    /// A task, as text.
    Task { id: u64, text: String },
    /// The highest task number that the team has used so far.
    LastTask(u64),
    /// A message.
    Message(ExportedMessage),
    /// The saved state of a member's program.
    Note {
        #[serde(rename = "of")]
        member: String,
        text: String,
    },
    /// The answer to a question that can be answered only once.
    Decision {
        #[serde(rename = "of")]
        member: String,
        #[serde(rename = "words")]
        question: String,
        answer: String,
    },
    /// A journal record that is not about messages.
    Record(UncheckedRecord),
    /// The last line, which contains the number of exported tasks and messages.
    End(ExportCounts),
}

/// Identifies an export.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ExportHeader {
    version: u32,
    /// The unique id of this export.
    id: String,
    team: TeamName,
    at: Timestamp,
}

/// A message and its state.
#[derive(Debug, Serialize, Deserialize)]
struct ExportedMessage {
    to: String,
    read: bool,
    shown: bool,
    entry: Box<RawValue>,
}

/// The number of tasks and messages in an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportCounts {
    /// The number of tasks on the board.
    pub tasks: usize,
    /// The number of messages, read or unread.
    pub messages: usize,
    /// The number of unread messages.
    pub unread: usize,
}

/// Why an export failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The team could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A document is not valid UTF-8.
    #[error("{what} is not valid UTF-8")]
    NotText {
        /// The name of the document.
        what: String,
    },
    /// Writing the export failed.
    #[error("cannot write the export")]
    Write(#[from] io::Error),
}

/// Writes a team to `to`. If members are active during the export, each part is consistent in itself, but the
/// parts may be from slightly different moments.
pub async fn export(
    store: &dyn Store,
    team: &TeamName,
    at: Timestamp,
    to: &mut (dyn Write + Send),
) -> Result<ExportCounts, ExportError> {
    let config = store.team(team).await?.ok_or(StoreError::NoTeam { team: team.clone() })?.bytes;
    let parsed = Team::read(&config)
        .map_err(|damage| StoreError::Damaged { place: "config.json".into(), damage })?;
    let created = parsed.created_at().unwrap_or_default();
    let names = parsed.members().filter_map(|member| Some(member.name()?.into_owned()));
    let mut names: Vec<String> = names.collect();
    let id = uuid::Uuid::new_v4().to_string();
    write_line(
        to,
        &ExportLine::BrigadeTeam(ExportHeader { version: VERSION, id, team: team.clone(), at }),
    )?;
    write_line(to, &ExportLine::Config(into_text(config.clone(), || "config.json".into())?))?;

    let mut exported = ExportCounts::default();
    let mut last = 0;
    for (id, task) in store.tasks(team).await? {
        let text = into_text(task.bytes, || format!("task {id}"))?;
        write_line(to, &ExportLine::Task { id: id.get(), text })?;
        exported.tasks += 1;
        last = last.max(id.get());
    }
    let history = store.history(team).await?;
    let history_index = ExportHistory::read(&history, created);
    write_line(to, &ExportLine::LastTask(last.max(history_index.last_task)))?;
    for owner in history_index.mailboxes.keys() {
        if !names.iter().any(|name| name == owner) {
            names.push((*owner).to_owned());
        }
    }

    let mut questions: Vec<(MemberName, String)> = Vec::new();
    for name in names {
        let Ok(member) = name.parse::<MemberName>() else { continue };
        for message in history_index.mailbox(store, team, &member).await? {
            exported.messages += 1;
            exported.unread += usize::from(!message.read);
            let json = message.entry.get().as_bytes();
            let found = with_message(json, |message| {
                message.map(|message| questions_about(&member, created, &message))
            });
            questions.extend(found.ok().flatten().unwrap_or_default());
            write_line(to, &ExportLine::Message(message))?;
        }
        if let Some(note) = store.get_note(team, &member, NoteKind::Memory).await? {
            let text = into_text(note, || format!("the note of {member}"))?;
            write_line(to, &ExportLine::Note { member: member.to_string(), text })?;
        }
    }
    questions.sort();
    questions.dedup();
    for (member, question) in questions {
        if let Some(answer) = store.decided(team, &Question::new(&member, &question)).await? {
            let answer = into_text(answer, || format!("the answer to {question}"))?;
            write_line(to, &ExportLine::Decision { member: member.to_string(), question, answer })?;
        }
    }
    for record in history.iter().filter(|record| record.event.mailbox().is_none()) {
        write_line(to, &ExportLine::Record(UncheckedRecord::clone(record)))?;
    }
    write_line(to, &ExportLine::End(exported))?;
    to.flush()?;
    Ok(exported)
}

fn write_line(to: &mut (dyn Write + Send), line: &ExportLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    to.write_all(&text)
}

fn into_text(bytes: Vec<u8>, what: impl FnOnce() -> String) -> Result<String, ExportError> {
    String::from_utf8(bytes).map_err(|_| ExportError::NotText { what: what() })
}

/// The team's journal records, without those of an earlier team with the same name.
#[derive(Default)]
struct ExportHistory<'h> {
    /// The messages in each mailbox, in order.
    mailboxes: BTreeMap<&'h str, Vec<(MessageKey, &'h RawValue)>>,
    shown: HashSet<(&'h str, MessageKey)>,
    last_task: u64,
}

impl<'h> ExportHistory<'h> {
    fn read(history: &'h [Record], created: u64) -> Self {
        let mut history_index = Self::default();
        for record in history {
            match &record.event {
                Event::Sent { to, key, message, .. } | Event::Seen { to, key, message }
                    if record.belongs_to_team(created) =>
                {
                    history_index.mailboxes.entry(to).or_default().push((*key, message));
                }
                Event::Shown { to, key } => {
                    history_index.shown.insert((to, *key));
                }
                Event::Task { id, .. } | Event::TaskDeleted { id } => {
                    history_index.last_task = history_index.last_task.max(*id);
                }
                // Forget the deleted team. A later team with the same name is a different team, even if both were
                // imported from the same export.
                Event::TeamDeleted {} => history_index = Self::default(),
                _ => {}
            }
        }
        history_index
    }

    /// Returns each message of a mailbox once: from the inbox if the inbox still contains it, otherwise from the
    /// journal. A message that is no longer in the inbox counts as read.
    async fn mailbox(
        &self,
        store: &dyn Store,
        team: &TeamName,
        owner: &MemberName,
    ) -> Result<Vec<ExportedMessage>, StoreError> {
        let inbox = store.inbox(team, owner).await?;
        let in_inbox: HashMap<MessageKey, &[u8]> =
            inbox.iter().map(|mail| (mail.key, mail.json.as_slice())).collect();
        let mut keys = HashSet::new();
        let mut messages = Vec::new();
        let recorded = self.mailboxes.get(owner.as_str()).map(Vec::as_slice).unwrap_or_default();
        let recorded = recorded.iter().map(|(key, message)| (*key, message.get().as_bytes()));
        let current = inbox.iter().map(|mail| (mail.key, mail.json.as_slice()));
        for (key, recorded) in recorded.chain(current) {
            if !keys.insert(key) {
                continue;
            }
            let json = in_inbox.get(&key).copied();
            let read = json.is_none_or(|json| is_read(json).unwrap_or(false));
            let entry = one_line(json.unwrap_or(recorded));
            let shown = self.shown.contains(&(owner.as_str(), key));
            messages.push(ExportedMessage { to: owner.to_string(), read, shown, entry });
        }
        Ok(messages)
    }
}

/// Returns the names of the store's three questions about a request: how is the request answered, which answer
/// does the asking member accept, and is the request withdrawn? Pairs each name with the member that may answer.
fn questions_about(
    to: &MemberName,
    created: u64,
    message: &Message<'_>,
) -> Vec<(MemberName, String)> {
    let Body::Protocol(body) = message.body() else { return Vec::new() };
    let (kind, id) = match &body {
        Protocol::ShutdownRequest(request) => (RequestKind::Shutdown, &request.request_id),
        Protocol::PlanApprovalRequest(request) => (RequestKind::Plan, &request.request_id),
        Protocol::PermissionRequest(request) => (RequestKind::Permission, &request.request_id),
        _ => return Vec::new(),
    };
    let mut questions = vec![(to.clone(), request::answer_question(to, created, kind, id))];
    if let Ok(from) = message.from().parse::<MemberName>() {
        questions.push((from.clone(), request::accepted_answer_question(&from, kind, id)));
        questions.push((from.clone(), request::withdrawal_question(&from, created, kind, id)));
    }
    questions
}
