//! The index of the journals: searches give the same results with it, without it, and after damage.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brigade_core::store::RequestQuery;
use brigade_files::{FileStore, FileStoreOptions};
use brigade_testkit::env::{TestEnv, clock, member, team};
use brigade_testkit::search::{check_searches, fill_history};

/// Long texts make journals that are long enough for an index.
const LONG: usize = 30_000;

fn store(home: &Path) -> Arc<FileStore> {
    let options = FileStoreOptions::new(home.join(".claude"), home.join("state"));
    Arc::new(FileStore::open(options))
}

/// Opens the team of another process.
fn reopened(home: &Path) -> TestEnv {
    TestEnv { store: store(home), clock: clock() }
}

/// Returns the files in brigade's folder of the team whose names begin with this text.
fn files(home: &Path, start: &str) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(home.join("state/files")).unwrap().next().unwrap().unwrap();
    let folder = folder.path().join("demo");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.file_name().unwrap().to_str().unwrap().starts_with(start)).collect()
}

async fn filled(home: &Path) -> (TestEnv, BTreeSet<String>) {
    let env = TestEnv::build(store(home)).await;
    let open = fill_history(&env, 24, LONG).await;
    (env, open)
}

#[tokio::test]
async fn a_long_journal_is_indexed_while_it_is_written() {
    let home = tempfile::tempdir().unwrap();
    let (env, open) = filled(home.path()).await;
    assert!(!files(home.path(), "index.db").is_empty(), "a writer has made the index");
    check_searches(&env, &open).await;
    check_searches(&reopened(home.path()), &open).await;
}

#[tokio::test]
async fn an_answered_request_is_not_read_again() {
    let home = tempfile::tempdir().unwrap();
    let (env, open) = filled(home.path()).await;
    let seat = env.seat("team-lead");
    let config = seat.config().await.unwrap();
    let created = seat.read(&config).unwrap().created_at().unwrap();
    let find = async |query| {
        env.store.find_requests(&team(), &member("team-lead"), created, query).await.unwrap().len()
    };
    let (all, unsettled) = (find(RequestQuery::All).await, find(RequestQuery::Unsettled).await);
    assert_eq!(all, 84, "four requests in a round, but only every second one stays open");
    // The last requests may not be indexed yet.
    assert!(unsettled < open.len() + 20, "{unsettled} of {all}, {} open", open.len());
}

#[tokio::test]
async fn a_missing_index_is_built_again() {
    let home = tempfile::tempdir().unwrap();
    let (_, open) = filled(home.path()).await;
    for file in files(home.path(), "index.db") {
        std::fs::remove_file(file).unwrap();
    }
    check_searches(&reopened(home.path()), &open).await;
    assert!(!files(home.path(), "index.db").is_empty());
}

#[tokio::test]
async fn a_damaged_index_is_built_again() {
    let home = tempfile::tempdir().unwrap();
    let (_, open) = filled(home.path()).await;
    for damage in [b"this is not an index".to_vec(), vec![0; 8192], Vec::new()] {
        for file in files(home.path(), "index.db") {
            std::fs::write(file, &damage).unwrap();
        }
        check_searches(&reopened(home.path()), &open).await;
    }
}

#[tokio::test]
async fn an_index_of_another_version_is_built_again() {
    let home = tempfile::tempdir().unwrap();
    let (_, open) = filled(home.path()).await;
    let index = files(home.path(), "index.db").into_iter().find(|file| file.ends_with("index.db"));
    let later = rusqlite::Connection::open(index.unwrap()).unwrap();
    later.pragma_update(None, "user_version", 99).unwrap();
    drop(later);
    check_searches(&reopened(home.path()), &open).await;
}

#[tokio::test]
async fn an_index_does_not_hide_records_after_the_end_of_a_journal_was_lost() {
    let home = tempfile::tempdir().unwrap();
    let (env, _) = filled(home.path()).await;
    let mail = files(home.path(), "mail").remove(0);
    // After power loss, the end of a journal may be missing.
    for name in ["team-lead", "alice", "bob"] {
        let path = mail.join(format!("{name}.jsonl"));
        let bytes = std::fs::read(&path).unwrap();
        let half = bytes[..bytes.len() / 2].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        std::fs::write(&path, &bytes[..half]).unwrap();
        std::fs::remove_file(mail.join(format!("{name}.state"))).unwrap();
    }
    drop(env);
    let env = reopened(home.path());
    fill_history(&env, 20, LONG).await;
    let open = brigade_core::handshake::open(&env.seat("team-lead")).await.unwrap();
    let open: BTreeSet<String> = open.into_iter().map(|request| request.id).collect();
    for file in files(home.path(), "index.db") {
        std::fs::remove_file(file).unwrap();
    }
    // The same without the old index.
    check_searches(&reopened(home.path()), &open).await;
}
