//! Screens for tests: a recorded team, and a scripted team whose methods add one record each.
//!
//! The recorded team is in `fixtures/ui/demo.jsonl`. Each line is a record as `brigade log --json` prints it.

use std::sync::Arc;

use brigade_core::event::{Event, MessageKey, Record, UncheckedRecord, WorkEvent};
use brigade_core::store::event_log::{InMemoryRecords, RecordBatch};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::{Screen, ScreenEvent};
use crate::keys::KeyCommand;
use crate::style::Theme;
use crate::view::View;

/// The text of the recording, one record per line.
pub(crate) const RECORDING: &str = include_str!("../../../../fixtures/ui/demo.jsonl");
/// The time at the end of the recording.
pub(crate) const END: &str = "2026-11-09T09:45:00Z";

/// Parses the records of the recording.
pub(crate) fn records() -> Vec<Arc<Record>> {
    RECORDING.lines().map(|line| Arc::new(parse_record(line))).collect()
}

pub(crate) fn parse_record(line: &str) -> Record {
    serde_json::from_str::<UncheckedRecord>(line).expect(line).from_document()
}

/// Returns a screen that shows these records at the time `now`.
pub(crate) fn screen_with(records: &[Arc<Record>], now: Timestamp) -> Screen {
    let stored = Arc::new(InMemoryRecords::default());
    let records = records.iter().map(|record| (stored.add(Arc::clone(record)), Arc::clone(record)));
    let batch = RecordBatch { records: records.collect(), caught_up: true };
    let mut screen = Screen::new("orbit".into(), stored, Theme { color: true }, now);
    screen.update(ScreenEvent::Records(batch));
    screen
}

/// Returns the screen that the lead sees at a given time of the recording.
pub(crate) fn recorded_screen(until: &str) -> Screen {
    let until = until.parse().expect("`until` is a valid time");
    let records: Vec<_> = records().into_iter().filter(|record| record.at <= until).collect();
    let mut screen = screen_with(&records, until);
    screen.me = Some("team-lead".parse().expect("the name is valid"));
    screen
}

/// Presses keys by their names in the key table. Any other text is typed character by character.
pub(crate) fn press(screen: &mut Screen, keys: &[&str]) {
    for key in keys {
        let code = match *key {
            "enter" => KeyCode::Enter,
            "esc" => KeyCode::Esc,
            "tab" => KeyCode::Tab,
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "left" => KeyCode::Left,
            "right" => KeyCode::Right,
            "home" => KeyCode::Home,
            "end" => KeyCode::End,
            "pgup" => KeyCode::PageUp,
            "pgdn" => KeyCode::PageDown,
            key => {
                for character in key.chars() {
                    let key = KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE);
                    screen.update(ScreenEvent::Key(key));
                }
                continue;
            }
        };
        screen.update(ScreenEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }
}

/// Draws the screen as the event loop does, so that the scroll limits are set before the next key.
pub(crate) fn draw(screen: &mut Screen, width: u16, height: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    screen.frame = screen.draw(&mut buffer);
    buffer
}

/// Draws the screen and returns its text, without trailing spaces.
pub(crate) fn draw_text(screen: &mut Screen, width: u16, height: u16) -> String {
    buffer_text(&draw(screen, width, height))
}

/// Returns the text of a buffer, without trailing spaces.
pub(crate) fn buffer_text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut line = String::new();
        let mut cells_left = 0;
        for x in buffer.area.left()..buffer.area.right() {
            let Some(cell) = buffer.cell((x, y)) else { continue };
            // Skip the second cell of a wide character.
            if cells_left == 0 {
                line.push_str(cell.symbol());
                cells_left = unicode_width::UnicodeWidthStr::width(cell.symbol()).max(1);
            }
            cells_left -= 1;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A screen to which the test adds the records.
pub(crate) struct ScriptedTeam {
    pub(crate) screen: Screen,
    stored: Arc<InMemoryRecords>,
    message_count: u64,
}

/// Converts a number of milliseconds after noon on 3 March 2026 to a timestamp.
pub(crate) fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_772_539_200_000 + milliseconds).unwrap()
}

