//! The tools by which agents run command lines, and the input of these tools.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{runners, shell};

/// A tool that runs the command line in the field `command` of its input.
struct ShellTool {
    /// The tool's name in a permission request.
    name: &'static str,
    /// The other fields that its input may have. They change neither the command nor the rights with which the command
    /// runs.
    fields: &'static [&'static str],
}

/// The tools by which the agents run command lines.
const SHELL_TOOLS: &[ShellTool] = &[
    // Claude Code. `dangerouslyDisableSandbox` is missing on purpose.
    ShellTool { name: "Bash", fields: &["description", "run_in_background", "timeout"] },
    // Codex.
    ShellTool { name: "commandExecution", fields: &["cwd"] },
    ShellTool { name: "shell", fields: &["cwd", "timeout_ms", "workdir"] },
    // The Agent Client Protocol reports a kind instead of a name: opencode, Copilot, Qwen Code.
    ShellTool {
        name: "execute",
        fields: &[
            "commands",
            "cwd",
            "description",
            "directory",
            "is_background",
            "timeout",
            "workdir",
        ],
    },
    // Gemini CLI and Qwen Code.
    ShellTool {
        name: "run_shell_command",
        fields: &["description", "dir_path", "directory", "is_background", "timeout"],
    },
    // opencode and Copilot.
    ShellTool { name: "bash", fields: &["description", "timeout", "workdir"] },
];

/// The fields of an input that name the folder in which the command runs.
pub(crate) const FOLDER_FIELDS: &[&str] = &["cwd", "workdir", "directory", "dir_path"];

/// Returns whether agents run command lines by this tool.
pub(crate) fn is_shell_tool(tool: &str) -> bool {
    SHELL_TOOLS.iter().any(|known| known.name == tool)
}

/// Returns whether the input of a tool contains only fields that are known to be harmless beside `command`. For a tool
/// that is not in the list, the fields of all tools in the list count.
pub(super) fn has_known_fields(tool: &str, input: &Map<String, Value>) -> bool {
    let known = |field: &str| {
        let mut tools =
            SHELL_TOOLS.iter().filter(|known| known.name == tool || !is_shell_tool(tool));
        tools.any(|known| known.fields.contains(&field))
    };
    input.iter().all(|(field, value)| match field.as_str() {
        "command" => true,
        _ if !known(field) => false,
        "commands" => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
        field if FOLDER_FIELDS.contains(&field) => value.is_string() || value.is_null(),
        _ => !(value.is_object() || value.is_array()),
    })
}

/// Returns the line that the shell would run. For `bash -lc 'ls'`, that is `ls`.
pub(super) fn shell_line(input: &Value) -> Option<String> {
    let line = match input.get("command")? {
        Value::String(line) => line.clone(),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words?.into_iter().map(shell::quote).collect::<Vec<_>>().join(" ")
        }
        _ => return None,
    };
    Some(script(&line).unwrap_or(line))
}

/// Returns the other lines in the input, which Copilot adds: the parts of the command.
pub(super) fn further_lines(input: &Value) -> impl Iterator<Item = &str> {
    let lines = input.get("commands").and_then(Value::as_array).into_iter().flatten();
    lines.filter_map(Value::as_str)
}

/// Extracts the command line from a tool's input, if there is one. For `bash -lc 'ls'`, returns `ls`, because that is the
/// command that people and rules are about. Only a shell of the system is left out: `./bash` may be any program.
pub fn command(input: &Value) -> Option<String> {
    let line = shell_line(input)?;
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// Returns the folder in which a tool would run: the folder that its input names, else the agent's folder `cwd`. `None`
/// if several fields name a folder, because brigade does not know which of them the agent uses.
pub fn run_folder(input: &Value, cwd: &Path) -> Option<PathBuf> {
    // The other tools use `directory` for what they work on.
    let fields = if input.get("command").is_some() { FOLDER_FIELDS } else { &["cwd"] };
    named_folder(fields.iter().filter_map(|field| input.get(field)), cwd)
}

/// Returns the folder that the values of [`FOLDER_FIELDS`] name, else `cwd`. `None` if there are several, or if one is
/// not text.
pub(crate) fn named_folder<'v>(
    values: impl Iterator<Item = &'v Value>,
    cwd: &Path,
) -> Option<PathBuf> {
    let mut named = values.filter(|value| !value.is_null() && value.as_str() != Some(""));
    match (named.next(), named.next()) {
        (None, _) => Some(cwd.to_owned()),
        (Some(folder), None) => Some(cwd.join(folder.as_str()?)),
        (Some(_), Some(_)) => None,
    }
}

