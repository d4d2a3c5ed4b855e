//! Deleting old records: later records keep their places and numbers, and the space is free again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brigade_core::event::{Event, Record};
use brigade_core::mail::InboxFilter;
use brigade_core::roster::{self, SkipChecks};
use brigade_core::store::event_log::EventStream;
use brigade_core::store::{Mark, RequestQuery};
use brigade_files::{DeletedRecords, FileStore, FileStoreOptions};
use brigade_testkit::env::{TestEnv, clock, member, team};
use brigade_testkit::search::fill_history;
use jiff::Timestamp;

/// Long texts make journals from which records can be deleted.
const LONG: usize = 30_000;

struct Filled {
    home: tempfile::TempDir,
    env: TestEnv,
    created: u64,
    /// The ids of the open requests.
    open: BTreeSet<String>,
}

fn store(home: &Path) -> Arc<FileStore> {
    let options = FileStoreOptions::new(home.join(".claude"), home.join("state"));
    Arc::new(FileStore::open(options))
}

impl Filled {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let env = TestEnv::build(store(home.path())).await;
        let open = fill_history(&env, 24, LONG).await;
        let seat = env.seat("team-lead");
        let config = seat.config().await.unwrap();
        let created = seat.read(&config).unwrap().created_at().unwrap();
        Self { home, env, created, open }
    }

    /// Opens the team of another process.
    fn reopened(&self) -> TestEnv {
        TestEnv { store: store(self.home.path()), clock: clock() }
    }

    fn delete(&self, before: Timestamp) -> DeletedRecords {
        let store = store(self.home.path());
        store.delete_records(&team(), before, self.created, &mut |_| ()).unwrap().unwrap()
    }

    /// Returns the numbers, times and ids of the requests to the lead.
    async fn requests(
        &self,
        env: &TestEnv,
        query: RequestQuery<'_>,
    ) -> Vec<(usize, Timestamp, String)> {
        let found =
            env.store.find_requests(&team(), &member("team-lead"), self.created, query).await;
        let line = |record: &Record| serde_json::to_string(&record.event).unwrap();
        let fields = found.unwrap().into_iter();
        fields.map(|found| (found.number, found.record.at, line(&found.record))).collect()
    }

    /// Returns the time of the record in the middle of the lead's mailbox.
    async fn middle(&self) -> Timestamp {
        let past = self.env.store.mailbox_history(&team(), &member("team-lead")).await.unwrap();
        past[past.len() / 2].at
    }

    /// Returns the paths of the journals of mailboxes.
    fn mail_journals(&self) -> Vec<PathBuf> {
        let files = self.home.path().join("state/files");
        let folder = std::fs::read_dir(files).unwrap().next().unwrap().unwrap().path();
        let mail = std::fs::read_dir(folder.join("demo/mail")).unwrap();
        let paths = mail.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect()
    }

    fn remove_index(&self) {
        for path in self.mail_journals() {
            let index = path.parent().unwrap().parent().unwrap().join("index.db");
            let _may_be_gone = std::fs::remove_file(index);
        }
    }

    fn journal_bytes(&self) -> u64 {
        store(self.home.path()).history_size(&team()).unwrap().unwrap().journals()
    }
}

/// Returns all records until the stream has caught up.
async fn read_history(events: &mut EventStream) -> Vec<Arc<Record>> {
    let mut records = Vec::new();
    while let Some(batch) = events.next().await {
        records.extend(batch.records.into_iter().map(|(_, record)| record));
        if batch.caught_up {
            break;
        }
    }
    records
}

async fn history(env: &TestEnv) -> Vec<Arc<Record>> {
    let (mut events, _) = env.store.event_stream(&team()).await.unwrap();
    read_history(&mut events).await
}

