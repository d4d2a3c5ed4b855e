//! Board operations.

use brigade_core::board::{self, BatchTask, Rerun, TaskPlan, Update};
use brigade_core::seat::Seat;
use brigade_core::store::Actor;
use brigade_core::task_exchange;
use brigade_core::wire::inbox::with_message;
use brigade_testkit::env::{TestEnv, member, team};
use brigade_wire::body::Body;
use brigade_wire::change::Change;
use brigade_wire::name::TaskId;
use brigade_wire::protocol::Protocol;
use brigade_wire::task::{Status, Task};

use brigade_testkit::files::in_memory;

fn id(number: u64) -> TaskId {
    TaskId::new(number).unwrap()
}

async fn add(seat: &Seat, subject: &str, after: &[u64]) -> TaskId {
    let blocked_by = after.iter().copied().map(id).collect();
    let plan = TaskPlan { subject: subject.into(), blocked_by, ..TaskPlan::default() };
    board::add(seat, &plan).await.unwrap()
}

/// Returns a task as one line: owner, status, the tasks that it blocks, and the tasks that block it.
async fn line(env: &TestEnv, number: u64) -> String {
    let document = board::show(&env.seat("team-lead"), id(number)).await.unwrap();
    let task = Task::read(&document.bytes).unwrap();
    let owner = task.owner().unwrap_or("-".into()).into_owned();
    let (blocks, after) = (task.blocks().unwrap(), task.blocked_by().unwrap());
    format!("{owner} {} [{}] [{}]", task.status().unwrap(), blocks.join(" "), after.join(" "))
}

fn after(number: u64) -> Update {
    Update { add_blocked_by: vec![id(number)], ..Update::default() }
}

#[test]
fn dependencies_are_written_to_both_tasks() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        add(&lead, "dig", &[]).await;
        add(&lead, "build", &[1]).await;
        add(&lead, "paint", &[]).await;
        board::update(&lead, id(3), &after(2)).await.unwrap();
        board::update(&lead, id(3), &after(2)).await.unwrap();
        let blocks = Update { add_blocks: vec![id(3)], ..Update::default() };
        board::update(&lead, id(1), &blocks).await.unwrap();
        assert_eq!(line(&env, 1).await, "- pending [2 3] []");
        assert_eq!(line(&env, 2).await, "- pending [3] [1]");
        assert_eq!(line(&env, 3).await, "- pending [] [2 1]");
    });
}

/// Tasks of an earlier run counted as new tasks, so that a long file could not be added again.
#[test]
fn tasks_of_an_earlier_run_do_not_count_against_the_limit() {
    in_memory(async |env| {
        let bob = env.seat("bob");
        let task = |number: usize| BatchTask {
            place: format!("line {number}"),
            source: format!("file/{number}"),
            plan: TaskPlan::new(format!("task {number}")),
            ..BatchTask::default()
        };
        let tasks: Vec<BatchTask> = (0..1_001).map(task).collect();
        board::add_all(&bob, &tasks, Rerun::OpenTask).await.unwrap();
        let again = board::add_all(&bob, &tasks, Rerun::OpenTask).await.unwrap();
        assert_eq!((again.added.len(), again.existing.len()), (0, 1_001));
    });
}

#[test]
fn exported_csv_cannot_control_a_terminal() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        add(&lead, "a\u{1b}[2Jb\tc", &[]).await;
        let csv = task_exchange::export_csv(&lead).await.unwrap();
        assert!(csv.contains("a\\u{1b}[2Jb\tc"), "{csv}");
    });
}

/// The dependencies were changed before the change of the owner was refused.
#[test]
fn a_refused_update_changes_no_dependency() {
    in_memory(async |env| {
        let (lead, bob) = (env.seat("team-lead"), env.seat("bob"));
        add(&lead, "dig", &[]).await;
        let plan = TaskPlan::new("build");
        board::add_for(&lead, &plan, &member("alice")).await.unwrap();
        let update = Update { status: Some(Status::Completed), ..after(1) };
        let refused = board::update(&bob, id(2), &update).await.unwrap_err();
        assert_eq!(refused.to_string(), "task 2 belongs to alice");
        assert_eq!(line(&env, 1).await, "- pending [] []");
        assert_eq!(line(&env, 2).await, "alice pending [] []");
    });
}

