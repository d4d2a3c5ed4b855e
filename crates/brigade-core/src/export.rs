//! A whole team as lines of text: from any store, into any store.
//!
//! The first line says what the file is and the last how much is in it, so that half a file is known
//! for one. Between them stand the team's `config.json` and its tasks byte for byte, every message with
//! what became of it, the notes of its members, what was decided, and what else was written down.
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
//! # let bob = lead.of("bob".parse()?);
//! # roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await?;
//! let mut lines = Vec::new();
//! export(lead.store.as_ref(), &lead.team, lead.clock.now(), &mut lines).await?;
//! let elsewhere = MemoryStore::default();
//! let imported = import(&elsewhere, &mut Cursor::new(lines), None).await?;
//! assert_eq!(imported.team, lead.team);
//! # Ok(())
//! # }
//! ```

mod import;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use brigade_wire::body::Body;
use brigade_wire::message::Message;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

pub use self::import::{ImportError, Imported, import};
use crate::event::{Event, MessageKey, Record, one_line};
use crate::handshake::{Kind, request};
use crate::mail::with_message;
use crate::store::{Question, Shelf, Store, StoreError};

/// The format these lines are in.
const VERSION: u32 = 1;

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// What the file is. The first line.
    BrigadeTeam(Header),
    /// The team's `config.json`, as text.
    Config(String),
    /// A task, as text.
    Task { id: u64, text: String },
    /// The last number that was given to a task.
    LastTask(u64),
    /// A message.
    Message(Letter),
    /// What the program of a member has to know after a crash.
    Note { of: String, text: String },
    /// The answer to a question that has one answer.
    Decision { of: String, words: String, answer: String },
    /// What else was written down.
    Record(Record),
    /// How much there is. The last line.
    End(Exported),
}

/// What a file is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Header {
    version: u32,
    /// Which export: no two have the same.
    id: String,
    team: TeamName,
    at: Timestamp,
}

/// A message, and what became of it.
#[derive(Debug, Serialize, Deserialize)]
struct Letter {
    to: String,
    read: bool,
    shown: bool,
    entry: Box<RawValue>,
}

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    /// Tasks on the board.
    pub tasks: usize,
    /// Messages, read or not.
    pub messages: usize,
    /// Those that nobody has read.
    pub unread: usize,
}

/// Why a team was not written out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// It could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something in it is no text.
    #[error("{what} is not UTF-8")]
    NotText {
        /// What.
        what: String,
    },
    /// The file could not be written.
    #[error("cannot write the export")]
    Write(#[from] io::Error),
}

/// Writes a team out. A team that goes on meanwhile is written as it was at one moment for each of its
/// parts, which may differ by as long as this takes.
pub async fn export(
    store: &dyn Store,
    team: &TeamName,
    at: Timestamp,
    to: &mut (dyn Write + Send),
) -> Result<Exported, ExportError> {
    let config = store.team(team).await?.ok_or(StoreError::NoTeam { team: team.clone() })?.bytes;
    let read = Team::read(&config)
        .map_err(|damage| StoreError::Damaged { place: "config.json".into(), damage })?;
    let created = read.created_at().unwrap_or_default();
    let names = read.members().filter_map(|member| Some(member.name()?.into_owned()));
    let mut names: Vec<String> = names.collect();
    let id = uuid::Uuid::new_v4().to_string();
    put(to, &Line::BrigadeTeam(Header { version: VERSION, id, team: team.clone(), at }))?;
    put(to, &Line::Config(text(config.clone(), || "config.json".into())?))?;

    let mut exported = Exported::default();
    let mut last = 0;
    for (id, task) in store.tasks(team).await? {
        let text = text(task.bytes, || format!("task {id}"))?;
        put(to, &Line::Task { id: id.get(), text })?;
        exported.tasks += 1;
        last = last.max(id.get());
    }
    let history = store.history(team).await?;
    let past = Past::read(&history, created);
    put(to, &Line::LastTask(last.max(past.last_task)))?;
    for of in past.mailboxes.keys() {
        if !names.iter().any(|name| name == of) {
            names.push((*of).to_owned());
        }
    }

    let mut questions: Vec<(MemberName, String)> = Vec::new();
    for name in names {
        let Ok(of) = name.parse::<MemberName>() else { continue };
        for letter in past.mailbox(store, team, &of).await? {
            exported.messages += 1;
            exported.unread += usize::from(!letter.read);
            let json = letter.entry.get().as_bytes();
            let asked =
                with_message(json, |message| message.map(|message| asked(&of, created, &message)));
            questions.extend(asked.ok().flatten().unwrap_or_default());
            put(to, &Line::Message(letter))?;
        }
        if let Some(note) = store.kept(team, &of, Shelf::Memory).await? {
            let text = text(note, || format!("the note of {of}"))?;
            put(to, &Line::Note { of: of.to_string(), text })?;
        }
    }
    questions.sort();
    questions.dedup();
    for (of, words) in questions {
        if let Some(answer) = store.decided(team, &Question::new(&of, &words)).await? {
            let answer = text(answer, || format!("the answer to {words}"))?;
            put(to, &Line::Decision { of: of.to_string(), words, answer })?;
        }
    }
    for record in history.iter().filter(|record| record.event.mailbox().is_none()) {
        put(to, &Line::Record(record.clone()))?;
    }
    put(to, &Line::End(exported))?;
    to.flush()?;
    Ok(exported)
}

