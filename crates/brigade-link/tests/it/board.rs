//! Tests of one task board on several hosts.

use brigade_core::store::{Actor, BoardStore, Store, TeamStore};
use brigade_link::LinkEvent;
use brigade_testkit::env::team;
use brigade_wire::change::Change;
use brigade_wire::task::{Status, Task, TaskChange};

use super::world::{TestHost, board, sync, two_hosts};

fn claim(owner: &str) -> TaskChange<'_> {
    let status = Some(Status::InProgress);
    TaskChange { owner: Change::Set(owner), status, ..TaskChange::default() }
}

fn done() -> TaskChange<'static> {
    TaskChange { status: Some(Status::Completed), ..TaskChange::default() }
}

fn row(id: u64, subject: &str, owner: &str, status: &str) -> (u64, String, String, String) {
    (id, subject.into(), owner.into(), status.into())
}

/// Returns the bytes of every task on a host.
async fn bytes(host: &TestHost) -> Vec<Vec<u8>> {
    let tasks = host.store.tasks(&team()).await.unwrap();
    tasks.into_iter().map(|(_, document)| document.bytes).collect()
}

/// Checks that every host and the shared store have this board.
async fn assert_boards(
    shared_store: &dyn Store,
    hosts: &[&TestHost],
    expected: &[(u64, String, String, String)],
) {
    assert_eq!(board(shared_store).await, expected);
    for host in hosts {
        assert_eq!(host.board().await, expected, "{}", host.name);
    }
}

