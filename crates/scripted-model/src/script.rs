//! Parses scripts. A script is a JSON array of steps between `[script]` and `[/script]` in a prompt.
//!
//! The markers contain no `<`, because brigade escapes that character when it puts a message into an envelope.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

const OPEN: &str = "[script]";
const CLOSE: &str = "[/script]";
const HEARD: &str = "{heard:";

/// The script in one prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptScript {
    /// The steps. Each step is one answer of the model.
    pub steps: Vec<ScriptStep>,
}

/// One answer of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptStep {
    /// The action of the model in this step.
    pub act: StepAction,
    /// How long the model waits before the action.
    pub wait: Duration,
    /// How long the model waits after each part of a streamed answer.
    pub pace: Duration,
}

/// The action of a step. Its strings may contain references to earlier tool results (see [`fill`]).
#[derive(Clone, Debug, PartialEq)]
pub enum StepAction {
    /// Call a tool.
    Call {
        /// The name of the tool, or the end of the name.
        tool: String,
        /// The arguments.
        args: Value,
    },
    /// Answer with text, which ends the turn.
    Say(String),
}

/// Why a script cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The script is not valid JSON of the expected form.
    #[error("the script is not an array of steps: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A step has several actions, or none.
    #[error("step {0} must have exactly one of `tool` and `say`, or only `wait`")]
    InvalidStep(usize),
    /// A `wait` or a `pace` is not a valid duration.
    #[error("step {0}: `wait` or `pace` is not a valid duration")]
    InvalidWait(usize),
    /// The last step has only a `wait`, so there is no action to delay.
    #[error("the script ends with a wait")]
    EndsWithWait,
    /// A reference cannot be resolved.
    #[error("cannot resolve {{{0}}}")]
    Unresolved(String),
}

/// A step in JSON form. It has `tool` with optional `args`, or `say`, or neither. It may also have `wait`, in
/// seconds. A step with neither `tool` nor `say` must have `wait`. With
/// `pace`, also in seconds, the model pauses after each part of a streamed answer, for example after each word.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepJson {
    tool: Option<String>,
    args: Option<Value>,
    say: Option<String>,
    wait: Option<f64>,
    #[serde(default)]
    pace: f64,
}

impl PromptScript {
    /// Finds the last script in a text. In the script, `{heard:request_id}` stands for the word that follows the
    /// last `request_id` before the script, so that the script can answer a request by its id.
    pub fn find(text: &str) -> Option<Result<Self, ScriptError>> {
        let (before, after) = text.rsplit_once(OPEN)?;
        let (script, _) = after.split_once(CLOSE)?;
        Some(resolve_heard(&unescape(script), before).and_then(|script| Self::parse(&script)))
    }

    fn parse(script: &str) -> Result<Self, ScriptError> {
        let written: Vec<StepJson> = serde_json::from_str(script)?;
        let mut steps = Vec::new();
        // A step with only a wait delays the next step.
        let mut delay = Duration::ZERO;
        for (number, step) in written.into_iter().enumerate() {
            let duration = |seconds| {
                Duration::try_from_secs_f64(seconds).map_err(|_| ScriptError::InvalidWait(number))
            };
            delay += duration(step.wait.unwrap_or_default())?;
            let pace = duration(step.pace)?;
            let act = match (step.tool, step.args, step.say) {
                (Some(tool), args, None) => StepAction::Call {
                    tool,
                    args: args.unwrap_or_else(|| Value::Object(Default::default())),
                },
                (None, None, Some(text)) => StepAction::Say(text),
                (None, None, None) if step.wait.is_some() => continue,
                _ => return Err(ScriptError::InvalidStep(number)),
            };
            steps.push(ScriptStep { act, wait: std::mem::take(&mut delay), pace });
        }
        if delay > Duration::ZERO { Err(ScriptError::EndsWithWait) } else { Ok(Self { steps }) }
    }
}

/// Unescapes a script that is inside a JSON string. For example, Claude Code shows its model the reason for a
/// shutdown request as a JSON string.
fn unescape(script: &str) -> Cow<'_, str> {
    if serde_json::from_str::<IgnoredAny>(script).is_ok() {
        return Cow::Borrowed(script);
    }
    let unescaped: Result<String, _> = serde_json::from_str(&format!("\"{script}\""));
    unescaped.map_or(Cow::Borrowed(script), Cow::Owned)
}

