//! Creates a team from an export.

use std::collections::HashSet;
use std::io::{self, BufRead, Seek, SeekFrom};

use brigade_wire::Damage;
use brigade_wire::inbox::with_message;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::{NewTask, Status};
use brigade_wire::team::Team;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use super::{ExportCounts, ExportHeader, ExportLine, ExportedMessage, VERSION};
use crate::event::{Event, MessageKey, Record, UncheckedRecord};
use crate::hash::hash_128;
use crate::store::{Actor, Mark, NoteKind, Outgoing, Question, Store, StoreError};

/// The member name under which the progress of an import is saved.
const IMPORT: &str = "import";
/// The highest task number that an export may contain. Numbers near the maximum of an integer would leave no number for
/// the next task.
const MAX_TASK: u64 = u32::MAX as u64;
/// The maximum number of messages to mark as read or as shown in one call.
const BATCH: usize = 200;

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The name of the new team.
    pub team: TeamName,
    /// The number of tasks and messages imported.
    pub exported: ExportCounts,
}

/// Why an import failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Reading the file failed.
    #[error("cannot read the export")]
    Read(#[from] io::Error),
    /// The file is not a team export.
    #[error("this is not a team export")]
    NotAnExport,
    /// This version of brigade cannot read the format version of the file.
    #[error("this export has format {found}; this brigade reads format {VERSION}")]
    Version {
        /// The format version of the file.
        found: u32,
    },
    /// A line cannot be parsed.
    #[error("line {number} of the export cannot be read")]
    Line {
        /// The line number, counted from 1.
        number: usize,
        /// The parse error.
        source: serde_json::Error,
    },
    /// The last line, which contains the counts, is missing.
    #[error("the export is truncated")]
    CutShort,
    /// The content does not match the counts in the last line.
    #[error(
        "the export is damaged: the last line counts {said:?}, but the file contains {found:?}"
    )]
    Counts {
        /// The counts in the last line.
        said: ExportCounts,
        /// The counts of the tasks and messages that the file contains.
        found: ExportCounts,
    },
    /// The content is not one that an export can have.
    #[error("the export is not valid: {what}")]
    Invalid {
        /// What is wrong.
        what: String,
    },
    /// An embedded document cannot be parsed.
    #[error("{place} of the export cannot be read: {damage}")]
    Damaged {
        /// The name of the document.
        place: String,
        /// The parse error.
        damage: Damage,
    },
}

/// The content of a complete export, without its messages.
struct CheckedExport {
    header: ExportHeader,
    config: String,
    tasks: Vec<(TaskId, Vec<u8>)>,
    last_task: u64,
    exported: ExportCounts,
}

/// The progress of an import, saved so that an interrupted import can be resumed.
#[derive(Debug, Serialize, Deserialize)]
struct ImportProgress {
    /// The id of the export.
    export: String,
    /// Whether imported messages get new ids. They do if the store's history contains an earlier team with this
    /// name, because the store may have recorded the old ids as removed from an inbox.
    #[serde(rename = "anew")]
    new_ids: bool,
}

