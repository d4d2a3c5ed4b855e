//! Driver for a worker in our own process. Like an agent's program, the worker reads and writes lines of JSON.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asks::OpenAsks;
use super::limit;
use super::lines::{JsonLines, line};
use super::{
    Access, AgentAsk, AgentEvent, AskId, Driver, DriverOutput, EDIT_NOT_POSSIBLE, Invocation,
    LaunchOptions, PermissionAnswer, TextNumber, TurnEnd,
};

/// A message to a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerInput {
    /// Start a turn with this text.
    Turn { note: u64, text: String },
    /// The answer to a permission request. `no` is the reason for a denial, or `None` if the request was allowed.
    Answer { ask: u64, no: Option<String> },
    /// Interrupt the running turn.
    Interrupt {},
}

/// A message from a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerOutput {
    /// The worker is ready.
    Ready { session: String },
    /// The worker has started the turn.
    Began { note: u64 },
    /// The worker asks for permission.
    Asks { ask: u64, tool: String, description: String, input: Value },
    /// The worker no longer waits for the answer to this request.
    AsksNoLonger { ask: u64 },
    /// The turn ended with this text.
    Done { text: String },
    /// The turn failed.
    Failed { why: String },
    /// The turn was interrupted.
    Interrupted {},
}

/// A conversation with a worker.
#[derive(Debug)]
pub(super) struct InProcess {
    access: Access,
    lines: JsonLines,
    /// Open permission requests, each with the number that the worker gave it.
    asks: OpenAsks<u64>,
    outputs: VecDeque<DriverOutput>,
}

impl InProcess {
    pub(super) fn new(launch: &LaunchOptions) -> Self {
        Self {
            access: launch.access,
            lines: JsonLines::default(),
            asks: OpenAsks::new(),
            outputs: VecDeque::new(),
        }
    }

    fn send(&mut self, input: &WorkerInput) {
        // Serializing plain data cannot fail.
        let input = serde_json::to_value(input).unwrap_or_default();
        self.outputs.push_back(DriverOutput::Write(line(&input)));
    }

    fn event(&mut self, event: AgentEvent) {
        self.outputs.push_back(DriverOutput::Event(event));
    }

    fn on_worker_output(&mut self, output: WorkerOutput) {
        match output {
            WorkerOutput::Ready { session } => self.event(AgentEvent::Ready { session }),
            WorkerOutput::Began { note } => {
                self.event(AgentEvent::Taken(TextNumber(note)));
                self.event(AgentEvent::TurnStarted);
            }
            WorkerOutput::Asks { ask, .. } if self.access == Access::Full => {
                self.send(&WorkerInput::Answer { ask, no: None });
            }
            WorkerOutput::Asks { ask, tool, description, input } => {
                let id = self.asks.open(ask);
                let tool_use_id = format!("ask-{ask}");
                let (request, plan) = (Value::Null, None);
                let ask = AgentAsk { id, tool, tool_use_id, description, input, request, plan };
                self.event(AgentEvent::Asks(ask));
            }
            WorkerOutput::AsksNoLonger { ask } => {
                if let Some((id, _)) = self.asks.close_where(|open| *open == ask) {
                    self.event(AgentEvent::AsksNoLonger(id));
                }
            }
            WorkerOutput::Done { text } => {
                self.event(AgentEvent::Said(text));
                self.end_turn(TurnEnd::Done);
            }
            WorkerOutput::Failed { why } => self.end_turn(limit::failed(why)),
            WorkerOutput::Interrupted {} => self.end_turn(TurnEnd::Interrupted),
        }
    }

    fn end_turn(&mut self, end: TurnEnd) {
        for id in self.asks.close_all().into_keys() {
            self.event(AgentEvent::AsksNoLonger(id));
        }
        self.event(AgentEvent::TurnEnded(end));
    }
}

impl Driver for InProcess {
    fn invocation(&self) -> Invocation {
        Invocation::default()
    }

    fn start(&mut self) {}

    fn on_output(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
        while let Some(line) = self.lines.next() {
            if let Ok(output) = serde_json::from_value(line) {
                self.on_worker_output(output);
            }
        }
    }

    fn prompt(&mut self, note: TextNumber, text: &str) {
        self.send(&WorkerInput::Turn { note: note.0, text: text.to_owned() });
    }

    fn steer(&mut self, note: TextNumber, _text: &str) {
        self.event(AgentEvent::NotTaken(note));
    }

    fn passes_on_reasons(&self) -> bool {
        true
    }

    fn answer(&mut self, ask: AskId, verdict: &PermissionAnswer) {
        let Some(ask) = self.asks.close(ask) else { return };
        let no = match verdict {
            PermissionAnswer::Allow => None,
            PermissionAnswer::AllowEdited(_) => Some(EDIT_NOT_POSSIBLE.to_owned()),
            PermissionAnswer::Deny(why) => Some(why.clone()),
        };
        self.send(&WorkerInput::Answer { ask, no });
    }

    fn interrupt(&mut self) {
        self.send(&WorkerInput::Interrupt {});
    }

    fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    fn next(&mut self) -> Option<DriverOutput> {
        self.outputs.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::driver::ToolServer;

    fn driver(access: Access) -> InProcess {
        InProcess::new(&LaunchOptions { access, ..LaunchOptions::new("", ToolServer::default()) })
    }

    fn asks() -> Vec<u8> {
        line(&json!({ "asks": { "ask": 7, "tool": "t", "description": "d", "input": {} } }))
    }

    fn written(driver: &mut InProcess) -> Vec<Value> {
        let outputs = std::iter::from_fn(|| driver.next());
        let lines = outputs.filter_map(|output| match output {
            DriverOutput::Write(bytes) => Some(serde_json::from_slice(&bytes).unwrap()),
            DriverOutput::Event(_) => None,
        });
        lines.collect()
    }

    #[test]
    fn full_access_is_granted_without_asking() {
        let mut free = driver(Access::Full);
        free.on_output(&asks());
        assert_eq!(written(&mut free), [json!({ "answer": { "ask": 7, "no": null } })]);
        let mut asking = driver(Access::Ask);
        asking.on_output(&asks());
        assert_eq!(written(&mut asking), Vec::<Value>::new());
        asking.answer(AskId(1), &PermissionAnswer::Deny("no".to_owned()));
        // A second answer to the same request is ignored.
        asking.answer(AskId(1), &PermissionAnswer::Allow);
        assert_eq!(written(&mut asking), [json!({ "answer": { "ask": 7, "no": "no" } })]);
    }

    #[test]
    fn requests_still_open_at_the_end_of_a_turn_are_withdrawn() {
        let mut driver = driver(Access::Ask);
        driver.on_output(&asks());
        driver.on_output(b"noise\n{\"asks\":7}\n");
        driver.on_output(&line(&json!({ "failed": { "why": "tired" } })));
        let events: Vec<DriverOutput> = std::iter::from_fn(|| driver.next()).skip(1).collect();
        let end = AgentEvent::TurnEnded(TurnEnd::Failed("tired".to_owned()));
        let expected = [AgentEvent::AsksNoLonger(AskId(1)), end].map(DriverOutput::Event);
        assert_eq!(events, expected);
    }
}