/// Returns the script if the line has the form `sh -c SCRIPT`. A login shell (`-l`) also reads the start-up files of the
/// user, an interactive shell (`-i`) also has the user's aliases; only the first is accepted.
fn script(line: &str) -> Option<String> {
    // The script itself is checked later; here, its characters do not matter.
    let commands = shell::parse_unchecked(line).ok()?;
    let [command] = commands.as_slice() else { return None };
    let plain = command.assignments.is_empty() && command.redirections.is_empty();
    let words: Vec<&str> = command.texts().collect();
    let [program, option, script] = words.as_slice() else { return None };
    let literal = command.words.iter().all(super::word::Word::is_literal);
    let runs = matches!(*option, "-c" | "-lc" | "-cl");
    (plain && literal && runs && runners::is_system_shell(program)).then(|| (*script).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn command_is_unwrapped_from_shell_invocations() {
        for (input, expected) in [
            (json!("ls -l"), Some("ls -l")),
            (json!("  ls\n"), Some("ls")),
            (json!("/bin/bash -lc 'echo one'"), Some("echo one")),
            (json!("/bin/bash -lc 'echo '\"'\"'a b'\"'\"''"), Some("echo 'a b'")),
            (json!("bash -c \"echo \\\"a\\\"\""), Some("echo \"a\"")),
            (json!("sh -c 'a; b'"), Some("a; b")),
            (json!("zsh -lc 'a\nb'"), Some("a\nb")),
            (json!("sh -c 'a \u{1b}[2J'"), Some("a \u{1b}[2J")),
            (json!("sh\u{a0}-c 'a'"), Some("sh\u{a0}-c 'a'")),
            (json!("sh -c 'a'; b"), Some("sh -c 'a'; b")),
            (json!("sh -c \"$x\""), Some("sh -c \"$x\"")),
            (json!("sh -c 'a' b"), Some("sh -c 'a' b")),
            (json!("sh -c 'left open"), Some("sh -c 'left open")),
            (json!("A=1 sh -c 'a'"), Some("A=1 sh -c 'a'")),
            (json!("sh -c 'a' > x"), Some("sh -c 'a' > x")),
            (json!("bash -ic 'a'"), Some("bash -ic 'a'")),
            // A file that the agent wrote, or could have written.
            (json!("./bash -lc 'a'"), Some("./bash -lc 'a'")),
            (json!("/tmp/bash -lc 'a'"), Some("/tmp/bash -lc 'a'")),
            (json!("bin/sh -c 'a'"), Some("bin/sh -c 'a'")),
            (json!("/usr/bin/../../tmp/sh -c 'a'"), Some("/usr/bin/../../tmp/sh -c 'a'")),
            (json!(["bash", "-lc", "git status"]), Some("git status")),
            (json!(["git", "commit", "-m", "it's; done"]), Some(r"git commit -m 'it'\''s; done'")),
            (json!(["touch", ""]), Some("touch ''")),
            (json!("  "), None),
            (json!([]), None),
            (json!(["ls", 1]), None),
            (json!(1), None),
        ] {
            assert_eq!(command(&json!({ "command": input })).as_deref(), expected, "{input}");
        }
        assert_eq!(command(&json!({ "path": "x" })), None);
        assert_eq!(command(&json!("ls")), None);
    }

    #[test]
    fn the_input_can_name_another_folder() {
        let folder = |input: &Value| run_folder(input, Path::new("/project")).unwrap_or_default();
        assert_eq!(folder(&json!({ "command": "ls" })), Path::new("/project"));
        assert_eq!(
            folder(&json!({ "command": "ls", "cwd": null, "workdir": "" })),
            Path::new("/project")
        );
        assert_eq!(
            folder(&json!({ "command": "ls", "workdir": "sub" })),
            Path::new("/project/sub")
        );
        assert_eq!(folder(&json!({ "command": "ls", "directory": "/" })), Path::new("/"));
        assert_eq!(folder(&json!({ "directory": "/" })), Path::new("/project"));
        assert_eq!(folder(&json!({ "cwd": "/x" })), Path::new("/x"));
        for input in [
            json!({ "command": "ls", "cwd": "/", "workdir": "/project" }),
            json!({ "command": "ls", "directory": "sub", "dir_path": "sub" }),
            json!({ "command": "ls", "cwd": 5 }),
        ] {
            assert_eq!(run_folder(&input, Path::new("/project")), None, "{input}");
        }
    }
}