/// Creates a team from an export. The team keeps its name unless `name` gives another one. Never changes an
/// existing team, except to resume an interrupted import of the same export.
pub async fn import<R: BufRead + Seek + Send>(
    store: &dyn Store,
    from: &mut R,
    name: Option<&TeamName>,
) -> Result<Imported, ImportError> {
    let checked = check(from)?;
    let team = name.unwrap_or(&checked.header.team).clone();
    let damaged = |damage| ImportError::Damaged { place: "config.json".into(), damage };
    let parsed = Team::read(checked.config.as_bytes()).map_err(damaged)?;
    let config = if team == checked.header.team {
        checked.config.clone().into_bytes()
    } else {
        parsed.renamed(&team).into_owned()
    };
    let lead = parsed.lead().and_then(|lead| Some(lead.name()?.into_owned()));
    let by = Actor(lead.unwrap_or_else(|| MemberName::lead().to_string()));
    let no_name = |_| ImportError::NotAnExport;
    let import_name: MemberName = IMPORT.parse().map_err(no_name)?;

    let note = store.get_note(&team, &import_name, NoteKind::Revival).await?;
    let note: Option<ImportProgress> = note.and_then(|note| serde_json::from_slice(&note).ok());
    let history = store.history_without_work(&team).await?;
    let progress = match (store.team(&team).await?, note) {
        (Some(_), Some(note)) if note.export == checked.header.id => note,
        (Some(_), _) => return Err(StoreError::TeamExists { team }.into()),
        (None, _) => {
            let progress =
                ImportProgress { export: checked.header.id.clone(), new_ids: !history.is_empty() };
            let note = serde_json::to_vec(&progress).unwrap_or_default();
            store.put_note(&team, &import_name, NoteKind::Revival, Some(&note)).await?;
            let tasks = checked.tasks_with_placeholder();
            store.revive_team(&team, &config, &tasks, &by).await?;
            progress
        }
    };
    if let Some(id) = checked.deleted_last_task()
        && let Some(document) = store.task(&team, id).await?
    {
        // Change the placeholder before deleting it, so that the history records the number as used.
        let task = placeholder(id, Status::Completed);
        store.replace_task(&team, id, &task, document.revision, &by).await?;
        store.delete_task(&team, id, &by).await?;
    }
    let known = ImportHistory::read(&history);
    let created = parsed.created_at().unwrap_or_default();
    let mut writer =
        ImportWriter { store, team: &team, progress, created, known, sent: 0, marks: None };
    from.rewind()?;
    for (index, line) in from.lines().enumerate() {
        let number = index + 1;
        let line = serde_json::from_str(&line?);
        writer.import_line(line.map_err(|source| ImportError::Line { number, source })?).await?;
    }
    writer.mark().await?;
    store.put_note(&team, &import_name, NoteKind::Revival, None).await?;
    Ok(Imported { team, exported: checked.exported })
}

/// Checks that an export is complete, before the import creates anything.
fn check<R: BufRead + Seek>(from: &mut R) -> Result<CheckedExport, ImportError> {
    from.seek(SeekFrom::Start(0))?;
    let (mut header, mut config, mut end) = (None, None, None);
    let mut last_task = 0;
    let mut tasks = Vec::new();
    let mut message_ids = HashSet::new();
    let mut found = ExportCounts::default();
    for (index, line) in from.lines().enumerate() {
        let number = index + 1;
        let line = match serde_json::from_str::<ExportLine>(&line?) {
            Ok(line) => line,
            Err(_) if index == 0 => return Err(ImportError::NotAnExport),
            // The export was cut off in the middle of this line.
            Err(error) if error.is_eof() => return Err(ImportError::CutShort),
            Err(source) => return Err(ImportError::Line { number, source }),
        };
        match line {
            ExportLine::BrigadeTeam(found) if found.version != VERSION => {
                return Err(ImportError::Version { found: found.version });
            }
            ExportLine::BrigadeTeam(_) if header.is_some() => return Err(invalid("two headers")),
            ExportLine::BrigadeTeam(found) => header = Some(found),
            ExportLine::Config(_) if config.is_some() => {
                return Err(invalid("two copies of config.json"));
            }
            ExportLine::Config(text) => {
                check_config(&text)?;
                config = Some(text);
            }
            ExportLine::Task { id, text } => {
                let id = check_task(id, &text)?;
                if tasks.iter().any(|(other, _)| *other == id) {
                    return Err(invalid(format!("two tasks with number {id}")));
                }
                tasks.push((id, text.into_bytes()));
                found.tasks += 1;
            }
            ExportLine::LastTask(id) if id > MAX_TASK => {
                return Err(invalid(format!("the task number {id} is above {MAX_TASK}")));
            }
            ExportLine::LastTask(id) => last_task = id,
            ExportLine::Message(exported) => {
                if let Some(id) = message_id(&exported)?
                    && !message_ids.insert((exported.to.clone(), id.clone()))
                {
                    return Err(invalid(format!("two messages to {} with id {id}", exported.to)));
                }
                found.messages += 1;
                found.unread += usize::from(!exported.read);
            }
            ExportLine::End(said) => end = Some(said),
            ExportLine::Note { .. } | ExportLine::Decision { .. } | ExportLine::Record(_) => {}
        }
        if header.is_none() {
            return Err(ImportError::NotAnExport);
        }
    }
    let header = header.ok_or(ImportError::NotAnExport)?;
    let said = end.ok_or(ImportError::CutShort)?;
    if said != found {
        return Err(ImportError::Counts { said, found });
    }
    let config = config.ok_or(ImportError::CutShort)?;
    Ok(CheckedExport { header, config, tasks, last_task, exported: found })
}

