//! Who lives where.

use brigade_core::roster;
use brigade_core::store::{Shelf, Store as _};
use brigade_link::News;
use brigade_testkit::contract::run;
use brigade_testkit::env::{member, team};
use brigade_wire::team::Team;

use super::world::{Host, engine, names, sync, two};

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, place)| ((*name).into(), (*place).into())).collect()
}

#[test]
fn a_team_is_made_on_the_other_side_and_everybody_is_on_both() {
    run(async {
        let (engine, a, b) = two().await;
        assert_eq!(
            names(engine.as_ref()).await,
            pairs(&[("team-lead", ""), ("alice", "tmux"), ("bob", "tmux")])
        );
        assert_eq!(
            a.roster().await,
            pairs(&[("team-lead", ""), ("alice", "tmux"), ("bob", "remote")])
        );
        assert_eq!(
            b.roster().await,
            pairs(&[("team-lead", "remote"), ("alice", "remote"), ("bob", "tmux")])
        );
        for (name, host) in [("alice", "a"), ("bob", "b"), ("team-lead", "a")] {
            let note = engine.kept(&team(), &member(name), Shelf::Home).await.unwrap().unwrap();
            let note: serde_json::Value = serde_json::from_slice(&note).unwrap();
            assert_eq!(note["host"], host, "{name}");
        }
        sync(&[&a, &b]).await;
        assert_eq!([a.said(), b.said()].concat(), [], "nothing more to do");
    });
}

#[test]
fn the_entry_of_one_who_lives_elsewhere_names_no_pane_and_hinders_nobody() {
    run(async {
        let (_, a, b) = two().await;
        let config = b.store.team(&team()).await.unwrap().unwrap();
        let config = Team::read(&config.bytes).unwrap();
        let far = a.store.team(&team()).await.unwrap().unwrap();
        let far = Team::read(&far.bytes).unwrap();
        let (there, here) = (far.member("alice").unwrap(), config.member("alice").unwrap());
        assert_eq!(here.tmux_pane_id().as_deref(), Some(""));
        assert_eq!(here.is_active(), Some(false));
        assert_eq!(here.agent_id().as_deref(), Some("alice@demo"));
        for (mine, its) in [
            (here.color(), there.color()),
            (here.model(), there.model()),
            (here.agent_type(), there.agent_type()),
        ] {
            assert!(mine.is_some());
            assert_eq!(mine, its);
        }
        assert_eq!(config.created_at(), far.created_at());
        assert_eq!(config.lead().unwrap().name().as_deref(), Some("team-lead"));
    });
}

#[test]
fn whether_somebody_is_at_work_is_seen_elsewhere() {
    run(async {
        let (_, a, b) = two().await;
        let seat = b.seat("bob");
        roster::set_activity(&seat, &member("bob"), roster::Activity::Active).await.unwrap();
        sync(&[&b, &a]).await;
        let config = a.store.team(&team()).await.unwrap().unwrap();
        let config = Team::read(&config.bytes).unwrap();
        assert_eq!(config.member("bob").unwrap().is_active(), Some(true));
    });
}

#[test]
fn who_leaves_on_one_side_leaves_on_all() {
    run(async {
        let (engine, a, b) = two().await;
        b.join("carol").await;
        sync(&[&b, &a]).await;
        // By itself, where it lives.
        roster::leave(&b.seat("carol"), &member("carol")).await.unwrap();
        sync(&[&b, &a]).await;
        let left = pairs(&[("team-lead", ""), ("alice", "tmux"), ("bob", "remote")]);
        assert_eq!(a.roster().await, left);
        assert_eq!(names(engine.as_ref()).await.len(), 3);
        // By the hand of one who sits at the engine.
        let mut seat = a.seat("team-lead");
        seat.store = std::sync::Arc::clone(&engine);
        roster::leave(&seat, &member("alice")).await.unwrap();
        sync(&[&a, &b]).await;
        assert_eq!(a.roster().await, pairs(&[("team-lead", ""), ("bob", "remote")]));
        assert_eq!(b.roster().await, pairs(&[("team-lead", "remote"), ("bob", "tmux")]));
    });
}

#[test]
fn a_lead_can_take_one_off_who_lives_elsewhere_and_others_cannot() {
    run(async {
        let (engine, a, b) = two().await;
        let gone = |host: &Host, name: &str| {
            let path = host.path("teams/demo/config.json");
            let config = std::fs::read(&path).unwrap();
            let config = Team::read(&config).unwrap().without_member(name).into_owned();
            std::fs::write(path, config).unwrap();
        };
        // On a host where the lead is not, an entry that is lost comes back.
        gone(&b, "alice");
        sync(&[&b, &a]).await;
        assert_eq!(names(engine.as_ref()).await.len(), 3);
        assert_eq!(b.roster().await.len(), 3);
        gone(&a, "bob");
        sync(&[&a, &b]).await;
        assert_eq!(names(engine.as_ref()).await.len(), 2);
        assert_eq!(b.roster().await.len(), 2);
    });
}

