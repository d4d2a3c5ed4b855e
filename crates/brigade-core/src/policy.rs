//! Rules that answer a request for leave before anybody is asked.
//!
//! A rule is text against text; it does not understand what a command does. So it leans to the side of
//! asking: what a `*` of an allowing rule stands for can be no more than words of one command, while a
//! rule that asks or denies looks into every part of a line. It keeps honest agents from having to wait,
//! and is no wall against one that hides what it does.
//!
//! ```
//! use brigade_core::policy::{Rule, Ruling, decide};
//! use serde_json::json;
//!
//! let rules = [Rule { ruling: Ruling::Allow, tool: None, command: Some("cargo test *".into()) }];
//! let said = |command| decide(&rules, "shell", &json!({ "command": command }));
//! assert_eq!(said("cargo test -p core"), Some((0, Ruling::Allow)));
//! assert_eq!(said("cargo test -p core; rm -r ."), None);
//! ```

mod line;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::line::command;
use self::line::{is_operator, parts};

/// One rule: what it is about, and what is said to it. Of several the first that fits counts; where none
/// fits, somebody is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What is said.
    pub ruling: Ruling,
    /// The tool, as its agent names it, `*` standing for any letters; any tool if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the tool is given, `*` standing for any letters: a command as it would be run, of another
    /// tool its input as JSON. Anything if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruling {
    /// Yes.
    Allow,
    /// Somebody decides.
    Ask,
    /// No.
    Deny,
}

/// What the rules say to the use of a tool, and which of them, counted from 0. `None` if no rule fits.
pub fn decide(rules: &[Rule], tool: &str, input: &Value) -> Option<(usize, Ruling)> {
    let text = Text::of(input);
    let mut numbered = rules.iter().enumerate();
    numbered.find(|(_, rule)| rule.fits(tool, &text)).map(|(number, rule)| (number, rule.ruling))
}

/// What a tool is given, as a rule sees it.
enum Text {
    Command(String),
    Json(String),
}

impl Text {
    fn of(input: &Value) -> Self {
        command(input).map_or_else(|| Self::Json(input.to_string()), Self::Command)
    }
}

impl Rule {
    fn fits(&self, tool: &str, text: &Text) -> bool {
        let its_tool = self.tool.as_ref().is_none_or(|pattern| matches(pattern, tool, |_| true));
        its_tool && self.command.as_ref().is_none_or(|pattern| self.fits_text(pattern, text))
    }

    fn fits_text(&self, pattern: &str, text: &Text) -> bool {
        match (self.ruling, text) {
            (Ruling::Allow, Text::Command(line)) => {
                let words = |star: &str| !star.contains(is_operator);
                !climbs(pattern, line) && matches(pattern, line, words)
            }
            (Ruling::Allow, Text::Json(json)) => {
                // Within one string; at the end of the pattern it stands for all the rest.
                let (pattern, rest) = match pattern.strip_suffix('*') {
                    Some(begin) => (begin, true),
                    None => (pattern, false),
                };
                let within = |star: &str| !star.contains(['"', '\\']);
                !climbs(pattern, json)
                    && if rest {
                        begins(pattern, json, within)
                    } else {
                        matches(pattern, json, within)
                    }
            }
            (Ruling::Ask | Ruling::Deny, Text::Command(text) | Text::Json(text)) => {
                matches(pattern, text, |_| true)
                    || parts(text).iter().any(|part| matches(pattern, part, |_| true))
            }
        }
    }
}

/// Whether a text leads up and out of where its pattern seems to point.
fn climbs(pattern: &str, text: &str) -> bool {
    pattern.contains('*')
        && !pattern.contains("..")
        && (text.contains("../") || text.contains("/.."))
}

/// Whether the pattern fits the whole text, if each `*` stands only for what `star` lets it.
fn matches(pattern: &str, text: &str, star: impl Fn(&str) -> bool + Copy) -> bool {
    ends(pattern, text, star).any(|end| end == text.len())
}

/// Whether the pattern fits how the text begins.
fn begins(pattern: &str, text: &str, star: impl Fn(&str) -> bool + Copy) -> bool {
    ends(pattern, text, star).next().is_some()
}

/// Where the text can be at its end for the pattern to fit what is before. It is found piece by piece,
/// in time that grows with the product of both lengths: a pattern cannot make us think for ever.
fn ends(pattern: &str, text: &str, star: impl Fn(&str) -> bool) -> impl Iterator<Item = usize> {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let mut places: Vec<usize> =
        text.strip_prefix(first).map(|_| first.len()).into_iter().collect();
    for piece in pieces {
        let (mut next, mut behind, mut nearest) = (Vec::new(), places.iter().peekable(), None);
        for end in text.char_indices().map(|(at, _)| at).chain([text.len()]) {
            while let Some(place) = behind.next_if(|place| **place <= end) {
                nearest = Some(*place);
            }
            if !text.get(end..).is_some_and(|rest| rest.starts_with(piece)) {
                continue;
            }
            // What a `*` may stand for, every shorter end of it may be as well: the nearest place tells.
            if nearest.and_then(|place| text.get(place..end)).is_some_and(&star) {
                next.push(end + piece.len());
            }
        }
        places = next;
    }
    places.into_iter()
}
