//! Explains how rules decide a request: which rule allows each command of a line, and what stands in the way.

use super::pattern::{self, Pattern};
use super::shell::{self, Redirection, SimpleCommand};
use super::{Rule, RuleDecision, RuleRequest, ToolUse, is_shell_tool, paths};

/// How rules decide a request, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The result of [`decide`](super::decide).
    pub decision: Option<(usize, RuleDecision)>,
    /// The commands of the line; empty if there is no line, or if it is not understood.
    pub parts: Vec<PartExplanation>,
    /// Why no rule with a command can allow the request, if none can. A rule for the whole tool, or an ask or deny rule, can
    /// still decide.
    pub obstacle: Option<String>,
}

/// How the allow rules match one command of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartExplanation {
    /// The command, written so that every shell reads it in the same way.
    pub command: String,
    /// The narrowest pattern for this command.
    pub pattern: String,
    /// The index of the rule that allows the command. If an ask or deny rule decides the request, the rules after it are
    /// not checked.
    pub allowed_by: Option<usize>,
    /// Why not even the narrowest pattern allows the command.
    pub obstacle: Option<String>,
}

/// Decides like [`decide`](super::decide), and says why.
pub fn explain(rules: &[Rule], tool_use: &ToolUse<'_>) -> Explanation {
    let mut request = RuleRequest::new(tool_use);
    let decision = request.apply(rules);
    let commands = request.commands.as_deref().unwrap_or_default();
    let parts = commands.iter().map(|(command, by)| {
        let pattern = pattern::exact(command);
        let obstacle = match Pattern::parse(&pattern) {
            Ok(pattern) => pattern.obstacle(command, tool_use.folder).map(str::to_owned),
            Err(unclear) => Some(unclear.to_string()),
        };
        PartExplanation { command: written(command), pattern, allowed_by: *by, obstacle }
    });
    Explanation { decision, parts: parts.collect(), obstacle: request.obstacle() }
}

/// Writes a command with its redirections.
fn written(command: &SimpleCommand) -> String {
    let redirections = command.redirections.iter().map(|redirection| match redirection {
        Redirection::From(file) => format!(" < {}", shell::quote(file)),
        Redirection::To(file) => format!(" > {}", shell::quote(file)),
    });
    pattern::exact(command) + &redirections.collect::<String>()
}

impl RuleRequest<'_> {
    /// Returns why no rule with a command can allow the request, whatever that command is.
    fn obstacle(&self) -> Option<String> {
        let is_shell = is_shell_tool(self.tool_use.tool);
        if !paths::is_inside(self.tool_use.cwd, self.tool_use.folder) {
            return Some("it would run outside the member's folder".to_owned());
        }
        if !self.is_inside {
            return Some("it names a file outside the member's folder, or no file".to_owned());
        }
        if !is_shell {
            return None;
        }
        if !self.has_known_fields {
            return Some("its input has a field that brigade does not know".to_owned());
        }
        if self.line.is_none() {
            return Some("it contains no command line".to_owned());
        }
        let unclear = self.commands.as_ref().err()?;
        Some(format!("brigade cannot tell which commands the line runs: {unclear}"))
    }
}