fn invalid(what: impl Into<String>) -> ImportError {
    ImportError::Invalid { what: what.into() }
}

/// Checks that a `config.json` describes a team: it has a creation time, a lead, and members with different names.
fn check_config(text: &str) -> Result<(), ImportError> {
    let damaged = |damage| ImportError::Damaged { place: "config.json".into(), damage };
    let team = Team::read(text.as_bytes()).map_err(damaged)?;
    if team.created_at().is_none() {
        return Err(invalid("config.json has no creation time"));
    }
    if team.lead().is_none() {
        return Err(invalid("config.json names no lead"));
    }
    let mut names = HashSet::new();
    match team.member_names().into_iter().find(|name| !names.insert(name.to_lowercase())) {
        Some(name) => Err(invalid(format!("config.json has two members named {name}"))),
        None => Ok(()),
    }
}

/// Checks a task, and returns its number.
fn check_task(number: u64, text: &str) -> Result<TaskId, ImportError> {
    let id = TaskId::new(number).filter(|_| number <= MAX_TASK);
    let id = id.ok_or_else(|| invalid(format!("the task number {number}")))?;
    let damaged = |damage| ImportError::Damaged { place: format!("task {id}"), damage };
    let task = brigade_wire::task::Task::read(text.as_bytes()).map_err(damaged)?;
    match task.id() {
        Some(other) if *other != id.to_string() => {
            Err(invalid(format!("task {id} has the id {other:?}")))
        }
        _ => Ok(id),
    }
}

/// Returns the id of a message, if it has one.
fn message_id(exported: &ExportedMessage) -> Result<Option<String>, ImportError> {
    let id = with_message(exported.entry.get().as_bytes(), |message| {
        message.and_then(|message| Some(message.msg_id()?.into_owned()))
    });
    id.map_err(|damage| ImportError::Damaged { place: "a message".into(), damage })
}

impl CheckedExport {
    /// Returns the highest task number ever used, if the task with that number was deleted before the export.
    fn deleted_last_task(&self) -> Option<TaskId> {
        TaskId::new(self.last_task).filter(|last| self.tasks.iter().all(|(id, _)| id < last))
    }

    /// Returns the tasks. If the last task was deleted, adds a placeholder with its number, so that the number is
    /// not reused. The import later deletes the placeholder.
    fn tasks_with_placeholder(&self) -> Vec<(TaskId, Vec<u8>)> {
        let mut tasks = self.tasks.clone();
        if let Some(id) = self.deleted_last_task() {
            tasks.push((id, placeholder(id, Status::Pending)));
        }
        tasks
    }
}

/// Creates a placeholder for a deleted task.
fn placeholder(id: TaskId, status: Status) -> Vec<u8> {
    let task = NewTask {
        id,
        subject: "a deleted task",
        description: "",
        active_form: None,
        owner: None,
        status,
        blocks: &[],
        blocked_by: &[],
        metadata: &[],
    };
    task.to_bytes()
}

/// The messages and answers of this team that the store's journal already contains.
#[derive(Default)]
struct ImportHistory {
    messages: HashSet<(String, MessageKey)>,
    answered: HashSet<String>,
}

impl ImportHistory {
    fn read(history: &[Record]) -> Self {
        let mut known = Self::default();
        for record in history {
            if let (Some(to), Some(key)) = (record.event.mailbox(), record.event.message()) {
                known.messages.insert((to.to_owned(), key));
            }
            if let Event::Answered { request_id, .. } = &record.event {
                known.answered.insert(request_id.clone());
            }
        }
        known
    }
}

/// Writes the content of an export into the new team.
struct ImportWriter<'f> {
    store: &'f dyn Store,
    team: &'f TeamName,
    progress: ImportProgress,
    created: u64,
    known: ImportHistory,
    /// The number of messages processed so far.
    sent: u64,
    /// Messages to one member that are sent but not yet marked as read or as shown.
    marks: Option<ImportMarks>,
}

