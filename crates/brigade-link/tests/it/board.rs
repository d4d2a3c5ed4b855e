//! One board on several hosts.

use brigade_core::store::Store as _;
use brigade_link::News;
use brigade_testkit::contract::run;
use brigade_testkit::env::team;
use brigade_wire::change::Change;
use brigade_wire::task::{Status, Task, TaskChange};

use super::world::{Host, board, sync, two};

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

/// The bytes of every task of a host.
async fn bytes(host: &Host) -> Vec<Vec<u8>> {
    let tasks = host.store.tasks(&team()).await.unwrap();
    tasks.into_iter().map(|(_, document)| document.bytes).collect()
}

#[test]
fn a_task_is_made_claimed_done_and_deleted_on_all_hosts() {
    run(async {
        let (engine, a, b) = two().await;
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
        assert_eq!(board(engine.as_ref()).await, []);
        // Its number stays taken.
        assert_eq!(a.make_task("two", &[]), 2);
        sync(&[&a, &b]).await;
        assert_eq!(b.board().await, [row(2, "two", "", "pending")]);
    });
}

#[test]
fn a_mirror_that_is_gone_takes_no_task_along() {
    run(async {
        let (engine, a, b) = two().await;
        a.make_task("one", &[]);
        sync(&[&a, &b]).await;
        let link = brigade_core::store::Actor("somebody".into());
        b.store.delete_team(&team(), &link).await.unwrap();
        sync(&[&b, &a, &b]).await;
        let all = [row(1, "one", "", "pending")];
        assert_eq!(board(engine.as_ref()).await, all);
        assert_eq!(a.board().await, all);
        assert_eq!(b.board().await, all);
    });
}

#[test]
fn unknown_fields_and_what_is_nested_go_along() {
    run(async {
        let (_, a, b) = two().await;
        let text = "{\n  \"id\": \"1\",\n  \"subject\": \"s\",\n  \"description\": \"\\ud83d\",\n  \"status\": \"pending\",\n  \"blocks\": [],\n  \"blockedBy\": [],\n  \"odd\": 1.50,\n  \"metadata\": {\"x\": {\"y\": [1]}}\n}";
        std::fs::create_dir_all(a.path("tasks/demo")).unwrap();
        std::fs::write(a.path("tasks/demo/1.json"), text).unwrap();
        sync(&[&a, &b]).await;
        let got = std::fs::read_to_string(b.path("tasks/demo/1.json")).unwrap();
        let without = got.replace(",\"brigadeOrigin\": \"a/1\"", "");
        assert_eq!(without, text);
        assert_eq!(got, std::fs::read_to_string(a.path("tasks/demo/1.json")).unwrap());
    });
}

#[test]
fn of_two_claims_one_counts_and_the_other_is_told() {
    run(async {
        let (engine, a, b) = two().await;
        a.make_task("one", &[]);
        sync(&[&a, &b]).await;
        a.change_task(1, &claim("alice"));
        b.change_task(1, &claim("bob"));
        a.sync().await;
        sync(&[&b, &a]).await;
        let won = [row(1, "one", "alice", "in_progress")];
        assert_eq!(a.board().await, won);
        assert_eq!(b.board().await, won);
        assert_eq!(board(engine.as_ref()).await, won);
        assert_eq!(
            b.texts("bob").await,
            ["Your claim of task 1 did not count: alice was first. It is in_progress."]
        );
        assert!(a.texts("alice").await.is_empty());
        let lost = News::Lost { id: 1, told: Some("bob".into()) };
        assert_eq!(b.said().iter().filter(|news| **news == lost).count(), 1);
    });
}

#[test]
fn numbers_given_twice_are_set_right_with_all_that_name_them() {
    run(async {
        let (_, a, b) = two().await;
        // Neither knows of the other's.
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
        for (task, (_, its, ..)) in bytes(&a).await.iter().zip(&boards) {
            let task = Task::read(task).unwrap();
            let waits: Vec<&str> =
                task.blocked_by().unwrap().iter().map(|number| subject(number)).collect();
            let expected: &[&str] = match its.as_str() {
                "a two" => &["a one"],
                "b two" => &["b one"],
                "b three" => &["b one", "b two"],
                _ => &[],
            };
            assert_eq!(waits, expected, "{its}");
        }
        let told = b.texts("bob").await;
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(
            told.iter().any(|text| text.starts_with("Task 1, which was made here, is number "))
        );
    });
}

#[test]
fn a_task_that_blocks_a_later_one_keeps_its_name_right() {
    run(async {
        let (_, a, b) = two().await;
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
    });
}

#[test]
fn a_link_that_forgot_everything_makes_nothing_twice() {
    run(async {
        let (engine, a, b) = two().await;
        a.make_task("one", &[]);
        b.make_task("two", &[]);
        sync(&[&a, &b]).await;
        b.change_task(1, &claim("bob"));
        sync(&[&b, &a]).await;
        let before = board(engine.as_ref()).await;
        for host in [&a, &b] {
            host.notes.lose();
        }
        sync(&[&a, &b]).await;
        assert_eq!(board(engine.as_ref()).await, before);
        assert_eq!(a.board().await, before);
        assert_eq!(b.board().await, before);
        // One that was deleted meanwhile does not come back.
        let id = "1".parse().unwrap();
        let by = brigade_core::store::Actor("alice".into());
        engine.delete_task(&team(), id, &by).await.unwrap();
        for host in [&a, &b] {
            host.notes.lose();
        }
        sync(&[&a, &b]).await;
        assert_eq!(board(engine.as_ref()).await.len(), 1);
        assert_eq!((a.board().await.len(), b.board().await.len()), (1, 1));
    });
}

#[test]
fn a_task_changed_here_and_deleted_there_is_gone_and_its_changer_told() {
    run(async {
        let (engine, a, b) = two().await;
        a.make_task("one", &[]);
        sync(&[&a, &b]).await;
        b.change_task(1, &claim("bob"));
        let by = brigade_core::store::Actor("alice".into());
        engine.delete_task(&team(), "1".parse().unwrap(), &by).await.unwrap();
        sync(&[&b, &a]).await;
        assert_eq!(b.board().await, []);
        assert_eq!(
            b.texts("bob").await,
            ["Your change to task 1 did not count: the task was deleted."]
        );
    });
}
