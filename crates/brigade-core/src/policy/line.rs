//! Parses command lines in as much detail as the rules need.

use serde_json::Value;

/// Extracts the command line from a tool's input, if there is one. For `bash -lc 'ls'`, returns `ls`, because
/// rules are about the inner command.
pub fn command(input: &Value) -> Option<String> {
    let line = match input.get("command")? {
        Value::String(line) => line.clone(),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            join(&words?)
        }
        _ => return None,
    };
    let line = line.trim();
    let inner = split(line).and_then(|words| script(&words));
    let line = inner.unwrap_or_else(|| line.to_owned());
    (!line.is_empty()).then_some(line)
}

/// Returns whether a character can turn a line into something other than one command with arguments.
pub(super) fn is_operator(character: char) -> bool {
    matches!(character, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '{' | '}' | '$' | '`')
        || (character.is_control() && character != '\t')
}

/// Returns the parts of a line that may be commands. Splits the line at operators, once with its quotes and once
/// without them. Also splits the line at quotes, because a quoted text may be a command for a shell.
pub(super) fn parts(line: &str) -> Vec<String> {
    let bare = line.replace(['"', '\'', '\\'], "");
    let commands = line.split(is_operator).chain(bare.split(is_operator));
    let quoted = line.split(|character| is_operator(character) || matches!(character, '"' | '\''));
    let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    commands.chain(quoted).map(words).filter(|part| !part.is_empty()).collect()
}

/// Returns the script if the words have the form `sh -c SCRIPT`.
fn script(words: &[String]) -> Option<String> {
    let [shell, option, script] = words else { return None };
    let shell = shell.rsplit('/').next().unwrap_or_default();
    let is_shell = matches!(shell, "sh" | "bash" | "dash" | "zsh");
    let runs = matches!(option.as_str(), "-c" | "-lc" | "-cl");
    (is_shell && runs).then(|| script.trim().to_owned())
}

/// Joins words into a command line, quoting where necessary.
fn join(words: &[&str]) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./:=,@%+".contains(character);
    let quote = |word: &&str| {
        if !word.is_empty() && word.chars().all(plain) {
            return (*word).to_owned();
        }
        format!("'{}'", word.replace('\'', r"'\''"))
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Splits a single command into unquoted words; `None` if the line contains operators or an unclosed quote.
fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        character => word.push(character),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' => match characters.next()? {
                            character @ ('"' | '\\' | '$' | '`') => word.push(character),
                            '\n' => {}
                            character => word.extend(['\\', character]),
                        },
                        '$' | '`' => return None,
                        character => word.push(character),
                    }
                }
            }
            '\\' => word
                .get_or_insert_default()
                .push(characters.next().filter(|character| *character != '\n')?),
            character if is_operator(character) => return None,
            character => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    Some(words)
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
            (json!("sh -c 'a'; b"), Some("sh -c 'a'; b")),
            (json!("sh -c \"$x\""), Some("sh -c \"$x\"")),
            (json!("sh -c 'a' b"), Some("sh -c 'a' b")),
            (json!("sh -c 'left open"), Some("sh -c 'left open")),
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
}
