//! Roster operations.

use brigade_core::board::{self, TaskPlan};
use brigade_core::revive::revive;
use brigade_core::roster::{self, Activity, Left, RosterError, SkipChecks};
use brigade_core::store::{Actor, NoteKind};
use brigade_testkit::env::{member, member_plan, team};
use brigade_wire::color::Color;
use brigade_wire::member::MemberChange;
use brigade_wire::team::Team;
use serde_json::Value;

use brigade_testkit::files::in_memory;

#[test]
fn colors_follow_claude_codes_order_and_are_reused() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        let mut given = Vec::new();
        for number in 0..8 {
            let name = member(&format!("worker-{number}"));
            given.push(roster::join(&lead, &name, member_plan()).await.unwrap());
        }
        // Alice and bob have the first two colors.
        let expected: Vec<Color> = (2..8).map(Color::nth).chain([8, 9].map(Color::nth)).collect();
        assert_eq!(given, expected);
        roster::leave(&lead, &member("bob")).await.unwrap();
        let carol = roster::join(&lead, &member("carol"), member_plan()).await.unwrap();
        assert_eq!(carol, Color::nth(1), "carol did not get bob's color");
    });
}

#[test]
fn names_that_would_share_an_inbox_are_refused() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        for name in ["alice", "ALICE", "Team-Lead"] {
            assert!(roster::join(&lead, &member(name), member_plan()).await.is_err(), "{name}");
        }
    });
}

#[test]
fn the_lead_cannot_leave_and_leaving_twice_is_harmless() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        let error = roster::leave(&lead, &member("team-lead")).await.unwrap_err();
        assert_eq!(error.to_string(), "the lead cannot leave; delete the team instead");
        let plan = TaskPlan { subject: "dig".into(), ..TaskPlan::default() };
        let dig = board::add(&lead, &plan).await.unwrap();
        board::claim(&env.seat("bob"), dig).await.unwrap();
        let left = roster::leave(&lead, &member("bob")).await.unwrap();
        assert_eq!(left, Left { was_there: true, released: vec![dig] });
        let again = roster::leave(&lead, &member("bob")).await.unwrap();
        assert_eq!(again, Left { was_there: false, released: Vec::new() });
    });
}

#[test]
fn a_team_with_active_members_is_not_deleted() {
    in_memory(async |env| {
        let (lead, bob) = (env.seat("team-lead"), member("bob"));
        roster::set_activity(&lead, &bob, Activity::Active).await.unwrap();
        let error = roster::delete(&lead, SkipChecks::No).await.unwrap_err();
        assert_eq!(error.to_string(), "team demo still has active members: bob");
        roster::set_activity(&lead, &bob, Activity::Idle).await.unwrap();
        roster::delete(&lead, SkipChecks::No).await.unwrap();
        assert!(env.store.team(&team()).await.unwrap().is_none());
    });
}

#[test]
fn a_change_of_a_member_keeps_the_fields_that_it_does_not_concern() {
    in_memory(async |env| {
        let (lead, bob) = (env.seat("team-lead"), member("bob"));
        let entry = async |change: MemberChange<'_>| {
            roster::change_member(&lead, &bob, &change).await.unwrap();
            let config = env.store.team(&team()).await.unwrap().unwrap();
            let roster: Value = serde_json::from_slice(&config.bytes).unwrap();
            roster["members"]
                .as_array()
                .unwrap()
                .iter()
                .find(|m| m["name"] == "bob")
                .cloned()
                .unwrap()
        };
        let mut before = entry(MemberChange::default()).await;
        let (model, cwd) = (Some("gpt"), Some("/worktree"));
        let after = entry(MemberChange { model, cwd, ..MemberChange::default() }).await;
        before["model"] = "gpt".into();
        before["cwd"] = "/worktree".into();
        assert_eq!(after, before);
        let other = roster::change_member(&env.seat("alice"), &bob, &MemberChange::default()).await;
        assert!(matches!(other, Err(RosterError::Denied(_))), "{other:?}");
    });
}

/// If many members join at the same time, all of them are on the roster.
#[test]
fn concurrent_joins_are_all_kept() {
    in_memory(async |env| {
        let mut joining = Vec::new();
        for number in 0..12 {
            let seat = env.seat("team-lead");
            joining.push(tokio::spawn(async move {
                let name = member(&format!("worker-{number}"));
                roster::join(&seat, &name, member_plan()).await.unwrap();
            }));
        }
        for task in joining {
            task.await.unwrap();
        }
        let config = env.store.team(&team()).await.unwrap().unwrap();
        assert_eq!(Team::read(&config.bytes).unwrap().members().len(), 15);
    });
}

#[test]
fn a_team_has_at_most_a_thousand_members() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        let config = env.store.team(&team()).await.unwrap().unwrap();
        let mut roster: Value = serde_json::from_slice(&config.bytes).unwrap();
        let members = roster["members"].as_array_mut().unwrap();
        for number in members.len()..1_000 {
            let mut another = members[1].clone();
            another["name"] = format!("worker-{number}").into();
            members.push(another);
        }
        let (roster, by) = (roster.to_string(), Actor("team-lead".into()));
        env.store.replace_team(&team(), roster.as_bytes(), config.revision, &by).await.unwrap();
        let refused = roster::join(&lead, &member("carol"), member_plan()).await.unwrap_err();
        let full = "team demo has 1000 members, and a team can have 1000";
        assert_eq!(refused.to_string(), full);
        let taken = roster::join(&lead, &member("bob"), member_plan()).await.unwrap_err();
        assert!(matches!(taken, RosterError::Name(_)), "{taken}");
        roster::leave(&lead, &member("bob")).await.unwrap();
        roster::join(&lead, &member("carol"), member_plan()).await.unwrap();
    });
}

/// If the list of unread messages counted as empty, the messages would be lost.
#[test]
fn an_unreadable_list_of_messages_to_restore_is_an_error() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        roster::delete(&lead, SkipChecks::Yes).await.unwrap();
        let torn = Some(&b"[{"[..]);
        lead.store.put_note(&lead.team, &lead.name, NoteKind::Revival, torn).await.unwrap();
        let error = revive(&lead).await.unwrap_err();
        assert!(error.to_string().contains("still to be restored"), "{error}");
        assert!(lead.find_config().await.unwrap().is_none());
    });
}
