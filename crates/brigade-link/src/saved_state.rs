//! The state of a link that survives a restart. The state is small, and the link also works if the
//! state is lost.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use brigade_wire::task::Task;
use serde::{Deserialize, Serialize};

use brigade_core::hash::Fnv;
use brigade_core::store::Revision;

/// Stores the state of a link as one text, which is always replaced as a whole.
pub trait LinkStateStore: fmt::Debug + Send + Sync {
    /// Returns the text that was written last.
    fn read(&self) -> io::Result<Option<Vec<u8>>>;
    /// Replaces the text.
    fn write(&self, text: &[u8]) -> io::Result<()>;
}

/// The state of a link.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LinkState {
    /// The creation time of the team that this state belongs to.
    pub(super) created: Option<u64>,
    /// Whether the team existed both in the files and in the shared store.
    #[serde(default)]
    pub(super) linked: bool,
    /// Whether the team's lead was local.
    #[serde(default)]
    pub(super) lead_here: bool,
    /// The members that were in both rosters.
    #[serde(default)]
    pub(super) members: BTreeMap<String, KnownMember>,
    /// The tasks as they were when last synchronized.
    #[serde(default)]
    pub(super) tasks: BTreeMap<u64, SyncedTask>,
    /// The numbers of local tasks that may or may not be on the shared board already.
    #[serde(default, rename = "making")]
    pub(super) creating: BTreeSet<u64>,
    /// Whether no saved state was found.
    #[serde(skip)]
    pub(super) fresh: bool,
    /// The text that was last saved.
    #[serde(skip)]
    saved_text: Vec<u8>,
}

/// A member that was in both rosters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownMember {
    /// Whether the member was local.
    #[serde(rename = "here")]
    pub(super) local: bool,
    /// When the member joined.
    pub(super) joined: Option<u64>,
}

/// A task as it was when last synchronized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SyncedTask {
    /// The task's revision in the shared store.
    pub(super) revision: u64,
    /// A hash of the task's bytes.
    pub(super) hash: u64,
    /// The task's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
    /// The numbers of the tasks that the task referred to. Any other reference was added later, on
    /// this host.
    #[serde(default, rename = "names", skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) references: BTreeSet<String>,
}

impl SyncedTask {
    /// Creates the entry for a task with these bytes and this revision in the shared store.
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

/// Returns the owner of a task, or `None` if the task does not parse or has no owner.
pub(super) fn task_owner(bytes: &[u8]) -> Option<String> {
    Some(Task::read(bytes).ok()?.owner()?.into_owned())
}

fn hash(bytes: &[u8]) -> u64 {
    Fnv::default().bytes(bytes).finish()
}

impl LinkState {
    pub(super) fn load(notebook: &dyn LinkStateStore) -> io::Result<Self> {
        let text = notebook.read()?;
        // A text that does not parse counts as missing.
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

    /// Discards the state unless the creation time of its team is `created`.
    pub(super) fn reset_unless_created(&mut self, created: Option<u64>) {
        if self.created != created {
            let saved_text = std::mem::take(&mut self.saved_text);
            *self = Self { created, fresh: true, saved_text, ..Self::default() };
        }
    }
}
