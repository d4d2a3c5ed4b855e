//! Contract tests for stores: the limits on what a member may add.

use std::sync::Arc;

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::handshake::{self, Answer, HandshakeError, PermissionAsk};
use brigade_core::seat::Seat;
use brigade_core::store::Store;
use brigade_wire::name::TaskId;
use serde_json::{Value, json};

use crate::env::TestEnv;

/// A member cannot fill the board with long tasks. The lead has more room.
pub async fn a_member_cannot_fill_the_board(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let (lead, alice) = (env.seat("team-lead"), env.seat("alice"));
    let description = "x".repeat(board::MAX_TASK_BYTES - 1_000);
    let long = TaskPlan { description, ..TaskPlan::new("long") };
    for _ in 0..32 {
        board::add(&alice, &long).await.unwrap();
    }
    let full =
        "the board is full: its tasks have 8360 kB, and a member may add to them up to 8388 kB";
    assert_eq!(board::add(&alice, &long).await.unwrap_err().to_string(), full);
    let id = board::add(&alice, &TaskPlan::new("short")).await.unwrap();
    let longer = Update { description: Some(long.description.clone()), ..Update::default() };
    assert_eq!(board::update(&alice, id, &longer).await.unwrap_err().to_string(), full);
    board::claim(&alice, id).await.unwrap();
    board::update(&lead, id, &longer).await.unwrap();
    board::add(&lead, &long).await.unwrap();
    for id in 1..=3 {
        board::delete(&lead, TaskId::new(id).unwrap()).await.unwrap();
    }
    board::add(&alice, &long).await.unwrap();
}

/// Requests permission to run a command. Returns the request id.
async fn ask(seat: &Seat) -> Result<String, HandshakeError> {
    let (input, request) = (json!({ "command": "make" }), Value::Null);
    let (tool, tool_use_id, description, cwd) = ("Bash", "t", "to build", "/project");
    let ask =
        PermissionAsk { tool, tool_use_id, description, input: &input, request: &request, cwd };
    Ok(handshake::request_permission(seat, &ask).await?.request_id)
}

/// A member has at most 100 open requests. Answered and withdrawn requests do not count.
pub async fn a_member_has_a_limited_number_of_open_requests(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let (lead, bob) = (env.seat("team-lead"), env.seat("bob"));
    let plan = handshake::submit_plan(&bob, "a plan", None).await.unwrap().request_id;
    let mut asked = Vec::new();
    for _ in 1..100 {
        asked.push(ask(&bob).await.unwrap());
    }
    let full =
        "bob has 100 open requests; it can send no more until team-lead has answered some of them";
    assert_eq!(ask(&bob).await.unwrap_err().to_string(), full);
    let refused = handshake::submit_plan(&bob, "another", None).await.unwrap_err();
    assert_eq!(refused.to_string(), full);
    ask(&env.seat("alice")).await.unwrap();
    handshake::answer_permission(&lead, &asked[0], Answer::Yes).await.unwrap();
    handshake::answer_plan(&lead, &plan, Answer::No("not now")).await.unwrap();
    handshake::withdraw(&bob, |id| id == asked[1]).await.unwrap();
    for _ in 0..3 {
        ask(&bob).await.unwrap();
    }
    assert_eq!(ask(&bob).await.unwrap_err().to_string(), full);
}
