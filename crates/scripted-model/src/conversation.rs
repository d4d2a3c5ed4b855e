//! A conversation, whatever the wire format, and what the script has the model answer to it.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::schema;
use crate::script::{Act, BadScript, Script, Step, fill};

/// What one request says: all that happened so far, and what may be called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// In the order they happened.
    pub events: Vec<Event>,
    /// The tools on offer.
    pub tools: Vec<Tool>,
    /// The JSON schema that the answer must obey. Such a question is the program's own, not a turn.
    pub schema: Option<Value>,
}

/// What the model is told. What it said itself needs no place here: the script knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Text in the user's place.
    Said(String),
    /// What a tool gave back.
    Returned(Returned),
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Returned {
    /// Its text, as the model sees it.
    pub text: String,
    /// Whether it is marked as failed. Only Messages and Gemini have such a mark.
    pub failed: bool,
}

/// A tool on offer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    /// By which the model has to call it; of a tool in a namespace `namespace/name`.
    pub name: String,
    /// Whether it is only announced, and has to be searched for before it can be called.
    pub deferred: bool,
}

/// What the model answers, and after which time.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The answer.
    pub answer: Answer,
    /// How long it takes.
    pub wait: Duration,
}

/// What the model answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A step of the script: a tool.
    Call {
        /// As the script calls it.
        wanted: String,
        /// As it is offered.
        tool: String,
        /// With results filled in.
        args: Value,
    },
    /// A step of the script: text.
    Say(String),
    /// Text that is in no script: to a question of the program's own, or where there is none.
    Aside(String),
    /// The script could not be followed; this says why.
    Stray(String),
}

impl Conversation {
    /// The script's next step, or what there is to say without one.
    pub fn reply(&self) -> Reply {
        let at_once = |answer| Reply { answer, wait: Duration::ZERO };
        if let Some(schema) = &self.schema {
            return at_once(Answer::Aside(schema::example(schema).to_string()));
        }
        let Some((script, results)) = self.script() else {
            return at_once(Answer::Aside(format!("No script. You said: {}", self.latest_words())));
        };
        match script.and_then(|script| self.follow(&script, &results)) {
            Ok(reply) => reply,
            Err(bad) => at_once(Answer::Stray(bad.to_string())),
        }
    }

    /// The latest script with the results since. Their number is the number of the step.
    fn script(&self) -> Option<(Result<Script, BadScript>, Vec<&str>)> {
        self.events.iter().enumerate().rev().find_map(|(place, event)| {
            let Event::Said(text) = event else { return None };
            let script = Script::find(text)?;
            let after = self.events.iter().skip(place);
            let results = after.filter_map(|event| match event {
                Event::Returned(returned) => Some(returned.text.as_str()),
                Event::Said(_) => None,
            });
            Some((script, results.collect()))
        })
    }

    fn follow(&self, script: &Script, results: &[&str]) -> Result<Reply, BadScript> {
        let Some(Step { act, wait }) = script.steps.get(results.len()) else {
            let why = format!("the script has ended; {} results", results.len());
            return Ok(Reply { answer: Answer::Stray(why), wait: Duration::ZERO });
        };
        let answer = match act {
            Act::Say(text) => match fill(&Value::String(text.clone()), results)? {
                Value::String(text) => Answer::Say(text),
                other => Answer::Say(other.to_string()),
            },
            // A title for the session is asked for with the same prompt, and without tools.
            Act::Call { .. } if self.tools.is_empty() => Answer::Aside("Scripted".into()),
            Act::Call { tool: wanted, args } => match self.offered(wanted) {
                Ok(tool) => Answer::Call {
                    wanted: wanted.clone(),
                    tool: tool.name.clone(),
                    args: fill(args, results)?,
                },
                Err(why) => Answer::Stray(why),
            },
        };
        Ok(Reply { answer, wait: *wait })
    }

    /// The tool of that name, or the only one whose name ends so. Vendors put the server's name before
    /// a tool's, each in its own way, so `team/send_message` also means `mcp__team__send_message`.
    fn offered(&self, wanted: &str) -> Result<&Tool, String> {
        if let Some(tool) = self.tools.iter().find(|tool| tool.name == wanted) {
            return Ok(tool);
        }
        let parts = name_parts(wanted);
        let ends_so = |tool: &&Tool| name_parts(&tool.name).ends_with(&parts);
        let found: Vec<_> = self.tools.iter().filter(ends_so).collect();
        match found.as_slice() {
            [tool] => Ok(tool),
            [] => Err(format!("no tool {wanted} among the {} offered", self.tools.len())),
            several => {
                let names: Vec<_> = several.iter().map(|tool| tool.name.as_str()).collect();
                Err(format!("{wanted} could be any of {}", names.join(", ")))
            }
        }
    }