impl ScriptedTeam {
    pub(crate) fn new(view: View) -> Self {
        let stored = Arc::new(InMemoryRecords::default());
        let mut screen =
            Screen::new("team".into(), Arc::clone(&stored) as _, Theme { color: false }, at(0));
        screen.view = view;
        screen.caught_up = true;
        Self { screen, stored, message_count: 0 }
    }

    fn add_record(&mut self, milliseconds: i64, event: Event) {
        let record = UncheckedRecord { at: at(milliseconds), by: None, event };
        let record = Arc::new(record.from_document());
        let spot = self.stored.add(Arc::clone(&record));
        let batch = RecordBatch { records: vec![(spot, record)], caught_up: true };
        self.screen.update(ScreenEvent::Records(batch));
        self.screen.update(ScreenEvent::Time(at(milliseconds)));
    }

    /// Creates the team, with a lead.
    pub(crate) fn create(&mut self, milliseconds: i64) {
        let lead =
            json!({"agentId": "team-lead@team", "name": "team-lead", "agentType": "team-lead"});
        let team = json!({"name": "team", "leadAgentId": "team-lead@team", "members": [lead]});
        self.add_record(milliseconds, Event::TeamCreated { team: to_raw_value(&team).unwrap() });
    }

    pub(crate) fn join(&mut self, milliseconds: i64, name: &str) {
        let member = to_raw_value(&json!({"name": name, "agentType": "codex"})).unwrap();
        self.add_record(milliseconds, Event::Member { name: name.into(), member, joined: true });
    }

    pub(crate) fn join_in(&mut self, milliseconds: i64, name: &str, folder: &str) {
        let member = json!({"name": name, "agentType": "codex", "cwd": folder});
        let member = to_raw_value(&member).unwrap();
        self.add_record(milliseconds, Event::Member { name: name.into(), member, joined: true });
    }

    pub(crate) fn leave(&mut self, milliseconds: i64, name: &str) {
        self.add_record(milliseconds, Event::MemberLeft { name: name.into() });
    }

    pub(crate) fn work(&mut self, milliseconds: i64, name: &str, act: WorkEvent) {
        self.add_record(milliseconds, Event::Worked { name: name.into(), act });
    }

    /// Sends a message and returns its key, which later `read` and `show` calls need.
    pub(crate) fn write(
        &mut self,
        milliseconds: i64,
        from: &str,
        to: &str,
        text: &str,
    ) -> MessageKey {
        self.message_count += 1;
        let key = MessageKey::from_id(&self.message_count.to_string());
        let timestamp = at(milliseconds).to_string();
        let message = json!({"from": from, "text": text, "timestamp": timestamp, "read": false});
        let message = to_raw_value(&message).unwrap();
        let event = Event::Seen { to: to.into(), key, message };
        self.add_record(milliseconds, event);
        key
    }

    pub(crate) fn idle(&mut self, milliseconds: i64, from: &str, to: &str) {
        let timestamp = at(milliseconds).to_string();
        let body = json!({
            "type": "idle_notification", "from": from, "timestamp": timestamp,
            "idleReason": "available"
        });
        self.write(milliseconds, from, to, &body.to_string());
    }

    pub(crate) fn read(&mut self, milliseconds: i64, to: &str, key: MessageKey) {
        self.add_record(milliseconds, Event::Read { to: to.into(), key, gone: false });
    }

    pub(crate) fn show(&mut self, milliseconds: i64, to: &str, key: MessageKey) {
        self.add_record(milliseconds, Event::Shown { to: to.into(), key });
    }

    /// Draws the screen and returns the lines of the current view, without trailing spaces.
    pub(crate) fn drawn(&mut self, width: u16, height: u16) -> Vec<String> {
        let text = draw_text(&mut self.screen, width, height);
        let lines = text.lines().take(usize::from(height.saturating_sub(1))).skip(2);
        lines.map(str::to_owned).collect()
    }

    pub(crate) fn press(&mut self, commands: &[KeyCommand]) {
        for command in commands {
            self.screen.run_command(*command);
        }
    }
}