struct ImportMarks {
    member: MemberName,
    read: Vec<MessageKey>,
    shown: Vec<MessageKey>,
}

impl ImportWriter<'_> {
    async fn import_line(&mut self, line: ExportLine) -> Result<(), ImportError> {
        match line {
            ExportLine::Message(exported) => self.message(&exported).await,
            ExportLine::Note { member, text } => {
                if let Ok(member) = member.parse() {
                    let note = Some(text.as_bytes());
                    self.store.put_note(self.team, &member, NoteKind::Memory, note).await?;
                }
                Ok(())
            }
            ExportLine::Decision { member, question, answer } => {
                if let Ok(member) = member.parse() {
                    let question = Question::new(&member, &question);
                    self.store.decide(self.team, &question, answer.as_bytes()).await?;
                }
                Ok(())
            }
            ExportLine::Record(UncheckedRecord { by, event, .. }) => self.record(by, event).await,
            _ => Ok(()),
        }
    }

    async fn record(&self, by: Option<String>, event: Event) -> Result<(), ImportError> {
        // Import only answers. Work events are left out, because they would get the time of the import. All
        // other events were recorded when the import created the team.
        let Event::Answered { request_id, .. } = &event else { return Ok(()) };
        if self.known.answered.contains(request_id) {
            return Ok(());
        }
        let by = Actor(by.unwrap_or_else(|| MemberName::lead().to_string()));
        Ok(self.store.record(self.team, event, &by).await?)
    }

    async fn message(&mut self, exported: &ExportedMessage) -> Result<(), ImportError> {
        let Ok(to) = exported.to.parse::<MemberName>() else { return Ok(()) };
        let Some(message) = self.outgoing(exported)? else { return Ok(()) };
        self.sent += 1;
        let key = message.key();
        let exists = self.known.messages.contains(&(exported.to.clone(), key));
        if !exists {
            self.store.send(self.team, &to, &message).await?;
        }
        let flush = self.marks.as_ref().is_some_and(|marks| {
            marks.member != to || marks.read.len() + marks.shown.len() >= BATCH
        });
        if flush {
            self.mark().await?;
        }
        let (read, shown) = (Vec::new(), Vec::new());
        let marks = self.marks.get_or_insert(ImportMarks { member: to, read, shown });
        match exported {
            ExportedMessage { shown: true, .. } => marks.shown.push(key),
            ExportedMessage { read: true, .. } => marks.read.push(key),
            _ => {}
        }
        Ok(())
    }

    async fn mark(&mut self) -> Result<(), StoreError> {
        let Some(ImportMarks { member, read, shown }) = self.marks.take() else { return Ok(()) };
        for (keys, mark) in [(read, Mark::Read), (shown, Mark::Shown)] {
            if !keys.is_empty() {
                self.store.mark(self.team, &member, &keys, mark).await?;
            }
        }
        Ok(())
    }

    /// Converts an exported message for sending; `None` if the entry is not a message. A message without an id, or
    /// one that needs a new id, gets an id derived from the export. A resumed import derives the same id again, so
    /// it does not duplicate the message.
    fn outgoing(&self, exported: &ExportedMessage) -> Result<Option<Outgoing>, ImportError> {
        let json = exported.entry.get().as_bytes();
        let outgoing = with_message(json, |message| {
            let message = message?;
            let id = message.msg_id().filter(|_| !self.progress.new_ids);
            let has_id = id.is_some();
            let id = id.map_or_else(|| self.derived_id(exported), std::borrow::Cow::into_owned);
            let lead_sig = message.lead_sig().filter(|_| has_id);
            Some(Outgoing {
                lead_sig: lead_sig.map(std::borrow::Cow::into_owned),
                team_created: self.created,
                ..Outgoing::copy_of(&message, id)
            })
        });
        let damaged = |damage| ImportError::Damaged { place: "a message".into(), damage };
        outgoing.map_err(damaged)
    }

    fn derived_id(&self, exported: &ExportedMessage) -> String {
        let (export, to) = (self.progress.export.as_bytes(), exported.to.as_bytes());
        let fields: [&[u8]; 3] = [export, to, &self.sent.to_le_bytes()];
        Uuid::from_bytes(hash_128(["one", "two"], &fields)).to_string()
    }
}
