//! Tests that apply short sequences of events and check the resulting state.

mod board;
mod mail;
mod people;

use serde_json::json;

use super::*;
use crate::event::{MessageKey, UncheckedRecord};
use crate::store::event_log::InMemoryRecords;

/// Builds the state of a team from events, whose times are in seconds.
#[derive(Default)]
struct EventScript {
    picture: TeamProjection,
    held: InMemoryRecords,
}

fn raw(value: &serde_json::Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn second(at: Millis) -> i64 {
    at.0 / 1000
}

impl EventScript {
    /// Creates a team with these members.
    fn new(members: &[&str]) -> Self {
        let mut script = Self::default();
        for name in members {
            script.joins(0, name);
        }
        script
    }

    fn record(&mut self, at: i64, event: Event) {
        let at = Timestamp::from_second(at).unwrap();
        let record = Arc::new(UncheckedRecord { at, by: None, event }.from_document());
        let spot = self.held.add(Arc::clone(&record));
        self.picture.update(spot, &record);
    }

    fn joins(&mut self, at: i64, name: &str) {
        let member = raw(&json!({"name": name, "agentType": "codex"}));
        self.record(at, Event::Member { name: name.into(), member, joined: true });
    }

    /// Sets `isActive` in a member's roster entry, as Claude Code does when a turn starts or ends.
    fn is_active(&mut self, at: i64, name: &str, is_active: bool) {
        let member = raw(&json!({"name": name, "isActive": is_active}));
        self.record(at, Event::Member { name: name.into(), member, joined: false });
    }

    fn leaves(&mut self, at: i64, name: &str) {
        self.record(at, Event::MemberLeft { name: name.into() });
    }

    fn works(&mut self, at: i64, name: &str, act: WorkEvent) {
        self.record(at, Event::Worked { name: name.into(), act });
    }

    fn writes(&mut self, at: i64, from: &str, to: &str, text: &str) {
        let key = MessageKey::from_id(&format!("{from} {to} {text}"));
        let message = raw(&json!({"from": from, "text": text, "timestamp": "", "read": false}));
        self.record(at, Event::Seen { to: to.into(), key, message });
    }

    fn reads(&mut self, at: i64, from: &str, to: &str, text: &str) {
        let key = MessageKey::from_id(&format!("{from} {to} {text}"));
        self.record(at, Event::Read { to: to.into(), key, gone: false });
    }

    fn is_shown(&mut self, at: i64, from: &str, to: &str, text: &str) {
        let key = MessageKey::from_id(&format!("{from} {to} {text}"));
        self.record(at, Event::Shown { to: to.into(), key });
    }

    fn asks(&mut self, at: i64, from: &str, kind: &str, id: &str) {
        let text = json!({"type": kind, "requestId": id, "from": from}).to_string();
        self.writes(at, from, "lead", &text);
    }

    fn answers(&mut self, at: i64, to: &str, id: &str, yes: bool) {
        let text = json!({"type": "plan_approval_response", "requestId": id, "approved": yes});
        self.writes(at, "lead", to, &text.to_string());
    }

    fn answers_permission(&mut self, at: i64, to: &str, id: &str, yes: bool) {
        let outcome = if yes { "success" } else { "error" };
        let text = json!({"type": "permission_response", "request_id": id, "subtype": outcome});
        self.writes(at, "lead", to, &text.to_string());
    }

    /// Adds the task that a line `number status owner blocker…` describes. The owner `-` means no owner.
    fn task(&mut self, at: i64, line: &str) {
        let mut words = line.split_whitespace();
        let id: u64 = words.next().unwrap().parse().unwrap();
        let status = match words.next().unwrap() {
            "p" => "pending",
            "i" => "in_progress",
            "c" => "completed",
            other => other,
        };
        let owner = words.next().filter(|owner| *owner != "-").unwrap_or_default();
        let after: Vec<&str> = words.collect();
        let task = json!({
            "id": id.to_string(), "subject": format!("s{id}"), "description": "d",
            "status": status, "owner": owner, "blocks": [], "blockedBy": after,
        });
        self.record(at, Event::Task { id, task: raw(&task) });
    }

    /// Describes a member's current activity, its start, and the busy periods so far.
    fn describe_member(&self, name: &str) -> String {
        let person = self.picture.member_named(name).unwrap();
        let since = person.since().map_or("?".into(), |at| second(at).to_string());
        let mut text = format!("{:?} since {since}", person.activity());
        for stretch in &person.busy_spans {
            let to = stretch.to.map_or(String::new(), |at| second(at).to_string());
            text += &format!("; {:?} {}..{to}", stretch.kind, second(stretch.from));
        }
        text
    }
}

/// A step of a test, which records one event.
type ScriptStep<'s> = &'s dyn Fn(&mut EventScript);
