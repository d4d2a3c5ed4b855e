//! What an operator does: back up, restore, keep for a while, look.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use brigade_core::board::{self, TaskPlan};
use brigade_core::depth;
use brigade_core::store::{Mark, Shelf, Store, StoreError};
use brigade_nats::backup::{self, BackupError, backup, restore};
use brigade_nats::identity::Role;
use brigade_nats::{NatsStore, Options};
use brigade_testkit::env::{House, member, team};
use brigade_testkit::nats_server::Engine;
use jiff::Timestamp;
use tempfile::TempDir;

use crate::served::Served;

fn run(case: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(case);
}

fn options(engine: &Engine) -> Options {
    Options { servers: engine.urls.clone(), ..Options::default() }
}

async fn open(engine: &Engine) -> Arc<NatsStore> {
    Arc::new(NatsStore::connect(options(engine)).await.unwrap())
}

/// A team with mail in every state, tasks and a note.
async fn furnish(store: Arc<dyn Store>) -> House {
    let house = House::build(store).await;
    for text in ["read", "shown", "neither"] {
        house.say("bob", "alice", text).await;
    }
    let alice = member("alice");
    let inbox = house.store.inbox(&team(), &alice).await.unwrap();
    house.store.mark(&team(), &alice, &[inbox[0].key], Mark::Read).await.unwrap();
    house.store.mark(&team(), &alice, &[inbox[1].key], Mark::Shown).await.unwrap();
    for subject in ["one", "two"] {
        let plan = TaskPlan { subject: subject.into(), ..TaskPlan::default() };
        board::add(&house.seat("team-lead"), &plan).await.unwrap();
    }
    board::claim(&house.seat("alice"), brigade_wire::name::TaskId::new(2).unwrap()).await.unwrap();
    house.store.keep(&team(), &alice, Shelf::Memory, Some(b"note")).await.unwrap();
    house
}

/// All that a store tells of the team.
async fn told(store: &dyn Store) -> String {
    let mut told = format!("{:?}", store.team(&team()).await.unwrap());
    for name in ["team-lead", "alice", "bob"] {
        let of = member(name);
        told += &format!("{:?}", store.inbox(&team(), &of).await.unwrap());
        told += &format!("{:?}", store.kept(&team(), &of, Shelf::Memory).await.unwrap());
    }
    told += &format!("{:?}", store.tasks(&team()).await.unwrap());
    told += &format!("{:?}", store.history(&team()).await.unwrap());
    told
}

#[test]
fn everything_is_there_after_a_restore_and_goes_on() {
    run(async {
        let dir = TempDir::new().unwrap();
        let folder = dir.path().join("backup");
        let engine = Engine::single();
        let before = {
            let store = open(&engine).await;
            furnish(Arc::clone(&store) as _).await;
            told(store.as_ref()).await
        };
        let manifest = backup(&options(&engine), &folder, Timestamp::now()).await.unwrap();
        assert_eq!(manifest.streams.len(), 5);
        let full = restore(&options(&engine), &folder).await;
        assert!(matches!(full, Err(BackupError::StreamExists { .. })), "{full:?}");
        // The servers and all they had are gone.
        drop(engine);
        let engine = Engine::single();
        let restored = restore(&options(&engine), &folder).await.unwrap();
        for (saved, restored) in manifest.streams.iter().zip(&restored) {
            let is = (&restored.name, restored.messages, restored.last_seq, restored.too_old);
            let was = (&saved.name, saved.state.messages, saved.state.last_seq, 0);
            assert_eq!(is, was);
        }
        let store = open(&engine).await;
        assert_eq!(told(store.as_ref()).await, before);
        let house = House { store, clock: brigade_testkit::env::clock() };
        house.say("alice", "bob", "hello again").await;
        let plan = TaskPlan { subject: "three".into(), ..TaskPlan::default() };
        assert_eq!(board::add(&house.seat("team-lead"), &plan).await.unwrap().get(), 3);
        let pulse = Some(b"well".as_slice());
        house.store.keep(&team(), &member("bob"), Shelf::Pulse, pulse).await.unwrap();
        let again = backup(&options(&engine), &folder, Timestamp::now()).await;
        assert!(matches!(again, Err(BackupError::NotEmpty { .. })), "{again:?}");
    });
}

