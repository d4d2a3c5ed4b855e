//! Runs a test on its own team, stored in files or in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use brigade_core::clock::SystemClock;
use brigade_core::store::memory::MemoryStore;
use brigade_files::{FileStore, FileStoreOptions};
use tempfile::TempDir;

use crate::contract::run;
use crate::env::{TestEnv, clock};

/// Runs a test on a team stored in memory.
pub fn in_memory<F: Future<Output = ()>>(test: impl FnOnce(TestEnv) -> F) {
    run(async { test(TestEnv::build(Arc::new(MemoryStore::new(clock()))).await).await });
}

/// A test team stored in files, and the folder that contains them.
#[derive(Debug)]
pub struct Files {
    /// The store and the team.
    pub env: TestEnv,
    /// The folder that contains all files.
    pub home: TempDir,
}

impl Files {
    /// Runs a test on a team stored in files.
    pub fn run<F: Future<Output = ()>>(test: impl FnOnce(Self) -> F) {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let env = TestEnv::build(Arc::new(store(&home))).await;
            test(Self { env, home }).await;
        });
    }

    /// Opens the same team again, with a new store that has no caches, as another process would.
    pub fn reopen(&self) -> TestEnv {
        TestEnv { store: Arc::new(store(&self.home)), clock: Arc::new(SystemClock) }
    }

    /// Returns the path of Claude Code's lock for an inbox.
    pub fn lock(&self, of: &str) -> PathBuf {
        self.inbox(of).with_extension("json.lock")
    }

    /// Opens the same team again, with a store that waits only `lock_wait` for locks.
    pub fn impatient(&self, lock_wait: Duration) -> TestEnv {
        let store = FileStore::open(options(&self.home).with_lock_wait(lock_wait));
        TestEnv { store: Arc::new(store), clock: Arc::new(SystemClock) }
    }

    /// Returns the path of a member's inbox file.
    pub fn inbox(&self, of: &str) -> PathBuf {
        self.home.path().join(format!("claude/teams/demo/inboxes/{of}.json"))
    }

    /// Returns the path of a task's file.
    pub fn task(&self, id: u64) -> PathBuf {
        self.home.path().join(format!("claude/tasks/demo/{id}.json"))
    }

    /// Returns the path of the team's `config.json`.
    pub fn config(&self) -> PathBuf {
        self.home.path().join("claude/teams/demo/config.json")
    }

    /// Returns the path of brigade's own folder for the team.
    pub fn team_state_dir(&self) -> PathBuf {
        let files = self.home.path().join("state/brigade/files");
        let root = fs::read_dir(files).unwrap().next().unwrap().unwrap().path();
        root.join("demo")
    }

    /// Returns the names of all entries in the folder that contains the inboxes.
    pub fn inbox_names(&self) -> Vec<String> {
        let dir = self.inbox("x").parent().unwrap().to_owned();
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Creates a lock that looks abandoned: it was last modified a minute ago.
pub fn create_stale_lock(lock: &Path) {
    fs::create_dir(lock).unwrap();
    let old = SystemTime::now() - Duration::from_secs(60);
    fs::File::open(lock).unwrap().set_modified(old).unwrap();
}

/// Opens a file store below this folder.
pub fn store(home: &TempDir) -> FileStore {
    FileStore::open(options(home))
}

/// Returns the options for a file store below this folder.
pub fn options(home: &TempDir) -> FileStoreOptions {
    FileStoreOptions::new(home.path().join("claude"), home.path().join("state/brigade"))
}
