//! Rules that answer permission requests before a person or the lead is asked.
//!
//! A rule only compares text; it does not understand commands. In case of doubt, the request waits for an answer.
//! In an allow rule, a `*` matches only arguments of a single command. An ask or deny rule is checked against
//! every part of a command line. Rules spare honest agents the wait for an answer. They do not protect against an
//! agent that hides what it does.
//!
//! ```
//! use brigade_core::policy::{Rule, RuleDecision, decide};
//! use serde_json::json;
//!
//! let rules = [Rule { ruling: RuleDecision::Allow, tool: None, command: Some("cargo test *".into()) }];
//! let decision = |command| decide(&rules, "shell", &json!({ "command": command }));
//! assert_eq!(decision("cargo test -p core"), Some((0, RuleDecision::Allow)));
//! assert_eq!(decision("cargo test -p core; rm -r ."), None);
//! ```

mod line;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::line::command;
use self::line::{is_operator, parts};

/// A rule: which requests it matches, and what it decides. The first matching rule decides. If no rule matches,
/// the request waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The rule's decision.
    pub ruling: RuleDecision,
    /// The pattern for the name that the agent uses for the tool; `*` matches any characters. A rule without this
    /// field matches any tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The pattern for the tool's input: the command line or, for tools without one, the input as JSON. `*`
    /// matches any characters. A rule without this field matches any input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The decision of a rule about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleDecision {
    /// Grant the request.
    Allow,
    /// Let the request wait for an answer.
    Ask,
    /// Refuse the request.
    Deny,
}

/// Returns the index and the decision of the first matching rule; `None` if no rule matches.
pub fn decide(rules: &[Rule], tool: &str, input: &Value) -> Option<(usize, RuleDecision)> {
    let text = RuleInput::new(input);
    let mut numbered = rules.iter().enumerate();
    numbered
        .find(|(_, rule)| rule.applies_to(tool, &text))
        .map(|(number, rule)| (number, rule.ruling))
}

/// The input of a tool, in the form against which rules are matched.
enum RuleInput {
    Command(String),
    Json(String),
}

impl RuleInput {
    fn new(input: &Value) -> Self {
        command(input).map_or_else(|| Self::Json(input.to_string()), Self::Command)
    }
}

impl Rule {
    fn applies_to(&self, tool: &str, text: &RuleInput) -> bool {
        let tool_matches =
            self.tool.as_ref().is_none_or(|pattern| matches(pattern, tool, |_| true));
        tool_matches
            && self.command.as_ref().is_none_or(|pattern| self.matches_input(pattern, text))
    }

    fn matches_input(&self, pattern: &str, text: &RuleInput) -> bool {
        match (self.ruling, text) {
            (RuleDecision::Allow, RuleInput::Command(line)) => {
                let one_command = |star: &str| !star.contains(is_operator);
                !leaves_folder(pattern, line) && matches(pattern, line, one_command)
            }
            (RuleDecision::Allow, RuleInput::Json(json)) => {
                // A `*` stays within one JSON string. A `*` that ends the pattern matches the rest of the input.
                let (pattern, rest) = match pattern.strip_suffix('*') {
                    Some(begin) => (begin, true),
                    None => (pattern, false),
                };
                let within = |star: &str| !star.contains(['"', '\\']);
                !leaves_folder(pattern, json)
                    && if rest {
                        matches_prefix(pattern, json, within)
                    } else {
                        matches(pattern, json, within)
                    }
            }
            (
                RuleDecision::Ask | RuleDecision::Deny,
                RuleInput::Command(text) | RuleInput::Json(text),
            ) => {
                matches(pattern, text, |_| true)
                    || parts(text).iter().any(|part| matches(pattern, part, |_| true))
            }
        }
    }
}

/// Returns whether a text contains a `..` that could lead out of the folder that the pattern names.
fn leaves_folder(pattern: &str, text: &str) -> bool {
    pattern.contains('*')
        && !pattern.contains("..")
        && (text.contains("../") || text.contains("/.."))
}

/// Returns whether the pattern matches the whole text. Each `*` matches only texts that `star` accepts.
fn matches(pattern: &str, text: &str, star: impl Fn(&str) -> bool + Copy) -> bool {
    match_ends(pattern, text, star).any(|end| end == text.len())
}

/// Returns whether the pattern matches a prefix of the text.
fn matches_prefix(pattern: &str, text: &str, star: impl Fn(&str) -> bool + Copy) -> bool {
    match_ends(pattern, text, star).next().is_some()
}

/// Returns the end offset of each prefix of `text` that matches the pattern. The running time is at most
/// proportional to the product of both lengths, so no pattern can make this function hang.
fn match_ends(
    pattern: &str,
    text: &str,
    star: impl Fn(&str) -> bool,
) -> impl Iterator<Item = usize> {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let mut starts: Vec<usize> =
        text.strip_prefix(first).map(|_| first.len()).into_iter().collect();
    for piece in pieces {
        let (mut next, mut behind, mut nearest) = (Vec::new(), starts.iter().peekable(), None);
        for end in text.char_indices().map(|(at, _)| at).chain([text.len()]) {
            while let Some(start) = behind.next_if(|start| **start <= end) {
                nearest = Some(*start);
            }
            if !text.get(end..).is_some_and(|rest| rest.starts_with(piece)) {
                continue;
            }
            // If `star` accepts a text, it accepts every suffix of that text, so checking the last start
            // before `end` is enough.
            if nearest.and_then(|start| text.get(start..end)).is_some_and(&star) {
                next.push(end + piece.len());
            }
        }
        starts = next;
    }
    starts.into_iter()
}
