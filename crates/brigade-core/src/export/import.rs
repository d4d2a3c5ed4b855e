//! Making a team of the lines of an export.

use std::collections::HashSet;
use std::io::{self, BufRead, Seek, SeekFrom};

use brigade_wire::Damage;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::{NewTask, Status};
use brigade_wire::team::Team;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use super::{Exported, Header, Letter, Line, VERSION};
use crate::event::{Event, MessageKey, Record};
use crate::hash::Fnv;
use crate::mail::with_message;
use crate::store::{Actor, Mark, Outgoing, Question, Shelf, Store, StoreError};

/// Under whose name it is noted that a team is being made of an export.
const IMPORT: &str = "import";
/// How many messages are marked at once.
const BATCH: usize = 200;

/// What an import came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Under which name the team is there.
    pub team: TeamName,
    /// How much of it there is.
    pub exported: Exported,
}

/// Why no team was made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file could not be read.
    #[error("cannot read the export")]
    Read(#[from] io::Error),
    /// It is something else.
    #[error("this is no export of a team")]
    NotAnExport,
    /// It was made by a later brigade.
    #[error("this export has format {found}; this brigade reads format {VERSION}")]
    Version {
        /// Its format.
        found: u32,
    },
    /// A line of it is wrong.
    #[error("line {number} of the export cannot be read")]
    Line {
        /// Which, counted from 1.
        number: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Its end is missing.
    #[error("the export is cut short")]
    CutShort,
    /// It does not hold what its last line says.
    #[error("the export says it has {said:?}, and has {found:?}")]
    Counts {
        /// What its last line says.
        said: Exported,
        /// What is in it.
        found: Exported,
    },
    /// A document in it is none.
    #[error("{place} of the export cannot be read: {damage}")]
    Damaged {
        /// Which document.
        place: String,
        /// What is wrong with it.
        damage: Damage,
    },
}

/// What an export holds beside its messages, known to be whole.
struct Looked {
    header: Header,
    config: String,
    tasks: Vec<(TaskId, Vec<u8>)>,
    last_task: u64,
    exported: Exported,
}

/// What is noted while a team is being made, for one that is begun and not ended.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    /// Of which export.
    export: String,
    /// Whether the messages get ids of their own: the store may know theirs as taken out of an inbox.
    anew: bool,
}

/// Makes a team of an export, under its own name or another. A team that is there is never changed,
/// unless it is what an import of this very export left when it was cut off: that is gone on with.
pub async fn import<R: BufRead + Seek + Send>(
    store: &dyn Store,
    from: &mut R,
    name: Option<&TeamName>,
) -> Result<Imported, ImportError> {
    let looked = look(from)?;
    let team = name.unwrap_or(&looked.header.team).clone();
    let damaged = |damage| ImportError::Damaged { place: "config.json".into(), damage };
    let read = Team::read(looked.config.as_bytes()).map_err(damaged)?;
    let config = if team == looked.header.team {
        looked.config.clone().into_bytes()
    } else {
        read.renamed(&team).into_owned()
    };
    let lead = read.lead().and_then(|lead| Some(lead.name()?.into_owned()));
    let by = Actor(lead.unwrap_or_else(|| MemberName::lead().to_string()));
    let no_name = |_| ImportError::NotAnExport;
    let noter: MemberName = IMPORT.parse().map_err(no_name)?;

    let note = store.kept(&team, &noter, Shelf::Revival).await?;
    let note: Option<Begun> = note.and_then(|note| serde_json::from_slice(&note).ok());
    let history = store.proceedings(&team).await?;
    let begun = match (store.team(&team).await?, note) {
        (Some(_), Some(note)) if note.export == looked.header.id => note,
        (Some(_), _) => return Err(StoreError::TeamExists { team }.into()),
        (None, _) => {
            let begun = Begun { export: looked.header.id.clone(), anew: !history.is_empty() };
            let note = serde_json::to_vec(&begun).unwrap_or_default();
            store.keep(&team, &noter, Shelf::Revival, Some(&note)).await?;
            let tasks = looked.board();
            store.revive_team(&team, &config, &tasks, &by).await?;
            begun
        }
    };
    if let Some(id) = looked.gone()
        && let Some(there) = store.task(&team, id).await?
    {
        // Changed before it is deleted, so that it is in the history that there was one.
        let task = placeholder(id, Status::Completed);
        store.replace_task(&team, id, &task, there.revision, &by).await?;
        store.delete_task(&team, id, &by).await?;
    }
    let past = Past::read(&history);
    let created = read.created_at().unwrap_or_default();
    let mut filling = Filling { store, team: &team, begun, created, past, sent: 0, marks: None };
    from.rewind()?;
    for (index, line) in from.lines().enumerate() {
        let number = index + 1;
        let line = serde_json::from_str(&line?);
        filling.take(line.map_err(|source| ImportError::Line { number, source })?).await?;
    }
    filling.mark().await?;
    store.keep(&team, &noter, Shelf::Revival, None).await?;
    Ok(Imported { team, exported: looked.exported })
}

