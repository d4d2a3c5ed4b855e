//! Rules that answer permission requests before a person or the lead is asked.
//!
//! An allow rule is about the commands that really run. The line is split into its commands, and a rule must allow
//! each of them. If the line contains anything whose meaning depends on the shell, its variables or the folder, no
//! rule allows it: the request waits for an answer. Ask and deny rules compare text, with the whole line and with
//! every part of it that could be a command.
//!
//! The rules are checked in their order, and the first one that completes a decision decides:
//!
//! - An ask or deny rule decides if it matches any part of the line.
//! - An allow rule decides if it and the allow rules before it allow all commands of the line.
//!
//! Rules do not limit what an allowed program does. A program that runs code from the member's folder, such as
//! `cargo test`, runs whatever the agent wrote there.
//!
//! ```
//! use std::path::Path;
//!
//! use brigade_core::policy::{Rule, RuleDecision, ToolUse, decide};
//! use serde_json::json;
//!
//! let rules = [Rule { ruling: RuleDecision::Allow, tool: None, command: Some("cargo test *".into()) }];
//! let decision = |command: &str| {
//!     let (input, folder) = (json!({ "command": command }), Path::new("/project"));
//!     decide(&rules, &ToolUse { tool: "Bash", input: &input, cwd: folder, folder, files: &[] })
//! };
//! assert_eq!(decision("cargo test -p core"), Some((0, RuleDecision::Allow)));
//! assert_eq!(decision("cargo test -p core; rm -r ."), None);
//! assert_eq!(decision("./cargo test"), None);
//! ```

mod explain;
mod files;
mod git;
mod line_text;
mod options;
mod paths;
mod pattern;
mod runners;
mod scripts;
pub mod shell;
mod tools;
mod word;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::explain::{Explanation, PartExplanation, explain};
pub use self::files::named_files;
use self::pattern::Pattern;
use self::shell::{SimpleCommand, Unclear};
pub(crate) use self::tools::{FOLDER_FIELDS, is_shell_tool, named_folder};
pub use self::tools::{command, run_folder};
pub use self::word::Word;

/// A rule: which requests it matches, and what it decides. If no rule decides, the request waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The rule's decision.
    pub ruling: RuleDecision,
    /// The pattern for the name that the agent uses for the tool; `*` matches any characters. A rule without this
    /// field matches any tool. If it is an allow rule with a command, it matches only tools that run command lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The pattern for the tool's input: the command line or, for tools without one, the input as JSON. A rule
    /// without this field matches any input.
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

impl RuleDecision {
    /// Returns the decision as files and messages write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The use of a tool that an agent requests permission for.
#[derive(Clone, Copy, Debug)]
pub struct ToolUse<'c> {
    /// The name that the agent uses for the tool.
    pub tool: &'c str,
    /// The input that the tool would get.
    pub input: &'c Value,
    /// The folder in which the tool would run ([`run_folder`]). The caller resolves symbolic links in it.
    pub cwd: &'c Path,
    /// The folder that the member works in. No rule allows a tool that would run outside this folder.
    pub folder: &'c Path,
    /// The files that the request names ([`named_files`]). The caller resolves symbolic links in them. No rule allows a
    /// tool for a file outside the member's folder; command lines may name other files.
    pub files: &'c [PathBuf],
}

/// Returns the decision of the rules, and the index of the rule that decides. If several rules together allow the
/// commands of a line, it is the index of the first one. `None` if no rule decides.
pub fn decide(rules: &[Rule], tool_use: &ToolUse<'_>) -> Option<(usize, RuleDecision)> {
    RuleRequest::new(tool_use).apply(rules)
}

/// Checks the pattern of an allow rule for commands. The error says why the pattern can never match.
pub fn check_allowed_command(pattern: &str) -> Result<(), Unclear> {
    Pattern::parse(pattern).map(|_| ())
}

/// A request, in the form against which rules are matched.
struct RuleRequest<'c> {
    tool_use: &'c ToolUse<'c>,
    /// The command line.
    line: Option<String>,
    /// The commands of the line, each with the index of the rule that allows it; empty if there is no line. An error if the
    /// line is not understood.
    commands: Result<Vec<(SimpleCommand, Option<usize>)>, Unclear>,
    /// Whether the tool would run in the member's folder, and would use only files in that folder.
    is_inside: bool,
    /// Whether the input has no unknown field that could change what a command does.
    has_known_fields: bool,
    json: String,
}

