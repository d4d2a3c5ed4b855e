//! Represents a conversation independently of the wire format, and finds the model's next answer in the script.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::schema;
use crate::script::{PromptScript, ScriptError, ScriptStep, StepAction, fill};

/// The content of one request: all previous events, and the available tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The events, oldest first.
    pub events: Vec<InputEvent>,
    /// The tools that the agent program offers to the model.
    pub tools: Vec<Tool>,
    /// The JSON schema that the answer must match, if any. A request with a schema is an internal question of the
    /// agent program, not a turn.
    pub schema: Option<Value>,
}

/// An input to the model. The model's own earlier answers are left out, because the script determines them.
#[derive(Clone, Debug, PartialEq)]
pub enum InputEvent {
    /// Text from the user.
    UserText(String),
    /// The result of a tool.
    ToolResult(ToolResult),
}

/// The result of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolResult {
    /// The result's text, as the model sees it.
    pub text: String,
    /// Whether the result reports that the tool failed. Only the Messages and Gemini formats can report this.
    pub failed: bool,
}

/// A tool that the agent program offers to the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    /// The name by which the model calls the tool; `namespace/name` if the tool is in a namespace.
    pub name: String,
    /// Whether the tool is only announced. The model must search for such a tool before calling it.
    pub deferred: bool,
}

/// An answer and its delay.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayedAnswer {
    /// The answer.
    pub answer: ModelAnswer,
    /// The delay before the answer.
    pub wait: Duration,
    /// The delay after each part of a streamed answer.
    pub pace: Duration,
}

/// An answer of the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelAnswer {
    /// A step of the script: a tool call.
    Call {
        /// The name of the tool, as written in the script.
        wanted: String,
        /// The name under which the agent program offers the tool.
        tool: String,
        /// The arguments, after references to results were replaced.
        args: Value,
    },
    /// A step of the script: text.
    Say(String),
    /// Text that does not come from a script: the answer to an internal question, or to a prompt without a script.
    Aside(String),
    /// The reason why the script could not be followed.
    #[serde(rename = "stray")]
    ScriptError(String),
}

impl Conversation {
    /// Returns the next step of the script, or another answer if there is no script.
    pub fn reply(&self) -> DelayedAnswer {
        let without_delay =
            |answer| DelayedAnswer { answer, wait: Duration::ZERO, pace: Duration::ZERO };
        if let Some(schema) = &self.schema {
            return without_delay(ModelAnswer::Aside(schema::example(schema).to_string()));
        }
        let Some((script, results)) = self.script() else {
            return without_delay(ModelAnswer::Aside(format!(
                "No script. You said: {}",
                self.latest_user_text()
            )));
        };
        match script.and_then(|script| self.follow(&script, &results)) {
            Ok(reply) => reply,
            Err(error) => without_delay(ModelAnswer::ScriptError(error.to_string())),
        }
    }

    /// Returns the latest script and the tool results after it. The number of results is the index of the next
    /// step.
    fn script(&self) -> Option<(Result<PromptScript, ScriptError>, Vec<&str>)> {
        self.events.iter().enumerate().rev().find_map(|(index, event)| {
            let InputEvent::UserText(text) = event else { return None };
            let script = PromptScript::find(text)?;
            let after = self.events.iter().skip(index);
            let results = after.filter_map(|event| match event {
                InputEvent::ToolResult(returned) => Some(returned.text.as_str()),
                InputEvent::UserText(_) => None,
            });
            Some((script, results.collect()))
        })
    }

    fn follow(
        &self,
        script: &PromptScript,
        results: &[&str],
    ) -> Result<DelayedAnswer, ScriptError> {
        let Some(ScriptStep { act, wait, pace }) = script.steps.get(results.len()) else {
            let reason = format!("the script has no step after {} tool results", results.len());
            return Ok(DelayedAnswer {
                answer: ModelAnswer::ScriptError(reason),
                wait: Duration::ZERO,
                pace: Duration::ZERO,
            });
        };
        let answer = match act {
            StepAction::Say(text) => match fill(&Value::String(text.clone()), results)? {
                Value::String(text) => ModelAnswer::Say(text),
                other => ModelAnswer::Say(other.to_string()),
            },
            // To get a title for the session, an agent program also sends the prompt without any tools.
            StepAction::Call { .. } if self.tools.is_empty() => {
                ModelAnswer::Aside("Scripted".into())
            }
            StepAction::Call { tool: wanted, args } => match self.find_tool(wanted) {
                Ok(tool) => ModelAnswer::Call {
                    wanted: wanted.clone(),
                    tool: tool.name.clone(),
                    args: fill(args, results)?,
                },
                Err(reason) => ModelAnswer::ScriptError(reason),
            },
        };
        Ok(DelayedAnswer { answer, wait: *wait, pace: *pace })
    }

