//! The state of a link that survives a restart. It is small and may be lost.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use brigade_wire::task::Task;
use serde::{Deserialize, Serialize};

use brigade_core::hash::Fnv;
use brigade_core::store::Revision;

/// Stores the state of a link: one text, always replaced as a whole.
pub trait LinkStateStore: fmt::Debug + Send + Sync {
    /// The text that was written last.
    fn read(&self) -> io::Result<Option<Vec<u8>>>;
    /// Replaces the text.
    fn write(&self, text: &[u8]) -> io::Result<()>;
}

/// The state of a link.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LinkState {
    /// When the team was created that this state belongs to.
    pub(super) created: Option<u64>,
    /// Whether both sides had the team.
    #[serde(default)]
    pub(super) linked: bool,
    /// Whether its lead was local.
    #[serde(default)]
    pub(super) lead_here: bool,
    /// The members that both sides had.
    #[serde(default)]
    pub(super) members: BTreeMap<String, KnownMember>,
    /// The tasks as of the last time both sides were equal.
    #[serde(default)]
    pub(super) tasks: BTreeMap<u64, SyncedTask>,
    /// The numbers of local tasks that may or may not be on the shared board already.
    #[serde(default, rename = "making")]
    pub(super) creating: BTreeSet<u64>,
    /// Whether there was no saved state.
    #[serde(skip)]
    pub(super) fresh: bool,
    /// The text that was last saved.
    #[serde(skip)]
    saved_text: Vec<u8>,
}

/// A member that both sides had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownMember {
    /// Whether it was local.
    #[serde(rename = "here")]
    pub(super) local: bool,
    /// When it joined.
    pub(super) joined: Option<u64>,
}

/// A task as of the last time it was in step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SyncedTask {
    /// Its revision in the shared store.
    pub(super) revision: u64,
    /// A hash of its bytes.
    pub(super) hash: u64,
    /// Its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
    /// The numbers of tasks it referred to. Any other number was added on this host.
    #[serde(default, rename = "names", skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) references: BTreeSet<String>,
}

impl SyncedTask {
    /// Records a task as it is in the shared store.
    pub(super) fn new(bytes: &[u8], revision: Revision) -> Self {
        let task = Task::read(bytes).ok();
        let lists = task.as_ref().map(|task| [task.blocks(), task.blocked_by()]);
        let names = lists.into_iter().flatten().flatten().flatten();
        let references = names.map(Cow::into_owned).collect();
        Self { revision: revision.0, hash: hash(bytes), owner: task_owner(bytes), references }
    }

    pub(super) fn matches(&self, bytes: &[u8]) -> bool {
        self.hash == hash(bytes)
    }
}

/// The owner of a task, if the task can be read and has one.
pub(super) fn task_owner(bytes: &[u8]) -> Option<String> {
    Some(Task::read(bytes).ok()?.owner()?.into_owned())
}

fn hash(bytes: &[u8]) -> u64 {
    Fnv::default().bytes(bytes).finish()
}

impl LinkState {
    pub(super) fn load(notebook: &dyn LinkStateStore) -> io::Result<Self> {
        let text = notebook.read()?;
        // An unreadable text counts as missing.
        let read = text.as_deref().and_then(|text| serde_json::from_slice::<Self>(text).ok());
        Ok(match read {
            Some(state) => Self { saved_text: text.unwrap_or_default(), ..state },
            None => Self { fresh: true, ..Self::default() },
        })
    }

    /// Saves the state if it has changed.
    pub(super) fn save(&mut self, notebook: &dyn LinkStateStore) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        if text != self.saved_text {
            notebook.write(&text)?;
            self.saved_text = text;
        }
        Ok(())
    }

    /// Discards the state if it belongs to an earlier team, created at another time.
    pub(super) fn reset_unless_created(&mut self, created: Option<u64>) {
        if self.created != created {
            let saved_text = std::mem::take(&mut self.saved_text);
            *self = Self { created, fresh: true, saved_text, ..Self::default() };
        }
    }
}