async fn delete_shared(shared_store: &dyn Store, id: &str) {
    let by = Actor("alice".into());
    shared_store.delete_task(&team(), id.parse().unwrap(), &by).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn task_changes_are_visible_on_all_hosts() {
    let (shared_store, a, b) = two_hosts().await;
    let one = a.make_task("one", &[]);
    sync(&[&a, &b]).await;
    b.change_task(one, &claim("bob"));
    sync(&[&b, &a]).await;
    assert_eq!(a.board().await, [row(1, "one", "bob", "in_progress")]);
    b.change_task(one, &done());
    sync(&[&b, &a]).await;
    assert_eq!(a.board().await, [row(1, "one", "bob", "completed")]);
    assert_eq!(bytes(&a).await, bytes(&b).await);
    a.delete_task(one);
    sync(&[&a, &b]).await;
    assert_eq!(b.board().await, []);
    assert_eq!(board(shared_store.as_ref()).await, []);
    // The number of the deleted task is not reused.
    assert_eq!(a.make_task("two", &[]), 2);
    sync(&[&a, &b]).await;
    assert_eq!(b.board().await, [row(2, "two", "", "pending")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_a_mirror_deletes_no_task() {
    let (shared_store, a, b) = two_hosts().await;
    a.make_task("one", &[]);
    sync(&[&a, &b]).await;
    let link = Actor("alice".into());
    b.store.delete_team(&team(), &link).await.unwrap();
    sync(&[&b, &a, &b]).await;
    assert_boards(&*shared_store, &[&a, &b], &[row(1, "one", "", "pending")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_and_nested_fields_are_preserved() {
    let (_, a, b) = two_hosts().await;
    let text = "{\n  \"id\": \"1\",\n  \"subject\": \"s\",\n  \"description\": \"\\ud83d\",\n  \"status\": \"pending\",\n  \"blocks\": [],\n  \"blockedBy\": [],\n  \"odd\": 1.50,\n  \"metadata\": {\"x\": {\"y\": [1]}}\n}";
    std::fs::create_dir_all(a.path("tasks/demo")).unwrap();
    std::fs::write(a.path("tasks/demo/1.json"), text).unwrap();
    sync(&[&a, &b]).await;
    let got = std::fs::read_to_string(b.path("tasks/demo/1.json")).unwrap();
    let without = got.replace(",\"brigadeOrigin\": \"a/1\"", "");
    assert_eq!(without, text);
    assert_eq!(got, std::fs::read_to_string(a.path("tasks/demo/1.json")).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_of_two_claims_wins_and_the_other_member_is_informed() {
    let (shared_store, a, b) = two_hosts().await;
    a.make_task("one", &[]);
    sync(&[&a, &b]).await;
    a.change_task(1, &claim("alice"));
    b.change_task(1, &claim("bob"));
    a.sync().await;
    sync(&[&b, &a]).await;
    let won = [row(1, "one", "alice", "in_progress")];
    assert_boards(&*shared_store, &[&a, &b], &won).await;
    assert_eq!(
        b.texts("bob").await,
        ["Your claim of task 1 was rejected: alice claimed it first. It is in_progress."]
    );
    assert!(a.texts("alice").await.is_empty());
    let lost = LinkEvent::Lost { id: 1, told: Some("bob".into()) };
    assert_eq!(b.drain_events().iter().filter(|event| **event == lost).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_numbers_are_resolved_with_all_references() {
    let (_, a, b) = two_hosts().await;
    // Neither host knows the tasks on the other host yet.
    a.make_task("a one", &[]);
    a.make_task("a two", &[1]);
    b.make_task("b one", &[]);
    b.make_task("b two", &[1]);
    b.make_task("b three", &[1, 2]);
    sync(&[&a, &b]).await;
    assert_eq!(bytes(&a).await, bytes(&b).await);
    let boards = a.board().await;
    let numbers: Vec<u64> = boards.iter().map(|(id, ..)| *id).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let subject = |number: &str| -> &str {
        let found = boards.iter().find(|(id, ..)| id.to_string() == number);
        &found.unwrap().1
    };
    for (task, (_, name, ..)) in bytes(&a).await.iter().zip(&boards) {
        let task = Task::read(task).unwrap();
        let blockers: Vec<&str> =
            task.blocked_by().unwrap().iter().map(|number| subject(number)).collect();
        let expected: &[&str] = match name.as_str() {
            "a two" => &["a one"],
            "b two" => &["b one"],
            "b three" => &["b one", "b two"],
            _ => &[],
        };
        assert_eq!(blockers, expected, "{name}");
    }
    let notices = b.texts("bob").await;
    assert_eq!(notices.len(), 3, "{notices:?}");
    assert!(
        notices.iter().any(|text| text.starts_with("Task 1, created on this host, is now task "))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn references_to_later_tasks_are_renumbered() {
    let (_, a, b) = two_hosts().await;
    a.make_task("a one", &[]);
    b.make_task("b one", &[]);
    b.make_task("b two", &[1]);
    let change = TaskChange { blocks: Some(vec!["2".into()]), ..TaskChange::default() };
    b.change_task(1, &change);
    sync(&[&a, &b]).await;
    let task = std::fs::read(a.path("tasks/demo/2.json")).unwrap();
    let task = Task::read(&task).unwrap();
    assert_eq!(task.subject().as_deref(), Some("b one"));
    assert_eq!(task.blocks().unwrap(), ["3"]);
    assert_eq!(bytes(&a).await, bytes(&b).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_link_state_duplicates_no_task() {
    let (shared_store, a, b) = two_hosts().await;
    a.make_task("one", &[]);
    b.make_task("two", &[]);
    sync(&[&a, &b]).await;
    b.change_task(1, &claim("bob"));
    sync(&[&b, &a]).await;
    let before = board(shared_store.as_ref()).await;
    for host in [&a, &b] {
        host.notebook.lose();
    }
    sync(&[&a, &b]).await;
    assert_boards(&*shared_store, &[&a, &b], &before).await;
    // A task that was deleted meanwhile does not come back.
    delete_shared(&*shared_store, "1").await;
    for host in [&a, &b] {
        host.notebook.lose();
    }
    sync(&[&a, &b]).await;
    assert_eq!(board(shared_store.as_ref()).await.len(), 1);
    assert_eq!((a.board().await.len(), b.board().await.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locally_changed_task_deleted_remotely_is_removed_and_the_author_informed() {
    let (shared_store, a, b) = two_hosts().await;
    a.make_task("one", &[]);
    sync(&[&a, &b]).await;
    b.change_task(1, &claim("bob"));
    delete_shared(&*shared_store, "1").await;
    sync(&[&b, &a]).await;
    assert_eq!(b.board().await, []);
    assert_eq!(b.texts("bob").await, ["Your change to task 1 was rejected: the task was deleted."]);
}
