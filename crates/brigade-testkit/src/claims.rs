//! Contract tests for stores: the task board.

use std::collections::HashSet;
use std::sync::Arc;

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::roster;
use brigade_core::store::{BoardSize, Store, StoreError};
use brigade_wire::name::TaskId;

use crate::env::{TestEnv, actor, member, member_plan, team};

/// A store does not assign the number of a deleted task to another task.
pub async fn task_numbers_are_never_reused(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let lead = env.seat("team-lead");
    let mut numbers = Vec::new();
    for round in 0..5 {
        let plan = TaskPlan { subject: format!("task {round}"), ..TaskPlan::default() };
        let id = board::add(&lead, &plan).await.unwrap();
        numbers.push(id.get());
        if round % 2 == 0 {
            board::delete(&lead, id).await.unwrap();
            assert!(env.store.task(&team(), id).await.unwrap().is_none());
            let repeated = board::delete(&lead, id).await.unwrap_err();
            assert_eq!(repeated.to_string(), format!("no task {id}"));
        }
    }
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let left: Vec<u64> =
        env.store.tasks(&team()).await.unwrap().iter().map(|(id, _)| id.get()).collect();
    assert_eq!(left, [2, 4]);
}

/// A board has a size, which counts neither deleted tasks nor old versions of tasks.
pub async fn the_size_of_a_board_is_that_of_its_tasks(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let (lead, alice) = (env.seat("team-lead"), env.seat("alice"));
    assert_eq!(env.store.board_size(&team()).await.unwrap(), BoardSize::default());
    for round in 0..4 {
        let plan = TaskPlan { subject: format!("task {round}"), ..TaskPlan::default() };
        let id = board::add(&alice, &plan).await.unwrap();
        let longer = Update { description: Some("x".repeat(5_000)), ..Update::default() };
        match round {
            0 => board::update(&lead, id, &longer).await.unwrap(),
            1 => board::delete(&lead, id).await.unwrap(),
            _ => {}
        }
    }
    let tasks = env.store.tasks(&team()).await.unwrap();
    let size = BoardSize::total(tasks.iter().map(|(_, document)| document.bytes.len()));
    assert_eq!((size.tasks, size.bytes > 5_000), (3, true));
    assert_eq!(env.store.board_size(&team()).await.unwrap(), size);
    let estimated = env.store.estimated_task_count(&team()).await.unwrap();
    assert!((3..=4).contains(&estimated), "{estimated}");
}

/// A task is replaced only if the caller has the task's latest revision.
pub async fn a_task_is_replaced_only_at_its_revision(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let plan = TaskPlan { subject: "paint".into(), ..TaskPlan::default() };
    let id = board::add(&env.seat("team-lead"), &plan).await.unwrap();
    let store = &env.store;
    let before = store.task(&team(), id).await.unwrap().unwrap();
    let text = String::from_utf8(before.bytes.clone()).unwrap();
    let (red, blue) =
        (text.replace("paint", "paint it red"), text.replace("paint", "paint it blue"));
    let at = before.revision;
    store.replace_task(&team(), id, red.as_bytes(), at, &actor()).await.unwrap();
    let late = store.replace_task(&team(), id, blue.as_bytes(), at, &actor()).await;
    assert!(matches!(late, Err(StoreError::Conflict)), "{late:?}");
    assert_eq!(store.task(&team(), id).await.unwrap().unwrap().bytes, red.as_bytes());
    let absent = TaskId::new(99).unwrap();
    let absent = store.replace_task(&team(), absent, red.as_bytes(), at, &actor()).await;
    assert!(matches!(absent, Err(StoreError::NoTask { .. })), "{absent:?}");
}

/// Tasks that are created at the same time get different numbers.
pub async fn concurrent_tasks_get_different_numbers(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let mut adding = Vec::new();
    for worker in 0..8 {
        let seat = env.seat("team-lead");
        adding.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for number in 0..10 {
                let plan =
                    TaskPlan { subject: format!("{worker}-{number}"), ..TaskPlan::default() };
                ids.push(board::add(&seat, &plan).await.unwrap().get());
            }
            ids
        }));
    }
    let mut ids = HashSet::new();
    for task in adding {
        ids.extend(task.await.unwrap());
    }
    assert_eq!(ids, (1..=80).collect());
    assert_eq!(env.store.tasks(&team()).await.unwrap().len(), 80);
}

/// If several members claim the same task, exactly one succeeds.
pub async fn a_task_has_one_claimer(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let lead = env.seat("team-lead");
    let names: Vec<String> = (0..8).map(|number| format!("worker-{number}")).collect();
    for name in &names {
        roster::join(&lead, &member(name), member_plan()).await.unwrap();
    }
    for number in 0..20 {
        let plan = TaskPlan { subject: format!("task {number}"), ..TaskPlan::default() };
        board::add(&lead, &plan).await.unwrap();
    }
    let mut claiming = Vec::new();
    for name in names {
        let seat = env.seat(&name);
        claiming.push(tokio::spawn(async move {
            let mut won = Vec::new();
            for number in 1..=20 {
                let id = TaskId::new(number).unwrap();
                match board::claim(&seat, id).await {
                    Ok(()) => won.push(number),
                    Err(board::BoardError::Taken { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            won
        }));
    }
    let mut won = Vec::new();
    for task in claiming {
        won.extend(task.await.unwrap());
    }
    won.sort_unstable();
    assert_eq!(won, (1..=20).collect::<Vec<u64>>());
}
