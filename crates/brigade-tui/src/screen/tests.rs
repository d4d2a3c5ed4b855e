//! Snapshot tests of each view, and tests of the whole screen, with a recorded team.

use std::sync::Arc;

use brigade_core::event::Record;
use brigade_core::pulse::{Judgement, Liveness};
use brigade_core::store::event_log::{InMemoryRecords, RecordBatch};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::style::Color;

use super::test_support::{
    END, RECORDING, buffer_text, draw, draw_text, parse_record, press, recorded_screen, records,
    screen_with,
};
use super::{ProcessHealth, Screen, ScreenEvent};
use crate::keys::KEYS;
use crate::style::Theme;
use crate::view::View;

/// The terminal sizes of the snapshots.
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

#[test]
fn hidden_members_are_counted() {
    let mut records = records();
    let ada = RECORDING
        .lines()
        .find(|line| line.contains(r#""member":{"name":"ada""#))
        .expect("the recording contains ada");
    let crowd = (0..60).map(|number| ada.replace("ada", &format!("m-{number}")));
    let crowd: Vec<_> = crowd.map(|line| Arc::new(parse_record(&line))).collect();
    records.truncate(1);
    records.extend(crowd);
    let mut screen = screen_with(&records, END.parse().expect("the time is valid"));
    let shown = draw_text(&mut screen, 80, 24);
    let is_one =
        |line: &&str| line.split_whitespace().nth(1).is_some_and(|word| word.starts_with("m-"));
    let seen = shown.lines().filter(is_one).count();
    assert!(shown.contains("team-lead") && seen > 10, "{shown}");
    assert!(shown.contains(&format!("… {} more", 60 - seen)), "{shown}");
}

/// Presses the keys and compares the screen with its snapshots. Draws after each key, as the event loop does.
fn snapshots(name: &str, screen: &mut Screen, keys: &[&str]) {
    let [(width, height), _] = SIZES;
    for key in keys {
        press(screen, &[key]);
        draw(screen, width, height);
    }
    for (width, height) in SIZES {
        draw(screen, width, height);
        let text = draw_text(screen, width, height);
        insta::assert_snapshot!(format!("{name}-{width}x{height}"), text);
    }
}

#[test]
fn the_recording_round_trips() {
    let records = records();
    assert!(records.len() > 220, "{}", records.len());
    for (record, line) in records.iter().zip(RECORDING.lines()) {
        let again: serde_json::Value =
            serde_json::to_value(&**record).expect("a record can be serialized");
        let before: serde_json::Value = serde_json::from_str(line).expect("the line is valid JSON");
        assert_eq!(again["event"], before["event"]);
    }
    assert!(records.is_sorted_by_key(|record| record.at));
}

#[test]
fn views_and_dialogs_match_their_snapshots() {
    let check = |name, keys: &[&str]| snapshots(name, &mut recorded_screen(END), keys);
    check("team", &["1", "down"]);
    check("member", &["down", "6"]);
    check("native", &["6", "right", "right", "right"]);
    check("mail", &["2"]);
    check("mail-beginning", &["2", "home", "down"]);
    check("mail-of-one", &["2", "f", "ada", "enter", "p", "up", "up", "up", "enter"]);
    check("board", &["3"]);
    check("board-graph", &["3", "v"]);
    check("board-task", &["3", "right", "enter"]);
    check("approvals", &["4"]);
    check("permission", &["4", "down"]);
    check("timeline", &["5"]);
    check("timeline-closer", &["5", "down", "down", "+", "+", "left", "left"]);
    check("help", &["?"]);
    check("palette", &[":", "the"]);
    check("confirm", &["4", "a"]);
    check("send", &["down", "s", "When is 0.4.0 out?"]);
}

#[test]
fn no_open_requests() {
    snapshots("answered", &mut recorded_screen("2026-11-09T09:36:00Z"), &["4"]);
}

#[test]
fn a_plan_can_be_scrolled_to_its_end() {
    let mut screen = recorded_screen(END);
    screen.view = View::Approvals;
    let mut seen = |keys: &[&str]| {
        press(&mut screen, keys);
        draw_text(&mut screen, 80, 24)
    };
    let spec = "docs/spec/import.md).";
    assert!(!seen(&[]).contains(spec));
    assert!(seen(&["end"]).contains(spec));
    assert!(seen(&["home"]).contains("Validate rows against the schema\nA row is checked"));
    // The up and down keys select a request. In the full view of one request, these keys scroll.
    assert!(seen(&["down"]).contains("cwd:"));
    assert!(seen(&["up", "enter"]).contains("esc: back"));
    assert!(seen(&["pgdn", "pgdn", "down"]).contains(spec));
    assert!(seen(&["esc"]).contains("2 WAITING FOR YOU"));
}

#[test]
fn activity_can_be_scrolled() {
    let mut screen = recorded_screen(END);
    press(&mut screen, &["6", "right"]);
    draw(&mut screen, 80, 24);
    let mut seen = |keys: &[&str]| {
        press(&mut screen, keys);
        draw_text(&mut screen, 80, 24)
    };
    let end = seen(&[]);
    assert!(end.contains("unread") && !end.contains("newer"), "{end}");
    let before = seen(&["up"]);
    assert!(before.contains("▼ newer activity below"), "{before}");
    assert!(seen(&["home"]).contains("agent started"));
    assert!(seen(&["end"]) == end);
    // The scroll position applies to one member only: for the next member, the latest activity is shown.
    seen(&["pgup"]);
    assert!(seen(&["right"]).contains("▲ plan (waiting, 3 min): Validate rows"));
}

#[test]
fn problems_are_shown() {
    let mut screen = recorded_screen("2026-11-09T09:19:00Z");
    let limited = draw_text(&mut screen, 80, 24);
    assert!(limited.contains("■ ben        rate-limited"), "{limited}");
    assert!(limited.contains("You have exhausted your capacity"), "{limited}");
    let evidence = "its process 4711 is gone".to_owned();
    let judged = Judgement { liveness: Liveness::Dead, evidence };
    let health = ProcessHealth { judged, host: Some("atlas".into()), retries: None };
    let judged = Judgement { liveness: Liveness::Working, evidence: String::new() };
    let again = Some("Reconnecting... 2/5".to_owned());
    let retries = ProcessHealth { judged, host: None, retries: again };
    let health = [("ada".to_owned(), health), ("cleo".to_owned(), retries)];
    screen.update(ScreenEvent::Health(health.into()));
    press(&mut screen, &["down"]);
    let down = draw_text(&mut screen, 80, 24);
    assert!(down.contains("✕ ada        down"), "{down}");
    assert!(down.contains("codex      its process 4711 is gone"), "{down}");
    assert!(down.contains("agent is retrying: Reconnecting... 2/5"), "{down}");
    let down = draw_text(&mut screen, 120, 40);
    assert!(down.contains("as a separate process on atlas"), "{down}");
}

#[test]
fn small_screens_show_one_line_per_member() {
    let mut screen = recorded_screen(END);
    let low = draw_text(&mut screen, 80, 12);
    assert!(low.contains("● dora") && !low.contains("opencode"), "{low}");
    press(&mut screen, &["end"]);
    let lower = draw_text(&mut screen, 80, 7);
    assert!(lower.contains("● dora") && !lower.contains("ada"), "{lower}");
}

/// On a slow connection the terminal reports Escape and the next key as one key with Alt. In an earlier
/// version, the palette then stayed open and inserted that key.
#[test]
fn escape_and_a_key_reported_together_are_two_keys() {
    for before in [":", "?", "1"] {
        let mut screen = recorded_screen(END);
        press(&mut screen, &[before]);
        let together = KeyEvent::new(KeyCode::Char('2'), KeyModifiers::ALT);
        screen.update(ScreenEvent::Key(together));
        assert!(screen.dialog.is_none(), "{before}");
        assert_eq!(screen.view, View::Mail, "{before}");
    }
    // A form binds keys with Alt, and these keys must not close the form.
    let mut screen = recorded_screen(END);
    press(&mut screen, &["s", "one two"]);
    screen.update(ScreenEvent::Key(KeyEvent::new(KeyCode::Char('b'), KeyModifiers::ALT)));
    assert!(screen.dialog.is_some());
}

#[test]
fn without_colour_the_text_is_the_same() {
    let views = [["1", ""], ["2", ""], ["3", ""], ["4", ""], ["5", ""], ["6", ""]];
    let dialogs = [["1", "?"], ["1", ":"], ["1", "s"], ["3", "v"], ["4", "a"], ["4", "d"]];
    for keys in views.into_iter().chain(dialogs) {
        let mut screen = recorded_screen(END);
        press(&mut screen, &keys);
        let in_colour = draw_text(&mut screen, 120, 40);
        screen.theme = Theme { color: false };
        let plain = draw(&mut screen, 120, 40);
        assert_eq!(buffer_text(&plain), in_colour, "{keys:?}");
        let is_plain =
            |cell: &ratatui::buffer::Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
        assert!(plain.content().iter().all(is_plain), "{keys:?}");
    }
}

#[test]
fn every_view_can_be_drawn_at_any_size() {
    let mut screen = recorded_screen(END);
    for view in View::ALL {
        screen.view = view;
        for (width, height) in [(0, 0), (1, 1), (20, 5), (20, 60), (200, 5), (200, 60)] {
            draw(&mut screen, width, height);
        }
    }
}

#[test]
fn an_empty_team_can_be_drawn() {
    let mut screen = screen_with(&[], END.parse().expect("the time is valid"));
    for view in View::ALL {
        screen.view = view;
        draw(&mut screen, 80, 24);
    }
}

/// A random event for the screen.
#[derive(Clone, Debug)]
enum ScreenInput {
    Record(usize),
    Key(&'static str),
    Draw(u16, u16),
}

fn screen_input() -> impl Strategy<Value = ScreenInput> {
    let keys: Vec<&str> = KEYS.iter().flat_map(|key| key.keys).copied().collect();
    prop_oneof![
        3 => (0..400_usize).prop_map(ScreenInput::Record),
        5 => prop::sample::select(keys).prop_map(ScreenInput::Key),
        1 => prop::sample::select(vec!["x", "ß", "\u{1b}", "字"]).prop_map(ScreenInput::Key),
        1 => (1..130_u16, 1..45_u16).prop_map(|(width, height)| ScreenInput::Draw(width, height)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn keys_never_change_the_read_model_or_panic(
        steps in prop::collection::vec(screen_input(), 1..60),
        started in 0..400_usize,
        view in prop::sample::select(View::ALL.to_vec()),
    ) {
        let records = records();
        let now = END.parse().expect("the time is valid");
        let started = started.min(records.len());
        let stored = Arc::new(InMemoryRecords::default());
        let mut screen = Screen::new("orbit".into(), Arc::clone(&stored) as _, Theme { color: true }, now);
        screen.me = Some("team-lead".parse().expect("the name is valid"));
        let add_records = |screen: &mut Screen, records: &[Arc<Record>]| {
            let store = |record: &Arc<Record>| (stored.add(Arc::clone(record)), Arc::clone(record));
            let records = records.iter().map(store).collect();
            screen.update(ScreenEvent::Records(RecordBatch { records, caught_up: true }));
        };
        screen.view = view;
        add_records(&mut screen, &records[..started]);
        draw(&mut screen, 80, 24);
        for step in steps {
            match step {
                ScreenInput::Record(index) => add_records(&mut screen, &records[index % records.len()..][..1]),
                ScreenInput::Draw(width, height) => drop(draw(&mut screen, width, height)),
                ScreenInput::Key(key) => {
                    let before = format!("{:?}", screen.projection);
                    press(&mut screen, &[key]);
                    prop_assert_eq!(&format!("{:?}", screen.projection), &before, "{}", key);
                }
            }
            draw(&mut screen, 80, 24);
        }
    }
}