#[tokio::test]
async fn later_records_keep_their_places_and_numbers() {
    let filled = Filled::new().await;
    let before = filled.middle().await;
    let all = filled.requests(&filled.env, RequestQuery::All).await;
    let (records, bytes) = (history(&filled.env).await.len(), filled.journal_bytes());
    let lengths: Vec<u64> = lengths(&filled);

    let deleted = filled.delete(before);
    assert!(deleted.records > 20 && deleted.bytes > 400_000, "{deleted:?}");
    assert_eq!(self::lengths(&filled), lengths, "journals keep their lengths");
    assert!(filled.journal_bytes() + deleted.bytes < bytes + 100_000, "the space is free");
    assert_eq!(history(&filled.env).await.len() as u64, records as u64 - deleted.records);

    let left = filled.requests(&filled.env, RequestQuery::All).await;
    assert!(
        left.len() < all.len() && all.ends_with(&left),
        "the last ones stay, with their numbers"
    );
    assert!(all.iter().all(|found| found.1 < before || left.contains(found)));
    assert_eq!(filled.requests(&filled.reopened(), RequestQuery::All).await, left);
    let (number, ..) = left[1];
    let one = filled.requests(&filled.reopened(), RequestQuery::Number(number)).await;
    assert_eq!(one, left[1..2]);
    filled.remove_index();
    assert_eq!(filled.requests(&filled.reopened(), RequestQuery::All).await, left);
    assert_eq!(filled.requests(&filled.reopened(), RequestQuery::Number(number)).await, one);

    let env = filled.reopened();
    env.say("alice", "team-lead", "after the deletion").await;
    let past = env.store.mailbox_history(&team(), &member("team-lead")).await.unwrap();
    assert!(
        matches!(&past.last().unwrap().event, Event::Sent { message, .. } if message.get().contains("after the deletion"))
    );
    assert_eq!(filled.delete(before), DeletedRecords::default(), "there is no more to delete");
}

fn lengths(filled: &Filled) -> Vec<u64> {
    filled.mail_journals().iter().map(|path| path.metadata().unwrap().len()).collect()
}

#[tokio::test]
async fn an_open_request_that_stays_is_still_open() {
    let filled = Filled::new().await;
    filled.delete(filled.middle().await);
    filled.remove_index();
    let left: Vec<String> = filled
        .requests(&filled.reopened(), RequestQuery::All)
        .await
        .into_iter()
        .map(|(.., event)| event)
        .collect();
    let expected: BTreeSet<&String> =
        filled.open.iter().filter(|id| left.iter().any(|event| event.contains(*id))).collect();
    let lead = filled.reopened().seat("team-lead");
    let open = brigade_core::handshake::open(&lead).await.unwrap();
    let open: BTreeSet<&String> = open.iter().map(|request| &request.id).collect();
    assert_eq!(open, expected);
}

#[tokio::test]
async fn an_interrupted_deletion_is_finished_later() {
    let filled = Filled::new().await;
    let journals: Vec<(PathBuf, Vec<u8>)> = filled
        .mail_journals()
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    let (before, bytes) = (filled.middle().await, filled.journal_bytes());
    filled.delete(before);
    let left = filled.requests(&filled.reopened(), RequestQuery::All).await;
    // The process died before it gave the space back.
    for (path, content) in journals {
        std::fs::write(path, content).unwrap();
    }
    filled.remove_index();
    assert!(filled.journal_bytes() >= bytes);
    assert_eq!(filled.requests(&filled.reopened(), RequestQuery::All).await, left);
    assert_eq!(filled.delete(before), DeletedRecords::default());
    assert!(filled.journal_bytes() < bytes - 400_000);
    assert_eq!(filled.requests(&filled.reopened(), RequestQuery::All).await, left);
}

#[tokio::test]
async fn a_follower_does_not_see_records_again() {
    let filled = Filled::new().await;
    let (mut events, _) = filled.env.store.event_stream(&team()).await.unwrap();
    read_history(&mut events).await;
    filled.delete(filled.middle().await);
    filled.env.say("alice", "bob", "the next message").await;
    let next = loop {
        let batch = events.next().await.unwrap();
        if let Some((_, record)) = batch.records.first() {
            break Arc::clone(record);
        }
    };
    assert!(
        matches!(&next.event, Event::Sent { message, .. } if message.get().contains("the next message")),
        "{next:?}"
    );
}

