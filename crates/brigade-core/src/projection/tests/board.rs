//! Tests of tasks: when they changed, and what blocks them.

use brigade_wire::name::TaskId;

use super::*;

#[test]
fn records_when_a_task_changed() {
    // `expected` has the form `since added begun done`, with `-` for a time that is not set.
    let check = |lines: &[(i64, &str)], expected: &str| {
        let mut script = EventScript::default();
        for (at, line) in lines {
            script.task(*at, line);
        }
        let card = script.picture.task(1).unwrap();
        let or = |at: Option<Millis>| at.map_or("-".to_owned(), |at| second(at).to_string());
        let found = [Some(card.since), Some(card.added), card.begun, card.done].map(or);
        assert_eq!(found.join(" "), expected, "{lines:?}");
    };
    check(&[(1, "1 p -")], "1 1 - -");
    check(&[(1, "1 p -"), (4, "1 p ada")], "4 1 - -");
    // Other changes to a task do not reset `since`.
    check(&[(1, "1 p -"), (4, "1 p - 2")], "1 1 - -");
    check(&[(1, "1 p -"), (4, "1 i ada")], "4 1 4 -");
    check(&[(1, "1 p -"), (4, "1 i ada"), (6, "1 i ben")], "6 1 4 -");
    check(&[(1, "1 p -"), (4, "1 i ada"), (9, "1 c ada")], "9 1 4 9");
    check(&[(1, "1 p -"), (9, "1 c ada"), (12, "1 c ada 2")], "9 1 - 9");
    // Reopening a completed task clears `done`.
    check(&[(1, "1 i ada"), (4, "1 c ada"), (6, "1 i ada")], "6 1 1 -");
    check(&[(1, "1 i ada"), (4, "1 c ada"), (6, "1 p -")], "6 1 - -");
}

#[test]
fn tasks_claude_code_would_not_show_are_hidden() {
    let mut script = EventScript::default();
    script.task(1, "1 p -");
    script.task(2, "2 someday -");
    script.record(3, Event::Task { id: 3, task: raw(&json!("no task")) });
    assert_eq!(script.picture.tasks().map(|card| card.id).collect::<Vec<_>>(), [1]);
    script.record(4, Event::TaskDeleted { id: 1 });
    assert_eq!(script.picture.tasks().count(), 0);
}

fn check_holds(board: &[&str], expected: &str) {
    let mut script = EventScript::new(&["ada", "ben"]);
    for line in board {
        script.task(1, line);
    }
    let text = |ids: &[TaskId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
    let found = |card: &TaskEntry| {
        Some(match script.picture.block_reason(card.id)? {
            BlockReason::Cycle(ids) => format!("{}:circle {}", card.id, text(ids)),
            BlockReason::Waits(ids) => format!("{}:waits {}", card.id, text(ids)),
            BlockReason::Idle(ids) => format!("{}:idle {}", card.id, text(ids)),
            BlockReason::Orphan(name) => format!("{}:orphan {name}", card.id),
        })
    };
    let found: Vec<String> = script.picture.tasks().filter_map(found).collect();
    assert_eq!(found.join(", "), expected, "{board:?}");
}

#[test]
fn reasons_why_a_task_is_blocked() {
    check_holds(&["1 p -", "2 i ada", "3 c ben", "4 p ada"], "");
    // A member works on a direct or indirect dependency of the blocked task.
    check_holds(&["1 i ada", "2 p - 1", "3 p - 2"], "2:waits 1, 3:waits 2");
    check_holds(&["1 i ada", "2 p -", "3 p - 1 2"], "3:waits 1+2");
    check_holds(&["1 c ada", "2 i ben", "3 p - 1 2"], "3:waits 2");
    check_holds(&["1 i ada", "2 p - 1", "3 c - 2", "4 p - 3"], "2:waits 1");
    // No member works on any dependency of the blocked task.
    check_holds(&["1 p -", "2 p - 1", "3 p - 2"], "2:idle 1, 3:idle 2");
    check_holds(&["1 p ada", "2 p - 1"], "2:idle 1");
    // A task in progress whose owner is not on the team does not count as being worked on.
    check_holds(&["1 i eli", "2 p - 1"], "1:orphan eli, 2:idle 1");
    check_holds(&["1 p eli"], "1:orphan eli");
    check_holds(&["1 c eli"], "");
    // A task that a member started despite its blockers counts as being worked on.
    check_holds(&["1 p -", "2 i ada 1", "3 p - 2"], "2:waits 1, 3:waits 2");
}

#[test]
fn tasks_behind_a_cycle_are_blocked_by_it() {
    check_holds(&["1 p - 2", "2 p - 1"], "1:circle 1+2, 2:circle 1+2");
    check_holds(
        &["1 p - 2", "2 p - 1", "3 p - 2", "4 i ada", "5 p - 3 4"],
        "1:circle 1+2, 2:circle 1+2, 3:circle 1+2, 5:circle 1+2",
    );
    // Task 1 is not in the cycle, although a task in the cycle depends on it.
    check_holds(&["1 i ada", "2 p - 1 3", "3 p - 2"], "2:circle 2+3, 3:circle 2+3");
    check_holds(
        &["1 p - 2", "2 p - 1", "3 p - 4", "4 p - 3", "5 p - 3", "6 p - 1 3"],
        "1:circle 1+2, 2:circle 1+2, 3:circle 3+4, 4:circle 3+4, 5:circle 3+4, 6:circle 1+2",
    );
    // A completed task breaks the cycle.
    check_holds(&["1 i ada 3", "2 p - 1", "3 c - 2"], "2:waits 1");
}

/// When members join or leave, the block reasons change although no task changes.
#[test]
fn holds_follow_the_roster() {
    let mut script = EventScript::new(&["ada"]);
    script.task(1, "1 i eli");
    assert_eq!(script.picture.block_reason(1), Some(&BlockReason::Orphan("eli".into())));
    let before = script.picture.board_revision();
    script.joins(2, "eli");
    assert_eq!(script.picture.block_reason(1), None);
    assert_ne!(script.picture.board_revision(), before);
    // The start of a turn does not change the board.
    let before = script.picture.board_revision();
    script.is_active(3, "eli", true);
    script.works(4, "ada", WorkEvent::TurnStarted {});
    assert_eq!(script.picture.board_revision(), before);
    script.leaves(5, "eli");
    assert_eq!(script.picture.block_reason(1), Some(&BlockReason::Orphan("eli".into())));
    assert_ne!(script.picture.board_revision(), before);
}

/// Computing the reasons for five thousand blocked tasks must not traverse all tasks again for each task.
#[test]
fn reasons_of_many_tasks_are_computed_once() {
    let mut script = EventScript::new(&["ada"]);
    script.task(1, "1 p - 2");
    script.task(1, "2 p - 1");
    for id in 3..5_000_u64 {
        script.task(1, &format!("{id} p - {}", id - 1));
    }
    let begun = std::time::Instant::now();
    let is_circle =
        |id: &u64| matches!(script.picture.block_reason(*id), Some(BlockReason::Cycle(_)));
    assert_eq!((1..5_000).filter(is_circle).count(), 4_999);
    // Traversing all tasks for each task would take minutes.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