#[test]
fn three_servers_go_onto_one_and_back() {
    run(async {
        let dir = TempDir::new().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        let three = Engine::cluster(3);
        let store = open(&three).await;
        furnish(Arc::clone(&store) as _).await;
        let before = told(store.as_ref()).await;
        backup(&options(&three), &first, Timestamp::now()).await.unwrap();
        drop((store, three));

        let one = Engine::single();
        restore(&options(&one), &first).await.unwrap();
        assert_eq!(told(open(&one).await.as_ref()).await, before);
        backup(&options(&one), &second, Timestamp::now()).await.unwrap();
        drop(one);

        let three = Engine::cluster(3);
        let mut thrice = options(&three);
        thrice.settings.replicas = Some(3);
        restore(&thrice, &second).await.unwrap();
        let store = open(&three).await;
        assert_eq!(told(store.as_ref()).await, before);
        let measures = store.measures().await.unwrap();
        assert!(measures.streams.iter().all(|stream| stream.replicas == 3), "{measures:?}");
        assert!(measures.cluster.is_some());
    });
}

#[test]
fn a_backup_that_is_not_whole_is_not_restored() {
    run(async {
        let dir = TempDir::new().unwrap();
        let folder = dir.path().join("backup");
        let engine = Engine::single();
        let none = backup(&options(&engine), &folder, Timestamp::now()).await;
        assert!(matches!(none, Err(BackupError::NoStreams)), "{none:?}");
        furnish(open(&engine).await).await;
        backup(&options(&engine), &folder, Timestamp::now()).await.unwrap();
        let empty = Engine::single();
        let path = folder.join("MB_0.tar.s2");
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let changed = restore(&options(&empty), &folder).await;
        assert!(
            matches!(&changed, Err(BackupError::Changed { path }) if path.ends_with("MB_0.tar.s2"))
        );
        // Whole by its sum, but no snapshot: what was restored before it is taken away again.
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
        let none = backup(&options(&empty), &dir.path().join("none"), Timestamp::now()).await;
        assert!(matches!(none, Err(BackupError::NoStreams)), "{none:?}");
        fs::remove_file(folder.join("manifest.json")).unwrap();
        let half = restore(&options(&empty), &folder).await;
        assert!(matches!(half, Err(BackupError::NoManifest { .. })), "{half:?}");
    });
}

