//! The action for which an agent asks permission, in one form for every vendor, and the text that shows it.
//!
//! An [`AgentAction`] keeps every field of the agent's request: a field that brigade does not know is in `other`, and is
//! shown like every other field. [`AgentAction::render`] is the only code that writes a permission request for people and
//! models. Its uncut text determines the action: two different actions never have the same text.
//!
//! ```
//! use brigade_core::action::{AgentAction, text_of};
//! use serde_json::{Value, json};
//!
//! let input = json!({ "command": "ls\u{202e}", "dangerouslyDisableSandbox": true });
//! let action = AgentAction::new("Bash", &input, &Value::Null, Some("/project"));
//! assert_eq!(
//!     text_of(&action.render(None)),
//!     "Bash: run a command\n\
//!      working directory: /project\n\
//!      command:\n  $ ls\\u{202e}\n\
//!      dangerouslyDisableSandbox: true"
//! );
//! assert!(action.widens_permissions());
//! ```

mod dialog;
mod render;
mod tools;
mod value;

use std::path::Path;

use brigade_wire::permission::{Json, PermissionRequest};
use serde_json::{Map, Value};

pub use self::dialog::DialogText;
pub use self::render::{LineRole, RenderLimit, ShownLine, text_of};
use crate::{policy, text, vendor_tools};

/// Fields of a request, by the names that the agent gave them.
pub type Fields = Map<String, Value>;

/// One tool call for which an agent asks permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentAction {
    /// The name that the agent uses for the tool.
    pub tool: String,
    /// The agent's working directory. `None` if it is not known, or if the input names another directory that is
    /// absolute.
    pub cwd: Option<String>,
    /// The tool's input.
    pub kind: ActionKind,
    /// The fields of the agent's request outside the tool's input, for example the permissions that it asks for in
    /// addition: an object, or null if there are none.
    pub request: Value,
}

/// The input of a tool, by what the tool does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActionKind {
    /// Run a command.
    RunCommand {
        /// The command.
        command: CommandLine,
        /// The field that names the directory in which the command runs.
        directory: Fields,
        /// The fields that change the sandbox of the command.
        sandbox: Fields,
        /// The fields that change the command's access to the network.
        network: Fields,
        /// The fields that change the command's environment variables.
        environment: Fields,
        /// The other fields.
        other: Fields,
    },
    /// Create, change, move or delete files.
    EditFiles {
        /// The fields that name files.
        files: Fields,
        /// The fields with the old and the new content.
        changes: Fields,
        /// The other fields.
        other: Fields,
    },
    /// Fetch a web page.
    Fetch {
        /// The address, a string.
        url: Value,
        /// The other fields.
        other: Fields,
    },
    /// Call a tool of an MCP server.
    McpCall {
        /// The name of the server.
        server: String,
        /// The server's name for the tool.
        tool: String,
        /// The input of the tool.
        arguments: Value,
    },
    /// Use a tool that brigade does not know.
    Other {
        /// The input of the tool.
        input: Value,
    },
}

/// A command, in the form in which the agent gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// A line or a script for a shell.
    Shell(String),
    /// A program and its arguments.
    Arguments(Vec<String>),
}

/// The maximum width of a command, a name or an address in [`AgentAction::summary`].
const MAX_SUMMARY_WIDTH: usize = 100;

/// The fields of a request that grant more than the one call if the request is allowed.
const WIDENING_FIELDS: &[&str] = &["additionalPermissions", "networkApprovalContext", "grantRoot"];

/// The fields of requests for commands that change neither the command nor what an approval grants. They say why the
/// agent asks, or propose rules, which brigade never accepts. `kind` and `_meta` are checked further.
const HARMLESS_FIELDS: &[&str] = &[
    // Claude Code.
    "blocked_path",
    "decision_reason",
    "decision_reason_type",
    "description",
    "display_name",
    "server_policy_ask_only",
    // Codex.
    "kind",
    "message",
    "proposedExecpolicyAmendment",
    "proposedNetworkPolicyAmendments",
    "reason",
    // The Agent Client Protocol.
    "content",
    "locations",
    "name",
    "title",
];

