//! Tests which role may perform which operation.

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::handshake::{self, Answer};
use brigade_core::mail::{self, MessageText};
use brigade_core::roster::{self, Activity, SkipChecks};
use brigade_core::seat::Seat;
use brigade_testkit::env::{TestEnv, member};
use brigade_wire::change::Change;
use brigade_wire::name::TaskId;
use brigade_wire::task::Status;

use brigade_testkit::files::in_memory;

/// Returns the error that member `who` gets when it attempts action `what`, or `"done"` if the action succeeds.
async fn attempt(env: &TestEnv, who: &str, what: &str) -> String {
    let seat = env.seat(who);
    let outcome = perform(&seat, what).await;
    outcome.map_or_else(|refusal| refusal, |()| "done".to_owned())
}

async fn perform(seat: &Seat, what: &str) -> Result<(), String> {
    let text_message = MessageText { text: "hi", summary: None };
    let one = TaskId::new(1).unwrap();
    let bob = member("bob");
    let to_bob = Update { owner: Change::Set(bob.clone()), ..Update::default() };
    let finish = Update { status: Some(Status::Completed), ..Update::default() };
    let describe = Update { description: Some("more".into()), ..Update::default() };
    match what {
        "send" => mail::send(seat, "bob", text_message).await.map(drop).map_err(text),
        "broadcast" => mail::broadcast(seat, text_message).await.map(drop).map_err(text),
        "give bob's task to bob" => board::update(seat, one, &to_bob).await.map_err(text),
        "finish bob's task" => board::done(seat, one).await.map_err(text),
        "say bob's task is finished" => board::update(seat, one, &finish).await.map_err(text),
        "describe bob's task" => board::update(seat, one, &describe).await.map_err(text),
        "delete bob's task" => board::delete(seat, one).await.map_err(text),
        "release bob's tasks" => board::release(seat, &bob).await.map(drop).map_err(text),
        "take bob off" => roster::leave(seat, &bob).await.map(drop).map_err(text),
        "say bob is idle" => roster::set_activity(seat, &bob, Activity::Idle).await.map_err(text),
        "delete the team" => roster::delete(seat, SkipChecks::Yes).await.map_err(text),
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

/// Each attempt gets its own team, in which bob has task 1.
fn check(who: &'static str, what: &'static str, expected: &str) {
    in_memory(async |env| {
        let bob = env.seat("bob");
        let plan = TaskPlan { subject: "work".into(), ..TaskPlan::default() };
        let one = board::add(&bob, &plan).await.unwrap();
        board::claim(&bob, one).await.unwrap();
        assert_eq!(attempt(&env, who, what).await, expected, "{who}: {what}");
    });
}

#[test]
fn members_act_for_themselves_and_strangers_not_at_all() {
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
    let neither = "only bob or the lead may";
    check(
        "alice",
        "release bob's tasks",
        &format!("{neither} release its tasks; alice is neither"),
    );
    check("alice", "take bob off", &format!("{neither} remove it from the team; alice is neither"));
    check("alice", "say bob is idle", &format!("{neither} change its activity; alice is neither"));
}

#[test]
fn some_operations_are_for_the_lead_only() {
    for (what, operation) in [
        ("delete the team", "delete the team"),
        ("ask alice to stop", "ask a teammate to shut down"),
        ("answer a plan", "answer a plan"),
        ("answer a permission", "answer a permission request"),
    ] {
        let refused = format!("only the lead may {operation}; bob is not the lead of team demo");
        check("bob", what, &refused);
    }
    check("team-lead", "delete the team", "done");
    check("team-lead", "ask alice to stop", "done");
    check("team-lead", "answer a plan", "no plan request \"x\" for team-lead");
    check("team-lead", "submit a plan", "the lead cannot submit a plan; only teammates can");
    let refused = "the lead cannot answer a shutdown request; only teammates can";
    check("team-lead", "answer a shutdown", refused);
}
