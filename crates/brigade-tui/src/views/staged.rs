//! A scripted team for tests: each call adds one record.

use std::sync::Arc;

use brigade_core::event::{Act, Event, MessageKey, Record};
use brigade_core::store::event_log::{Batch, Held};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::View;
use crate::frame;
use crate::keys::Command;
use crate::screen::{Screen, ScreenEvent};
use crate::style::Theme;

/// A screen whose records the test provides.
pub(crate) struct ScriptedTeam {
    pub(crate) screen: Screen,
    stored: Arc<Held>,
    message_count: u64,
}

/// The time this many milliseconds after noon on 3 March 2026.
pub(crate) fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_772_539_200_000 + milliseconds).unwrap()
}

impl ScriptedTeam {
    pub(crate) fn new(view: View) -> Self {
        let stored = Arc::new(Held::default());
        let library = Arc::<Held>::clone(&stored);
        let mut screen = Screen::new("team".into(), library, Theme { color: false }, at(0));
        screen.view = view;
        screen.caught_up = true;
        Self { screen, stored, message_count: 0 }
    }

    fn add_record(&mut self, milliseconds: i64, event: Event) {
        let record = Arc::new(Record { at: at(milliseconds), by: None, event });
        let spot = self.stored.keep(Arc::clone(&record));
        let batch = Batch { records: vec![(spot, record)], caught_up: true };
        self.screen.update(ScreenEvent::Records(batch));
        self.screen.update(ScreenEvent::Time(at(milliseconds)));
    }

    pub(crate) fn join(&mut self, milliseconds: i64, name: &str) {
        let member = to_raw_value(&json!({"name": name, "agentType": "codex"})).unwrap();
        self.add_record(milliseconds, Event::Member { name: name.into(), member, joined: true });
    }

    pub(crate) fn leave(&mut self, milliseconds: i64, name: &str) {
        self.add_record(milliseconds, Event::MemberLeft { name: name.into() });
    }

    pub(crate) fn work(&mut self, milliseconds: i64, name: &str, act: Act) {
        self.add_record(milliseconds, Event::Worked { name: name.into(), act });
    }

    /// Sends a message and returns its key, for later `read` and `show` calls.
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

    /// Draws the screen and returns the lines of the view, without trailing spaces.
    pub(crate) fn drawn(&mut self, width: u16, height: u16) -> Vec<String> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        self.screen.drawn = frame::draw(&self.screen, &mut buffer);
        let line = |y: u16| {
            let cells = (0..width).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        (2..height.saturating_sub(1)).map(line).collect()
    }

    pub(crate) fn press(&mut self, commands: &[Command]) {
        for command in commands {
            self.screen.command(*command);
        }
    }
}
