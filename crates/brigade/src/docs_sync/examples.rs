//! Tests that the program accepts the examples in the documentation.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _, Parser as _};

use super::markdown::{Block, pages};
use super::shell_words::commands;
use crate::cli::{self, Cli};
use brigade_host::team_file;

/// Returns the commands in a block: in a console session, the lines that start with `$`; in a script, all lines.
fn typed(block: &Block) -> Vec<String> {
    match block.language.as_str() {
        "sh" | "bash" => vec![block.text.clone()],
        "console" => {
            let mut lines: Vec<String> = Vec::new();
            let mut continues = false;
            for line in block.text.lines() {
                match (line.strip_prefix("$ "), lines.last_mut()) {
                    (Some(typed), _) => lines.push(typed.to_owned()),
                    (None, Some(last)) if continues => *last = format!("{last}\n{line}"),
                    _ => continue,
                }
                continues = line.ends_with('\\');
            }
            lines
        }
        _ => Vec::new(),
    }
}

/// Returns the error with which the program would reject these arguments, if any.
fn refusal(args: &[String]) -> Option<String> {
    let args = cli::normalize_args(args.iter().map(OsString::from));
    let error = Cli::try_parse_from(args).err()?;
    let answers = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion];
    (!answers.contains(&error.kind())).then(|| error.to_string())
}

#[test]
fn commands_in_code_blocks_parse() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        for block in &page.blocks {
            for words in typed(block).iter().flat_map(|line| commands(line)) {
                if words.first().is_some_and(|word| word == "brigade") {
                    count += 1;
                    let at = format!("{}:{}", page.path.display(), block.line);
                    wrong.extend(refusal(&words).map(|why| format!("{at}: {words:?}\n{why}")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "found only {count} commands");
}

#[test]
fn commands_in_help_examples_parse() {
    fn check(command: &Command, count: &mut usize) {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in after.lines().map(str::trim).filter(|line| line.starts_with("brigade ")) {
            // Cut off the description that follows the example.
            let (line, _) = line.split_once("   ").unwrap_or((line, ""));
            for words in commands(line).iter().filter(|words| words[0] == "brigade") {
                *count += 1;
                assert_eq!(refusal(words), None, "{line}");
            }
        }
        command.get_subcommands().for_each(|command| check(command, count));
    }
    let mut count = 0;
    check(&Cli::command(), &mut count);
    assert!(count > 30, "found only {count} examples");
}

/// Returns the first command or option in these arguments that does not exist. Skips words in capitals, which are
/// placeholders.
fn unknown_word(root: &Command, args: &[String]) -> Option<String> {
    let args = cli::normalize_args(args.iter().map(OsString::from));
    let words: Vec<String> = args.into_iter().map(|word| word.into_string().unwrap()).collect();
    let mut command = root;
    let mut takes_commands = true;
    let mut words_left = words.iter().skip(1);
    while let Some(word) = words_left.next() {
        if let Some(name) = word.strip_prefix("--").filter(|name| !name.is_empty()) {
            let (name, value) = name.split_once('=').map_or((name, None), |(n, v)| (n, Some(v)));
            let mut known = command.get_arguments();
            let Some(option) = known.find(|argument| argument.get_long() == Some(name)) else {
                return Some(word.clone());
            };
            // The value of an option may have the name of a command: `--team demo`.
            if std::ptr::eq(command, root) && option.get_action().takes_values() && value.is_none()
            {
                words_left.next();
            }
        } else if let Some(found) = command.find_subcommand(word).filter(|_| takes_commands) {
            command = found;
            takes_commands = command.has_subcommands();
        } else if takes_commands && std::ptr::eq(command, root) {
            // Before the command, there may be the value of a global option.
            let is_value = words.iter().any(|word| word.starts_with("--"));
            let is_name = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
            if is_name && !is_value && word != crate::commands::GUARD {
                return Some(word.clone());
            }
        }
    }
    None
}

#[test]
fn commands_in_code_spans_exist() {
    let mut root = Cli::command();
    root.build();
    let mut wrong = Vec::new();
    for page in pages() {
        for (line, span) in &page.spans {
            for words in commands(span).iter().filter(|words| words[0] == "brigade") {
                let what = unknown_word(&root, words);
                wrong.extend(
                    what.map(|what| format!("{}:{line}: {what} in {span}", page.path.display())),
                );
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    let check = |line: &str| unknown_word(&root, &commands(line)[0]);
    assert_eq!(check("brigade frobnicate"), Some("frobnicate".into()));
    assert_eq!(check("brigade --team demo task add x --blocked-by 1"), None);
    assert_eq!(check("brigade task add x --waits-for 1"), Some("--waits-for".into()));
}

#[test]
fn team_files_and_json_blocks_parse() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("prompts")).unwrap();
    std::fs::write(folder.path().join("prompts/reviewer.md"), "Review").unwrap();
    let file = folder.path().join(team_file::NAME);
    let (mut teams, mut documents) = (0, 0);
    for page in pages() {
        for block in &page.blocks {
            let at = format!("{}:{}", page.path.display(), block.line);
            match block.language.as_str() {
                "toml" if block.text.lines().any(|line| line.starts_with("team =")) => {
                    std::fs::write(&file, &block.text).unwrap();
                    team_file::read(&file, team_file::OutsidePaths::Use)
                        .unwrap_or_else(|error| panic!("{at}: {error}"));
                    teams += 1;
                }
                "toml" => {
                    block
                        .text
                        .parse::<toml::Table>()
                        .unwrap_or_else(|error| panic!("{at}: {error}"));
                }
                "json" => {
                    let read = serde_json::from_str::<serde_json::Value>(&block.text);
                    read.unwrap_or_else(|error| panic!("{at}: {error}"));
                    documents += 1;
                }
                _ => {}
            }
        }
    }
    assert!(teams >= 2 && documents >= 1, "{teams} team files, {documents} documents");
}