/// Replaces references of the form `{heard:NAME}` with words from the text before the script.
fn resolve_heard(script: &str, before: &str) -> Result<String, ScriptError> {
    let mut filled = String::new();
    let mut rest = script;
    while let Some((head, after)) = rest.split_once(HEARD) {
        let Some((name, behind)) = after.split_once('}') else { break };
        let word = word_after(name, before);
        filled.push_str(head);
        filled.push_str(word.ok_or_else(|| ScriptError::Unresolved(format!("heard:{name}")))?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Replaces references to earlier tool results in every string of `value`.
///
/// `{result}` is the text of the latest result. `{result:/messages/0/id}` is the value at a JSON pointer in the
/// latest result. `{result:request_id}` is the word that follows the last `request_id` in the latest result.
/// Vendors show results in different forms, so this reference works for JSON and for plain text. `{result#0:…}`
/// refers to the first result since the script began. A string that is exactly one reference becomes the
/// referenced value, which may be a number or an object; otherwise the value is inserted as text.
pub fn fill(value: &Value, results: &[&str]) -> Result<Value, ScriptError> {
    Ok(match value {
        Value::String(text) => fill_text(text, results)?,
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, results)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let filled = fields.iter().map(|(key, item)| Ok((key.clone(), fill(item, results)?)));
            Value::Object(filled.collect::<Result<_, ScriptError>>()?)
        }
        other => other.clone(),
    })
}

fn fill_text(text: &str, results: &[&str]) -> Result<Value, ScriptError> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{result") {
        let Some((reference, behind)) = after.split_once('}') else { break };
        let found = resolve(reference, results)
            .ok_or_else(|| ScriptError::Unresolved(format!("result{reference}")))?;
        if filled.is_empty() && before.is_empty() && behind.is_empty() {
            return Ok(found);
        }
        filled.push_str(before);
        match found {
            Value::String(text) => filled.push_str(&text),
            other => filled.push_str(&other.to_string()),
        }
        rest = behind;
    }
    filled.push_str(rest);
    Ok(Value::String(filled))
}

/// Resolves a reference: the text between `{result` and `}`.
fn resolve(reference: &str, results: &[&str]) -> Option<Value> {
    let (which, pointer) = match reference.split_once(':') {
        Some((which, pointer)) => (which, Some(pointer)),
        None => (reference, None),
    };
    let text = match which.strip_prefix('#') {
        Some(number) => results.get(number.parse::<usize>().ok()?)?,
        None if which.is_empty() => results.last()?,
        None => return None,
    };
    match pointer {
        None => Some(Value::String((*text).to_owned())),
        Some(pointer) if pointer.starts_with('/') => find_json(text)?.pointer(pointer).cloned(),
        Some(name) => word_after(name, text).map(|word| Value::String(word.to_owned())),
    }
}

/// Returns the word that follows the last occurrence of `name` in `text`, without surrounding punctuation.
fn word_after<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    let (_, after) = text.rsplit_once(name)?;
    let after = after.trim_start_matches([' ', '"', '\\', ':', '=']);
    let word = after.split(|c: char| c.is_whitespace() || "\"\\,}<".contains(c)).next()?;
    Some(word.trim_end_matches([':', '.', ';'])).filter(|word| !word.is_empty())
}

