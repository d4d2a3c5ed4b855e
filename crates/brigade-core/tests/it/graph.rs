//! The dependency graph.

use std::collections::BTreeSet;

use brigade_core::graph::{Graph, TaskState};
use brigade_wire::name::TaskId;
use brigade_wire::task::Task;
use proptest::prelude::*;

/// Parses a board with one task per line: `NUMBER STATUS [OWNER] [BLOCKER…]`. Status `p` means pending, `i` in
/// progress, anything else completed.
fn graph(board: &str) -> Graph {
    let texts: Vec<(TaskId, String)> = board
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let number: u64 = words.next().unwrap().parse().unwrap();
            let status = match words.next().unwrap() {
                "p" => "pending",
                "i" => "in_progress",
                _ => "completed",
            };
            let mut after = Vec::new();
            let mut owner = String::new();
            for word in words {
                if word.parse::<u64>().is_ok() {
                    after.push(format!("\"{word}\""));
                } else {
                    owner = format!(",\"owner\":\"{word}\"");
                }
            }
            let after = after.join(",");
            let text = format!(
                r#"{{"id":"{number}","subject":"s","description":"d","status":"{status}","blocks":[],"blockedBy":[{after}]{owner}}}"#
            );
            (TaskId::new(number).unwrap(), text)
        })
        .collect();
    let tasks: Vec<(TaskId, Task<'_>)> =
        texts.iter().map(|(id, text)| (*id, Task::read(text.as_bytes()).unwrap())).collect();
    Graph::from_tasks(tasks.iter().map(|(id, task)| (*id, task)))
}

fn numbers(ids: Vec<TaskId>) -> Vec<u64> {
    ids.into_iter().map(TaskId::get).collect()
}

fn check(board: &str, states: &str, path: &[u64]) {
    let graph = graph(board);
    let states_found: Vec<&str> = graph
        .nodes()
        .map(|(id, _)| match graph.state(id).unwrap() {
            TaskState::Blocked => "blocked",
            TaskState::Ready => "ready",
            TaskState::Taken => "taken",
            TaskState::Done => "done",
        })
        .collect();
    assert_eq!(states_found.join(" "), states, "{board}");
    assert_eq!(numbers(graph.critical_path()), path, "{board}");
}

#[test]
fn states_and_the_critical_path() {
    check("", "", &[]);
    check("1 p", "ready", &[1]);
    check("1 p alice", "taken", &[1]);
    check("1 i alice", "taken", &[1]);
    check("1 c\n2 p 1", "done ready", &[2]);
    check("1 p\n2 p 1\n3 p 2\n4 p", "ready blocked blocked ready", &[1, 2, 3]);
    check("1 p\n2 p\n3 p 1 2", "ready ready blocked", &[1, 3]);
    // A dependency on a missing task is ignored, as in Claude Code.
    check("2 p 1", "ready", &[2]);
    // Completed tasks are not part of the critical path.
    check("1 c\n2 c 1\n3 p 2\n4 p\n5 p 4", "done done ready ready blocked", &[4, 5]);
    // If another program claims a blocked task, the task still counts as blocked.
    check("1 p\n2 i bob 1", "ready blocked", &[1, 2]);
}

#[test]
fn cycles_by_other_programs_are_reported_and_do_not_hang() {
    let graph = graph("1 p 2\n2 p 1\n3 p 2\n4 p");
    let circles: Vec<Vec<u64>> = graph.cycles().into_iter().map(numbers).collect();
    assert_eq!(circles, [[1, 2]], "task 3 depends on the cycle but is not in it");
    assert_eq!(numbers(graph.topological_order()), [4, 1, 2, 3]);
    assert_eq!(numbers(graph.critical_path()), [4]);
}

#[test]
fn cycles_consist_of_unfinished_tasks() {
    let check = |board: &str, found: &[&[u64]]| {
        let circles: Vec<Vec<u64>> = graph(board).cycles().into_iter().map(numbers).collect();
        assert_eq!(circles, found, "{board}");
    };
    check("1 p 3\n2 p 1\n3 c 2", &[]);
    check("1 p 3\n2 p 1\n3 p 2", &[&[1, 3, 2]]);
    // Tasks between, before or after cycles are not part of any cycle.
    check("1 p 2\n2 p 1\n3 p 2\n4 p 5 3\n5 p 4\n6 p 4\n7 p\n8 p 7 1", &[&[1, 2], &[4, 5]]);
}

proptest! {
    /// On any board without cycles, the order lists each task after its dependencies, and the critical path is a
    /// chain of unfinished tasks in which each task depends on the previous one.
    #[test]
    fn order_and_path_respect_the_dependencies(edges in proptest::collection::vec((1_u64..12, 1_u64..12), 0..30)) {
        let lines: Vec<String> = (1..12_u64)
            .map(|id| {
                let after: BTreeSet<String> = edges
                    .iter()
                    .filter(|&&(a, b)| a.max(b) == id && a != b)
                    .map(|&(a, b)| a.min(b).to_string())
                    .collect();
                let after: Vec<String> = after.into_iter().collect();
                format!("{id} {} {}", if id % 4 == 0 { "c" } else { "p" }, after.join(" "))
            })
            .collect();
        let graph = graph(&lines.join("\n"));
        prop_assert!(graph.cycles().is_empty());
        let order = graph.topological_order();
        let place = |id: TaskId| order.iter().position(|&other| other == id).unwrap();
        for (id, node) in graph.nodes() {
            for &blocker in &node.after {
                prop_assert!(place(blocker) < place(id));
            }
        }
        let path = graph.critical_path();
        for pair in path.windows(2) {
            prop_assert!(graph.waits_for(pair[1]).contains(&pair[0]));
        }
        prop_assert_eq!(path.is_empty(), graph.nodes().all(|(id, _)| graph.state(id) == Some(TaskState::Done)));
    }
}
