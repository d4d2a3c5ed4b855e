//! Tests of the tools for operators: backup, restore, retention and measurements.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use brigade_core::approvals;
use brigade_core::board::{self, TaskPlan};
use brigade_core::depth;
use brigade_core::handshake;
use brigade_core::store::{BoardStore, MailStore, Mark, NoteKind, Notes, Store, StoreError};
use brigade_nats::backup::{self, BackupError, Manifest, backup, restore};
use brigade_nats::identity::CredentialRole;
use brigade_nats::{NatsOptions, NatsStore};
use brigade_testkit::env::{TestEnv, member, team};
use brigade_testkit::nats_server::TestServers;
use brigade_wire::name::TaskId;
use jiff::Timestamp;
use tempfile::TempDir;

use crate::served::OrgServers;

fn options(server: &TestServers) -> NatsOptions {
    NatsOptions { servers: server.urls.clone(), ..NatsOptions::default() }
}

async fn save(server: &TestServers, folder: &Path) -> Result<Manifest, BackupError> {
    backup(&options(server), folder, Timestamp::now()).await
}

async fn open(server: &TestServers) -> Arc<NatsStore> {
    Arc::new(NatsStore::connect(options(server)).await.unwrap())
}

async fn add_task(env: &TestEnv, subject: &str) -> TaskId {
    let plan = TaskPlan { subject: subject.into(), ..TaskPlan::default() };
    board::add(&env.seat("team-lead"), &plan).await.unwrap()
}

/// Starts an empty server, and returns a path for a backup.
fn server_and_folder() -> (TestServers, TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("backup");
    (TestServers::single(), dir, folder)
}

/// Creates a team with tasks, a note, and mail in every state.
async fn create_team(store: Arc<dyn Store>) -> TestEnv {
    let env = TestEnv::build(store).await;
    for text in ["read", "shown", "neither"] {
        env.say("bob", "alice", text).await;
    }
    let alice = member("alice");
    let inbox = env.store.inbox(&team(), &alice).await.unwrap();
    env.store.mark(&team(), &alice, &[inbox[0].key], Mark::Read).await.unwrap();
    env.store.mark(&team(), &alice, &[inbox[1].key], Mark::Shown).await.unwrap();
    add_task(&env, "one").await;
    let task = add_task(&env, "two").await;
    board::claim(&env.seat("alice"), task).await.unwrap();
    env.store.put_note(&team(), &alice, NoteKind::Memory, Some(b"note")).await.unwrap();
    env
}