/// Parses the first JSON object or array in a text. Some vendors put other text before a result.
fn find_json(text: &str) -> Option<Value> {
    text.match_indices(['{', '[']).find_map(|(start, _)| {
        let rest = text.get(start..)?;
        serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_script_in_a_text_is_used() {
        let text = r#"x [script][{"say":"a"}][/script] y [script][{"say":"b"}][/script] z"#;
        let script = PromptScript::find(text).unwrap().unwrap();
        assert_eq!(
            script.steps,
            [ScriptStep {
                act: StepAction::Say("b".into()),
                wait: Duration::ZERO,
                pace: Duration::ZERO
            }]
        );
        assert!(PromptScript::find("no script").is_none());
        assert!(PromptScript::find("[script] without an end").is_none());
    }

    #[test]
    fn a_script_can_refer_to_the_text_before_it() {
        let text = r#"request_id stop-1@bob: why [script][{"say":"{heard:request_id}"}][/script]"#;
        let script = PromptScript::find(text).unwrap().unwrap();
        assert_eq!(script.steps[0].act, StepAction::Say("stop-1@bob".into()));
        let text = r#"nothing [script][{"say":"{heard:request_id}"}][/script] request_id late"#;
        let error = PromptScript::find(text).unwrap().unwrap_err().to_string();
        assert_eq!(error, "cannot resolve {heard:request_id}");
    }

    #[test]
    fn a_script_inside_a_json_string_is_found() {
        let script = r#"[script][{"say":"it is {heard:requestId}, \"yes\""}][/script]"#;
        for reason in [script.to_owned(), json!(script).to_string()] {
            let text = format!(r#"{{"requestId":"stop-1@bob","reason":{reason}}}"#);
            let script = PromptScript::find(&text).unwrap().unwrap();
            assert_eq!(
                script.steps[0].act,
                StepAction::Say("it is stop-1@bob, \"yes\"".into()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_separate_wait_delays_the_next_step() {
        let text = r#"[script][{"wait":1},{"tool":"t","wait":0.5},{"say":"b"}][/script]"#;
        let script = PromptScript::find(text).unwrap().unwrap();
        let waits: Vec<_> = script.steps.iter().map(|step| step.wait.as_millis()).collect();
        assert_eq!(waits, [1500, 0]);
    }

    #[test]
    fn invalid_scripts_are_reported() {
        let check = |script: &str, expected: &str| {
            let error = PromptScript::parse(script).unwrap_err().to_string();
            assert!(error.contains(expected), "{script}: {error}");
        };
        check("{}", "not an array");
        check(r#"[{"tol":"x"}]"#, "unknown field");
        check(r#"[{"say":"x"},{"tool":"x","say":"y"}]"#, "step 1 must have");
        check(r#"[{"say":"x","args":{}}]"#, "step 0 must have");
        check("[{}]", "step 0 must have");
        check(r#"[{"wait":-1}]"#, "not a valid duration");
        check(r#"[{"wait":1}]"#, "ends with a wait");
    }

    #[test]
    fn references_to_results_are_replaced() {
        let results = [r#"{"id": 7}"#, r#"took 3 s: {"m":[{"id":"r-1","ok":true}]} (and more)"#];
        let check = |template: Value, expected: Value| {
            assert_eq!(fill(&template, &results).unwrap(), expected, "{template}");
        };
        check(json!("{result:/m/0/id}"), json!("r-1"));
        check(json!("{result:/m/0/ok}"), json!(true));
        check(json!("{result#0:/id}"), json!(7));
        check(json!("no {result#0:/id}, {result:/m/0/id}."), json!("no 7, r-1."));
        check(json!({"a": ["{result#0}"], "b": 1}), json!({"a": [r#"{"id": 7}"#], "b": 1}));
        check(json!("{braces} {result"), json!("{braces} {result"));
    }

    #[test]
    fn a_named_value_is_found_in_json_and_in_plain_text() {
        for text in [
            r#"{"messages":[{"request_id":"old-1"},{"request_id":"stop-2@bob","text":"stop"}]}"#,
            r#"Output:\n{\"request_id\": \"stop-2@bob\"}"#,
            "request_id old-1: x\nrequest_id stop-2@bob: you are asked to stop",
            "The request_id=stop-2@bob.",
            "<message>request_id stop-2@bob</message>",
        ] {
            let filled = fill(&json!("{result:request_id}"), &[text]).unwrap();
            assert_eq!(filled, json!("stop-2@bob"), "{text}");
        }
        assert!(fill(&json!("{result:request_id}"), &["no such name"]).is_err());
        assert!(fill(&json!("{result:request_id}"), &["the end is request_id"]).is_err());
    }

    #[test]
    fn an_unresolvable_reference_is_reported() {
        for template in ["{result:/none}", "{result#9}", "{results}", "{result#x:/id}"] {
            let error = fill(&json!(template), &[r#"{"id": 7}"#]).unwrap_err().to_string();
            assert_eq!(error, format!("cannot resolve {template}"));
        }
        assert!(fill(&json!("{result}"), &[]).is_err());
        assert!(fill(&json!("{result:/id}"), &["no JSON"]).is_err());
    }
}
