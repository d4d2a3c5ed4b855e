//! A temporary team, in its own Claude Code folder and its own brigade state folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brigade_core::mail::{self, MailError, Sent};
use brigade_core::seat::Seat;
use brigade_core::store::Store;
use brigade_files::{Durability, FileStore, FileStoreOptions};
use brigade_wire::name::TeamName;
use uuid::Uuid;

use crate::fixtures::{LEAD, create_team, member, text};

/// The name of the team in every benchmark.
pub(crate) const TEAM: &str = "bench";
/// The name of the member that receives the messages.
pub(crate) const READER: &str = "reader";

/// Runs a future on this thread.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}

/// The folders of a team.
#[derive(Clone, Debug)]
pub(crate) struct TeamDirs {
    pub(crate) claude: PathBuf,
    pub(crate) state: PathBuf,
}

impl TeamDirs {
    pub(crate) fn under(root: &Path) -> Self {
        Self { claude: root.join("claude"), state: root.join("state/brigade") }
    }

    /// Opens a store on these folders.
    pub(crate) fn store(&self, durability: Durability) -> Arc<dyn Store> {
        let options = FileStoreOptions::new(&self.claude, &self.state).with_durability(durability);
        Arc::new(FileStore::open(options))
    }

    pub(crate) fn seat(&self, name: &str, durability: Durability) -> Seat {
        Seat::new(self.store(durability), team(), member(name))
    }

    /// Creates the team with the reader and these members.
    pub(crate) fn make_team(&self, members: &[&str]) {
        std::fs::create_dir_all(&self.claude).unwrap();
        let lead = self.seat(LEAD, Durability::Process);
        block_on(create_team(&lead, &[&[READER], members].concat()));
    }

    pub(crate) fn inboxes(&self) -> PathBuf {
        self.claude.join("teams").join(TEAM).join("inboxes")
    }

    pub(crate) fn inbox(&self) -> PathBuf {
        self.inboxes().join(format!("{READER}.json"))
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.inboxes().join(format!("{READER}.json.lock"))
    }

    pub(crate) fn tasks(&self) -> PathBuf {
        self.claude.join("tasks").join(TEAM)
    }
}

/// A temporary folder for a team, deleted on drop.
#[derive(Debug)]
pub(crate) struct TempTeam {
    pub(crate) root: PathBuf,
    pub(crate) dirs: TeamDirs,
}

impl TempTeam {
    /// Creates an empty folder below TMPDIR.
    pub(crate) fn new() -> Self {
        let root = std::env::temp_dir().join(format!("brigade-store-bench-{}", Uuid::new_v4()));
        std::fs::create_dir_all(&root).unwrap();
        let dirs = TeamDirs::under(&root);
        Self { root, dirs }
    }

    /// Creates a folder below TMPDIR, and a team in it with these members.
    pub(crate) fn with_team(members: &[&str]) -> Self {
        let temp = Self::new();
        temp.dirs.make_team(members);
        temp
    }
}

impl Drop for TempTeam {
    fn drop(&mut self) {
        let _untidy = std::fs::remove_dir_all(&self.root);
    }
}

/// Describes the folder for temporary files and its file system.
pub(crate) fn describe_location() -> String {
    let dir = std::env::temp_dir();
    let kind = match rustix::fs::statfs(&dir).unwrap().f_type {
        0xef53 => "ext4",
        0x0102_1994 => "tmpfs, in memory",
        0x9123_683e => "btrfs",
        0x5846_5342 => "XFS",
        _ => "another file system",
    };
    format!("{} ({kind})", dir.display())
}

pub(crate) fn team() -> TeamName {
    TEAM.parse().unwrap()
}

/// Sends a message of 500 bytes with this number to the reader. Returns the message id.
pub(crate) fn send(seat: &Seat, number: usize) -> String {
    send_text(seat, READER, &text(seat.name.as_str(), number)).unwrap().receipt.msg_id
}

/// Sends a message with this text.
pub(crate) fn send_text(seat: &Seat, to: &str, text: &str) -> Result<Sent, MailError> {
    block_on(mail::send(seat, to, text))
}
