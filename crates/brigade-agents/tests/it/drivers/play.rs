//! A scenario played between a driver and a program, real or replayed, and the story of it.

use std::fmt::Write as _;

use brigade_agents::driver::{AskId, Driver, Event, Invocation, Note, Output, Verdict, agent};

use super::{Scenario, Step, launch};

/// The other end of a driver.
pub(super) trait Program {
    /// Its next line, with its end.
    fn line(&mut self) -> Vec<u8>;
    /// The driver wrote this.
    fn write(&mut self, bytes: &[u8]);
    /// It is started so; if it ran, it is killed first.
    fn start(&mut self, invocation: Invocation);
    /// The scenario is over.
    fn end(&mut self);
    /// The story in the words of the transcript.
    fn familiar(&self, story: String) -> String {
        story
    }
    /// The line as it reaches the driver: in these pieces.
    fn cut(&mut self, line: Vec<u8>) -> Vec<Vec<u8>> {
        vec![line]
    }
}

struct Player<'a> {
    driver: Box<dyn Driver>,
    program: &'a mut dyn Program,
    story: String,
    /// What the agent is saying: pieces that follow each other are one line of the story.
    saying: Option<String>,
    /// Events nobody waited for yet.
    fresh: Vec<String>,
    notes: u64,
    ask: Option<AskId>,
    session: Option<String>,
}

/// Plays a scenario to its end; returns what happened, a line for each call and event.
pub(super) fn play(scenario: &Scenario, program: &mut dyn Program) -> String {
    let agent = agent(scenario.agent).unwrap().agent;
    let mut player = Player {
        driver: (agent.driver)(launch(scenario, None)),
        program,
        story: String::new(),
        saying: None,
        fresh: Vec::new(),
        notes: 0,
        ask: None,
        session: None,
    };
    player.start();
    for step in scenario.steps {
        if let Step::Killed = step {
            player.say("> killed");
            player.fresh.clear();
            player.driver = (agent.driver)(launch(scenario, player.session.clone()));
            player.start();
        } else {
            player.take(*step);
        }
        player.drain();
    }
    player.program.end();
    player.say("> end");
    player.program.familiar(player.story)
}

impl Player<'_> {
    fn say(&mut self, words: &str) {
        if let Some(said) = self.saying.take() {
            writeln!(self.story, "Said {said:?}").unwrap();
        }
        writeln!(self.story, "{words}").unwrap();
    }

    fn start(&mut self) {
        self.say("> start");
        self.program.start(self.driver.invocation());
        self.driver.start();
        self.drain();
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Until(event) => self.until(event),
            Step::Prompt(text) => {
                self.notes += 1;
                self.say(&format!("> prompt {}: {text}", self.notes));
                self.driver.prompt(Note(self.notes), text);
            }
            Step::PromptAgain(note, text) => {
                self.say(&format!("> prompt {note}: {text}"));
                self.driver.prompt(Note(note), text);
            }
            Step::Steer(text) => {
                self.notes += 1;
                self.say(&format!("> steer {}: {text}", self.notes));
                self.driver.steer(Note(self.notes), text);
            }
            Step::Allow => self.answer(&Verdict::Allow),
            Step::Deny(why) => self.answer(&Verdict::Deny(why.to_owned())),
            Step::Interrupt => {
                self.say("> interrupt");
                self.driver.interrupt();
            }
            Step::SetAccess(access) => {
                self.say(&format!("> set access {access:?}"));
                self.driver.set_access(access);
            }
            Step::Killed => unreachable!("a restart makes a new driver"),
        }
    }

    fn answer(&mut self, verdict: &Verdict) {
        let ask = self.ask.unwrap();
        self.say(&format!("> answer {}: {verdict:?}", ask.0));
        self.driver.answer(ask, verdict);
    }

    fn until(&mut self, event: &str) {
        loop {
            if let Some(place) = self.fresh.iter().position(|fresh| fresh.starts_with(event)) {
                self.fresh.drain(..=place);
                return;
            }
            let over = self.fresh.iter().any(|fresh| fresh.starts_with("TurnEnded"));
            assert!(!over, "{event} did not come:\n{}", self.story);
            self.fresh.clear();
            let line = self.program.line();
            for piece in self.program.cut(line) {
                self.driver.hear(&piece);
                self.drain();
            }
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.driver.next() {
            match output {
                Output::Write(bytes) => self.program.write(&bytes),
                Output::Event(event) => {
                    match &event {
                        Event::Ready { session } => self.session = Some(session.clone()),
                        Event::Asks(ask) => self.ask = Some(ask.id),
                        _ => {}
                    }
                    let words = words(&event);
                    match event {
                        Event::Said(piece) => {
                            self.saying.get_or_insert_default().push_str(&piece);
                        }
                        _ => self.say(&words),
                    }
                    self.fresh.push(words);
                }
            }
        }
    }
}

/// An event in a line.
fn words(event: &Event) -> String {
    match event {
        Event::Ready { session } => format!("Ready {session}"),
        Event::Remembers { text } => format!("Remembers {text:?}"),
        Event::RemembersIn { path } => format!("RemembersIn {path}"),
        Event::Taken(note) => format!("Taken {}", note.0),
        Event::NotTaken(note) => format!("NotTaken {}", note.0),
        Event::Said(text) => format!("Said {text:?}"),
        Event::ToolStarted { id, tool, about } => format!("ToolStarted {id} {tool}: {about}"),
        Event::ToolEnded { id, ok } => {
            format!("ToolEnded {id} {}", if *ok { "ok" } else { "not ok" })
        }
        Event::Asks(ask) => {
            let plan = ask.plan.as_ref().map(|plan| format!(", plan {plan:?}")).unwrap_or_default();
            let (id, tool, tool_use) = (ask.id.0, &ask.tool, &ask.tool_use_id);
            format!("Asks {id}: {tool} {tool_use}: {}, input {}{plan}", ask.description, ask.input)
        }
        Event::AsksNoLonger(ask) => format!("AsksNoLonger {}", ask.0),
        Event::Used(used) => {
            let cost = used.cost.map(|cost| format!(", {cost} USD")).unwrap_or_default();
            format!(
                "Used {} in, {} of it cached, {} out{cost}",
                used.input, used.cached, used.output
            )
        }
        other => format!("{other:?}"),
    }
}