impl AgentAction {
    /// Creates an action from the parts of a request: the agent's name for the tool, the tool's input, the other
    /// fields of the request (null if there are none), and the agent's working directory.
    pub fn new(tool: &str, input: &Value, request: &Value, cwd: Option<&str>) -> Self {
        let kind = tools::kind(tool, input);
        let is_empty = request.as_object().is_some_and(Map::is_empty);
        let request = if is_empty { Value::Null } else { request.clone() };
        let cwd = cwd.filter(|cwd| !cwd.is_empty() && kind.absolute_directory().is_none());
        Self { tool: tool.to_owned(), cwd: cwd.map(str::to_owned), kind, request }
    }

    /// Creates an action from a message that asks for permission.
    pub fn from_message(asked: &PermissionRequest) -> Self {
        match &asked.brigade {
            Some(original) => {
                let request = original.request.as_ref().map(parse).unwrap_or_default();
                let input = parse(&original.input);
                Self::new(&original.tool, &input, &request, Some(&original.cwd))
            }
            None => Self::new(&asked.tool_name, &parse(&asked.input), &Value::Null, None),
        }
    }

    /// Returns the directory in which the tool would run. `None` if it is not known, or if the input has several
    /// fields that name a directory.
    pub fn directory(&self) -> Option<String> {
        let own = match &self.kind {
            ActionKind::RunCommand { directory, .. } => directory,
            _ => &Map::new(),
        };
        let cwd = self.cwd.as_deref().unwrap_or_default();
        let directory = policy::named_folder(own.values(), Path::new(cwd))?;
        Some(directory.to_str()?.to_owned()).filter(|directory| !directory.is_empty())
    }

    /// Returns whether an approval would grant more than this one call under the agent's usual limits: additional
    /// permissions, access to the network, or a call outside the sandbox. No rule may approve such a request.
    pub fn widens_permissions(&self) -> bool {
        let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
        let is_wider = |name: &&str| self.request.get(*name).is_some_and(is_set);
        // Codex uses the same request to run a command, and to write to a command that is already running.
        let is_other_kind =
            self.request.get("kind").is_some_and(|kind| !kind.is_null() && kind != "command");
        let in_input = match &self.kind {
            ActionKind::RunCommand { sandbox, network, .. } => {
                sandbox.values().chain(network.values()).any(is_set)
            }
            _ => false,
        };
        WIDENING_FIELDS.iter().any(is_wider)
            || self.tool == tools::CODEX_PERMISSIONS
            || (self.tool == vendor_tools::CODEX_COMMAND && is_other_kind)
            || in_input
    }

    /// Returns whether the request for a tool that runs commands has a field outside the input that is not known to be
    /// harmless. No rule may approve such a request, because the field could change what the command does.
    pub fn has_unknown_request_fields(&self) -> bool {
        let is_known = |(name, value): (&String, &Value)| match name.as_str() {
            _ if matches!(value, Value::Null | Value::Bool(false)) => true,
            "_meta" => value.as_object().is_some_and(|meta| meta.keys().eq(["toolName"])),
            name => HARMLESS_FIELDS.contains(&name),
        };
        let is_unknown = match &self.request {
            Value::Null => false,
            Value::Object(fields) => !fields.iter().all(is_known),
            _ => true,
        };
        is_unknown && policy::is_shell_tool(&self.tool)
    }

