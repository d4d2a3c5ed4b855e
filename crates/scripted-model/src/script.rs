//! What a prompt can tell the model to do: steps between `[script]` and `[/script]`, a JSON array.
//!
//! The marks have no `<`, so that a script survives the escaping of a message's envelope.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

const OPEN: &str = "[script]";
const CLOSE: &str = "[/script]";
const HEARD: &str = "{heard:";

/// The steps of one prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// One for each answer.
    pub steps: Vec<Step>,
}

/// One answer of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it does.
    pub act: Act,
    /// How long it takes before it does so.
    pub wait: Duration,
}

/// What the model does at a step. Strings may hold references to results, as in [`fill`].
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// It calls a tool.
    Call {
        /// The tool's name, or the end of it.
        tool: String,
        /// What it is called with.
        args: Value,
    },
    /// It says something, which ends its turn.
    Say(String),
}

/// Why a script cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum BadScript {
    /// Not the JSON that a script is.
    #[error("the script is not an array of steps: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A step that is two things, or none.
    #[error("step {0} is neither a tool, nor something to say, nor a wait")]
    Unclear(usize),
    /// A wait that is no length of time.
    #[error("step {0} waits for no length of time")]
    Timeless(usize),
    /// A wait with nothing to wait for.
    #[error("the script ends with a wait")]
    Endless,
    /// A reference that leads nowhere.
    #[error("no result for {{{0}}}")]
    Unresolved(String),
}

/// A step as it is written: `tool` with `args`, or `say`; `wait` in seconds with either, or alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    tool: Option<String>,
    args: Option<Value>,
    say: Option<String>,
    wait: Option<f64>,
}

impl Script {
    /// The last script in a text, if there is one. `{heard:request_id}` in it is the word that follows
    /// the last `request_id` before it: a request brings the id that its answer has to name.
    pub fn find(text: &str) -> Option<Result<Self, BadScript>> {
        let (before, after) = text.rsplit_once(OPEN)?;
        let (script, _) = after.split_once(CLOSE)?;
        Some(fill_heard(&plain(script), before).and_then(|script| Self::parse(&script)))
    }

    fn parse(script: &str) -> Result<Self, BadScript> {
        let written: Vec<Written> = serde_json::from_str(script)?;
        let mut steps = Vec::new();
        // A wait of its own belongs to the step after it: waiting is not an answer.
        let mut waited = Duration::ZERO;
        for (number, step) in written.into_iter().enumerate() {
            if let Some(seconds) = step.wait {
                waited += Duration::try_from_secs_f64(seconds)
                    .map_err(|_| BadScript::Timeless(number))?;
            }
            let act = match (step.tool, step.args, step.say) {
                (Some(tool), args, None) => Act::Call {
                    tool,
                    args: args.unwrap_or_else(|| Value::Object(Default::default())),
                },
                (None, None, Some(text)) => Act::Say(text),
                (None, None, None) if step.wait.is_some() => continue,
                _ => return Err(BadScript::Unclear(number)),
            };
            steps.push(Step { act, wait: std::mem::take(&mut waited) });
        }
        if waited > Duration::ZERO { Err(BadScript::Endless) } else { Ok(Self { steps }) }
    }
}

/// The script itself where it stands in a string of JSON, as the reason of a request to stop does in what
/// Claude Code shows its model.
fn plain(script: &str) -> Cow<'_, str> {
    if serde_json::from_str::<IgnoredAny>(script).is_ok() {
        return Cow::Borrowed(script);
    }
    let within: Result<String, _> = serde_json::from_str(&format!("\"{script}\""));
    within.map_or(Cow::Borrowed(script), Cow::Owned)
}

/// Puts words that stand before a script into it.
fn fill_heard(script: &str, before: &str) -> Result<String, BadScript> {
    let mut filled = String::new();
    let mut rest = script;
    while let Some((head, after)) = rest.split_once(HEARD) {
        let Some((name, behind)) = after.split_once('}') else { break };
        let word = word_after(name, before);
        filled.push_str(head);
        filled.push_str(word.ok_or_else(|| BadScript::Unresolved(format!("heard:{name}")))?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Puts results of earlier tools into every string of `value`.
///
/// `{result}` is the text of the latest result, `{result:/messages/0/id}` a place in the JSON it holds,
/// `{result:request_id}` the word that follows the last `request_id` in it, in JSON or in words, for some
/// vendors show their model the one and some the other. `{result#0:…}` is the same of the script's first.
/// A string that is one reference and nothing else becomes what it refers to, number or object; within
/// other words it becomes text.
pub fn fill(value: &Value, results: &[&str]) -> Result<Value, BadScript> {
    Ok(match value {
        Value::String(text) => fill_text(text, results)?,
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, results)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let filled = fields.iter().map(|(key, item)| Ok((key.clone(), fill(item, results)?)));
            Value::Object(filled.collect::<Result<_, BadScript>>()?)
        }
        other => other.clone(),
    })
}

fn fill_text(text: &str, results: &[&str]) -> Result<Value, BadScript> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{result") {
        let Some((reference, behind)) = after.split_once('}') else { break };
        let found = resolve(reference, results)
            .ok_or_else(|| BadScript::Unresolved(format!("result{reference}")))?;
        if filled.is_empty() && before.is_empty() && behind.is_empty() {
            return Ok(found);
        }
        filled.push_str(before);
        match found {
            Value::String(words) => filled.push_str(&words),
            other => filled.push_str(&other.to_string()),
        }
        rest = behind;
    }
    filled.push_str(rest);
    Ok(Value::String(filled))
}

