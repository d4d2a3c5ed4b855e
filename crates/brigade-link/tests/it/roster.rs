//! Tests how members are divided into local and remote ones.

use brigade_core::roster;
use brigade_core::store::{NoteKind, TeamStore};
use brigade_link::LinkEvent;
use brigade_testkit::env::{member, team};
use brigade_wire::team::Team;

use super::world::{TestHost, hosts, names, shared_seat, sync, two_hosts};

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, backend)| ((*name).into(), (*backend).into())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_get_the_team_and_all_members() {
    let (shared_store, a, b) = two_hosts().await;
    assert_eq!(
        names(shared_store.as_ref()).await,
        pairs(&[("team-lead", ""), ("alice", "tmux"), ("bob", "tmux")])
    );
    assert_eq!(a.roster().await, pairs(&[("team-lead", ""), ("alice", "tmux"), ("bob", "remote")]));
    assert_eq!(
        b.roster().await,
        pairs(&[("team-lead", "remote"), ("alice", "remote"), ("bob", "tmux")])
    );
    for (name, host) in [("alice", "a"), ("bob", "b"), ("team-lead", "a")] {
        let note =
            shared_store.get_note(&team(), &member(name), NoteKind::Home).await.unwrap().unwrap();
        let note: serde_json::Value = serde_json::from_slice(&note).unwrap();
        assert_eq!(note["host"], host, "{name}");
    }
    sync(&[&a, &b]).await;
    assert_eq!(
        [a.drain_events(), b.drain_events()].concat(),
        [],
        "a synchronized link should report no events"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entry_of_a_remote_member_has_no_pane_and_is_inactive() {
    let (_, a, b) = two_hosts().await;
    let config = b.store.team(&team()).await.unwrap().unwrap();
    let config = Team::read(&config.bytes).unwrap();
    let original_config = a.store.team(&team()).await.unwrap().unwrap();
    let original_config = Team::read(&original_config.bytes).unwrap();
    let (original, mirror) =
        (original_config.member("alice").unwrap(), config.member("alice").unwrap());
    assert_eq!(mirror.tmux_pane_id().as_deref(), Some(""));
    assert_eq!(mirror.is_active(), Some(false));
    assert_eq!(mirror.agent_id().as_deref(), Some("alice@demo"));
    for (mirrored, expected) in [
        (mirror.color(), original.color()),
        (mirror.model(), original.model()),
        (mirror.agent_type(), original.agent_type()),
    ] {
        assert!(mirrored.is_some());
        assert_eq!(mirrored, expected);
    }
    assert_eq!(config.created_at(), original_config.created_at());
    assert_eq!(config.lead().unwrap().name().as_deref(), Some("team-lead"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn activity_is_visible_on_other_hosts() {
    let (_, a, b) = two_hosts().await;
    let seat = b.seat("bob");
    roster::set_activity(&seat, &member("bob"), roster::Activity::Active).await.unwrap();
    sync(&[&b, &a]).await;
    let config = a.store.team(&team()).await.unwrap().unwrap();
    let config = Team::read(&config.bytes).unwrap();
    assert_eq!(config.member("bob").unwrap().is_active(), Some(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_on_one_side_removes_a_member_everywhere() {
    let (shared_store, a, b) = two_hosts().await;
    b.join("carol").await;
    sync(&[&b, &a]).await;
    // Carol leaves the team on her own host.
    roster::leave(&b.seat("carol"), &member("carol")).await.unwrap();
    sync(&[&b, &a]).await;
    let left = pairs(&[("team-lead", ""), ("alice", "tmux"), ("bob", "remote")]);
    assert_eq!(a.roster().await, left);
    assert_eq!(names(shared_store.as_ref()).await.len(), 3);
    // The lead removes alice in the shared store.
    let seat = shared_seat(&shared_store, "team-lead");
    roster::leave(&seat, &member("alice")).await.unwrap();
    sync(&[&a, &b]).await;
    assert_eq!(a.roster().await, pairs(&[("team-lead", ""), ("bob", "remote")]));
    assert_eq!(b.roster().await, pairs(&[("team-lead", "remote"), ("bob", "tmux")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_leads_host_can_remove_a_remote_member() {
    let (shared_store, a, b) = two_hosts().await;
    let remove = |host: &TestHost, name: &str| {
        let path = host.path("teams/demo/config.json");
        let config = std::fs::read(&path).unwrap();
        let config = Team::read(&config).unwrap().without_member(name).into_owned();
        std::fs::write(path, config).unwrap();
    };
    // If a roster entry disappears on a host where the lead does not run, a link restores the entry.
    remove(&b, "alice");
    sync(&[&b, &a]).await;
    assert_eq!(names(shared_store.as_ref()).await.len(), 3);
    assert_eq!(b.roster().await.len(), 3);
    remove(&a, "bob");
    sync(&[&a, &b]).await;
    assert_eq!(names(shared_store.as_ref()).await.len(), 2);
    assert_eq!(b.roster().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_write_does_not_restore_a_member_that_left() {
    let (shared_store, a, b) = two_hosts().await;
    let path = b.path("teams/demo/config.json");
    let before = std::fs::read(&path).unwrap();
    roster::leave(&b.seat("bob"), &member("bob")).await.unwrap();
    sync(&[&b, &a]).await;
    std::fs::write(&path, before).unwrap();
    sync(&[&b, &a]).await;
    assert_eq!(names(shared_store.as_ref()).await, pairs(&[("team-lead", ""), ("alice", "tmux")]));
    assert_eq!(b.roster().await.len(), 2);
    // A later member of the same name is a different member.
    b.join("bob").await;
    sync(&[&b, &a]).await;
    assert_eq!(names(shared_store.as_ref()).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_of_two_members_with_one_name_wins() {
    let (shared_store, a, b) = two_hosts().await;
    a.join("dora").await;
    b.join("dora").await;
    sync(&[&a, &b]).await;
    assert_eq!(names(shared_store.as_ref()).await.len(), 4);
    let events = b.drain_events();
    let trouble =
        |event: &LinkEvent| matches!(event, LinkEvent::Trouble { why } if why.contains("dora"));
    assert!(events.iter().any(trouble), "{events:?}");
    // Mail to dora on host b is not forwarded, because the name belongs to the member on host a.
    b.write(brigade_wire::generation::Generation::New, "bob", "dora", "hers");
    sync(&[&b, &a]).await;
    assert_eq!(b.texts("dora").await, ["hers"], "mail to dora should stay in the inbox on host b");
    assert!(a.texts("dora").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_link_state_removes_no_member() {
    let (shared_store, a, b) = two_hosts().await;
    let before = (a.roster().await, b.roster().await, names(shared_store.as_ref()).await);
    a.notebook.lose();
    b.notebook.lose();
    sync(&[&a, &b]).await;
    assert_eq!((a.roster().await, b.roster().await, names(shared_store.as_ref()).await), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_different_team_of_the_same_name_is_not_changed() {
    let (_, [a, b]) = hosts(["a", "b"]);
    a.lead().await;
    a.sync().await;
    std::thread::sleep(std::time::Duration::from_millis(2));
    b.lead().await;
    let before = b.roster().await;
    let error = b.link().once().await.unwrap_err();
    assert!(error.to_string().contains("different teams with the same name"), "{error}");
    assert_eq!(b.roster().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_the_shared_team_removes_mirrors_but_not_the_leads_files() {
    let (shared_store, a, b) = two_hosts().await;
    shared_store
        .delete_team(&team(), &brigade_core::store::Actor("team-lead".into()))
        .await
        .unwrap();
    assert!(b.link().once().await.is_err());
    assert!(b.store.team(&team()).await.unwrap().is_none());
    assert!(a.link().once().await.is_err());
    assert!(a.store.team(&team()).await.unwrap().is_some());
    assert!(
        shared_store.team(&team()).await.unwrap().is_none(),
        "the team should not be created again"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reserved_entry_is_used_by_the_expected_member_and_not_mirrored_before() {
    let (shared_store, a, mut b) = two_hosts().await;
    b.speaks_for = [member("bob"), member("carol")].into();
    // Add an entry to the shared store for carol, who will start on host b.
    let seat = shared_seat(&shared_store, "team-lead");
    let plan = brigade_testkit::env::member_plan();
    roster::join(&seat, &member("carol"), plan).await.unwrap();
    sync(&[&a, &b]).await;
    assert_eq!(a.roster().await.len(), 4);
    assert_eq!(b.roster().await.len(), 3, "carol's entry should be reserved, not mirrored");
    b.join("carol").await;
    sync(&[&b, &a]).await;
    let carol = |roster: Vec<(String, String)>| roster.into_iter().find(|(n, _)| n == "carol");
    assert_eq!(carol(b.roster().await).unwrap().1, "tmux");
    assert_eq!(carol(a.roster().await).unwrap().1, "remote");
    assert_eq!(carol(names(shared_store.as_ref()).await).unwrap().1, "tmux");
    a.write(brigade_wire::generation::Generation::New, "alice", "carol", "welcome");
    sync(&[&a, &b]).await;
    assert_eq!(b.texts("carol").await, ["welcome"]);
}
