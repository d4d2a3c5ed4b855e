//! The text of an action in the dialog of a Claude Code lead.
//!
//! The dialog is that of a shell command: it shows a command and one line that describes it. Brigade writes
//! everything that the agent asks for into these two texts. Claude Code never runs the command.

use serde_json::Value;

use super::value::quoted;
use super::{ActionKind, AgentAction, CommandLine, RenderLimit, text_of};
use crate::text;

/// How much of a value the comments show. A message holds the request twice, and its size is limited.
const COMMENT_LIMIT: RenderLimit<'static> = RenderLimit {
    lines: 200,
    characters: 20_000,
    values: 200,
    hint: "`brigade inbox team-lead` shows all",
};

/// The two texts that Claude Code's dialog shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialogText {
    /// The command, with the other fields of the request in comments below it. A request that is not a command is
    /// a comment.
    pub command: String,
    /// The tool, its working directory and its purpose.
    pub description: String,
}

impl AgentAction {
    /// Writes the action for Claude Code's dialog. `purpose` says what the agent would use the tool for.
    pub fn dialog(&self, purpose: &str) -> DialogText {
        let place = self.directory().map(|cwd| format!(" in {}", word(&cwd))).unwrap_or_default();
        let description = format!("{}{place}: {}", word(&self.tool), text::exact(purpose));
        let command = self.command_with_comments(purpose);
        DialogText {
            command: command.unwrap_or_else(|| comment(&self.render(Some(COMMENT_LIMIT)))),
            description,
        }
    }

    /// Returns the command with the other fields in comments below it. Returns `None` if there is no shell command,
    /// or if its own lines could be taken for brigade's comments.
    fn command_with_comments(&self, purpose: &str) -> Option<String> {
        let Some(CommandLine::Shell(script)) = self.command() else { return None };
        let lines: Vec<String> = script.split('\n').map(text::exact).collect();
        let is_comment = |line: &String| line.trim_start().starts_with('#');
        if script.trim().is_empty() || lines.first().is_some_and(is_comment) {
            return None;
        }
        let fields = self.without_description(purpose).render_other_fields(Some(COMMENT_LIMIT));
        let command = lines.join("\n");
        match (lines.len(), fields.is_empty()) {
            (1, false) => Some(format!("{command}\n{}", comment(&fields))),
            (_, false) => None,
            (_, true) => (!lines.iter().skip(1).any(is_comment)).then_some(command),
        }
    }

    /// Removes the description if the dialog shows it as the purpose.
    fn without_description(&self, purpose: &str) -> Self {
        let mut rest = self.clone();
        if let ActionKind::RunCommand { other, .. } = &mut rest.kind
            && other.get("description").and_then(Value::as_str) == Some(purpose)
        {
            other.remove("description");
        }
        rest
    }
}

fn comment(lines: &[super::ShownLine]) -> String {
    text_of(lines).split('\n').map(|line| format!("# {line}")).collect::<Vec<_>>().join("\n")
}

/// Writes a name so that its end is seen: a name with blanks, colons or quotes is quoted.
fn word(name: &str) -> String {
    let is_clear = |c: char| !c.is_whitespace() && !matches!(c, ':' | '"' | '\\');
    if !name.is_empty() && name.chars().all(is_clear) { text::exact(name) } else { quoted(name) }
}