#[test]
fn a_backup_under_load_holds_what_was_acknowledged_before_it() {
    run(async {
        let dir = TempDir::new().unwrap();
        let folder = dir.path().join("backup");
        let engine = Engine::single();
        let house = House::build(open(&engine).await).await;
        let (sent, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let mut senders = Vec::new();
        for sender in 0..4 {
            let (house, sent, stop) = (house.clone(), Arc::clone(&sent), Arc::clone(&stop));
            senders.push(tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let text = format!("{sender}-{number} {}", "x".repeat(2000));
                    house.say("bob", "alice", &text).await;
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
        backup(&options(&engine), &folder, Timestamp::now()).await.unwrap();
        let meanwhile = sent.load(Ordering::Relaxed) - before;
        stop.store(true, Ordering::Relaxed);
        let mut acknowledged = Vec::new();
        for sender in senders {
            acknowledged.push(sender.await.unwrap());
        }
        let second = Engine::single();
        restore(&options(&second), &folder).await.unwrap();
        let house = House { store: open(&second).await, clock: house.clock };
        let there = house.texts("alice").await;
        println!("{before} acknowledged before, {meanwhile} meanwhile, {} saved", there.len());
        assert!(meanwhile > 0, "nobody sent anything meanwhile");
        assert!(there.len() >= before, "{} of {before}", there.len());
        for (sender, acknowledged) in acknowledged.iter().enumerate() {
            let prefix = format!("{sender}-");
            let of: Vec<&String> = there
                .iter()
                .map(|(text, _)| text)
                .filter(|text| text.starts_with(&prefix))
                .collect();
            // Each sender's messages to a point, in order, each once.
            assert_eq!(of, acknowledged.iter().take(of.len()).collect::<Vec<_>>());
        }
    });
}

#[test]
fn mail_is_kept_as_long_as_is_said() {
    run(async {
        let engine = Engine::single();
        let house = House::build(open(&engine).await).await;
        let store = open(&engine).await;
        assert_eq!(store.measures().await.unwrap().retention_secs, Some(30 * 24 * 60 * 60));
        house.say("bob", "alice", "soon gone").await;
        let plan = TaskPlan { subject: "stays".into(), ..TaskPlan::default() };
        board::add(&house.seat("team-lead"), &plan).await.unwrap();
        let before = store.set_retention(Duration::from_secs(14 * 86400)).await.unwrap();
        assert_eq!(before, Duration::from_secs(30 * 24 * 60 * 60));
        assert_eq!(store.measures().await.unwrap().retention_secs, Some(14 * 86400));
        assert_eq!(house.texts("alice").await.len(), 1);
        tokio::time::sleep(Duration::from_millis(1100)).await;
        store.set_retention(Duration::from_secs(1)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let fresh = open(&engine).await;
        assert!(fresh.inbox(&team(), &member("alice")).await.unwrap().is_empty());
        assert_eq!(fresh.tasks(&team()).await.unwrap().len(), 1);
    });
}

#[test]
fn what_had_to_be_done_twice_is_counted() {
    run(async {
        let mut engine = Engine::single();
        let store = open(&engine).await;
        let house = House::build(Arc::clone(&store) as _).await;
        let plan = TaskPlan { subject: "one".into(), ..TaskPlan::default() };
        let id = board::add(&house.seat("team-lead"), &plan).await.unwrap();
        let task = store.task(&team(), id).await.unwrap().unwrap();
        let by = brigade_core::store::Actor("bob".into());
        store.replace_task(&team(), id, &task.bytes, task.revision, &by).await.unwrap();
        let before = store.strain().unwrap();
        store.replace_task(&team(), id, &task.bytes, task.revision, &by).await.unwrap_err();
        assert_eq!(store.strain().unwrap().conflicts, before.conflicts + 1);
        assert_eq!(store.strain().unwrap().reconnects, 0);
        engine.stop(0);
        engine.start(0);
        engine.wait_ready();
        house.say("bob", "alice", "still there?").await;
        // Pulses are of the moment, but where they go has to be there.
        let bob = member("bob");
        store.keep(&team(), &bob, Shelf::Pulse, Some(b"{}")).await.unwrap();
        assert_eq!(store.kept(&team(), &bob, Shelf::Pulse).await.unwrap().unwrap(), b"{}");
        assert_eq!(store.strain().unwrap().reconnects, 1);
        let measures = store.measures().await.unwrap();
        let mail = measures.streams.iter().find(|stream| stream.name == "MB_0").unwrap();
        assert_eq!((mail.messages, mail.replicas, mail.behind.len()), (1, 1, 0));
        assert!(mail.leader.is_some() && mail.bytes > 0);
        assert_eq!(measures.version.split('.').next(), Some("2"));
    });
}

#[test]
fn a_seat_sees_its_own_and_changes_nothing_of_the_engine() {
    run(async {
        let served = Served::start(1);
        let mut acme = served.organisation("acme").await;
        let seat = served.grant(&mut acme, "demo", &["alice"], (Role::Member, false));
        let options = |creds| Options {
            servers: served.urls.clone(),
            creds: Some(creds),
            ..Options::default()
        };
        let admin = NatsStore::connect(options(served.folder.admin(&acme.name))).await.unwrap();
        let house = House::build(Arc::new(admin)).await;
        house.say("team-lead", "alice", "for alice").await;
        house.say("team-lead", "bob", "for bob").await;

        let seat = options(seat.file);
        let store = NatsStore::connect(seat.clone()).await.unwrap();
        let depth = async |name| depth::depth(&store, &team(), &member(name)).await.unwrap();
        assert_eq!((depth("alice").await.unread, depth("bob").await.unread), (Some(1), None));
        let measures = store.measures().await.unwrap();
        assert!(measures.streams.is_empty());
        assert_eq!(measures.retention_secs, Some(30 * 86400));
        let forbidden = |error: &StoreError| matches!(error, StoreError::Forbidden { .. });
        let kept = store.set_retention(Duration::from_secs(60)).await;
        assert!(kept.as_ref().is_err_and(forbidden), "{kept:?}");
        let dir = TempDir::new().unwrap();
        let saved = backup(&seat, &dir.path().join("backup"), Timestamp::now()).await;
        let no =
            |error: &BackupError| matches!(error, BackupError::Store(error) if forbidden(error));
        assert!(saved.as_ref().is_err_and(no), "{saved:?}");

        // Its admin's credentials are enough for both, and save no other organisation's.
        let admin = options(served.folder.admin(&acme.name));
        served.organisation("other").await;
        let saved = backup(&admin, &dir.path().join("backup"), Timestamp::now()).await.unwrap();
        assert_eq!(saved.streams.len(), 5);
        let other = options(served.folder.admin(&"other".parse().unwrap()));
        let other = NatsStore::connect(other).await.unwrap();
        other.set_retention(Duration::from_secs(86400)).await.unwrap();
        assert_eq!(house.texts("bob").await.len(), 1);
    });
}
