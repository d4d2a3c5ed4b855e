//! Command lines, as far as a rule has to know them.

use serde_json::Value;

/// The command line that a tool is given, if it is given one. An agent that runs `bash -lc 'ls'` means
/// `ls`, and that is what a rule is about.
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

/// Whether a sign can make more of a line than one command with its words.
pub(super) fn is_operator(sign: char) -> bool {
    matches!(sign, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '{' | '}' | '$' | '`')
        || (sign.is_control() && sign != '\t')
}

/// The parts of a line that may be commands by themselves: as they are, without quotes, and what is in
/// quotes, for a shell is given its commands that way.
pub(super) fn parts(line: &str) -> Vec<String> {
    let bare = line.replace(['"', '\'', '\\'], "");
    let commands = line.split(is_operator).chain(bare.split(is_operator));
    let quoted = line.split(|sign| is_operator(sign) || matches!(sign, '"' | '\''));
    let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    commands.chain(quoted).map(words).filter(|part| !part.is_empty()).collect()
}

/// What a shell is given to run, if that is all these words are.
fn script(words: &[String]) -> Option<String> {
    let [shell, option, script] = words else { return None };
    let shell = shell.rsplit('/').next().unwrap_or_default();
    let is_shell = matches!(shell, "sh" | "bash" | "dash" | "zsh");
    let runs = matches!(option.as_str(), "-c" | "-lc" | "-cl");
    (is_shell && runs).then(|| script.trim().to_owned())
}

/// Words as a line that means them: what could be more than a word is quoted.
fn join(words: &[&str]) -> String {
    let plain = |sign: char| sign.is_alphanumeric() || "-_./:=,@%+".contains(sign);
    let quote = |word: &&str| {
        if !word.is_empty() && word.chars().all(plain) {
            return (*word).to_owned();
        }
        format!("'{}'", word.replace('\'', r"'\''"))
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// The words of a line that is one command, without its quotes; `None` if it is more than words, or is
/// left open.
fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        match sign {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match signs.next()? {
                        '\'' => break,
                        sign => word.push(sign),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match signs.next()? {
                        '"' => break,
                        '\\' => match signs.next()? {
                            sign @ ('"' | '\\' | '$' | '`') => word.push(sign),
                            '\n' => {}
                            sign => word.extend(['\\', sign]),
                        },
                        '$' | '`' => return None,
                        sign => word.push(sign),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(signs.next().filter(|sign| *sign != '\n')?),
            sign if is_operator(sign) => return None,
            sign => word.get_or_insert_default().push(sign),
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
    fn a_command_is_what_would_be_run() {
        for (command_of, is) in [
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
            assert_eq!(command(&json!({ "command": command_of })).as_deref(), is, "{command_of}");
        }
        assert_eq!(command(&json!({ "path": "x" })), None);
        assert_eq!(command(&json!("ls")), None);
    }
}