    /// The last text in the user's place.
    pub fn latest_words(&self) -> &str {
        let mut words = self.events.iter().rev().filter_map(|event| match event {
            Event::Said(text) => Some(text.as_str()),
            Event::Returned(_) => None,
        });
        words.next().unwrap_or_default()
    }

    /// What the tools gave back, in order.
    pub fn results(&self) -> impl DoubleEndedIterator<Item = &Returned> {
        self.events.iter().filter_map(|event| match event {
            Event::Returned(returned) => Some(returned),
            Event::Said(_) => None,
        })
    }
}

fn name_parts(name: &str) -> Vec<&str> {
    name.split(['_', '/', '.', '-', ':']).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conversation(events: Vec<Event>, tools: &[&str]) -> Conversation {
        let tool = |name: &&str| Tool { name: (*name).to_owned(), deferred: false };
        Conversation { events, tools: tools.iter().map(tool).collect(), schema: None }
    }

    fn said(text: &str) -> Event {
        Event::Said(text.to_owned())
    }

    fn returned(text: &str) -> Event {
        Event::Returned(Returned { text: text.to_owned(), failed: false })
    }

    const SCRIPT: &str = r#"[script][{"tool":"team/send_message","args":{"to":"bob"}},
        {"tool":"team/task_get","args":{"taskId":"{result:/id}"},"wait":2},{"say":"it is {result}"}][/script]"#;

    #[test]
    fn the_step_is_the_number_of_results_since_the_script() {
        let tools = ["mcp__team__send_message", "mcp__team__task_get"];
        let mut events = vec![said("hello"), returned("of another script"), said(SCRIPT)];
        let reply = conversation(events.clone(), &tools).reply();
        let call = |wanted: &str, tool: &str, args| Answer::Call {
            wanted: wanted.to_owned(),
            tool: tool.to_owned(),
            args,
        };
        let first = call("team/send_message", "mcp__team__send_message", json!({"to": "bob"}));
        assert_eq!(reply, Reply { answer: first, wait: Duration::ZERO });

        // A reminder that the program slips in is no new script.
        events.extend([returned(r#"{"id":"3"}"#), said("<system-reminder>")]);
        let reply = conversation(events.clone(), &tools).reply();
        let second = call("team/task_get", "mcp__team__task_get", json!({"taskId": "3"}));
        assert_eq!(reply, Reply { answer: second, wait: Duration::from_secs(2) });

        events.push(returned("done"));
        let reply = conversation(events.clone(), &tools).reply();
        assert_eq!(reply.answer, Answer::Say("it is done".into()));

        events.push(returned("too many"));
        let reply = conversation(events.clone(), &tools).reply();
        assert_eq!(reply.answer, Answer::Stray("the script has ended; 3 results".into()));

        events.push(said(r#"[script][{"say":"anew"}][/script]"#));
        assert_eq!(conversation(events, &tools).reply().answer, Answer::Say("anew".into()));
    }

    #[test]
    fn a_tool_is_found_under_every_vendors_name_for_it() {
        let check = |wanted: &str, tools: &[&str], expected: Result<&str, &str>| {
            let conversation = conversation(Vec::new(), tools);
            let found = conversation.offered(wanted).map(|tool| tool.name.as_str());
            assert_eq!(
                found.map_err(|why| why.as_str().to_owned()),
                expected.map_err(str::to_owned)
            );
        };
        let others = ["SendMessage", "send_message", "resend_message"];
        for name in [
            "mcp__team__send_message",
            "mcp__team/send_message",
            "mcp_team_send_message",
            "team_send_message",
            "team.send_message",
        ] {
            check("team/send_message", &[&others[..], &[name]].concat(), Ok(name));
        }
        check("send_message", &["a_send_message", "send_message"], Ok("send_message"));
        check("send_message", &others[..1], Err("no tool send_message among the 1 offered"));
        check("get", &["a_get", "b_get"], Err("get could be any of a_get, b_get"));
    }

    #[test]
    fn without_a_script_the_model_says_so() {
        let reply = conversation(vec![said("one"), said("two")], &[]).reply();
        assert_eq!(reply.answer, Answer::Aside("No script. You said: two".into()));
    }

    #[test]
    fn a_bad_script_is_told_and_not_guessed_at() {
        let reply = conversation(vec![said("[script]nonsense[/script]")], &[]).reply();
        let Answer::Stray(why) = reply.answer else { panic!("{reply:?}") };
        assert!(why.contains("not an array"), "{why}");
    }

    #[test]
    fn questions_of_the_programs_own_take_no_step() {
        let mut asked = conversation(vec![said(SCRIPT)], &[]);
        assert_eq!(asked.reply().answer, Answer::Aside("Scripted".into()));
        asked.tools = vec![Tool { name: "team_send_message".into(), deferred: false }];
        asked.schema = Some(json!({"type": "object", "properties": {"n": {"type": "number"}}}));
        assert_eq!(asked.reply().answer, Answer::Aside(r#"{"n":0}"#.into()));
    }
}
