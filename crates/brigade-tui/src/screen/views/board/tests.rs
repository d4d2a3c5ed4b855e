use std::sync::Arc;

use brigade_core::event::{Event, UncheckedRecord};
use jiff::{SignedDuration, Timestamp};
use serde_json::value::RawValue;

use super::columns::{ColumnWindow, visible_cards};
use super::*;
use crate::screen::test_support::{draw_text, screen_with};
use crate::view::View;

fn raw(value: &serde_json::Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

/// Parses a task from a short form: `number status owner subject < dependencies…`, with `-` for no owner.
fn task(line: &str) -> Event {
    let (fields, dependencies) = line.split_once('<').unwrap_or((line, ""));
    let mut fields = fields.split_whitespace();
    let id: u64 = fields.next().unwrap().parse().unwrap();
    let status = match fields.next().unwrap() {
        "p" => "pending",
        "i" => "in_progress",
        _ => "completed",
    };
    let owner = fields.next().filter(|owner| *owner != "-");
    let subject: Vec<&str> = fields.collect();
    let dependencies: Vec<&str> = dependencies.split_whitespace().collect();
    let mut task = serde_json::json!({
        "id": id.to_string(), "subject": subject.join(" "), "status": status,
        "description": format!("All about {id}.\n\n- first this\n- then that"),
        "blocks": [], "blockedBy": dependencies,
    });
    if let Some(owner) = owner {
        task["owner"] = owner.into();
    }
    Event::Task { id, task: raw(&task) }
}

/// Returns a screen with a board, half an hour after its last task was added. Records are one minute apart.
pub(super) fn screen(members: &[&str], board: &str) -> Screen {
    let members = members.iter().map(|name| Event::Member {
        name: (*name).to_owned(),
        member: raw(&serde_json::json!({"name": name, "agentType": "codex", "color": "blue"})),
        joined: true,
    });
    let mut now: Timestamp = "2026-11-09T09:00:00Z".parse().unwrap();
    let mut records = Vec::new();
    for event in members.chain(board.lines().filter(|line| !line.is_empty()).map(task)) {
        now = now.checked_add(SignedDuration::from_mins(1)).unwrap();
        let record = UncheckedRecord { at: now, by: None, event };
        records.push(Arc::new(record.from_document()));
    }
    let now = now.checked_add(SignedDuration::from_mins(30)).unwrap();
    let mut screen = screen_with(&records, now);
    screen.view = View::Board;
    screen
}

pub(super) const BOARD: &str = "
1 c ada Read the CSV dialects of all customers
2 c ben Choose a parser
3 i ada Parse headers and quoted fields < 1 2
4 i ben Guess the types of columns < 2
5 p - Write rows in batches < 3 4
6 p cleo Report bad rows with their line number < 3
7 p - Resume an import that was cut off < 5
8 p - Import from the command line < 5 6
9 p - Write the manual
10 i eli Measure a file of one gigabyte < 2
11 p - Release 2.0 < 7 8 9 10
12 p ben Ask three customers to try it < 11
";

#[test]
fn a_column_scrolls_to_the_selected_card() {
    let check = |heights: &[usize], height, selected, rows: std::ops::Range<usize>, gap| {
        let seen = visible_cards(heights.len(), height, selected, |row| heights[row]);
        assert_eq!(seen, ColumnWindow { rows, gap }, "{heights:?} in {height} around {selected}");
    };
    check(&[], 10, 0, 0..0, 1);
    check(&[3, 3], 10, 0, 0..2, 1);
    check(&[3, 3, 3], 10, 0, 0..3, 0);
    // The last line is reserved for the number of hidden cards.
    check(&[3, 3, 3, 3], 10, 0, 0..3, 0);
    check(&[3, 3, 3, 3], 10, 3, 1..4, 0);
    check(&[2, 2, 2, 2, 2, 2, 2], 7, 3, 2..5, 0);
    check(&[4, 4, 4], 5, 1, 1..2, 0);
    // A card that is higher than the column is still visible.
    check(&[9, 9], 4, 1, 1..2, 0);
}

#[test]
fn long_subjects_are_cut_in_the_last_line() {
    let check = |text: &str, width, most, lines: &[&str]| {
        assert_eq!(wrap_to_lines(text, width, most), lines, "text {text}, width {width}");
    };
    check("one two three", 20, 2, &["one two three"]);
    check("one two three", 7, 2, &["one two", "three"]);
    check("one two three four", 7, 2, &["one two", "three…"]);
    check("one two three four", 7, 1, &["one tw…"]);
    check("averyverylongword x", 6, 2, &["avery…", "x"]);
}

#[test]
fn keys_move_between_cards() {
    let check = |from: u64, keys: &[KeyCommand], to: u64| {
        let mut screen = screen(&["ada", "ben", "cleo"], BOARD);
        screen.task = Some(from);
        for key in keys {
            draw_text(&mut screen, 120, 40);
            handle(&mut screen, *key);
        }
        assert_eq!(selected(&screen), Some(to), "{from} {keys:?}");
    };
    // The task whose owner left the team comes first, then started tasks.
    check(10, &[KeyCommand::Down], 3);
    check(10, &[KeyCommand::Down, KeyCommand::Down, KeyCommand::Down], 4);
    check(4, &[KeyCommand::Right], 7);
    check(7, &[KeyCommand::Right], 1);
    check(5, &[KeyCommand::Right, KeyCommand::Down], 1);
    check(5, &[KeyCommand::Left, KeyCommand::Left], 9);
    check(9, &[KeyCommand::Left], 9);
    check(5, &[KeyCommand::Last], 12);
    // In the graph, the left and right keys follow the dependency lines.
    check(3, &[KeyCommand::Graph, KeyCommand::Right, KeyCommand::Right], 7);
    check(11, &[KeyCommand::Graph, KeyCommand::Left], 7);
    check(4, &[KeyCommand::Graph, KeyCommand::Down], 10);
    check(3, &[KeyCommand::Graph, KeyCommand::First], 1);
    check(3, &[KeyCommand::Graph, KeyCommand::Last], 12);
}

#[test]
fn a_task_can_be_opened_and_closed() {
    let mut screen = screen(&["ada"], BOARD);
    screen.task = Some(5);
    draw_text(&mut screen, 80, 24);
    handle(&mut screen, KeyCommand::Open);
    let text = draw_text(&mut screen, 80, 24);
    assert!(text.contains("Task 5: Write rows in batches"), "{text}");
    assert!(text.contains("- then that"), "{text}");
    assert!(!text.contains("In progress"), "{text}");
    // In an open task the down key scrolls and does not change the selection. This task is too short to
    // scroll.
    handle(&mut screen, KeyCommand::Down);
    handle(&mut screen, KeyCommand::Last);
    assert_eq!((screen.states.board.open, selected(&screen)), (Some(0), Some(5)));
    handle(&mut screen, KeyCommand::Back);
    assert!(draw_text(&mut screen, 80, 24).contains("In progress"));
}

#[test]
fn the_whole_task_is_copied() {
    let mut screen = screen(&["ada"], "1 p - Sweep \u{1b}[31mall");
    assert_eq!(
        selected_text(&screen).unwrap(),
        "task 1: Sweep \\u{1b}[31mall\n\nAll about 1.\n\n- first this\n- then that"
    );
    assert!(!draw_text(&mut screen, 80, 24).contains('\u{1b}'));
}

#[test]
fn an_empty_board_has_a_hint() {
    let mut screen = screen(&["ada"], "");
    assert!(draw_text(&mut screen, 80, 24).contains("No tasks yet"));
    assert_eq!(handle(&mut screen, KeyCommand::Down), None);
    assert_eq!((selected(&screen), selected_text(&screen)), (None, None));
}

/// Stuck tasks are explained on the cards and in the graph.
#[test]
fn stuck_tasks_are_explained() {
    let check = |board: &str, card: &str, label: &str| {
        let mut screen = screen(&["ada"], board);
        let text = draw_text(&mut screen, 160, 24);
        assert!(text.contains(card) && text.contains("stuck"), "{text}");
        handle(&mut screen, KeyCommand::Graph);
        let text = draw_text(&mut screen, 160, 24);
        assert!(text.contains(label), "{text}");
    };
    check("1 p - a < 2\n2 p - b < 1", "! cycle 1 → 2 → 1", "! cycle");
    check("1 p - a < 2\n2 p - b < 1\n3 p - c < 2", "! waits for the cycle 1 → 2 → 1", "! cycle");
    check("1 p - a\n2 p - b < 1", "! waits for 1; no member works on it", "! idle: 1");
    check("1 i eli a", "! eli is not on the team", "! eli gone");
}

#[test]
fn any_size_can_be_drawn() {
    for (width, height) in [(1, 1), (3, 4), (20, 5), (33, 9), (80, 24), (200, 60)] {
        for commands in [
            &[][..],
            &[KeyCommand::Graph],
            &[KeyCommand::Open],
            &[KeyCommand::Graph, KeyCommand::Open],
        ] {
            let mut screen = screen(&["ada"], BOARD);
            for command in commands {
                draw_text(&mut screen, width, height);
                handle(&mut screen, *command);
            }
            for command in [
                KeyCommand::Down,
                KeyCommand::Right,
                KeyCommand::PageDown,
                KeyCommand::Last,
                KeyCommand::Left,
            ] {
                draw_text(&mut screen, width, height);
                handle(&mut screen, command);
            }
        }
    }
}