#[tokio::test]
async fn an_ended_team_is_deleted_as_a_whole() {
    let filled = Filled::new().await;
    let store = store(filled.home.path());
    let (later, middle) =
        (Timestamp::now() + jiff::SignedDuration::from_secs(60), filled.middle().await);
    assert_eq!(store.delete_ended_team(&team(), later).unwrap(), None, "the team exists");
    roster::delete(&filled.env.seat("team-lead"), SkipChecks::Yes).await.unwrap();
    assert_eq!(store.delete_ended_team(&team(), middle).unwrap(), None, "it ended later");
    let records = history(&filled.reopened()).await.len();
    let deleted = store.delete_ended_team(&team(), later).unwrap().unwrap();
    assert_eq!(deleted.records, records as u64);
    assert_eq!(store.teams_with_history().unwrap(), []);
    assert_eq!(store.history_size(&team()).unwrap(), None);
}

#[tokio::test]
async fn a_deletion_with_a_wrong_clock_does_not_hide_later_requests() {
    let filled = Filled::new().await;
    // The user's clock was a year ahead.
    filled.delete(Timestamp::now() + jiff::SignedDuration::from_hours(24 * 365));
    let alice = filled.env.seat("alice");
    let plan = brigade_core::handshake::submit_plan(&alice, "a plan", None).await.unwrap();
    let open = filled.requests(&filled.reopened(), RequestQuery::Unsettled).await;
    assert!(open.iter().any(|(.., event)| event.contains(&plan.request_id)), "{open:?}");
    for _ in 0..40 {
        filled.env.say("alice", "bob", &"x".repeat(10_000)).await;
    }
    let all = history(&filled.env).await.len();
    assert_eq!(filled.delete(filled.middle().await), DeletedRecords::default());
    assert_eq!(history(&filled.env).await.len(), all, "nothing is deleted before that time");
}

#[tokio::test]
async fn the_saved_position_of_a_mailbox_stays_valid() {
    let home = tempfile::tempdir().unwrap();
    let env = TestEnv::build(store(home.path())).await;
    for text in ["y".repeat(200_000), "x".repeat(200_000)] {
        env.say("alice", "bob", &text).await;
        let bob = env.seat("bob");
        let unread = brigade_core::mail::inbox(&bob, &bob.name, InboxFilter::Unread).await.unwrap();
        let keys: Vec<_> = unread.iter().map(|mail| mail.key).collect();
        brigade_core::mail::mark(&bob, &keys, Mark::Read).await.unwrap();
    }
    let later = Timestamp::now() + jiff::SignedDuration::from_secs(60);
    let files = store(home.path());
    let deleted = files.delete_records(&team(), later, 0, &mut |_| ()).unwrap().unwrap();
    assert!(deleted.bytes > 100_000, "{deleted:?}");
    let reopened = TestEnv { store: store(home.path()), clock: clock() };
    let before = reopened.store.mailbox_history(&team(), &member("bob")).await.unwrap().len();
    reopened.say("alice", "bob", "the next message").await;
    let after = reopened.store.mailbox_history(&team(), &member("bob")).await.unwrap();
    assert_eq!(after.len(), before + 1, "no message is recorded again");
}

#[tokio::test]
async fn deleted_records_of_a_journal_that_was_replaced_do_not_count() {
    let filled = Filled::new().await;
    filled.delete(filled.middle().await);
    for path in filled.mail_journals() {
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(path.with_extension("state")).unwrap();
    }
    filled.remove_index();
    let env = filled.reopened();
    let plan =
        brigade_core::handshake::submit_plan(&env.seat("alice"), "a plan", None).await.unwrap();
    let open = filled.requests(&env, RequestQuery::All).await;
    assert!(open.iter().any(|(.., event)| event.contains(&plan.request_id)), "{open:?}");
}

#[tokio::test]
async fn a_time_is_found_for_a_size() {
    let filled = Filled::new().await;
    let store = store(filled.home.path());
    assert_eq!(store.time_for_size(&team(), u64::MAX).unwrap(), None);
    let size = store.history_size(&team()).unwrap().unwrap();
    assert!(size.oldest < size.newest && size.deleted_before.is_none(), "{size:?}");
    // The records of the test are made within a few seconds, so the time is not exact.
    let time = store.time_for_size(&team(), size.journals() / 2).unwrap().unwrap();
    assert!(
        size.oldest <= Some(time)
            && Some(time) <= size.newest.map(|at| at + jiff::SignedDuration::from_secs(1)),
        "{time} {size:?}"
    );
}
