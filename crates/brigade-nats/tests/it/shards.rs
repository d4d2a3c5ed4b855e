//! Adds shards to a running store. Teams stay where they are, new teams use all shards, and a client with an outdated map
//! finds them.

use std::sync::Arc;

use async_nats::HeaderMap;
use brigade_core::board::{self, TaskPlan};
use brigade_core::mail;
use brigade_core::roster;
use brigade_core::seat::Seat;
use brigade_core::store::{
    BoardStore, EventLog, MailStore, NoteKind, Notes, Store, StoreError, TeamStore,
};
use brigade_nats::backup::{backup, restore};
use brigade_nats::identity::CredentialRole;
use brigade_nats::org::OrgError;
use brigade_nats::{NatsOptions, NatsStore};
use brigade_testkit::env::{member, member_plan, team_plan};
use brigade_testkit::nats_server::TestServers;
use brigade_wire::name::TeamName;
use jiff::Timestamp;
use serde_json::Value;

use crate::served::OrgServers;

fn options(servers: &TestServers) -> NatsOptions {
    NatsOptions { servers: servers.urls.clone(), ..NatsOptions::default() }
}

async fn open(servers: &TestServers) -> Arc<NatsStore> {
    Arc::new(NatsStore::connect(options(servers)).await.unwrap())
}

fn named(name: &str) -> TeamName {
    name.parse().unwrap()
}

fn seat(store: &Arc<NatsStore>, team: &TeamName, name: &str) -> Seat {
    Seat::new(Arc::clone(store) as Arc<dyn Store>, team.clone(), member(name))
}

/// Creates a team with the member `alice`.
async fn create(store: &Arc<NatsStore>, team: &TeamName) {
    let lead = seat(store, team, "team-lead");
    roster::create(&lead, team_plan()).await.unwrap();
    roster::join(&lead, &member("alice"), member_plan()).await.unwrap();
}

/// Uses every part of the store for a team, and checks what it returns.
async fn use_team(store: &Arc<NatsStore>, team: &TeamName, text: &str) {
    let [lead, alice] = ["team-lead", "alice"].map(|name| seat(store, team, name));
    let mut watch = store.watch_member(team, &alice.name).await.unwrap();
    mail::send(&lead, "alice", text).await.unwrap();
    watch.next().await.unwrap();
    let inbox = store.inbox(team, &alice.name).await.unwrap();
    assert_eq!(inbox.last().unwrap().text(), text, "{team}");
    let plan = TaskPlan { subject: text.into(), ..TaskPlan::default() };
    let task = board::add(&lead, &plan).await.unwrap();
    board::claim(&alice, task).await.unwrap();
    store.put_note(team, &alice.name, NoteKind::Memory, Some(text.as_bytes())).await.unwrap();
}

/// Returns what a new client reads about a team that was used once.
async fn read_team(store: &Arc<NatsStore>, team: &TeamName) -> String {
    let alice = member("alice");
    let note = store.get_note(team, &alice, NoteKind::Memory).await.unwrap();
    let inbox = store.inbox(team, &alice).await.unwrap();
    let tasks = store.tasks(team).await.unwrap();
    format!("{:?}{note:?}{inbox:?}{tasks:?}", store.history(team).await.unwrap())
}

