//! Runs a scenario with a driver and a real or replayed program, and logs the driver's calls and events.

use std::fmt::Write as _;

use brigade_agents::driver::{
    AgentEvent, AskId, Driver, DriverOutput, Invocation, PermissionAnswer, TextNumber, agent,
};

use serde_json::Value;

use super::launch;
use super::scenario::{Scenario, ScenarioStep};

/// The agent's program, real or replayed.
pub(super) trait AgentProcess {
    /// Returns the program's next line of output, including the newline.
    fn line(&mut self) -> Vec<u8>;
    /// Writes bytes from the driver to the program's input.
    fn write(&mut self, bytes: &[u8]);
    /// Starts the program. If the program is running, kills it first.
    fn start(&mut self, invocation: Invocation);
    /// Ends the program. Called at the end of the scenario.
    fn end(&mut self);
    /// Puts the recorded ids into `log`, in place of the ids that the driver generated.
    fn with_recorded_ids(&self, log: String) -> String {
        log
    }
    /// Splits a line into the pieces in which the driver receives it.
    fn split(&mut self, line: Vec<u8>) -> Vec<Vec<u8>> {
        vec![line]
    }
}

struct ScenarioRunner<'a> {
    driver: Box<dyn Driver>,
    program: &'a mut dyn AgentProcess,
    log_text: String,
    /// The agent's current text. Consecutive pieces of text become one line of the log.
    current_text: Option<String>,
    /// The events since the last event that a step waited for.
    unmatched: Vec<String>,
    last_note: u64,
    ask: Option<AskId>,
    session: Option<String>,
}

/// Runs a scenario to its end. Returns a log with one line for each call and event.
pub(super) fn play(scenario: &Scenario, program: &mut dyn AgentProcess) -> String {
    let agent = agent(scenario.agent).unwrap().agent;
    let mut runner = ScenarioRunner {
        driver: (agent.driver)(launch(scenario, None)),
        program,
        log_text: String::new(),
        current_text: None,
        unmatched: Vec::new(),
        last_note: 0,
        ask: None,
        session: None,
    };
    runner.start();
    for step in &scenario.steps {
        if let ScenarioStep::Killed = step {
            runner.log("> killed");
            runner.unmatched.clear();
            runner.driver = (agent.driver)(launch(scenario, runner.session.clone()));
            runner.start();
        } else {
            runner.run(step);
        }
        runner.drain();
    }
    runner.program.end();
    runner.log("> end");
    runner.program.with_recorded_ids(runner.log_text)
}

impl ScenarioRunner<'_> {
    fn log(&mut self, line: &str) {
        if let Some(text) = self.current_text.take() {
            writeln!(self.log_text, "Said {text:?}").unwrap();
        }
        writeln!(self.log_text, "{line}").unwrap();
    }

    fn start(&mut self) {
        self.log("> start");
        self.program.start(self.driver.invocation());
        self.driver.start();
        self.drain();
    }

    fn run(&mut self, step: &ScenarioStep) {
        match step {
            ScenarioStep::Until(event) => self.until(event),
            ScenarioStep::Prompt(text) => {
                self.last_note += 1;
                self.log(&format!("> prompt {}: {text}", self.last_note));
                self.driver.prompt(TextNumber(self.last_note), text);
            }
            ScenarioStep::PromptAgain(note, text) => {
                self.log(&format!("> prompt {note}: {text}"));
                self.driver.prompt(TextNumber(*note), text);
            }
            ScenarioStep::Steer(text) => {
                self.last_note += 1;
                self.log(&format!("> steer {}: {text}", self.last_note));
                self.driver.steer(TextNumber(self.last_note), text);
            }
            ScenarioStep::Allow => self.answer(&PermissionAnswer::Allow),
            ScenarioStep::Deny(why) => self.answer(&PermissionAnswer::Deny((*why).to_owned())),
            ScenarioStep::Interrupt => {
                self.log("> interrupt");
                self.driver.interrupt();
            }
            ScenarioStep::SetAccess(access) => {
                self.log(&format!("> set access {access:?}"));
                self.driver.set_access(*access);
            }
            ScenarioStep::Killed => unreachable!("a restart makes a new driver"),
        }
    }

    fn answer(&mut self, verdict: &PermissionAnswer) {
        let ask = self.ask.unwrap();
        self.log(&format!("> answer {}: {verdict:?}", ask.0));
        self.driver.answer(ask, verdict);
    }

    fn until(&mut self, event: &str) {
        loop {
            if let Some(index) =
                self.unmatched.iter().position(|unmatched| unmatched.starts_with(event))
            {
                self.unmatched.drain(..=index);
                return;
            }
            let turn_ended =
                self.unmatched.iter().any(|unmatched| unmatched.starts_with("TurnEnded"));
            assert!(!turn_ended, "no event {event}:\n{}", self.log_text);
            self.unmatched.clear();
            let line = self.program.line();
            for piece in self.program.split(line) {
                self.driver.on_output(&piece);
                self.drain();
            }
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.driver.next() {
            match output {
                DriverOutput::Write(bytes) => self.program.write(&bytes),
                DriverOutput::Event(event) => {
                    match &event {
                        AgentEvent::Ready { session } => self.session = Some(session.clone()),
                        AgentEvent::Asks(ask) => self.ask = Some(ask.id),
                        _ => {}
                    }
                    let line = render(&event);
                    match event {
                        AgentEvent::Said(piece) => {
                            self.current_text.get_or_insert_default().push_str(&piece);
                        }
                        _ => self.log(&line),
                    }
                    self.unmatched.push(line);
                }
            }
        }
    }
}

/// Renders an event as one line.
fn render(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Ready { session } => format!("Ready {session}"),
        AgentEvent::Remembers { text } => format!("Remembers {text:?}"),
        AgentEvent::RemembersIn { path } => format!("RemembersIn {path}"),
        AgentEvent::Taken(note) => format!("Taken {}", note.0),
        AgentEvent::NotTaken(note) => format!("NotTaken {}", note.0),
        AgentEvent::Said(text) => format!("Said {text:?}"),
        AgentEvent::ToolStarted { id, tool, about } => format!("ToolStarted {id} {tool}: {about}"),
        AgentEvent::ToolEnded { id, ok: true, .. } => format!("ToolEnded {id} ok"),
        AgentEvent::ToolEnded { id, why, .. } if why.is_empty() => format!("ToolEnded {id} not ok"),
        AgentEvent::ToolEnded { id, why, .. } => format!("ToolEnded {id} not ok: {why}"),
        AgentEvent::Asks(ask) => {
            let plan = ask.plan.as_ref().map(|plan| format!(", plan {plan:?}")).unwrap_or_default();
            let (id, tool, tool_use) = (ask.id.0, &ask.tool, &ask.tool_use_id);
            let request = match &ask.request {
                Value::Null => String::new(),
                request => format!(", request {request}"),
            };
            let (description, input) = (&ask.description, &ask.input);
            format!("Asks {id}: {tool} {tool_use}: {description}, input {input}{request}{plan}")
        }
        AgentEvent::AsksNoLonger(ask) => format!("AsksNoLonger {}", ask.0),
        AgentEvent::Used(used) => {
            let cost = used.cost.map(|cost| format!(", {cost} USD")).unwrap_or_default();
            format!(
                "Used {} in, {} of it cached, {} out{cost}",
                used.input, used.cached, used.output
            )
        }
        other => format!("{other:?}"),
    }
}
