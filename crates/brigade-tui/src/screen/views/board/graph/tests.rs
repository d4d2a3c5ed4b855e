use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::super::handle;
use super::super::tests::{BOARD, screen};
use super::*;
use crate::screen::test_support::draw_text;

/// Returns the drawn graph, without the title line, the tabs and the bottom lines.
fn seen(board: &str, width: u16, height: u16) -> String {
    let mut screen = screen(&["ada", "ben", "cleo"], board);
    handle(&mut screen, KeyCommand::Graph);
    let text = draw_text(&mut screen, width, height);
    let lines: Vec<&str> = text.lines().skip(2).take(usize::from(height) - 4).collect();
    lines.join("\n").trim_end().to_owned()
}

#[test]
fn a_chain() {
    insta::assert_snapshot!(seen(
        "1 c ada one\n2 i ben two < 1\n3 p - three < 2\n4 p - four < 3",
        100,
        24
    ));
}

#[test]
fn a_diamond() {
    insta::assert_snapshot!(seen(
        "1 i ada one\n2 p - two < 1\n3 p - three < 1\n4 p - four < 2 3",
        100,
        24
    ));
}

#[test]
fn two_tasks_share_three_dependencies() {
    insta::assert_snapshot!(seen(
        "1 p - a\n2 p - b\n3 p - c\n4 p - d < 1 2 3\n5 p - e < 1 2 3",
        80,
        24
    ));
}

#[test]
fn lines_that_cross() {
    let board = "1 i ada a\n2 p - b\n3 p - c\n4 p - d < 1 2\n5 p - e < 2 3\n6 p - f < 1 3\n7 p - g < 4\n8 p - h < 1 7";
    insta::assert_snapshot!(seen(board, 100, 24));
}

#[test]
fn a_cycle_and_tasks_without_dependencies() {
    let board =
        "1 p - a < 2\n2 p - b < 1\n3 p - c < 2\n4 p - alone\n5 c ada alone and done\n6 i ada at it";
    insta::assert_snapshot!(seen(board, 80, 24));
}

#[test]
fn a_whole_board() {
    insta::assert_snapshot!(seen(BOARD, 120, 28));
}

/// Checks that the selected task is visible, wherever it is in the graph.
#[test]
fn the_graph_scrolls_to_the_selected_task() {
    let mut board = String::new();
    for id in 1..200 {
        let _ = writeln!(board, "{id} p - task number {id} < {}", id - 1);
        let _ = writeln!(board, "{} p - other {id} < {}", id + 1000, id);
    }
    for (width, height) in [(80, 24), (120, 40), (30, 12)] {
        let mut screen = screen(&[], &board);
        handle(&mut screen, KeyCommand::Graph);
        for id in [1, 7, 100, 1100, 199] {
            screen.task = Some(id);
            let text = draw_text(&mut screen, width, height);
            assert!(text.contains(&format!(" {id} ")), "{id} at {width}x{height}\n{text}");
        }
    }
}

fn chain(many: u64) -> String {
    (1..=many).fold(String::new(), |mut board, id| {
        let _ = writeln!(board, "{id} p - task {id} < {}", id - 1);
        board
    })
}

/// A huge board is laid out only once. After that, drawing it is as fast as drawing a small one.
#[test]
fn five_thousand_tasks_are_drawn_quickly() {
    let alone = |id: u64| format!("{id} p - task {id}");
    let star =
        |id: u64| format!("{id} p - task {id}{}", if id == 5000 { " < 1 2 3 4" } else { "" });
    let fan = |id: u64| format!("{id} p - task {id} < {}", if id > 1 { "1" } else { "" });
    let pairs =
        |id: u64| format!("{id} p - task {id} < {}", if id.is_multiple_of(2) { id - 1 } else { 0 });
    let net = |id: u64| format!("{id} p - task {id} < {} {} {}", id / 2, id * 7 / 11, id * 5 / 9);
    let far = |id: u64| format!("{id} p - task {id} < {} {}", id - 1, id / 3);
    let many = |line: &dyn Fn(u64) -> String| (1..=5000).map(line).collect::<Vec<_>>().join("\n");
    let into_one = format!(
        "{}\n5001 p - last < {}",
        many(&alone),
        (1..=5000).map(|id: u64| id.to_string()).collect::<Vec<_>>().join(" ")
    );
    let circle = format!("{}\n1 p - first < 5000", chain(5000));
    let boards = [
        ("chain", chain(5000)),
        ("alone", many(&alone)),
        ("star", many(&star)),
        ("fan", many(&fan)),
        ("pairs", many(&pairs)),
        ("net", many(&net)),
        ("far", many(&far)),
        ("into one", into_one),
        ("circle", circle),
    ];
    for (name, board) in boards {
        let mut screen = screen(&["ada"], &board);
        handle(&mut screen, KeyCommand::Graph);
        let begun = Instant::now();
        draw_text(&mut screen, 120, 40);
        let first = begun.elapsed();
        let begun = Instant::now();
        for command in [
            KeyCommand::Right,
            KeyCommand::Down,
            KeyCommand::Last,
            KeyCommand::Left,
            KeyCommand::First,
        ] {
            handle(&mut screen, command);
            draw_text(&mut screen, 120, 40);
        }
        let again = begun.elapsed() / 5;
        // The limits are generous, because this may be a debug build on a busy machine.
        assert!(first < Duration::from_secs(20), "{name}: {first:?}");
        assert!(again < Duration::from_secs(1), "{name}: {again:?}");
    }
}