impl<'c> RuleRequest<'c> {
    fn new(tool_use: &'c ToolUse<'c>) -> Self {
        let line = tools::shell_line(tool_use.input);
        let commands = line.as_deref().map_or_else(|| Ok(Vec::new()), shell::parse);
        let commands = commands.and_then(|commands| {
            let has_others = !are_parts(tools::further_lines(tool_use.input), &commands);
            if has_others { Err(Unclear::OTHER_COMMANDS) } else { Ok(commands) }
        });
        let fields = tool_use.input.as_object();
        Self {
            tool_use,
            line,
            commands: commands
                .map(|commands| commands.into_iter().map(|command| (command, None)).collect()),
            is_inside: paths::is_inside(tool_use.cwd, tool_use.folder)
                && (is_shell_tool(tool_use.tool) || files::are_inside(tool_use)),
            has_known_fields: fields
                .is_some_and(|fields| tools::has_known_fields(tool_use.tool, fields)),
            json: tool_use.input.to_string(),
        }
    }

    /// Checks the rules in their order. Returns the decision of the first one that completes a decision.
    fn apply(&mut self, rules: &[Rule]) -> Option<(usize, RuleDecision)> {
        for (index, rule) in rules.iter().enumerate() {
            let tool = self.tool_use.tool;
            let matches_tool = |pattern: &String| line_text::matches(pattern, tool);
            if !rule.tool.as_ref().is_none_or(matches_tool) {
                continue;
            }
            match rule.ruling {
                RuleDecision::Ask | RuleDecision::Deny => {
                    if rule.command.as_ref().is_none_or(|pattern| self.mentions(pattern)) {
                        return Some((index, rule.ruling));
                    }
                }
                RuleDecision::Allow => {
                    if let Some(first) = self.allow(index, rule) {
                        return Some((first, RuleDecision::Allow));
                    }
                }
            }
        }
        None
    }

    /// Returns whether the pattern of an ask or deny rule matches any part of the request.
    fn mentions(&self, pattern: &str) -> bool {
        let is_shell = is_shell_tool(self.tool_use.tool);
        let json = (self.line.is_none() || !is_shell).then_some(self.json.as_str());
        let lines =
            self.line.as_deref().into_iter().chain(tools::further_lines(self.tool_use.input));
        lines.chain(json).any(|text| line_text::matches_any_part(pattern, text))
    }

    /// Applies an allow rule. Returns the index of the first rule that allows a part of the request, if the whole
    /// request is now allowed.
    fn allow(&mut self, index: usize, rule: &Rule) -> Option<usize> {
        let is_shell = is_shell_tool(self.tool_use.tool);
        let is_known = self.has_known_fields || !(is_shell || self.line.is_some());
        if !self.is_inside || (is_shell && !is_known) {
            return None;
        }
        let Some(pattern) = &rule.command else { return Some(index) };
        // A rule without a tool is about the commands of known tools only.
        if !is_known || (rule.tool.is_none() && !is_shell) {
            return None;
        }
        if self.line.is_none() {
            let matches = rule.tool.is_some() && line_text::matches_json(pattern, &self.json);
            return matches.then_some(index);
        }
        let pattern = Pattern::parse(pattern).ok()?;
        let commands = self.commands.as_mut().ok()?;
        for (command, by) in commands.iter_mut() {
            if by.is_none() && pattern.allows(command, self.tool_use.folder) {
                *by = Some(index);
            }
        }
        let rules: Option<Vec<usize>> = commands.iter().map(|(_, by)| *by).collect();
        rules?.into_iter().min()
    }
}

/// Returns whether each line is the beginning of one of the commands. An agent that reports the parts of its line
/// beside the line must not name another command there.
fn are_parts<'l>(mut lines: impl Iterator<Item = &'l str>, commands: &[SimpleCommand]) -> bool {
    lines.all(|line| {
        let Ok(parts) = shell::parse(line) else { return false };
        parts.iter().all(|part| {
            let begins = |command: &SimpleCommand| {
                command.words.starts_with(&part.words)
                    && (part.assignments.is_empty() || part.assignments == command.assignments)
                    && part.redirections.iter().all(|file| command.redirections.contains(file))
            };
            commands.iter().any(begins)
        })
    })
}