#[test]
fn who_has_left_is_not_brought_back_by_a_late_write() {
    run(async {
        let (engine, a, b) = two().await;
        let path = b.path("teams/demo/config.json");
        let before = std::fs::read(&path).unwrap();
        roster::leave(&b.seat("bob"), &member("bob")).await.unwrap();
        sync(&[&b, &a]).await;
        std::fs::write(&path, before).unwrap();
        sync(&[&b, &a]).await;
        assert_eq!(names(engine.as_ref()).await, pairs(&[("team-lead", ""), ("alice", "tmux")]));
        assert_eq!(b.roster().await.len(), 2);
        // One of the same name who comes later is another.
        b.join("bob").await;
        sync(&[&b, &a]).await;
        assert_eq!(names(engine.as_ref()).await.len(), 3);
    });
}

#[test]
fn of_two_of_one_name_the_first_is_known() {
    run(async {
        let (engine, a, b) = two().await;
        a.join("dora").await;
        b.join("dora").await;
        sync(&[&a, &b]).await;
        assert_eq!(names(engine.as_ref()).await.len(), 4);
        let said = b.said();
        let trouble = |news: &News| matches!(news, News::Trouble { why } if why.contains("dora"));
        assert!(said.iter().any(trouble), "{said:?}");
        // Hers is the mail of the one on a.
        b.write(brigade_wire::generation::Generation::New, "bob", "dora", "hers");
        sync(&[&b, &a]).await;
        assert_eq!(b.texts("dora").await, ["hers"], "it stays where it is");
        assert!(a.texts("dora").await.is_empty());
    });
}

#[test]
fn a_link_that_forgot_everything_loses_nobody() {
    run(async {
        let (engine, a, b) = two().await;
        let before = (a.roster().await, b.roster().await, names(engine.as_ref()).await);
        a.notes.lose();
        b.notes.lose();
        sync(&[&a, &b]).await;
        assert_eq!((a.roster().await, b.roster().await, names(engine.as_ref()).await), before);
    });
}

#[test]
fn another_team_of_the_name_is_left_alone() {
    run(async {
        let engine = engine();
        let (a, b) = (Host::new("a", &engine), Host::new("b", &engine));
        a.lead().await;
        a.sync().await;
        std::thread::sleep(std::time::Duration::from_millis(2));
        b.lead().await;
        let before = b.roster().await;
        let error = b.link().once().await.unwrap_err();
        assert!(error.to_string().contains("they are two"), "{error}");
        assert_eq!(b.roster().await, before);
    });
}

#[test]
fn a_team_that_is_gone_from_the_engine_goes_from_the_mirrors_and_not_from_its_lead() {
    run(async {
        let (engine, a, b) = two().await;
        engine.delete_team(&team(), &brigade_core::store::Actor("team-lead".into())).await.unwrap();
        assert!(b.link().once().await.is_err());
        assert!(b.store.team(&team()).await.unwrap().is_none());
        assert!(a.link().once().await.is_err());
        assert!(a.store.team(&team()).await.unwrap().is_some());
        assert!(engine.team(&team()).await.unwrap().is_none(), "it is not made again");
    });
}

#[test]
fn a_place_that_the_lead_kept_is_taken_by_who_comes_and_not_mirrored_before() {
    run(async {
        let (engine, a, mut b) = two().await;
        b.speaks_for = [member("bob"), member("carol")].into();
        // A seat in the engine for one who is to come to b.
        let mut seat = a.seat("team-lead");
        seat.store = std::sync::Arc::clone(&engine);
        let plan = brigade_testkit::env::member_plan();
        roster::join(&seat, &member("carol"), plan).await.unwrap();
        sync(&[&a, &b]).await;
        assert_eq!(a.roster().await.len(), 4);
        assert_eq!(b.roster().await.len(), 3, "its place is kept");
        b.join("carol").await;
        sync(&[&b, &a]).await;
        let carol = |roster: Vec<(String, String)>| roster.into_iter().find(|(n, _)| n == "carol");
        assert_eq!(carol(b.roster().await).unwrap().1, "tmux");
        assert_eq!(carol(a.roster().await).unwrap().1, "remote");
        assert_eq!(carol(names(engine.as_ref()).await).unwrap().1, "tmux");
        a.write(brigade_wire::generation::Generation::New, "alice", "carol", "welcome");
        sync(&[&a, &b]).await;
        assert_eq!(b.texts("carol").await, ["welcome"]);
    });
}
