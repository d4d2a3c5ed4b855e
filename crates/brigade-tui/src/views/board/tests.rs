use std::sync::Arc;

use brigade_core::event::{Event, Record};
use brigade_core::store::event_log::{Batch, Held};
use jiff::{SignedDuration, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::value::RawValue;

use super::columns::{ColumnWindow, visible_cards};
use super::*;
use crate::frame;
use crate::screen::ScreenEvent;
use crate::style::Theme;
use crate::tests::{END, played, snapshots};
use crate::views::View;

pub(super) fn start() -> Timestamp {
    "2026-11-09T09:00:00Z".parse().unwrap()
}

fn raw(value: &serde_json::Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

/// A task from a short form: `number status owner subject < dependencies…`, with `-` for no owner.
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

/// A screen with a board, half an hour after its last task was added. Records are a minute apart.
pub(super) fn screen(members: &[&str], board: &str) -> Screen {
    let stored = Arc::new(Held::default());
    let members = members.iter().map(|name| Event::Member {
        name: (*name).to_owned(),
        member: raw(&serde_json::json!({"name": name, "agentType": "codex", "color": "blue"})),
        joined: true,
    });
    let mut now = start();
    let mut records = Vec::new();
    for event in members.chain(board.lines().filter(|line| !line.is_empty()).map(task)) {
        now = now.checked_add(SignedDuration::from_mins(1)).unwrap();
        let record = Arc::new(Record { at: now, by: None, event });
        records.push((stored.keep(Arc::clone(&record)), record));
    }
    let now = now.checked_add(SignedDuration::from_mins(30)).unwrap();
    let mut screen = Screen::new("orbit".into(), stored, Theme { color: true }, now);
    screen.view = View::Board;
    screen.update(ScreenEvent::Records(Batch { records, caught_up: true }));
    screen
}

/// Draws the screen and stores its click targets.
pub(super) fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
    let mut buffer = Buffer::empty(Rect { x: 0, y: 0, width, height });
    screen.drawn = frame::draw(screen, &mut buffer);
    let row = |y: u16| -> String {
        let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        line.trim_end().to_owned()
    };
    (0..height).map(row).collect::<Vec<_>>().join("\n")
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
        assert_eq!(wrap_to_lines(text, width, most), lines, "{text} in {width}");
    };
    check("one two three", 20, 2, &["one two three"]);
    check("one two three", 7, 2, &["one two", "three"]);
    check("one two three four", 7, 2, &["one two", "three…"]);
    check("one two three four", 7, 1, &["one tw…"]);
    check("averyverylongword x", 6, 2, &["avery…", "x"]);
}

#[test]
fn keys_move_between_cards() {
    let check = |from: u64, keys: &[Command], to: u64| {
        let mut screen = screen(&["ada", "ben", "cleo"], BOARD);
        screen.task = Some(from);
        for key in keys {
            drawn(&mut screen, 120, 40);
            act(&mut screen, *key);
        }
        assert_eq!(selected(&screen), Some(to), "{from} {keys:?}");
    };
    // The task of a missing owner comes first, then started tasks.
    check(10, &[Command::Down], 3);
    check(10, &[Command::Down, Command::Down, Command::Down], 4);
    check(4, &[Command::Right], 7);
    check(7, &[Command::Right], 1);
    check(5, &[Command::Right, Command::Down], 1);
    check(5, &[Command::Left, Command::Left], 9);
    check(9, &[Command::Left], 9);
    check(5, &[Command::Last], 12);
    // Along the lines of the graph, forwards and back.
    check(3, &[Command::Graph, Command::Right, Command::Right], 7);
    check(11, &[Command::Graph, Command::Left], 7);
    check(4, &[Command::Graph, Command::Down], 10);
    check(3, &[Command::Graph, Command::First], 1);
    check(3, &[Command::Graph, Command::Last], 12);
}

#[test]
fn a_task_can_be_opened_and_closed() {
    let mut screen = screen(&["ada"], BOARD);
    screen.task = Some(5);
    drawn(&mut screen, 80, 24);
    act(&mut screen, Command::Open);
    let text = drawn(&mut screen, 80, 24);
    assert!(text.contains("Task 5: Write rows in batches"), "{text}");
    assert!(text.contains("- then that"), "{text}");
    assert!(!text.contains("In progress"), "{text}");
    // Scroll keys do not change the selection, and there is nothing to scroll.
    act(&mut screen, Command::Down);
    act(&mut screen, Command::Last);
    assert_eq!((screen.states.board.open, selected(&screen)), (Some(0), Some(5)));
    act(&mut screen, Command::Back);
    assert!(drawn(&mut screen, 80, 24).contains("In progress"));
}

#[test]
fn the_whole_task_is_copied() {
    let mut screen = screen(&["ada"], "1 p - Sweep \u{1b}[31mall");
    assert_eq!(
        selected_text(&screen).unwrap(),
        "task 1: Sweep \\u{1b}[31mall\n\nAll about 1.\n\n- first this\n- then that"
    );
    assert!(!drawn(&mut screen, 80, 24).contains('\u{1b}'));
}

#[test]
fn an_empty_board_has_a_hint() {
    let mut screen = screen(&["ada"], "");
    assert!(drawn(&mut screen, 80, 24).contains("No tasks yet"));
    assert_eq!(act(&mut screen, Command::Down), None);
    assert_eq!((selected(&screen), selected_text(&screen)), (None, None));
}

/// Stuck tasks are explained on the cards and in the graph.
#[test]
fn stuck_tasks_are_explained() {
    let check = |board: &str, card: &str, label: &str| {
        let mut screen = screen(&["ada"], board);
        let text = drawn(&mut screen, 160, 24);
        assert!(text.contains(card) && text.contains("stuck"), "{text}");
        act(&mut screen, Command::Graph);
        let text = drawn(&mut screen, 160, 24);
        assert!(text.contains(label), "{text}");
    };
    check("1 p - a < 2\n2 p - b < 1", "! cycle 1 → 2 → 1", "! cycle");
    check("1 p - a < 2\n2 p - b < 1\n3 p - c < 2", "! waits for the cycle 1 → 2 → 1", "! cycle");
    check("1 p - a\n2 p - b < 1", "! waits for 1; no member works on it", "! idle: 1");
    check("1 i eli a", "! eli is not on the team", "! eli gone");
}

#[test]
fn graph_of_the_recording() {
    let mut screen = played(END);
    snapshots("board-graph", &mut screen, &["3", "v"]);
}

#[test]
fn task_of_the_recording() {
    let mut screen = played(END);
    snapshots("board-task", &mut screen, &["3", "right", "enter"]);
}

#[test]
fn any_size_can_be_drawn() {
    for (width, height) in [(1, 1), (3, 4), (20, 5), (33, 9), (80, 24), (200, 60)] {
        for commands in
            [&[][..], &[Command::Graph], &[Command::Open], &[Command::Graph, Command::Open]]
        {
            let mut screen = screen(&["ada"], BOARD);
            for command in commands {
                drawn(&mut screen, width, height);
                act(&mut screen, *command);
            }
            for command in
                [Command::Down, Command::Right, Command::PageDown, Command::Last, Command::Left]
            {
                drawn(&mut screen, width, height);
                act(&mut screen, command);
            }
        }
    }
}
