//! Integration tests of brigade-core, in one binary.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod approvals;
mod authority;
mod board;
mod contract;
mod graph;
mod handshake;
mod mail;
mod policy;
mod roster;
mod signing;
mod work;
mod workers;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use brigade_core::clock::SystemClock;
use brigade_core::store::file::{FileStore, Options};
use brigade_core::store::memory::MemoryStore;
use brigade_testkit::contract::run;
use brigade_testkit::house::{House, clock};
use tempfile::TempDir;

/// Runs a test on a team in memory.
fn in_memory<F: Future<Output = ()>>(test: impl FnOnce(House) -> F) {
    run(async { test(House::build(Arc::new(MemoryStore::new(clock()))).await).await });
}

/// A team in files, and their location.
struct Files {
    house: House,
    home: TempDir,
}

impl Files {
    /// Runs a test on a team in files.
    fn run<F: Future<Output = ()>>(test: impl FnOnce(Self) -> F) {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let house = House::build(Arc::new(store(&home))).await;
            test(Self { house, home }).await;
        });
    }

    /// The same team, as another process would open it.
    fn anew(&self) -> House {
        House { store: Arc::new(store(&self.home)), clock: Arc::new(SystemClock) }
    }

    /// Claude Code's lock of an inbox.
    fn lock(&self, of: &str) -> PathBuf {
        self.inbox(of).with_extension("json.lock")
    }

    /// The same team, with a short timeout for locks.
    fn impatient(&self, lock_wait: Duration) -> House {
        let store = FileStore::open(options(&self.home).with_lock_wait(lock_wait));
        House { store: Arc::new(store), clock: Arc::new(SystemClock) }
    }

    fn inbox(&self, of: &str) -> PathBuf {
        self.home.path().join(format!("claude/teams/demo/inboxes/{of}.json"))
    }

    fn task(&self, id: u64) -> PathBuf {
        self.home.path().join(format!("claude/tasks/demo/{id}.json"))
    }

    fn config(&self) -> PathBuf {
        self.home.path().join("claude/teams/demo/config.json")
    }

    /// Brigade's own folder for the team.
    fn own(&self) -> PathBuf {
        let files = self.home.path().join("state/brigade/files");
        let root = fs::read_dir(files).unwrap().next().unwrap().unwrap().path();
        root.join("demo")
    }

    /// The names of everything in the inboxes' folder.
    fn inbox_names(&self) -> Vec<String> {
        let dir = self.inbox("x").parent().unwrap().to_owned();
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Creates a lock that its holder abandoned a minute ago.
fn leave_locked(lock: &Path) {
    fs::create_dir(lock).unwrap();
    let old = SystemTime::now() - Duration::from_secs(60);
    fs::File::open(lock).unwrap().set_modified(old).unwrap();
}

fn store(home: &TempDir) -> FileStore {
    FileStore::open(options(home))
}

fn options(home: &TempDir) -> Options {
    Options::new(home.path().join("claude"), home.path().join("state/brigade"))
}
