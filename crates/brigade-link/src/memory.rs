//! What a link remembers over a restart. It is small, and may be lost.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use brigade_wire::task::Task;
use serde::{Deserialize, Serialize};

use brigade_core::hash::Fnv;
use brigade_core::store::Revision;

/// Where a link remembers: one text, replaced as a whole or not at all.
pub trait Notebook: fmt::Debug + Send + Sync {
    /// The text that was written last.
    fn read(&self) -> io::Result<Option<Vec<u8>>>;
    /// Writes it in place of the last one.
    fn write(&self, text: &[u8]) -> io::Result<()>;
}

/// What a link remembers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    /// When the team was created that this is about.
    pub(super) created: Option<u64>,
    /// Whether both sides had it.
    #[serde(default)]
    pub(super) linked: bool,
    /// Whether its lead lived here.
    #[serde(default)]
    pub(super) lead_here: bool,
    /// The members, as they were when both sides had them.
    #[serde(default)]
    pub(super) members: BTreeMap<String, Known>,
    /// The tasks, as they were when both sides had the same.
    #[serde(default)]
    pub(super) tasks: BTreeMap<u64, Base>,
    /// The numbers of tasks of this host that may or may not be on the far board already.
    #[serde(default)]
    pub(super) making: BTreeSet<u64>,
    /// Whether there was nothing to remember.
    #[serde(skip)]
    pub(super) fresh: bool,
    /// What was written last.
    #[serde(skip)]
    written: Vec<u8>,
}

/// A member that both sides had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// Whether it lived here.
    pub(super) here: bool,
    /// When it joined.
    pub(super) joined: Option<u64>,
}

/// A task when it was last in step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Base {
    /// The far store's revision of it.
    pub(super) revision: u64,
    /// A hash of its bytes.
    pub(super) hash: u64,
    /// Whose it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
    /// The tasks it named. A number that is not among them was put there on this host.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) names: BTreeSet<String>,
}

impl Base {
    /// A task as it is in the far store.
    pub(super) fn of(bytes: &[u8], revision: Revision) -> Self {
        let task = Task::read(bytes).ok();
        let task = task.as_ref();
        let owner = task.and_then(|task| Some(task.owner()?.into_owned()));
        let lists = task.map(|task| [task.blocks(), task.blocked_by()]);
        let names = lists.into_iter().flatten().flatten().flatten();
        let names = names.map(Cow::into_owned).collect();
        Self { revision: revision.0, hash: hash(bytes), owner, names }
    }

    pub(super) fn is(&self, bytes: &[u8]) -> bool {
        self.hash == hash(bytes)
    }
}

fn hash(bytes: &[u8]) -> u64 {
    Fnv::default().bytes(bytes).finish()
}

impl Memory {
    pub(super) fn load(notebook: &dyn Notebook) -> io::Result<Self> {
        let text = notebook.read()?;
        // A text nobody can read is as good as none.
        let read = text.as_deref().and_then(|text| serde_json::from_slice::<Self>(text).ok());
        Ok(match read {
            Some(memory) => Self { written: text.unwrap_or_default(), ..memory },
            None => Self { fresh: true, ..Self::default() },
        })
    }

    /// Writes it down, if it is not so already.
    pub(super) fn save(&mut self, notebook: &dyn Notebook) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        if text != self.written {
            notebook.write(&text)?;
            self.written = text;
        }
        Ok(())
    }

    /// Sees to it that this is about the team that was created then. Of another it remembers nothing.
    pub(super) fn be_about(&mut self, created: Option<u64>) {
        if self.created != created {
            let written = std::mem::take(&mut self.written);
            *self = Self { created, fresh: true, written, ..Self::default() };
        }
    }
}