/// Returns all data that a store has about the team, as text.
async fn snapshot_of(store: &dyn Store) -> String {
    let mut text = format!("{:?}", store.team(&team()).await.unwrap());
    for name in ["team-lead", "alice", "bob"] {
        let member = member(name);
        text += &format!("{:?}", store.inbox(&team(), &member).await.unwrap());
        text += &format!("{:?}", store.get_note(&team(), &member, NoteKind::Memory).await.unwrap());
    }
    text += &format!("{:?}", store.tasks(&team()).await.unwrap());
    text += &format!("{:?}", store.history(&team()).await.unwrap());
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_team_is_complete_and_can_continue() {
    brigade_testkit::needs!(NatsServer);
    let (server, _dir, folder) = server_and_folder();
    let before = {
        let store = open(&server).await;
        create_team(Arc::clone(&store) as _).await;
        snapshot_of(store.as_ref()).await
    };
    let manifest = save(&server, &folder).await.unwrap();
    assert_eq!(manifest.streams.len(), 5);
    let full = restore(&options(&server), &folder).await;
    assert!(matches!(full, Err(BackupError::StreamExists { .. })), "{full:?}");
    // Stop the server and delete its data.
    drop(server);
    let server = TestServers::single();
    let restored = restore(&options(&server), &folder).await.unwrap();
    for (saved, restored) in manifest.streams.iter().zip(&restored) {
        let actual = (&restored.name, restored.messages, restored.last_seq, restored.too_old);
        let expected = (&saved.name, saved.state.messages, saved.state.last_seq, 0);
        assert_eq!(actual, expected);
    }
    let store = open(&server).await;
    assert_eq!(snapshot_of(store.as_ref()).await, before);
    let env = TestEnv { store, clock: brigade_testkit::env::clock() };
    env.say("alice", "bob", "hello again").await;
    assert_eq!(add_task(&env, "three").await.get(), 3);
    let pulse = Some(b"well".as_slice());
    env.store.put_note(&team(), &member("bob"), NoteKind::Pulse, pulse).await.unwrap();
    let again = save(&server, &folder).await;
    assert!(matches!(again, Err(BackupError::NotEmpty { .. })), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_moves_between_a_cluster_and_a_single_server() {
    brigade_testkit::needs!(NatsServer);
    let dir = TempDir::new().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let three = TestServers::cluster(3);
    let store = open(&three).await;
    create_team(Arc::clone(&store) as _).await;
    let before = snapshot_of(store.as_ref()).await;
    save(&three, &first).await.unwrap();
    drop((store, three));

    let one = TestServers::single();
    restore(&options(&one), &first).await.unwrap();
    assert_eq!(snapshot_of(open(&one).await.as_ref()).await, before);
    save(&one, &second).await.unwrap();
    drop(one);

    let three = TestServers::cluster(3);
    let mut three_replicas = options(&three);
    three_replicas.settings.replicas = Some(3);
    restore(&three_replicas, &second).await.unwrap();
    let store = open(&three).await;
    assert_eq!(snapshot_of(store.as_ref()).await, before);
    let measures = store.measures().await.unwrap();
    assert!(measures.streams.iter().all(|stream| stream.replicas == 3), "{measures:?}");
    assert!(measures.cluster.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_or_incomplete_backup_is_not_restored() {
    brigade_testkit::needs!(NatsServer);
    let (server, dir, folder) = server_and_folder();
    let none = save(&server, &folder).await;
    assert!(matches!(none, Err(BackupError::NoStreams)), "{none:?}");
    create_team(open(&server).await).await;
    save(&server, &folder).await.unwrap();
    let empty = TestServers::single();
    let path = folder.join("MB_0.tar.s2");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let changed = restore(&options(&empty), &folder).await;
    assert!(
        matches!(&changed, Err(BackupError::Changed { path }) if path.ends_with("MB_0.tar.s2"))
    );
    // The checksum is right, but the file is not a snapshot. The restore fails, and deletes the streams that it
    // has created.
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    fs::write(folder.join("TM_0.tar.s2"), b"nothing").unwrap();
    let last = manifest["streams"].as_array_mut().unwrap().last_mut().unwrap();
    assert_eq!(last["name"], "TM_0");
    last["file"]["bytes"] = 7.into();
    let sum = "1785cfc3bc6ac7738e8b38cdccd1af12563c2b9070e07af336a1bf8c0f772b6a";
    last["file"]["sha256"] = sum.into();
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    backup::check(&folder).unwrap();
    let broken = restore(&options(&empty), &folder).await;
    assert!(broken.is_err(), "{broken:?}");
    let none = save(&empty, &dir.path().join("none")).await;
    assert!(matches!(none, Err(BackupError::NoStreams)), "{none:?}");
    fs::remove_file(folder.join("manifest.json")).unwrap();
    let half = restore(&options(&empty), &folder).await;
    assert!(matches!(half, Err(BackupError::NoManifest { .. })), "{half:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_includes_what_was_acknowledged_before_it() {
    brigade_testkit::needs!(NatsServer);
    let (server, _dir, folder) = server_and_folder();
    let env = TestEnv::build(open(&server).await).await;
    let (sent, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut senders = Vec::new();
    for sender in 0..4 {
        let (env, sent, stop) = (env.clone(), Arc::clone(&sent), Arc::clone(&stop));
        senders.push(tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let text = format!("{sender}-{number} {}", "x".repeat(2000));
                env.say("bob", "alice", &text).await;
                sent.fetch_add(1, Ordering::Relaxed);
                acknowledged.push(text);
            }
            acknowledged
        }));
    }
    while sent.load(Ordering::Relaxed) < 400 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let before = sent.load(Ordering::Relaxed);
    save(&server, &folder).await.unwrap();
    let meanwhile = sent.load(Ordering::Relaxed) - before;
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = Vec::new();
    for sender in senders {
        acknowledged.push(sender.await.unwrap());
    }
    let target = TestServers::single();
    restore(&options(&target), &folder).await.unwrap();
    let env = TestEnv { store: open(&target).await, clock: env.clock };
    let restored_texts = env.texts("alice").await;
    println!("{before} acknowledged before, {meanwhile} meanwhile, {} saved", restored_texts.len());
    assert!(meanwhile > 0, "no message was sent during the backup");
    assert!(restored_texts.len() >= before, "{} of {before}", restored_texts.len());
    for (sender, acknowledged) in acknowledged.iter().enumerate() {
        let prefix = format!("{sender}-");
        let from_sender: Vec<&String> = restored_texts
            .iter()
            .map(|(text, _)| text)
            .filter(|text| text.starts_with(&prefix))
            .collect();
        // The backup has the first messages of each sender, in order, without gaps or repetitions.
        assert_eq!(from_sender, acknowledged.iter().take(from_sender.len()).collect::<Vec<_>>());
    }
}

/// Finding 11: when the oldest request expired, the numbers of the others changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_a_request_stays_when_older_requests_expire() {
    brigade_testkit::needs!(NatsServer);
    let server = TestServers::single();
    let env = TestEnv::build(open(&server).await).await;
    let lead = env.seat("team-lead");
    let ask = async |name: &str, plan: &str| {
        handshake::submit_plan(&env.seat(name), plan, None).await.unwrap();
    };
    let numbers = async || -> Vec<(usize, String)> {
        let waiting = approvals::waiting(&lead).await.unwrap();
        waiting.into_iter().map(|approval| (approval.number, approval.from.to_string())).collect()
    };
    let listed = |pairs: &[(usize, &str)]| -> Vec<(usize, String)> {
        pairs.iter().map(|(number, from)| (*number, (*from).to_owned())).collect()
    };
    ask("alice", "first").await;
    ask("bob", "second").await;
    assert_eq!(numbers().await, listed(&[(1, "alice"), (2, "bob")]));
    let purged =
        server.request("$JS.API.STREAM.PURGE.MB_0", r#"{"filter":"mb.0.demo.team-lead.alice.w"}"#);
    assert!(purged.contains("\"purged\":1"), "{purged}");
    assert_eq!(numbers().await, listed(&[(2, "bob")]));
    ask("alice", "third").await;
    // A completion must not write, so it leaves out a request without a number.
    let known = async || {
        let known = approvals::waiting_with_numbers(&lead).await.unwrap();
        known.iter().map(|approval| approval.number).collect::<Vec<_>>()
    };
    assert_eq!(known().await, [2]);
    assert_eq!(numbers().await, listed(&[(2, "bob"), (3, "alice")]));
    assert_eq!(known().await, [2, 3]);
    assert_eq!(approvals::find(&lead, "2").await.unwrap().from.as_str(), "bob");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_expires_after_the_retention() {
    brigade_testkit::needs!(NatsServer);
    let server = TestServers::single();
    let env = TestEnv::build(open(&server).await).await;
    let store = open(&server).await;
    assert_eq!(store.measures().await.unwrap().retention_secs, Some(30 * 24 * 60 * 60));
    env.say("bob", "alice", "soon gone").await;
    add_task(&env, "stays").await;
    let before = store.set_retention(Duration::from_secs(14 * 86400)).await.unwrap();
    assert_eq!(before, Duration::from_secs(30 * 24 * 60 * 60));
    assert_eq!(store.measures().await.unwrap().retention_secs, Some(14 * 86400));
    assert_eq!(env.texts("alice").await.len(), 1);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    store.set_retention(Duration::from_secs(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let fresh = open(&server).await;
    assert!(fresh.inbox(&team(), &member("alice")).await.unwrap().is_empty());
    assert_eq!(fresh.tasks(&team()).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_and_reconnects_are_counted() {
    brigade_testkit::needs!(NatsServer);
    let mut server = TestServers::single();
    let store = open(&server).await;
    let env = TestEnv::build(Arc::clone(&store) as _).await;
    let id = add_task(&env, "one").await;
    let task = store.task(&team(), id).await.unwrap().unwrap();
    let by = brigade_core::store::Actor("bob".into());
    store.replace_task(&team(), id, &task.bytes, task.revision, &by).await.unwrap();
    let before = store.retry_stats().unwrap();
    store.replace_task(&team(), id, &task.bytes, task.revision, &by).await.unwrap_err();
    assert_eq!(store.retry_stats().unwrap().conflicts, before.conflicts + 1);
    assert_eq!(store.retry_stats().unwrap().reconnects, 0);
    server.stop(0);
    server.start(0);
    server.wait_ready();
    env.say("bob", "alice", "still there?").await;
    // A restart may lose pulses, but the stream for pulses must still exist.
    let bob = member("bob");
    store.put_note(&team(), &bob, NoteKind::Pulse, Some(b"{}")).await.unwrap();
    assert_eq!(store.get_note(&team(), &bob, NoteKind::Pulse).await.unwrap().unwrap(), b"{}");
    assert_eq!(store.retry_stats().unwrap().reconnects, 1);
    let measures = store.measures().await.unwrap();
    let mail = measures.streams.iter().find(|stream| stream.name == "MB_0").unwrap();
    assert_eq!((mail.messages, mail.replicas, mail.behind.len()), (1, 1, 0));
    assert!(mail.leader.is_some() && mail.bytes > 0);
    assert_eq!(measures.version.split('.').next(), Some("2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_sees_only_its_own_mail_and_cannot_administer() {
    brigade_testkit::needs!(NatsServer);
    let servers = OrgServers::start(1);
    let mut acme = servers.organisation("acme").await;
    let seat = servers.grant(&mut acme, "demo", &["alice"], (CredentialRole::Member, false));
    let options = |creds| NatsOptions {
        servers: servers.urls.clone(),
        creds: Some(creds),
        ..NatsOptions::default()
    };
    let admin = NatsStore::connect(options(servers.folder.admin(&acme.name))).await.unwrap();
    let env = TestEnv::build(Arc::new(admin)).await;
    env.say("team-lead", "alice", "for alice").await;
    env.say("team-lead", "bob", "for bob").await;

    let seat = options(seat.file);
    let store = NatsStore::connect(seat.clone()).await.unwrap();
    let depth = async |name| depth::depth(&store, &team(), &member(name)).await.unwrap();
    assert_eq!((depth("alice").await.unread, depth("bob").await.unread), (Some(1), None));
    let measures = store.measures().await.unwrap();
    assert!(measures.streams.is_empty());
    assert_eq!(measures.retention_secs, Some(30 * 86400));
    let forbidden = |error: &StoreError| matches!(error, StoreError::Forbidden { .. });
    let refused = store.set_retention(Duration::from_secs(60)).await;
    assert!(refused.as_ref().is_err_and(forbidden), "{refused:?}");
    let dir = TempDir::new().unwrap();
    let saved = backup(&seat, &dir.path().join("backup"), Timestamp::now()).await;
    let is_forbidden =
        |error: &BackupError| matches!(error, BackupError::Store(error) if forbidden(error));
    assert!(saved.as_ref().is_err_and(is_forbidden), "{saved:?}");

    // An administrator may make a backup and change the retention, but only in its own organisation.
    let admin = options(servers.folder.admin(&acme.name));
    servers.organisation("other").await;
    let saved = backup(&admin, &dir.path().join("backup"), Timestamp::now()).await.unwrap();
    assert_eq!(saved.streams.len(), 5);
    let other = options(servers.folder.admin(&"other".parse().unwrap()));
    let other = NatsStore::connect(other).await.unwrap();
    other.set_retention(Duration::from_secs(86400)).await.unwrap();
    assert_eq!(env.texts("bob").await.len(), 1);
}