/// `reference` is what stands between `{result` and `}`.
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
        Some(pointer) if pointer.starts_with('/') => json_within(text)?.pointer(pointer).cloned(),
        Some(name) => word_after(name, text).map(|word| Value::String(word.to_owned())),
    }
}

/// The word that follows the last `name`, without the signs around it.
fn word_after<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    let (_, after) = text.rsplit_once(name)?;
    let after = after.trim_start_matches([' ', '"', '\\', ':', '=']);
    let word = after.split(|sign: char| sign.is_whitespace() || "\"\\,}<".contains(sign)).next()?;
    Some(word.trim_end_matches([':', '.', ';'])).filter(|word| !word.is_empty())
}

/// The first JSON object or array in a text: some vendors put words of their own before a result.
fn json_within(text: &str) -> Option<Value> {
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
    fn the_last_script_of_a_text_counts() {
        let text = r#"x [script][{"say":"a"}][/script] y [script][{"say":"b"}][/script] z"#;
        let script = Script::find(text).unwrap().unwrap();
        assert_eq!(script.steps, [Step { act: Act::Say("b".into()), wait: Duration::ZERO }]);
        assert!(Script::find("no script").is_none());
        assert!(Script::find("[script] without an end").is_none());
    }

    #[test]
    fn a_script_can_name_what_stands_before_it() {
        let text = r#"request_id stop-1@bob: why [script][{"say":"{heard:request_id}"}][/script]"#;
        let script = Script::find(text).unwrap().unwrap();
        assert_eq!(script.steps[0].act, Act::Say("stop-1@bob".into()));
        let text = r#"nothing [script][{"say":"{heard:request_id}"}][/script] request_id late"#;
        let error = Script::find(text).unwrap().unwrap_err().to_string();
        assert_eq!(error, "no result for {heard:request_id}");
    }

    #[test]
    fn a_script_in_a_string_of_json_is_read() {
        let script = r#"[script][{"say":"it is {heard:requestId}, \"yes\""}][/script]"#;
        for reason in [script.to_owned(), json!(script).to_string()] {
            let text = format!(r#"{{"requestId":"stop-1@bob","reason":{reason}}}"#);
            let script = Script::find(&text).unwrap().unwrap();
            assert_eq!(script.steps[0].act, Act::Say("it is stop-1@bob, \"yes\"".into()), "{text}");
        }
    }

    #[test]
    fn a_wait_of_its_own_belongs_to_the_step_after_it() {
        let text = r#"[script][{"wait":1},{"tool":"t","wait":0.5},{"say":"b"}][/script]"#;
        let script = Script::find(text).unwrap().unwrap();
        let waits: Vec<_> = script.steps.iter().map(|step| step.wait.as_millis()).collect();
        assert_eq!(waits, [1500, 0]);
    }

    #[test]
    fn what_cannot_be_followed_is_said() {
        let check = |script: &str, expected: &str| {
            let error = Script::parse(script).unwrap_err().to_string();
            assert!(error.contains(expected), "{script}: {error}");
        };
        check("{}", "not an array");
        check(r#"[{"tol":"x"}]"#, "unknown field");
        check(r#"[{"say":"x"},{"tool":"x","say":"y"}]"#, "step 1 is neither");
        check(r#"[{"say":"x","args":{}}]"#, "step 0 is neither");
        check("[{}]", "step 0 is neither");
        check(r#"[{"wait":-1}]"#, "no length of time");
        check(r#"[{"wait":1}]"#, "ends with a wait");
    }

    #[test]
    fn results_fill_the_strings_of_a_step() {
        let results = [r#"{"id": 7}"#, r#"took 3 s: {"m":[{"id":"r-1","ok":true}]} (and more)"#];
        let check = |written: Value, expected: Value| {
            assert_eq!(fill(&written, &results).unwrap(), expected, "{written}");
        };
        check(json!("{result:/m/0/id}"), json!("r-1"));
        check(json!("{result:/m/0/ok}"), json!(true));
        check(json!("{result#0:/id}"), json!(7));
        check(json!("no {result#0:/id}, {result:/m/0/id}."), json!("no 7, r-1."));
        check(json!({"a": ["{result#0}"], "b": 1}), json!({"a": [r#"{"id": 7}"#], "b": 1}));
        check(json!("{braces} {result"), json!("{braces} {result"));
    }

    #[test]
    fn a_name_finds_its_value_in_json_and_in_words() {
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
    fn a_reference_that_leads_nowhere_is_refused() {
        for written in ["{result:/none}", "{result#9}", "{results}", "{result#x:/id}"] {
            let error = fill(&json!(written), &[r#"{"id": 7}"#]).unwrap_err().to_string();
            assert_eq!(error, format!("no result for {written}"));
        }
        assert!(fill(&json!("{result}"), &[]).is_err());
        assert!(fill(&json!("{result:/id}"), &["no JSON"]).is_err());
    }
}