/// Returns the shards in which the server has a document of a team, or a marker.
fn shards_of(servers: &TestServers, team: &TeamName) -> Vec<(u16, bool)> {
    let subjects = |shard: u16| {
        let request = format!(r#"{{"subjects_filter":"tm.{shard}.{team}.doc.cfg.*"}}"#);
        let answer = servers.request(&format!("$JS.API.STREAM.INFO.TM_{shard}"), &request);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let subjects = answer["state"]["subjects"].as_object();
        subjects.map(|subjects| subjects.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
    };
    let all = (0..4).flat_map(|shard| subjects(shard).into_iter().map(move |name| (shard, name)));
    all.map(|(shard, name)| (shard, name.ends_with("._shards"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn existing_teams_stay_and_new_teams_use_all_shards() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::cluster(3);
    let running = open(&servers).await;
    let old: Vec<TeamName> = (0..3).map(|number| named(&format!("old-{number}"))).collect();
    let mut before = Vec::new();
    for team in &old {
        create(&running, team).await;
        use_team(&running, team, "before").await;
        before.push(read_team(&open(&servers).await, team).await);
    }

    let operator = open(&servers).await;
    assert_eq!(operator.add_shard().await.unwrap(), 1);
    let measures = running.measures().await.unwrap();
    let added = measures.streams.iter().filter(|stream| stream.name.ends_with("_1"));
    assert_eq!(added.filter(|stream| stream.replicas == 3).count(), 5, "{measures:?}");
    for (team, before) in old.iter().zip(before) {
        assert_eq!(read_team(&open(&servers).await, team).await, before);
        use_team(&running, team, "after").await;
    }

    let new: Vec<TeamName> = (0..8).map(|number| named(&format!("new-{number}"))).collect();
    for team in &new {
        create(&running, team).await;
        use_team(&running, team, "new").await;
        use_team(&operator, team, "by another client").await;
    }
    let mut all = [old, new].concat();
    all.sort();
    assert_eq!(running.teams().await.unwrap(), all);
    assert_eq!(open(&servers).await.teams().await.unwrap(), all);
    let usage = operator.shards().await.unwrap();
    assert_eq!(usage.iter().map(|shard| shard.teams).sum::<usize>(), all.len());
    assert!(usage[0].teams > 3 && usage[1].teams > 0 && usage[1].bytes > 0, "{usage:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_an_outdated_map_finds_a_team_in_an_added_shard() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::single();
    let (operator, first) = (open(&servers).await, open(&servers).await);
    // Each of these clients first hears of the team in another way.
    let [by_note, by_history, by_mail, by_task] =
        [open(&servers).await, open(&servers).await, open(&servers).await, open(&servers).await];
    operator.add_shard().await.unwrap();
    let (team, alice) = (named("demo"), member("alice"));
    operator.assign_shard(&team, 1).await.unwrap();
    assert_eq!(first.team(&team).await.unwrap(), None);
    create(&operator, &team).await;
    use_team(&operator, &team, "hello").await;

    use_team(&first, &team, "found").await;
    let note = by_note.get_note(&team, &alice, NoteKind::Memory).await.unwrap();
    assert_eq!(note.as_deref(), Some(b"found".as_slice()));
    assert!(!by_history.history(&team).await.unwrap().is_empty());
    assert_eq!(by_mail.mailbox_history(&team, &alice).await.unwrap().len(), 2);
    let plan = TaskPlan { subject: "third".into(), ..TaskPlan::default() };
    let task = board::add(&seat(&by_task, &team, "team-lead"), &plan).await.unwrap();
    assert_eq!(task.get(), 3);
    assert_eq!(shards_of(&servers, &team), [(0, true), (1, false)]);

    let elsewhere = operator.assign_shard(&team, 0).await;
    assert!(elsewhere.is_err(), "a team with data was moved");
    assert!(operator.assign_shard(&named("other"), 2).await.is_err(), "there is no shard 2");
}

/// A program of an earlier version, or one that has just read that there is no team, writes the team's first document into
/// the shard that the hash selects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_refuses_to_create_a_team_outside_its_shard() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::single();
    let store = open(&servers).await;
    store.add_shard().await.unwrap();
    let team = named("demo");
    store.assign_shard(&team, 1).await.unwrap();
    let client = async_nats::connect(&servers.urls).await.unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
    headers.insert("Nats-Expected-Last-Subject-Sequence-Subject", "tm.0.demo.doc.cfg.*");
    let subject = "tm.0.demo.doc.cfg.team-lead";
    let answer = client.request_with_headers(subject, headers, "{}".into()).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
    assert_eq!(answer["error"]["err_code"], 10071, "{answer}");
    assert_eq!(shards_of(&servers, &team), [(0, true)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_create_the_same_team_at_once_create_it_once() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::cluster(3);
    let operator = open(&servers).await;
    let clients = [open(&servers).await, open(&servers).await, open(&servers).await];
    let adding = tokio::spawn(async move { operator.add_shard().await.unwrap() });
    for number in 0..12 {
        let team = named(&format!("team-{number}"));
        let creating = clients.each_ref().map(|store| {
            let lead = seat(store, &team, "team-lead");
            tokio::spawn(async move { roster::create(&lead, team_plan()).await })
        });
        let mut created = 0;
        for result in creating {
            created += usize::from(result.await.unwrap().is_ok());
        }
        assert_eq!(created, 1, "{team}");
        let documents = shards_of(&servers, &team);
        let documents = documents.iter().filter(|(_, is_marker)| !is_marker).count();
        assert_eq!(documents, 1, "{team}");
        let team_of = clients.each_ref().map(|store| store.team(&team));
        let [first, second, third] = team_of;
        let (first, second, third) = tokio::try_join!(first, second, third).unwrap();
        assert!(first.is_some() && first == second && second == third, "{team}");
    }
    assert_eq!(adding.await.unwrap(), 1);
}

/// Polls a future this many times, and drops it if it has not finished by then.
async fn interrupted<T>(work: impl Future<Output = T>, mut polls: usize) -> Option<T> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(move |context| {
        if polls == 0 {
            return std::task::Poll::Ready(None);
        }
        polls -= 1;
        let done = work.as_mut().poll(context).map(Some);
        if done.is_pending() && polls == 0 {
            return std::task::Poll::Ready(None);
        }
        done
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_that_was_interrupted_anywhere_can_be_repeated() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::single();
    let store = open(&servers).await;
    for shard in 1..4 {
        assert_eq!(store.add_shard().await.unwrap(), shard);
    }
    let (mut finished, mut markers) = (0, 0);
    for polls in 1.. {
        let team = named(&format!("team-{polls}"));
        let lead = seat(&store, &team, "team-lead");
        let done = interrupted(roster::create(&lead, team_plan()), polls).await;
        // Another client repeats it.
        let other = open(&servers).await;
        match roster::create(&seat(&other, &team, "team-lead"), team_plan()).await {
            Ok(_) => assert!(done.is_none(), "the team was created twice"),
            Err(error) => assert!(error.to_string().contains("exist"), "{error}"),
        }
        roster::join(&seat(&other, &team, "team-lead"), &member("alice"), member_plan())
            .await
            .unwrap();
        use_team(&other, &team, "by the second").await;
        use_team(&store, &team, "by the first").await;
        let documents = shards_of(&servers, &team);
        assert_eq!(documents.iter().filter(|(_, is_marker)| !is_marker).count(), 1, "{team}");
        markers += documents.iter().filter(|(_, is_marker)| *is_marker).count();
        finished += usize::from(done.is_some());
        if finished > 4 {
            println!(
                "interrupted after 1 to {polls} polls; {markers} teams outside their hashed shard"
            );
            break;
        }
    }
    assert!(markers > 2);
}

/// The marker is written, and the program is killed before it writes the map.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_assignment_that_stopped_after_its_marker_is_completed() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::single();
    let (store, other) = (open(&servers).await, open(&servers).await);
    store.add_shard().await.unwrap();
    store.add_shard().await.unwrap();
    let client = async_nats::connect(&servers.urls).await.unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("Brigade-Op", "elsewhere");
    let marker = client.request_with_headers("tm.0.demo.doc.cfg._shards", headers, "2".into());
    marker.await.unwrap();
    let team = named("demo");
    for store in [&store, &other] {
        assert_eq!(store.team(&team).await.unwrap(), None);
        assert_eq!(store.teams().await.unwrap(), []);
        let sent = store.history(&team).await.unwrap();
        assert!(sent.is_empty());
    }
    create(&other, &team).await;
    use_team(&store, &team, "hello").await;
    assert_eq!(shards_of(&servers, &team), [(0, true), (2, false)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adding_a_shard_that_was_interrupted_anywhere_can_be_repeated() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::single();
    let store = open(&servers).await;
    create(&store, &named("old")).await;
    let mut polls = 0;
    let last = loop {
        polls += 1;
        let before = store.shards().await.unwrap().len();
        let done = interrupted(store.add_shard(), polls).await;
        use_team(&store, &named("old"), "during").await;
        // A write that was on its way when the program was stopped may have added the shard.
        let after = store.shards().await.unwrap().len();
        assert!((before..=before + 1).contains(&after), "{before} {after}");
        if let Some(shard) = done.transpose().unwrap() {
            break shard;
        }
    };
    assert!(polls > 5, "the test has interrupted nothing");
    let team = named("new");
    store.assign_shard(&team, last).await.unwrap();
    create(&open(&servers).await, &team).await;
    use_team(&store, &team, "hello").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_contains_added_shards_and_the_map() {
    brigade_testkit::needs!(NatsServer);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("backup");
    let team = named("demo");
    let servers = TestServers::single();
    let store = open(&servers).await;
    store.add_shard().await.unwrap();
    store.assign_shard(&team, 1).await.unwrap();
    create(&store, &team).await;
    use_team(&store, &team, "hello").await;
    let before = read_team(&open(&servers).await, &team).await;
    let manifest = backup(&options(&servers), &folder, Timestamp::now()).await.unwrap();
    assert_eq!((manifest.shards, manifest.streams.len()), (2, 10));
    drop((store, servers));
    let servers = TestServers::single();
    restore(&options(&servers), &folder).await.unwrap();
    assert_eq!(read_team(&open(&servers).await, &team).await, before);
    use_team(&open(&servers).await, &team, "again").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_name_the_shard_of_their_team() {
    brigade_testkit::needs!(NatsServer);
    let servers = OrgServers::start(1);
    let mut acme = servers.organisation("acme").await;
    let lead = (CredentialRole::Lead, true);
    let before = servers.grant(&mut acme, "before", &["team-lead", "alice"], lead);
    let options = |creds: &std::path::Path| NatsOptions {
        servers: servers.urls.clone(),
        creds: Some(creds.to_owned()),
        ..NatsOptions::default()
    };
    let connect =
        async |creds: &std::path::Path| Arc::new(NatsStore::connect(options(creds)).await.unwrap());
    let admin = connect(&servers.folder.admin(&acme.name)).await;
    admin.fix_shards(&acme.teams()).await.unwrap();
    servers.folder.record_added_shards(&mut acme).unwrap();
    assert!(servers.folder.organisation(None).unwrap().shards_added);
    // A program that is killed here, and issues credentials for another member of the team, must not change its shard.
    assert_eq!(admin.shard_for_credentials(&named("before")).await.unwrap(), 0);
    admin.add_shard().await.unwrap();

    let granted = brigade_nats::org::Granted {
        team: named("after"),
        members: vec![member("team-lead"), member("alice")],
        role: CredentialRole::Lead,
        answers: true,
        until: None,
        out: None,
        shard: None,
    };
    let unknown = servers.folder.grant(&mut acme, granted.clone(), Timestamp::now());
    assert!(matches!(unknown, Err(OrgError::UnknownShard { .. })), "{unknown:?}");
    admin.assign_shard(&named("after"), 1).await.unwrap();
    let shard = admin.shard_for_credentials(&named("after")).await.unwrap();
    assert_eq!(shard, 1);
    let granted = brigade_nats::org::Granted { shard: Some(shard), ..granted };
    let after = servers.folder.grant(&mut acme, granted, Timestamp::now()).unwrap();

    // The team `before` did not exist when the shard was added. Its credentials name shard 0.
    for (seat, team) in [(&before, "before"), (&after, "after")] {
        let (store, team) = (connect(&seat.file).await, named(team));
        create(&store, &team).await;
        use_team(&store, &team, "by a seat").await;
        use_team(&admin, &team, "by the administrator").await;
    }
    let teams = admin.shards().await.unwrap();
    assert_eq!(teams.iter().map(|shard| shard.teams).collect::<Vec<_>>(), [1, 1]);
    // A shard is fixed once credentials name it, also if the team does not exist yet.
    let shard = admin.shard_for_credentials(&named("later")).await.unwrap();
    for _ in 0..3 {
        admin.add_shard().await.unwrap();
    }
    assert_eq!(admin.shard_for_credentials(&named("later")).await.unwrap(), shard);
    let member = connect(&after.file).await;
    let refused = member.add_shard().await;
    assert!(matches!(refused, Err(StoreError::Forbidden { .. })), "{refused:?}");
}