#[test]
fn a_cycle_is_rejected_and_changes_nothing() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        add(&lead, "dig", &[]).await;
        add(&lead, "build", &[1]).await;
        add(&lead, "paint", &[2]).await;
        for (task, blocker) in [(1, 3), (1, 2), (2, 3)] {
            let error = board::update(&lead, id(task), &after(blocker)).await.unwrap_err();
            let expected = format!(
                "task {task} cannot depend on {blocker}: {blocker} already depends on {task}"
            );
            assert_eq!(error.to_string(), expected);
        }
        assert_eq!(line(&env, 1).await, "- pending [2] []");
        let missing = board::update(&lead, id(1), &after(9)).await.unwrap_err();
        assert_eq!(missing.to_string(), "no task 9");
    });
}

/// Two concurrent updates would together create a cycle; at most one of them may succeed.
#[test]
fn concurrent_updates_cannot_create_a_cycle() {
    in_memory(async |env| {
        for round in 0..50_u64 {
            let lead = env.seat("team-lead");
            let one = add(&lead, "one", &[]).await;
            let two = add(&lead, "two", &[]).await;
            let half = |task: TaskId, blocker: TaskId| {
                let seat = env.seat("team-lead");
                tokio::spawn(async move {
                    board::update(&seat, task, &after(blocker.get())).await.is_ok()
                })
            };
            let (first, second) = (half(one, two), half(two, one));
            let both = first.await.unwrap() && second.await.unwrap();
            assert!(!both, "round {round}");
            let (_, graph) = board::list(&lead).await.unwrap();
            assert!(graph.cycles().is_empty(), "round {round}");
        }
    });
}

#[test]
fn a_failed_claim_says_why() {
    in_memory(async |env| {
        let (lead, alice, bob) = (env.seat("team-lead"), env.seat("alice"), env.seat("bob"));
        add(&lead, "dig", &[]).await;
        add(&lead, "build", &[1]).await;
        let error = |result: Result<(), board::BoardError>| result.unwrap_err().to_string();
        assert_eq!(error(board::claim(&alice, id(2)).await), "task 2 is blocked by 1");
        board::claim(&alice, id(1)).await.unwrap();
        board::claim(&alice, id(1)).await.unwrap();
        assert_eq!(line(&env, 1).await, "alice in_progress [2] []");
        assert_eq!(error(board::claim(&bob, id(1)).await), "task 1 belongs to alice");
        assert_eq!(error(board::done(&bob, id(1)).await), "task 1 belongs to alice");
        board::done(&alice, id(1)).await.unwrap();
        assert_eq!(error(board::claim(&bob, id(1)).await), "task 1 is already completed");
        board::claim(&bob, id(2)).await.unwrap();
        assert_eq!(error(board::claim(&bob, id(7)).await), "no task 7");
        add(&lead, "paint", &[]).await;
        let stranger = env.seat("mallory");
        assert_eq!(
            error(board::claim(&stranger, id(3)).await),
            "mallory is not a member of team demo"
        );
        assert!(env.texts("alice").await.is_empty(), "claiming a task sent a notification");
    });
}

#[test]
fn a_new_owner_is_notified_in_claude_codes_format() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        add(&lead, "dig", &[]).await;
        let give = |name| Update { owner: Change::Set(member(name)), ..Update::default() };
        board::update(&lead, id(1), &give("alice")).await.unwrap();
        board::update(&lead, id(1), &give("alice")).await.unwrap();
        let mail = env.store.inbox(&lead.team, &member("alice")).await.unwrap();
        assert_eq!(mail.len(), 1, "alice did not get exactly one notification");
        with_message(&mail[0].json, |message| {
            let message = message.unwrap();
            assert_eq!(message.from(), "team-lead");
            let Body::Protocol(Protocol::TaskAssignment(assignment)) = message.body() else {
                panic!("{}", message.text());
            };
            assert_eq!((assignment.task_id.as_str(), assignment.subject.as_str()), ("1", "dig"));
            assert_eq!(assignment.assigned_by, "team-lead");
        })
        .unwrap();
        let unknown = board::update(&lead, id(1), &give("carol")).await.unwrap_err();
        assert_eq!(unknown.to_string(), "cannot assign the task: no member named \"carol\"");
        assert_eq!(line(&env, 1).await, "alice pending [] []");
    });
}