fn put(to: &mut (dyn Write + Send), line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    to.write_all(&text)
}

fn text(bytes: Vec<u8>, what: impl FnOnce() -> String) -> Result<String, ExportError> {
    String::from_utf8(bytes).map_err(|_| ExportError::NotText { what: what() })
}

/// What was written down about this team, and not about an earlier one of its name.
#[derive(Default)]
struct Past<'h> {
    /// The messages of each mailbox, in order.
    mailboxes: BTreeMap<&'h str, Vec<(MessageKey, &'h RawValue)>>,
    shown: HashSet<(&'h str, MessageKey)>,
    last_task: u64,
}

impl<'h> Past<'h> {
    fn read(history: &'h [Record], created: u64) -> Self {
        let mut past = Self::default();
        for record in history {
            match &record.event {
                Event::Sent { to, key, team_created, message, .. } if *team_created == created => {
                    past.mailboxes.entry(to).or_default().push((*key, message));
                }
                Event::Seen { to, key, message } if is_since(record, created) => {
                    past.mailboxes.entry(to).or_default().push((*key, message));
                }
                Event::Shown { to, key } => {
                    past.shown.insert((to, *key));
                }
                Event::Task { id, .. } | Event::TaskDeleted { id } => {
                    past.last_task = past.last_task.max(*id);
                }
                // The next team of this name is another, though it be made of the same export.
                Event::TeamDeleted {} => past = Self::default(),
                _ => {}
            }
        }
        past
    }

    /// The messages of a mailbox, each once: what is in the inbox as it is there, and what is no longer
    /// in it as it was written down. That was read.
    async fn mailbox(
        &self,
        store: &dyn Store,
        team: &TeamName,
        of: &MemberName,
    ) -> Result<Vec<Letter>, StoreError> {
        let inbox = store.inbox(team, of).await?;
        let there: HashMap<MessageKey, &[u8]> =
            inbox.iter().map(|mail| (mail.key, mail.json.as_slice())).collect();
        let mut keys = HashSet::new();
        let mut letters = Vec::new();
        let told = self.mailboxes.get(of.as_str()).map(Vec::as_slice).unwrap_or_default();
        let told = told.iter().map(|(key, message)| (*key, message.get().as_bytes()));
        let standing = inbox.iter().map(|mail| (mail.key, mail.json.as_slice()));
        for (key, told) in told.chain(standing) {
            if !keys.insert(key) {
                continue;
            }
            let json = there.get(&key).copied();
            let read = json.is_none_or(|json| crate::mail::is_read(json).unwrap_or(false));
            let entry = one_line(json.unwrap_or(told));
            let shown = self.shown.contains(&(of.as_str(), key));
            letters.push(Letter { to: of.to_string(), read, shown, entry });
        }
        Ok(letters)
    }
}

fn is_since(record: &Record, created: u64) -> bool {
    u64::try_from(record.at.as_millisecond()).is_ok_and(|at| at >= created)
}

/// The questions that come with a request: how it is answered, which answer its asker heard, and whether
/// it was taken back.
fn asked(to: &MemberName, created: u64, message: &Message<'_>) -> Vec<(MemberName, String)> {
    let Body::Protocol(body) = message.body() else { return Vec::new() };
    let (kind, id) = match &body {
        Protocol::ShutdownRequest(asked) => (Kind::Shutdown, &asked.request_id),
        Protocol::PlanApprovalRequest(asked) => (Kind::Plan, &asked.request_id),
        Protocol::PermissionRequest(asked) => (Kind::Permission, &asked.request_id),
        _ => return Vec::new(),
    };
    let mut questions = vec![(to.clone(), request::answered(to, created, kind, id))];
    if let Ok(from) = message.from().parse::<MemberName>() {
        questions.push((from.clone(), request::heard(&from, kind, id)));
        questions.push((from.clone(), request::taken_back(&from, created, kind, id)));
    }
    questions
}
