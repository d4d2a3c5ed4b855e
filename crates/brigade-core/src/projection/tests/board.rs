//! Tasks: since when each is what it is, and what holds it.

use brigade_wire::name::TaskId;

use super::*;

#[test]
fn since_when_a_task_is_what_it_is() {
    // `since added begun done`, `-` for what was not.
    let check = |lines: &[(i64, &str)], expected: &str| {
        let mut script = Script::default();
        for (at, line) in lines {
            script.task(*at, line);
        }
        let card = script.picture.card(1).unwrap();
        let or = |at: Option<At>| at.map_or("-".to_owned(), |at| second(at).to_string());
        let told = [Some(card.since), Some(card.added), card.begun, card.done].map(or);
        assert_eq!(told.join(" "), expected, "{lines:?}");
    };
    check(&[(1, "1 p -")], "1 1 - -");
    check(&[(1, "1 p -"), (4, "1 p ada")], "4 1 - -");
    // What else changes of it does not make it new.
    check(&[(1, "1 p -"), (4, "1 p - 2")], "1 1 - -");
    check(&[(1, "1 p -"), (4, "1 i ada")], "4 1 4 -");
    check(&[(1, "1 p -"), (4, "1 i ada"), (6, "1 i ben")], "6 1 4 -");
    check(&[(1, "1 p -"), (4, "1 i ada"), (9, "1 c ada")], "9 1 4 9");
    check(&[(1, "1 p -"), (9, "1 c ada"), (12, "1 c ada 2")], "9 1 - 9");
    // Taken up again it is begun again, and not done.
    check(&[(1, "1 i ada"), (4, "1 c ada"), (6, "1 i ada")], "6 1 1 -");
    check(&[(1, "1 i ada"), (4, "1 c ada"), (6, "1 p -")], "6 1 - -");
}

#[test]
fn what_would_not_be_shown_is_not() {
    let mut script = Script::default();
    script.task(1, "1 p -");
    script.task(2, "2 someday -");
    script.then(3, Event::Task { id: 3, task: raw(&json!("no task")) });
    assert_eq!(script.picture.cards().map(|card| card.id).collect::<Vec<_>>(), [1]);
    script.then(4, Event::TaskDeleted { id: 1 });
    assert_eq!(script.picture.cards().count(), 0);
}

fn check_holds(board: &[&str], expected: &str) {
    let mut script = Script::of(&["ada", "ben"]);
    for line in board {
        script.task(1, line);
    }
    let text = |ids: &[TaskId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
    let told = |card: &Card| {
        Some(match script.picture.hold(card.id)? {
            Hold::Circle(ids) => format!("{}:circle {}", card.id, text(ids)),
            Hold::Waits(ids) => format!("{}:waits {}", card.id, text(ids)),
            Hold::Idle(ids) => format!("{}:idle {}", card.id, text(ids)),
            Hold::Orphan(name) => format!("{}:orphan {name}", card.id),
        })
    };
    let told: Vec<String> = script.picture.cards().filter_map(told).collect();
    assert_eq!(told.join(", "), expected, "{board:?}");
}

#[test]
fn why_a_task_does_not_go_on() {
    check_holds(&["1 p -", "2 i ada", "3 c ben", "4 p ada"], "");
    // Somebody is at what it waits for, or at what that waits for.
    check_holds(&["1 i ada", "2 p - 1", "3 p - 2"], "2:waits 1, 3:waits 2");
    check_holds(&["1 i ada", "2 p -", "3 p - 1 2"], "3:waits 1+2");
    check_holds(&["1 c ada", "2 i ben", "3 p - 1 2"], "3:waits 2");
    check_holds(&["1 i ada", "2 p - 1", "3 c - 2", "4 p - 3"], "2:waits 1");
    // Nobody is.
    check_holds(&["1 p -", "2 p - 1", "3 p - 2"], "2:idle 1, 3:idle 2");
    check_holds(&["1 p ada", "2 p - 1"], "2:idle 1");
    // Somebody who is not on the team is nobody.
    check_holds(&["1 i eli", "2 p - 1"], "1:orphan eli, 2:idle 1");
    check_holds(&["1 p eli"], "1:orphan eli");
    check_holds(&["1 c eli"], "");
    // Who began it though it waits is at it.
    check_holds(&["1 p -", "2 i ada 1", "3 p - 2"], "2:waits 1, 3:waits 2");
}

#[test]
fn circles_hold_what_is_behind_them() {
    check_holds(&["1 p - 2", "2 p - 1"], "1:circle 1+2, 2:circle 1+2");
    check_holds(
        &["1 p - 2", "2 p - 1", "3 p - 2", "4 i ada", "5 p - 3 4"],
        "1:circle 1+2, 2:circle 1+2, 3:circle 1+2, 5:circle 1+2",
    );
    // What one waits for in a circle is no part of it, and goes on.
    check_holds(&["1 i ada", "2 p - 1 3", "3 p - 2"], "2:circle 2+3, 3:circle 2+3");
    check_holds(
        &["1 p - 2", "2 p - 1", "3 p - 4", "4 p - 3", "5 p - 3", "6 p - 1 3"],
        "1:circle 1+2, 2:circle 1+2, 3:circle 3+4, 4:circle 3+4, 5:circle 3+4, 6:circle 1+2",
    );
    // A circle of which one is done is none.
    check_holds(&["1 i ada 3", "2 p - 1", "3 c - 2"], "2:waits 1");
}

/// Who comes and goes changes what holds tasks, though no task changes.
#[test]
fn holds_follow_the_roster() {
    let mut script = Script::of(&["ada"]);
    script.task(1, "1 i eli");
    assert_eq!(script.picture.hold(1), Some(&Hold::Orphan("eli".into())));
    let before = script.picture.board_revision();
    script.joins(2, "eli");
    assert_eq!(script.picture.hold(1), None);
    assert_ne!(script.picture.board_revision(), before);
    // That somebody is in a turn changes nothing of the board.
    let before = script.picture.board_revision();
    script.is_active(3, "eli", true);
    script.works(4, "ada", Did::TurnStarted {});
    assert_eq!(script.picture.board_revision(), before);
    script.leaves(5, "eli");
    assert_eq!(script.picture.hold(1), Some(&Hold::Orphan("eli".into())));
    assert_ne!(script.picture.board_revision(), before);
}

/// Of five thousand that wait each is asked for, and all are looked at once.
#[test]
fn many_that_wait_are_looked_at_once() {
    let mut script = Script::of(&["ada"]);
    script.task(1, "1 p - 2");
    script.task(1, "2 p - 1");
    for id in 3..5_000_u64 {
        script.task(1, &format!("{id} p - {}", id - 1));
    }
    let begun = std::time::Instant::now();
    let is_circle = |id: &u64| matches!(script.picture.hold(*id), Some(Hold::Circle(_)));
    assert_eq!((1..5_000).filter(is_circle).count(), 4_999);
    // One look at each from each would take minutes.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