/// Looks whether an export is whole, before anything is made of it.
fn look<R: BufRead + Seek>(from: &mut R) -> Result<Looked, ImportError> {
    from.seek(SeekFrom::Start(0))?;
    let (mut header, mut config, mut end) = (None, None, None);
    let mut last_task = 0;
    let mut tasks = Vec::new();
    let mut found = Exported::default();
    for (index, line) in from.lines().enumerate() {
        let number = index + 1;
        let line = match serde_json::from_str::<Line>(&line?) {
            Ok(line) => line,
            Err(_) if index == 0 => return Err(ImportError::NotAnExport),
            // What was being written when it was cut off.
            Err(error) if error.is_eof() => return Err(ImportError::CutShort),
            Err(source) => return Err(ImportError::Line { number, source }),
        };
        match line {
            Line::BrigadeTeam(its) if its.version != VERSION => {
                return Err(ImportError::Version { found: its.version });
            }
            Line::BrigadeTeam(its) => header = Some(its),
            Line::Config(text) => config = Some(text),
            Line::Task { id, text } => {
                let id = TaskId::new(id).ok_or(ImportError::NotAnExport)?;
                let damaged = |damage| ImportError::Damaged { place: format!("task {id}"), damage };
                brigade_wire::task::Task::read(text.as_bytes()).map_err(damaged)?;
                tasks.push((id, text.into_bytes()));
                found.tasks += 1;
            }
            Line::LastTask(id) => last_task = id,
            Line::Message(letter) => {
                found.messages += 1;
                found.unread += usize::from(!letter.read);
            }
            Line::End(said) => end = Some(said),
            Line::Note { .. } | Line::Decision { .. } | Line::Record(_) => {}
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
    Ok(Looked { header, config, tasks, last_task, exported: found })
}

impl Looked {
    /// The last number that was given, if the task that had it is gone.
    fn gone(&self) -> Option<TaskId> {
        TaskId::new(self.last_task).filter(|last| self.tasks.iter().all(|(id, _)| id < last))
    }

    /// The tasks; and one more, to be deleted at once, so that a number is given to nobody again
    /// though its task be gone.
    fn board(&self) -> Vec<(TaskId, Vec<u8>)> {
        let mut tasks = self.tasks.clone();
        if let Some(id) = self.gone() {
            tasks.push((id, placeholder(id, Status::Pending)));
        }
        tasks
    }
}

/// A task that stands for one that was deleted.
fn placeholder(id: TaskId, status: Status) -> Vec<u8> {
    let task = NewTask {
        id,
        subject: "a task that was deleted",
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

/// What the store has written down of this team already.
#[derive(Default)]
struct Past {
    messages: HashSet<(String, MessageKey)>,
    answered: HashSet<String>,
}

impl Past {
    fn read(history: &[Record]) -> Self {
        let mut past = Self::default();
        for record in history {
            if let (Some(to), Some(key)) = (record.event.mailbox(), record.event.message()) {
                past.messages.insert((to.to_owned(), key));
            }
            if let Event::Answered { request_id, .. } = &record.event {
                past.answered.insert(request_id.clone());
            }
        }
        past
    }
}

/// A team that is made, and is being filled.
struct Filling<'f> {
    store: &'f dyn Store,
    team: &'f TeamName,
    begun: Begun,
    created: u64,
    past: Past,
    /// How many messages were come by.
    sent: u64,
    /// What was sent to somebody and is to be marked.
    marks: Option<Marks>,
}

struct Marks {
    of: MemberName,
    read: Vec<MessageKey>,
    shown: Vec<MessageKey>,
}

impl Filling<'_> {
    async fn take(&mut self, line: Line) -> Result<(), ImportError> {
        match line {
            Line::Message(letter) => self.letter(&letter).await,
            Line::Note { of, text } => {
                if let Ok(of) = of.parse() {
                    let note = Some(text.as_bytes());
                    self.store.keep(self.team, &of, Shelf::Memory, note).await?;
                }
                Ok(())
            }
            Line::Decision { of, words, answer } => {
                if let Ok(of) = of.parse() {
                    let question = Question::new(&of, &words);
                    self.store.decide(self.team, &question, answer.as_bytes()).await?;
                }
                Ok(())
            }
            Line::Record(Record { by, event, .. }) => self.record(by, event).await,
            _ => Ok(()),
        }
    }

    async fn record(&self, by: Option<String>, event: Event) -> Result<(), ImportError> {
        // What else was written down comes about by making the team; or it is members' work, which was
        // done at another time.
        let Event::Answered { request_id, .. } = &event else { return Ok(()) };
        if self.past.answered.contains(request_id) {
            return Ok(());
        }
        let by = Actor(by.unwrap_or_else(|| MemberName::lead().to_string()));
        Ok(self.store.record(self.team, event, &by).await?)
    }

    async fn letter(&mut self, letter: &Letter) -> Result<(), ImportError> {
        let Ok(to) = letter.to.parse::<MemberName>() else { return Ok(()) };
        let Some(message) = self.outgoing(letter)? else { return Ok(()) };
        self.sent += 1;
        let key = message.key();
        let is_there = self.past.messages.contains(&(letter.to.clone(), key));
        if !is_there {
            self.store.send(self.team, &to, &message).await?;
        }
        let others = self
            .marks
            .as_ref()
            .is_some_and(|marks| marks.of != to || marks.read.len() + marks.shown.len() >= BATCH);
        if others {
            self.mark().await?;
        }
        let (read, shown) = (Vec::new(), Vec::new());
        let marks = self.marks.get_or_insert(Marks { of: to, read, shown });
        match letter {
            Letter { shown: true, .. } => marks.shown.push(key),
            Letter { read: true, .. } => marks.read.push(key),
            _ => {}
        }
        Ok(())
    }

    async fn mark(&mut self) -> Result<(), StoreError> {
        let Some(Marks { of, read, shown }) = self.marks.take() else { return Ok(()) };
        for (keys, mark) in [(read, Mark::Read), (shown, Mark::Shown)] {
            if !keys.is_empty() {
                self.store.mark(self.team, &of, &keys, mark).await?;
            }
        }
        Ok(())
    }

    /// The message to be sent; `None` for what is none. One that has no id, or may not keep it, gets one
    /// that is the same if it is sent again.
    fn outgoing(&self, letter: &Letter) -> Result<Option<Outgoing>, ImportError> {
        let json = letter.entry.get().as_bytes();
        let made = with_message(json, |message| {
            let message = message?;
            let id = message.msg_id().filter(|_| !self.begun.anew);
            let kept = id.is_some();
            let id = id.map_or_else(|| self.id(letter), std::borrow::Cow::into_owned);
            let lead_sig = message.lead_sig().filter(|_| kept);
            Some(Outgoing {
                lead_sig: lead_sig.map(std::borrow::Cow::into_owned),
                team_created: self.created,
                ..Outgoing::again(&message, id)
            })
        });
        let damaged = |damage| ImportError::Damaged { place: "a message".into(), damage };
        made.map_err(damaged)
    }

    fn id(&self, letter: &Letter) -> String {
        let said = |salt: &str| {
            let fnv = Fnv::default().field(salt.as_bytes()).field(self.begun.export.as_bytes());
            fnv.field(letter.to.as_bytes()).field(&self.sent.to_le_bytes()).finish()
        };
        Uuid::from_u64_pair(said("one"), said("two")).to_string()
    }
}