    /// Finds the tool with this name. If there is none, finds the only tool whose name ends with the given name.
    /// Vendors combine the name of a tool and the name of its MCP server in different ways, so `team/send_message`
    /// also matches `mcp__team__send_message`.
    fn find_tool(&self, wanted: &str) -> Result<&Tool, String> {
        if let Some(tool) = self.tools.iter().find(|tool| tool.name == wanted) {
            return Ok(tool);
        }
        let parts = name_parts(wanted);
        let has_suffix = |tool: &&Tool| name_parts(&tool.name).ends_with(&parts);
        let found: Vec<_> = self.tools.iter().filter(has_suffix).collect();
        match found.as_slice() {
            [tool] => Ok(tool),
            [] => Err(format!("no tool {wanted} among the {} offered", self.tools.len())),
            several => {
                let names: Vec<_> = several.iter().map(|tool| tool.name.as_str()).collect();
                Err(format!("{wanted} could be any of {}", names.join(", ")))
            }
        }
    }

    /// Returns the last text from the user.
    pub fn latest_user_text(&self) -> &str {
        let mut texts = self.events.iter().rev().filter_map(|event| match event {
            InputEvent::UserText(text) => Some(text.as_str()),
            InputEvent::ToolResult(_) => None,
        });
        texts.next().unwrap_or_default()
    }

    /// Returns the tool results, in order.
    pub fn results(&self) -> impl DoubleEndedIterator<Item = &ToolResult> {
        self.events.iter().filter_map(|event| match event {
            InputEvent::ToolResult(returned) => Some(returned),
            InputEvent::UserText(_) => None,
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

    fn conversation(events: Vec<InputEvent>, tools: &[&str]) -> Conversation {
        let tool = |name: &&str| Tool { name: (*name).to_owned(), deferred: false };
        Conversation { events, tools: tools.iter().map(tool).collect(), schema: None }
    }

    fn user_text(text: &str) -> InputEvent {
        InputEvent::UserText(text.to_owned())
    }

    fn tool_result(text: &str) -> InputEvent {
        InputEvent::ToolResult(ToolResult { text: text.to_owned(), failed: false })
    }

    const SCRIPT: &str = r#"[script][{"tool":"team/send_message","args":{"to":"bob"}},
        {"tool":"team/task_get","args":{"taskId":"{result:/id}"},"wait":2},{"say":"it is {result}"}][/script]"#;

    #[test]
    fn the_number_of_results_since_the_script_selects_the_step() {
        let tools = ["mcp__team__send_message", "mcp__team__task_get"];
        let mut events =
            vec![user_text("hello"), tool_result("from another script"), user_text(SCRIPT)];
        let reply = conversation(events.clone(), &tools).reply();
        let call = |wanted: &str, tool: &str, args| ModelAnswer::Call {
            wanted: wanted.to_owned(),
            tool: tool.to_owned(),
            args,
        };
        let first = call("team/send_message", "mcp__team__send_message", json!({"to": "bob"}));
        assert_eq!(
            reply,
            DelayedAnswer { answer: first, wait: Duration::ZERO, pace: Duration::ZERO }
        );

        // A reminder that the agent program inserts does not start a new script.
        events.extend([tool_result(r#"{"id":"3"}"#), user_text("<system-reminder>")]);
        let reply = conversation(events.clone(), &tools).reply();
        let second = call("team/task_get", "mcp__team__task_get", json!({"taskId": "3"}));
        assert_eq!(
            reply,
            DelayedAnswer { answer: second, wait: Duration::from_secs(2), pace: Duration::ZERO }
        );

        events.push(tool_result("done"));
        let reply = conversation(events.clone(), &tools).reply();
        assert_eq!(reply.answer, ModelAnswer::Say("it is done".into()));

        events.push(tool_result("too many"));
        let reply = conversation(events.clone(), &tools).reply();
        assert_eq!(
            reply.answer,
            ModelAnswer::ScriptError("the script has no step after 3 tool results".into())
        );

        events.push(user_text(r#"[script][{"say":"again"}][/script]"#));
        assert_eq!(conversation(events, &tools).reply().answer, ModelAnswer::Say("again".into()));
    }

    #[test]
    fn a_tool_is_found_under_the_names_of_all_vendors() {
        let check = |wanted: &str, tools: &[&str], expected: Result<&str, &str>| {
            let conversation = conversation(Vec::new(), tools);
            let found = conversation.find_tool(wanted).map(|tool| tool.name.as_str());
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
    fn a_prompt_without_a_script_is_reported() {
        let reply = conversation(vec![user_text("one"), user_text("two")], &[]).reply();
        assert_eq!(reply.answer, ModelAnswer::Aside("No script. You said: two".into()));
    }

    #[test]
    fn an_invalid_script_is_reported() {
        let reply = conversation(vec![user_text("[script]nonsense[/script]")], &[]).reply();
        let ModelAnswer::ScriptError(reason) = reply.answer else { panic!("{reply:?}") };
        assert!(reason.contains("not an array"), "{reason}");
    }

    #[test]
    fn internal_questions_do_not_advance_the_script() {
        let mut asked = conversation(vec![user_text(SCRIPT)], &[]);
        assert_eq!(asked.reply().answer, ModelAnswer::Aside("Scripted".into()));
        asked.tools = vec![Tool { name: "team_send_message".into(), deferred: false }];
        asked.schema = Some(json!({"type": "object", "properties": {"n": {"type": "number"}}}));
        assert_eq!(asked.reply().answer, ModelAnswer::Aside(r#"{"n":0}"#.into()));
    }
}