#[test]
fn open_tasks_of_a_member_that_left_are_released() {
    in_memory(async |env| {
        let (lead, alice) = (env.seat("team-lead"), env.seat("alice"));
        for subject in ["dig", "build", "paint"] {
            add(&lead, subject, &[]).await;
        }
        for number in 1..=2 {
            board::claim(&alice, id(number)).await.unwrap();
        }
        board::done(&alice, id(1)).await.unwrap();
        assert_eq!(board::release(&lead, &member("alice")).await.unwrap(), [id(2)]);
        assert_eq!(line(&env, 1).await, "alice completed [] []");
        assert_eq!(line(&env, 2).await, "- pending [] []");
    });
}

#[test]
fn deleting_a_task_removes_it_from_dependencies() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        add(&lead, "dig", &[]).await;
        add(&lead, "build", &[1]).await;
        add(&lead, "paint", &[1, 2]).await;
        board::delete(&lead, id(1)).await.unwrap();
        assert_eq!(line(&env, 2).await, "- pending [3] []");
        assert_eq!(line(&env, 3).await, "- pending [] [2]");
    });
}

#[test]
fn an_update_changes_only_the_given_fields() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        let plan = TaskPlan {
            subject: "dig".into(),
            description: "a hole".into(),
            active_form: Some("digging".into()),
            metadata: vec![("depth".into(), 3.into())],
            ..TaskPlan::default()
        };
        board::add(&lead, &plan).await.unwrap();
        let update = Update {
            subject: Some("dig deep".into()),
            status: Some(Status::InProgress),
            active_form: Change::Clear,
            metadata: vec![("width".into(), Some(2.into())), ("depth".into(), None)],
            ..Update::default()
        };
        board::update(&lead, id(1), &update).await.unwrap();
        let document = board::show(&lead, id(1)).await.unwrap();
        let compact: serde_json::Value = serde_json::from_slice(&document.bytes).unwrap();
        let expected = r#"{"blockedBy":[],"blocks":[],"description":"a hole","id":"1","metadata":{"width":2},"status":"in_progress","subject":"dig deep"}"#;
        assert_eq!(compact.to_string(), expected);
        let blank = Update { subject: Some(" ".into()), ..Update::default() };
        assert!(board::update(&lead, id(1), &blank).await.is_err());
    });
}

/// Only current members may change the board.
#[test]
fn strangers_cannot_change_the_board() {
    in_memory(async |env| {
        add(&env.seat("alice"), "dig", &[]).await;
        let before = line(&env, 1).await;
        let mallory = env.seat("mallory");
        let plan = TaskPlan { subject: "mine".into(), ..TaskPlan::default() };
        let denied = "mallory is not a member of team demo";
        assert_eq!(board::add(&mallory, &plan).await.unwrap_err().to_string(), denied);
        let update = Update { subject: Some("mine".into()), ..after(1) };
        let refused = board::update(&mallory, id(1), &update).await;
        assert_eq!(refused.unwrap_err().to_string(), denied);
        assert_eq!(board::done(&mallory, id(1)).await.unwrap_err().to_string(), denied);
        assert_eq!(board::delete(&mallory, id(1)).await.unwrap_err().to_string(), denied);
        assert_eq!(line(&env, 1).await, before);
    });
}

