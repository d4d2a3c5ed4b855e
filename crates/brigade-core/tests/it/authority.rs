//! Who may do what, for every role: one table.

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::handshake::{self, Answer};
use brigade_core::mail::{self, Words};
use brigade_core::roster::{self, Activity, Force};
use brigade_core::seat::Seat;
use brigade_testkit::env::{House, member};
use brigade_wire::change::Change;
use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

use brigade_testkit::files::in_memory;

/// What `who` is told when it tries `what`; `"done"` if nobody minds.
async fn attempt(house: &House, who: &str, what: &str) -> String {
    let seat = house.seat(who);
    let outcome = tried(&seat, what).await;
    outcome.map_or_else(|refusal| refusal, |()| "done".to_owned())
}

async fn tried(seat: &Seat, what: &str) -> Result<(), String> {
    let words = Words { text: "hi", summary: None };
    let one = TaskId::new(1).unwrap();
    let bob = member("bob");
    let to_bob = Update { owner: Change::Set(bob.clone()), ..Update::default() };
    let finish = Update { status: Some(Status::Completed), ..Update::default() };
    let describe = Update { description: Some("more".into()), ..Update::default() };
    match what {
        "send" => mail::send(seat, "bob", words).await.map(drop).map_err(text),
        "broadcast" => mail::broadcast(seat, words).await.map(drop).map_err(text),
        "give bob's task to bob" => board::update(seat, one, &to_bob).await.map_err(text),
        "finish bob's task" => board::done(seat, one).await.map_err(text),
        "say bob's task is finished" => board::update(seat, one, &finish).await.map_err(text),
        "describe bob's task" => board::update(seat, one, &describe).await.map_err(text),
        "delete bob's task" => board::delete(seat, one).await.map_err(text),
        "release bob's tasks" => board::release(seat, &bob).await.map(drop).map_err(text),
        "take bob off" => roster::leave(seat, &bob).await.map(drop).map_err(text),
        "say bob is idle" => roster::set_activity(seat, &bob, Activity::Idle).await.map_err(text),
        "delete the team" => roster::delete(seat, Force::Yes).await.map_err(text),
        "ask alice to stop" => {
            handshake::request_shutdown(seat, "alice", None).await.map(drop).map_err(text)
        }
        "submit a plan" => {
            handshake::submit_plan(seat, "a plan", None).await.map(drop).map_err(text)
        }
        "answer a plan" => {
            handshake::answer_plan(seat, "x", Answer::Yes).await.map(drop).map_err(text)
        }
        "answer a permission" => {
            handshake::answer_permission(seat, "x", Answer::Yes).await.map(drop).map_err(text)
        }
        "answer a shutdown" => {
            handshake::answer_shutdown(seat, "x", Answer::Yes).await.map(drop).map_err(text)
        }
        _ => Err(format!("the test does not know how to {what}")),
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Each try on a team of its own, where bob has task 1.
fn check(who: &'static str, what: &'static str, expected: &str) {
    in_memory(async |house| {
        let bob = house.seat("bob");
        let plan = TaskPlan { subject: "work".into(), ..TaskPlan::default() };
        let one = board::add(&bob, &plan).await.unwrap();
        board::claim(&bob, one).await.unwrap();
        assert_eq!(attempt(&house, who, what).await, expected, "{who}: {what}");
    });
}

#[test]
fn everybody_speaks_for_themselves_and_nobody_else_at_all() {
    for (what, who) in [("send", "alice"), ("broadcast", "alice"), ("send", "team-lead")] {
        check(who, what, "done");
    }
    for what in ["send", "broadcast", "submit a plan", "answer a plan", "answer a shutdown"] {
        check("mallory", what, "mallory is not a member of team demo");
    }
}

#[test]
fn a_task_is_moved_by_its_owner_and_the_lead() {
    for what in [
        "finish bob's task",
        "say bob's task is finished",
        "delete bob's task",
        "release bob's tasks",
        "take bob off",
        "say bob is idle",
    ] {
        check("bob", what, "done");
        check("team-lead", what, "done");
    }
    for what in ["give bob's task to bob", "finish bob's task", "delete bob's task"] {
        check("alice", what, "task 1 belongs to bob");
    }
    check("alice", "say bob's task is finished", "task 1 belongs to bob");
    check("alice", "describe bob's task", "done");
    let neither = "only bob itself or the lead may";
    check(
        "alice",
        "release bob's tasks",
        &format!("{neither} give back its tasks, and alice is neither"),
    );
    check(
        "alice",
        "take bob off",
        &format!("{neither} take it off the team, and alice is neither"),
    );
    check(
        "alice",
        "say bob is idle",
        &format!("{neither} say whether it is at work, and alice is neither"),
    );
}

#[test]
fn what_is_the_leads_is_the_leads() {
    for (what, words) in [
        ("delete the team", "delete the team"),
        ("ask alice to stop", "ask a teammate to shut down"),
        ("answer a plan", "answer a plan"),
        ("answer a permission", "answer a permission request"),
    ] {
        let refused = format!("only the lead may {words}, and bob is not the lead of team demo");
        check("bob", what, &refused);
    }
    check("team-lead", "delete the team", "done");
    check("team-lead", "ask alice to stop", "done");
    check("team-lead", "answer a plan", "no plan request \"x\" was sent to team-lead");
    check("team-lead", "submit a plan", "the lead cannot submit a plan; that is for its teammates");
    let refused = "the lead cannot answer a shutdown request; that is for its teammates";
    check("team-lead", "answer a shutdown", refused);
}
