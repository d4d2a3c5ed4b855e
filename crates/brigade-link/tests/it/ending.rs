//! Tests of links whose team ends, and of links that have no team.

use std::fs;
use std::future::pending;
use std::time::Duration;

use brigade_core::store::{Actor, TeamStore};
use brigade_link::{EndedSide, LinkError, LinkEvent};
use brigade_testkit::env::team;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::world::{TestHost, hosts, two_hosts};

type Run = JoinHandle<Result<(), LinkError>>;

/// Runs a link until it ends by itself.
fn run(host: &TestHost) -> Run {
    let mut link = host.link();
    tokio::spawn(async move { link.run(pending()).await })
}

/// Returns the error with which a link ended.
async fn ended(run: Run) -> LinkError {
    timeout(Duration::from_secs(20), run).await.unwrap().unwrap().unwrap_err()
}

/// Waits until a link has reported its first synchronization.
async fn until_synced(host: &TestHost) {
    let began = Instant::now();
    let is_synced = |event: &LinkEvent| matches!(event, LinkEvent::Synced { .. });
    while !host.events.lock().unwrap().iter().any(is_synced) {
        assert!(began.elapsed() < Duration::from_secs(20), "the link does not synchronize");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Deletes the team as Claude Code does when its session ends.
fn end_session(host: &TestHost) {
    let away = host.path("teams/.deleted-0");
    fs::rename(host.path("teams/demo"), &away).unwrap();
    fs::remove_dir_all(away).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n19_a_link_without_a_team_ends() {
    let (_, [a, _]) = hosts(["a", "b"]);
    assert!(matches!(ended(run(&a)).await, LinkError::NoTeam { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n19_links_end_with_their_team_and_delete_its_copies() {
    let (shared_store, a, b) = two_hosts().await;
    let links = [run(&a), run(&b)];
    until_synced(&a).await;
    until_synced(&b).await;
    end_session(&a);
    let [a_link, b_link] = links;
    let error = ended(a_link).await;
    assert!(matches!(error, LinkError::Ended { side: EndedSide::Files, .. }), "{error}");
    assert!(shared_store.team(&team()).await.unwrap().is_none());
    assert!(!a.path("teams/demo").exists(), "the link must not create the folder again");
    let error = ended(b_link).await;
    assert!(matches!(error, LinkError::Ended { side: EndedSide::Shared, .. }), "{error}");
    assert!(!b.path("teams/demo").exists(), "the mirror should be deleted");
    let events = a.drain_events();
    assert!(events.contains(&LinkEvent::AskedToStop { member: "bob".into() }), "{events:?}");
    let asked = b.drain_events();
    let is_request = |event: &LinkEvent| matches!(event, LinkEvent::In { to, .. } if to == "bob");
    assert!(asked.iter().any(is_request), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_does_not_ask_its_local_members_to_stop() {
    let (_, a, _b) = two_hosts().await;
    let link = run(&a);
    until_synced(&a).await;
    end_session(&a);
    ended(link).await;
    let events = a.drain_events();
    assert!(!events.contains(&LinkEvent::AskedToStop { member: "alice".into() }), "{events:?}");
}

/// Claude Code deletes and re-creates the folder within milliseconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_team_that_returns_at_once_has_not_ended() {
    let (shared_store, a, _b) = two_hosts().await;
    let link = run(&a);
    until_synced(&a).await;
    let away = a.path("teams/.away");
    fs::rename(a.path("teams/demo"), &away).unwrap();
    sleep(Duration::from_millis(200)).await;
    fs::rename(&away, a.path("teams/demo")).unwrap();
    sleep(Duration::from_millis(1200)).await;
    assert!(!link.is_finished());
    assert!(shared_store.team(&team()).await.unwrap().is_some());
    link.abort();
}

/// The file system with Claude Code's folder may not be mounted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_folder_of_teams_is_not_the_end_of_a_team() {
    let (shared_store, a, _b) = two_hosts().await;
    let link = run(&a);
    until_synced(&a).await;
    fs::rename(a.path("teams"), a.path("unmounted")).unwrap();
    sleep(Duration::from_millis(1500)).await;
    assert!(!link.is_finished());
    assert!(shared_store.team(&team()).await.unwrap().is_some());
    fs::rename(a.path("unmounted"), a.path("teams")).unwrap();
    sleep(Duration::from_millis(300)).await;
    assert!(!link.is_finished());
    link.abort();
}

/// A session that is resumed after a crash has a new team of the same name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_team_replaces_its_copies() {
    let (shared_store, a, b) = two_hosts().await;
    let links = [run(&a), run(&b)];
    until_synced(&a).await;
    until_synced(&b).await;
    end_session(&a);
    a.lead().await;
    let created = |bytes: &[u8]| brigade_wire::team::Team::read(bytes).unwrap().created_at();
    let new = created(&a.store.team(&team()).await.unwrap().unwrap().bytes);
    let began = Instant::now();
    loop {
        let shared = shared_store.team(&team()).await.unwrap();
        let mirror = b.store.team(&team()).await.ok().flatten();
        let is_new = |document: Option<&brigade_core::store::Document>| {
            document.is_some_and(|document| created(&document.bytes) == new)
        };
        if is_new(shared.as_ref()) && is_new(mirror.as_ref()) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", b.drain_events());
        sleep(Duration::from_millis(50)).await;
    }
    for link in links {
        assert!(!link.is_finished());
        link.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_ends_when_the_shared_team_is_deleted() {
    let (shared_store, a, b) = two_hosts().await;
    let links = [run(&a), run(&b)];
    until_synced(&a).await;
    until_synced(&b).await;
    shared_store.delete_team(&team(), &Actor("team-lead".into())).await.unwrap();
    for link in links {
        let error = ended(link).await;
        assert!(matches!(error, LinkError::Ended { side: EndedSide::Shared, .. }), "{error}");
    }
    assert!(a.path("teams/demo").exists(), "the lead's files must stay");
    assert!(!b.path("teams/demo").exists(), "the mirror should be deleted");
}

/// A link that has nothing to do must notice a lost connection, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_reported_within_two_seconds() {
    let (_, a, _b) = two_hosts().await;
    let link = run(&a);
    until_synced(&a).await;
    // The next full check is later than the limit below.
    sleep(Duration::from_millis(300)).await;
    a.flaky.cut(true);
    let began = Instant::now();
    let has = |is: fn(&LinkEvent) -> bool| a.events.lock().unwrap().iter().any(is);
    while !has(|event| matches!(event, LinkEvent::Cut { .. })) {
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", a.drain_events());
        sleep(Duration::from_millis(10)).await;
    }
    a.flaky.cut(false);
    let began = Instant::now();
    while !has(|event| *event == LinkEvent::Back) {
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", a.drain_events());
        sleep(Duration::from_millis(10)).await;
    }
    link.abort();
}