#[test]
fn the_size_limit_applies_to_new_and_changed_tasks() {
    in_memory(async |env| {
        let alice = env.seat("alice");
        let share = |parts: usize| "x".repeat(board::MAX_TASK_BYTES / parts);
        let plan = |description: &str| TaskPlan {
            subject: "dig".into(),
            description: description.into(),
            ..TaskPlan::default()
        };
        let refused = board::add(&alice, &plan(&share(1))).await.unwrap_err().to_string();
        assert_eq!(refused, "the task is 262147 bytes long; the limit is 262144");
        board::add(&alice, &plan(&share(2))).await.unwrap();
        let data = |key: &str| Update {
            metadata: vec![(key.into(), Some(share(3).into()))],
            ..Update::default()
        };
        board::update(&alice, id(1), &data("a")).await.unwrap();
        let refused = board::update(&alice, id(1), &data("b")).await.unwrap_err().to_string();
        assert!(refused.starts_with("the task is "), "{refused}");
        // A task just below the size limit still fits into the notification to its new owner.
        let give = Update { owner: Change::Set(member("bob")), ..Update::default() };
        board::update(&alice, id(1), &give).await.unwrap();
        assert_eq!(env.texts("bob").await.len(), 1);
    });
}

/// Adds tasks through the store, which has no limit.
async fn fill_board(env: &TestEnv, count: usize) {
    let by = Actor("team-lead".into());
    let write = |id: TaskId| {
        format!(r#"{{"id":"{id}","subject":"s","description":"","status":"pending","blocks":[],"blockedBy":[]}}"#)
            .into_bytes()
    };
    for _ in 0..count {
        env.store.create_task(&team(), &write, &by).await.unwrap();
    }
}

#[test]
fn the_lead_can_add_more_tasks_than_a_member() {
    in_memory(async |env| {
        let (lead, alice) = (env.seat("team-lead"), env.seat("alice"));
        fill_board(&env, 1_999).await;
        add(&alice, "the last one", &[]).await;
        let refused = board::add(&alice, &TaskPlan::new("one more")).await.unwrap_err();
        let full = "the board is full: it has 2000 tasks, and a member may add tasks up to 2000";
        assert_eq!(refused.to_string(), full);
        add(&lead, "the lead's", &[]).await;
        board::delete(&lead, id(1)).await.unwrap();
        board::delete(&lead, id(2)).await.unwrap();
        add(&alice, "there is room again", &[]).await;
    });
}

/// The numbers of dependencies take room on the board, too.
#[test]
fn a_task_with_many_dependencies_is_not_small() {
    in_memory(async |env| {
        let (lead, alice) = (env.seat("team-lead"), env.seat("alice"));
        fill_board(&env, 300).await;
        let description = "x".repeat(board::MAX_TASK_BYTES - 1_000);
        for _ in 0..32 {
            let long = TaskPlan { description: description.clone(), ..TaskPlan::new("long") };
            board::add(&lead, &long).await.unwrap();
        }
        let after =
            |count| TaskPlan { blocked_by: (1..=count).map(id).collect(), ..TaskPlan::new("last") };
        board::add(&alice, &after(100)).await.unwrap();
        let refused = board::add(&alice, &after(300)).await.unwrap_err().to_string();
        assert!(refused.starts_with("the board is full"), "{refused}");
        let more = Update { add_blocked_by: (101..=300).map(id).collect(), ..Update::default() };
        let refused = board::update(&alice, id(333), &more).await.unwrap_err().to_string();
        assert!(refused.starts_with("the board is full"), "{refused}");
    });
}

/// A process died after it had assigned the task, before it sent the message about it.
#[test]
fn an_owner_that_was_not_told_is_told_once() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        let (told, untold) = (add(&lead, "one", &[]).await, add(&lead, "two", &[]).await);
        let owner = Update { owner: Change::Set(member("bob")), ..Update::default() };
        board::update(&lead, told, &owner).await.unwrap();
        let bob = member("bob");
        assert!(!board::notify_owner_once(&lead, told, &bob).await.unwrap());
        assert!(board::notify_owner_once(&lead, untold, &bob).await.unwrap());
        assert!(!board::notify_owner_once(&lead, untold, &bob).await.unwrap());
        assert_eq!(env.texts("bob").await.len(), 2);
    });
}