    /// Describes the action in one short line, which follows "asks to". The line says how many lines of the command and how many
    /// fields of the input it does not show, and whether the agent asks for more permissions.
    pub fn summary(&self) -> String {
        let tool = text::cut(&text::exact(&self.tool), MAX_SUMMARY_WIDTH);
        let line = match &self.kind {
            ActionKind::RunCommand { command, .. } => format!("run: {}", command.short_line()),
            ActionKind::EditFiles { files, .. } => {
                let names = files.values().filter_map(Value::as_str).map(text::exact);
                let names = names.map(|name| format!(" {name}")).collect::<String>();
                format!("edit{} with {tool}", text::cut(&names, MAX_SUMMARY_WIDTH))
            }
            ActionKind::Fetch { url, .. } => {
                let url = text::exact(url.as_str().unwrap_or_default());
                format!("fetch {}", text::cut(&url, MAX_SUMMARY_WIDTH))
            }
            ActionKind::McpCall { .. } | ActionKind::Other { .. } => format!("use {tool}"),
        };
        let mut notes = Vec::new();
        if let more @ 1.. = self.kind.fields_outside_summary() {
            notes.push(format!("with {}", text::count(more, "more field")));
        }
        if self.widens_permissions() {
            notes.push("asks for more permissions".to_owned());
        }
        if notes.is_empty() { line } else { format!("{line} ({})", notes.join("; ")) }
    }

    /// Returns the command of an action that runs one.
    pub fn command(&self) -> Option<&CommandLine> {
        match &self.kind {
            ActionKind::RunCommand { command, .. } => Some(command),
            _ => None,
        }
    }
}

impl ActionKind {
    /// Returns the directory that the input names, if it names exactly one, and that is absolute.
    fn absolute_directory(&self) -> Option<&str> {
        let Self::RunCommand { directory, .. } = self else { return None };
        let mut directories = directory.values().filter_map(Value::as_str);
        let first = directories.next().filter(|directory| directory.starts_with('/'))?;
        directories.next().is_none().then_some(first)
    }

    /// Returns how many fields [`AgentAction::summary`] does not show. The directory and the description do not count.
    fn fields_outside_summary(&self) -> usize {
        let groups = match self {
            Self::RunCommand { directory, sandbox, network, environment, other, .. } => {
                let described = usize::from(other.contains_key("description"));
                let directories = usize::from(self.absolute_directory().is_some());
                let all = [directory, sandbox, network, environment, other];
                return all.into_iter().map(Map::len).sum::<usize>() - described - directories;
            }
            Self::EditFiles { changes, other, .. } => vec![changes, other],
            Self::Fetch { other, .. } => vec![other],
            Self::McpCall { arguments: input, .. } | Self::Other { input } => {
                input.as_object().into_iter().collect()
            }
        };
        groups.into_iter().map(Map::len).sum()
    }

    /// Says what the tool does.
    fn purpose(&self) -> &'static str {
        match self {
            Self::RunCommand { .. } => "run a command",
            Self::EditFiles { .. } => "edit files",
            Self::Fetch { .. } => "fetch a web page",
            Self::McpCall { .. } => "call a tool of an MCP server",
            Self::Other { .. } => "use this tool",
        }
    }
}

impl CommandLine {
    /// Returns the first line of the command, and the number of its other lines.
    fn short_line(&self) -> String {
        match self {
            Self::Shell(script) => {
                let (first, others) = first_line(script);
                text::with_line_count(&text::exact(first), others, MAX_SUMMARY_WIDTH)
            }
            Self::Arguments(words) => {
                let words: Vec<String> = words
                    .iter()
                    .map(|word| first_line(word))
                    .map(|(first, others)| text::with_line_count(first, others, MAX_SUMMARY_WIDTH))
                    .collect();
                let array = value::inline_array(words.iter().map(String::as_str));
                text::cut(&array, MAX_SUMMARY_WIDTH)
            }
        }
    }
}

/// Returns the first line of a script, and the number of the other lines.
fn first_line(script: &str) -> (&str, usize) {
    let mut lines = script.trim_matches('\n').split('\n');
    (lines.next().unwrap_or_default(), lines.count())
}

/// Returns the input of the tool that a message asks for, as the agent gives it.
pub(crate) fn input(asked: &PermissionRequest) -> Value {
    parse(asked.brigade.as_ref().map_or(&asked.input, |original| &original.input))
}

/// Parses the JSON of a message. A text that cannot be represented, such as one with a number that is too large, is
/// kept as a string, so that it is shown and not taken for null.
fn parse(json: &Json) -> Value {
    let text = json.as_str();
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
