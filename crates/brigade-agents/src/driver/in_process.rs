//! A value in our own process: it speaks plain lines of JSON, as a program would.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asks::Asks;
use super::limit;
use super::lines::{Lines, line};
use super::{Access, Ask, AskId, Driver, End, Event, Invocation, Launch, Note, Output, Verdict};

/// What a worker is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// A turn begins with this text.
    Turn { note: u64, text: String },
    /// The answer to a question; why not, if it is no.
    Answer { ask: u64, no: Option<String> },
    /// The turn that is on is to end.
    Interrupt {},
}

/// What a worker tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tells {
    /// It is there.
    Ready { session: String },
    /// It has begun the turn.
    Began { note: u64 },
    /// It asks leave.
    Asks { ask: u64, tool: String, description: String, input: Value },
    /// It no longer asks.
    AsksNoLonger { ask: u64 },
    /// The turn came to this.
    Done { words: String },
    /// It failed.
    Failed { why: String },
    /// It was interrupted.
    Interrupted {},
}

/// A conversation with a worker.
#[derive(Debug)]
pub(super) struct InProcess {
    access: Access,
    lines: Lines,
    /// Open questions, by the worker's own number.
    asks: Asks<u64>,
    outputs: VecDeque<Output>,
}

impl InProcess {
    pub(super) fn new(launch: &Launch) -> Self {
        Self {
            access: launch.access,
            lines: Lines::default(),
            asks: Asks::new(),
            outputs: VecDeque::new(),
        }
    }

    fn tell(&mut self, told: &Told) {
        // Plain data; this cannot fail.
        let told = serde_json::to_value(told).unwrap_or_default();
        self.outputs.push_back(Output::Write(line(&told)));
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn told(&mut self, tells: Tells) {
        match tells {
            Tells::Ready { session } => self.event(Event::Ready { session }),
            Tells::Began { note } => {
                self.event(Event::Taken(Note(note)));
                self.event(Event::TurnStarted);
            }
            Tells::Asks { ask, .. } if self.access == Access::Full => {
                self.tell(&Told::Answer { ask, no: None });
            }
            Tells::Asks { ask, tool, description, input } => {
                let id = self.asks.open(ask);
                let tool_use_id = format!("ask-{ask}");
                let ask = Ask { id, tool, tool_use_id, description, input, plan: None };
                self.event(Event::Asks(ask));
            }
            Tells::AsksNoLonger { ask } => {
                if let Some((id, _)) = self.asks.close_where(|its| *its == ask) {
                    self.event(Event::AsksNoLonger(id));
                }
            }
            Tells::Done { words } => {
                self.event(Event::Said(words));
                self.ended(End::Done);
            }
            Tells::Failed { why } => self.ended(limit::failed(why)),
            Tells::Interrupted {} => self.ended(End::Interrupted),
        }
    }

    fn ended(&mut self, end: End) {
        for id in self.asks.close_all().into_keys() {
            self.event(Event::AsksNoLonger(id));
        }
        self.event(Event::TurnEnded(end));
    }
}

impl Driver for InProcess {
    fn invocation(&self) -> Invocation {
        Invocation::default()
    }

    fn start(&mut self) {}

    fn hear(&mut self, bytes: &[u8]) {
        self.lines.hear(bytes);
        while let Some(line) = self.lines.next() {
            if let Ok(tells) = serde_json::from_value(line) {
                self.told(tells);
            }
        }
    }

    fn prompt(&mut self, note: Note, text: &str) {
        self.tell(&Told::Turn { note: note.0, text: text.to_owned() });
    }

    fn steer(&mut self, note: Note, _text: &str) {
        self.event(Event::NotTaken(note));
    }

    fn answer(&mut self, ask: AskId, verdict: &Verdict) {
        let Some(ask) = self.asks.close(ask) else { return };
        let no = match verdict {
            Verdict::Allow => None,
            Verdict::Deny(why) => Some(why.clone()),
        };
        self.tell(&Told::Answer { ask, no });
    }

    fn interrupt(&mut self) {
        self.tell(&Told::Interrupt {});
    }

    fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    fn next(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::driver::ToolServer;

    fn driver(access: Access) -> InProcess {
        let tools = ToolServer { command: String::new(), args: Vec::new(), env: Vec::new() };
        InProcess::new(&Launch {
            cwd: String::new(),
            model: None,
            instructions: String::new(),
            tools,
            access,
            resume: None,
            arguments: Vec::new(),
            claude_dir: None,
        })
    }

    fn asks() -> Vec<u8> {
        line(&json!({ "asks": { "ask": 7, "tool": "t", "description": "d", "input": {} } }))
    }

    fn written(driver: &mut InProcess) -> Vec<Value> {
        let outputs = std::iter::from_fn(|| driver.next());
        let lines = outputs.filter_map(|output| match output {
            Output::Write(bytes) => Some(serde_json::from_slice(&bytes).unwrap()),
            Output::Event(_) => None,
        });
        lines.collect()
    }

    #[test]
    fn who_may_do_everything_is_told_so_at_once() {
        let mut free = driver(Access::Full);
        free.hear(&asks());
        assert_eq!(written(&mut free), [json!({ "answer": { "ask": 7, "no": null } })]);
        let mut asking = driver(Access::Ask);
        asking.hear(&asks());
        assert_eq!(written(&mut asking), Vec::<Value>::new());
        asking.answer(AskId(1), &Verdict::Deny("no".to_owned()));
        // A second answer to one question is none.
        asking.answer(AskId(1), &Verdict::Allow);
        assert_eq!(written(&mut asking), [json!({ "answer": { "ask": 7, "no": "no" } })]);
    }

    #[test]
    fn what_is_open_at_the_end_of_a_turn_is_asked_no_longer() {
        let mut driver = driver(Access::Ask);
        driver.hear(&asks());
        driver.hear(b"noise\n{\"asks\":7}\n");
        driver.hear(&line(&json!({ "failed": { "why": "tired" } })));
        let events: Vec<Output> = std::iter::from_fn(|| driver.next()).skip(1).collect();
        let end = Event::TurnEnded(End::Failed("tired".to_owned()));
        let expected = [Event::AsksNoLonger(AskId(1)), end].map(Output::Event);
        assert_eq!(events, expected);
    }
}
