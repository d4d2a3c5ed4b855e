//! The building blocks of scenarios, and the scenarios that several agents share.

use brigade_agents::driver::Access;

use ScenarioStep::{Allow, Deny, Interrupt, Killed, Prompt, SetAccess, Until};

/// A sequence of steps. Each step calls an agent's driver or waits for an event.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) agent: &'static str,
    pub(super) name: &'static str,
    pub(super) access: Access,
    pub(super) model: Option<&'static str>,
    pub(super) steps: Vec<ScenarioStep>,
}

/// One step of a scenario.
#[derive(Clone, Debug)]
pub(super) enum ScenarioStep {
    /// Waits for an event whose line in the log begins with this text.
    Until(&'static str),
    Prompt(String),
    /// Sends a text again, with the same number as before.
    PromptAgain(u64, String),
    Steer(String),
    Allow,
    Deny(&'static str),
    Interrupt,
    SetAccess(Access),
    /// Kills the program, and starts it again to resume its session.
    Killed,
}

impl Scenario {
    /// Creates a scenario with the access level `Ask`. Its first step waits until the agent is ready.
    pub(super) fn new(agent: &'static str, name: &'static str) -> Self {
        Self { agent, name, access: Access::Ask, model: None, steps: vec![Until("Ready")] }
    }

    pub(super) fn access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    pub(super) fn model(self, model: &'static str) -> Self {
        Self { model: Some(model), ..self }
    }

    pub(super) fn then(mut self, steps: impl IntoIterator<Item = ScenarioStep>) -> Self {
        self.steps.extend(steps);
        self
    }

    pub(super) fn prompt(self, text: impl Into<String>) -> Self {
        self.then([Prompt(text.into())])
    }

    /// Prompts the agent, and waits for the end of the turn.
    pub(super) fn turn(self, text: impl Into<String>) -> Self {
        self.prompt(text).then([Until("TurnEnded")])
    }

    /// Prompts the agent, waits for a permission request, takes the step `reaction`, and waits for the end of
    /// the turn.
    pub(super) fn asked(self, text: impl Into<String>, reaction: ScenarioStep) -> Self {
        self.prompt(text).then([Until("Asks"), reaction, Until("TurnEnded")])
    }
}

/// Returns a prompt that contains a script for the scripted model. `steps` are JSON objects, separated by commas.
pub(super) fn script(text: &str, steps: &str) -> String {
    format!("{text} [script][{steps}][/script]")
}

/// Returns the script step in which the model writes this text.
pub(super) fn say(text: &str) -> String {
    format!(r#"{{"say":"{text}"}}"#)
}

/// Returns the script steps in which the model calls a tool and then writes `then_say`. `arguments` are JSON
/// fields.
pub(super) fn call(tool: &str, arguments: &str, then_say: &str) -> String {
    format!(r#"{{"tool":"{tool}","args":{{{arguments}}}}},{}"#, say(then_say))
}

/// The text that the model writes after a tool call in most scenarios.
pub(super) const RESULT: &str = "Done: {result}";

/// The names and parameters of an agent's tools.
pub(super) struct AgentTools {
    pub(super) agent: &'static str,
    /// The prefix of the names of the team's tools.
    pub(super) team: &'static str,
    /// The tool that runs a shell command.
    pub(super) shell: &'static str,
    /// The tool that writes a file, followed by the names of its parameters for the path and the content.
    pub(super) write: [&'static str; 3],
    /// The tool that edits a file, followed by the names of its parameters for the path, the old text and the
    /// new text.
    pub(super) edit: [&'static str; 4],
    /// Further arguments that the edit tool needs, as JSON fields.
    pub(super) edit_also: &'static str,
}

impl AgentTools {
    /// Returns a prompt whose script runs a shell command.
    pub(super) fn shell(&self, text: &str, command: &str, then_say: &str) -> String {
        let arguments = format!(r#""command":"{command}","description":"to see""#);
        script(text, &call(self.shell, &arguments, then_say))
    }

    /// Returns the script steps that write a file in the project folder.
    pub(super) fn write(&self, file: &str, content: &str, then_say: &str) -> String {
        let [tool, path, text] = self.write;
        let arguments = format!(r#""{path}":"/home/dev/project/{file}","{text}":"{content}""#);
        call(tool, &arguments, then_say)
    }

    fn edit(&self, text: &str, old: &str, new: &str) -> String {
        let [tool, path, old_field, new_field] = self.edit;
        let arguments = format!(
            r#""{path}":"/home/dev/project/a.txt","{old_field}":"{old}","{new_field}":"{new}"{}"#,
            self.edit_also
        );
        script(text, &call(tool, &arguments, RESULT))
    }

    /// Returns the script step that lists the team's tasks.
    pub(super) fn task_list(&self) -> String {
        format!(r#"{{"tool":"{}task_list"}}"#, self.team)
    }

    /// Returns the scenarios that are the same for every agent, except that the names of the tools differ.
    pub(super) fn scenarios(&self) -> Vec<Scenario> {
        vec![talk(self.agent, self.team), failing(self.agent), self.permission(), self.editing()]
    }

    fn permission(&self) -> Scenario {
        Scenario::new(self.agent, "permission")
            .asked(self.shell("One.", "touch one", RESULT), Allow)
            .asked(self.shell("Two.", "touch two", RESULT), Deny("not today"))
            .asked(script("Three.", &self.write("three", "3", RESULT)), Interrupt)
    }

    fn editing(&self) -> Scenario {
        let lines = r"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
        Scenario::new(self.agent, "edit")
            .access(Access::Full)
            .turn(script("Make.", &self.write("a.txt", lines, RESULT)))
            .turn(self.edit("Change.", r"two\n", r"TWO\nTWO AND A HALF\n"))
            .then([SetAccess(Access::Ask)])
            .asked(self.edit("Change again.", r"nine\nten\n", r"TEN\n"), Allow)
            .asked(self.edit("And once more.", r"one\n", r"ONE\n"), Deny("not today"))
    }

    /// Interrupts the agent right after a prompt, without waiting for an event. For agents that speak ACP.
    pub(super) fn interrupt(&self) -> Scenario {
        Scenario::new(self.agent, "interrupt")
            .then([Prompt(slow("Very slowly.")), Interrupt, Until("TurnEnded")])
            .turn(script("And on.", &say("Here.")))
    }

    /// Runs a turn for each prompt in `first`, kills the agent during the next turn, and resumes the session.
    pub(super) fn resume(&self, first: impl IntoIterator<Item = String>) -> Scenario {
        let scenario = Scenario::new(self.agent, "resume");
        let list = self.task_list();
        first
            .into_iter()
            .fold(scenario, Scenario::turn)
            .prompt(script("Second.", &format!(r#"{list},{{"wait":30}},{}"#, say("Never."))))
            .then([Until("ToolEnded"), Killed, Until("Ready")])
            .turn(script("Third.", &format!("{list},{}", say("Still here."))))
    }

    /// Asks an agent for a change, first with read-only access and then with full access. With read-only access,
    /// the agent asks for permission and gets the answer `denied`. If `denied` is `None`, the agent must refuse
    /// without asking.
    pub(super) fn read_only(&self, denied: Option<ScenarioStep>) -> Scenario {
        let scenario = Scenario::new(self.agent, "access").access(Access::ReadOnly);
        let look = self.shell("Look.", "touch made", "{result}");
        match denied {
            Some(denied) => scenario.asked(look, denied),
            None => scenario.turn(look),
        }
        .then([SetAccess(Access::Full)])
        .turn(self.shell("Change.", "touch made && echo made", "{result}"))
    }
}

pub(super) fn talk(agent: &'static str, team: &str) -> Scenario {
    let report =
        call(&format!("{team}send_message"), r#""to":"team-lead","message":"hi""#, "Sent.");
    Scenario::new(agent, "talk")
        .turn(script("Report.", &report))
        .turn(script("And now?", &say("Nothing more.")))
}

pub(super) fn failing(agent: &'static str) -> Scenario {
    Scenario::new(agent, "failing").turn("[fail] Anything.")
}

/// In the first turn, the model's server reports a limit. In the second turn, the server works again. `signs` are
/// additional events to wait for in the first turn.
pub(super) fn limited(agent: &'static str, signs: &[ScenarioStep]) -> Scenario {
    Scenario::new(agent, "limited")
        .prompt("[limit] Anything.")
        .then(signs.iter().cloned())
        .then([Until("TurnEnded")])
        .turn(script("[enough] Again.", &say("Here I am.")))
}

pub(super) fn with_model(agent: &'static str, model: &'static str) -> Scenario {
    Scenario::new(agent, "model").model(model).turn(script("Who?", &say("Me.")))
}

/// Interrupts an agent in two turns: in the first turn after the event `started`, which reports the start of the
/// turn, and in the second turn before that event.
pub(super) fn interrupt_twice(agent: &'static str, started: &'static str) -> Scenario {
    Scenario::new(agent, "interrupt")
        .then([Prompt(slow("Very slowly.")), Until(started), Interrupt, Until("TurnEnded")])
        .then([Prompt(slow("At once.")), Interrupt, Until("TurnEnded")])
        .turn(script("And on.", &say("Here.")))
}

/// Returns a prompt that the model answers after 30 seconds.
pub(super) fn slow(text: &str) -> String {
    script(text, &format!(r#"{{"wait":30}},{}"#, say("Never.")))
}
