//! Invariants of the rules that hold for any line. The fuzz target, the property tests, the random lines and the
//! end-to-end test all call these functions. Each one panics if its invariant is violated.

use std::path::Path;

use brigade_core::policy::shell;
use brigade_core::policy::{Rule, RuleDecision, ToolUse, decide};
use serde_json::json;

/// The member's folder, and the folder in which all lines would run.
pub(crate) const FOLDER: &str = "/project";

/// Allow rules of each kind. Their programs are the only ones that an allowed line may start.
pub(crate) const PATTERNS: [&str; 7] =
    ["a *", "b", "echo *", "git log *", "cat src/*.rs", "A=* c *", "* --version"];

/// Pieces of which random lines consist. Lines that consist of the first ones are often allowed.
pub(crate) const PIECES: &[&str] = &[
    "a x",
    "b",
    "echo",
    "git log",
    "cat src/x.rs",
    "A=1 c",
    " --version",
    " x",
    " 'x y'",
    " \"x\"",
    "\\ ",
    " src/*.rs",
    "; ",
    " && ",
    " | ",
    "\n",
    " 2>&1",
    " >/dev/null",
    " <src/x",
    " -n",
    "'",
    "\"",
    "\\",
    "$",
    "`",
    "(",
    ")",
    "{",
    "}",
    "!",
    "#",
    "~",
    "=",
    "<",
    ">",
    "&",
    "|",
    ";",
    " ",
    "\t",
    "\r",
    "*",
    "?",
    "[",
    "]",
    "\u{a0}",
    "\u{200b}",
    "é",
    "0",
    "rm x",
    "bash -lc ",
    "./",
    "/",
    "..",
    "-exec",
    "eval ",
    "$(",
    "\\\n",
    "&>",
    ">|",
    "<<",
    "time ",
    "cd ",
    "\u{0}",
    "%",
    "^",
    "if ",
    "\u{7f}",
    "日",
    "env ",
    "sudo ",
];

/// Returns the rules for patterns.
pub(crate) fn allow(patterns: &[&str]) -> Vec<Rule> {
    let rule = |pattern: &&str| Rule {
        ruling: RuleDecision::Allow,
        tool: None,
        command: Some((*pattern).to_owned()),
    };
    patterns.iter().map(rule).collect()
}

/// Returns whether the rules allow a line.
pub(crate) fn is_allowed(rules: &[Rule], line: &str) -> bool {
    let (input, folder) = (json!({ "command": line }), Path::new(FOLDER));
    let tool_use = ToolUse { tool: "Bash", input: &input, cwd: folder, folder, files: &[] };
    decide(rules, &tool_use).is_some_and(|(_, decision)| decision == RuleDecision::Allow)
}

/// Checks all invariants for a line.
pub(crate) fn check(bytes: &[u8]) {
    let line = String::from_utf8_lossy(bytes);
    quoted_words_are_read_back(&line);
    if let Ok(commands) = shell::parse(&line) {
        every_operator_is_accounted_for(&line, commands.len());
    }
    let rules = allow(&PATTERNS);
    if is_allowed(&rules, &line) {
        for more in [
            " ; rm x", " && rm x", " | rm x", "\nrm x", " & rm x", " || rm x", " $(rm x)",
            " `rm x`", " > x",
        ] {
            let longer = format!("{line}{more}");
            assert!(!is_allowed(&rules, &longer), "{longer:?} is allowed");
        }
        for before in ["rm x;", "rm x | ", "PATH=. ", "! rm x; ", "sudo ", "eval ", "./", "time "] {
            let longer = format!("{before}{line}");
            assert!(!is_allowed(&rules, &longer), "{longer:?} is allowed");
        }
    }
    for ruling in [RuleDecision::Ask, RuleDecision::Deny] {
        let rules = [Rule { ruling, tool: None, command: Some(line.to_string()) }];
        let (input, folder) = (json!({ "command": line }), Path::new(FOLDER));
        decide(&rules, &ToolUse { tool: "Bash", input: &input, cwd: folder, folder, files: &[] });
    }
}

/// If a line is understood and contains no patterns for file names, quoting its words gives the same words.
fn quoted_words_are_read_back(line: &str) {
    let Ok(commands) = shell::parse(line) else { return };
    for command in commands {
        if !command.words.iter().all(brigade_core::policy::Word::is_literal) {
            continue;
        }
        let quoted: Vec<String> = command.texts().map(shell::quote).collect();
        let again = shell::parse(&quoted.join(" ")).expect("quoted words are understood");
        let [again] = again.as_slice() else { panic!("{quoted:?} is not one command") };
        assert_eq!(again.words, command.words, "{line:?}");
    }
}

/// A line that is understood contains no special character outside quotes, except those that the grammar knows. The
/// number of commands follows from the separators.
fn every_operator_is_accounted_for(line: &str, commands: usize) {
    let (mut found, mut in_command, mut before) = (0, false, ' ');
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let is_separator = match character {
            '\'' => {
                while characters.next().expect("the quote is closed") != '\'' {}
                false
            }
            '"' => loop {
                match characters.next().expect("the quote is closed") {
                    '"' => break false,
                    '\\' => drop(characters.next()),
                    '$' | '`' | '!' => panic!("{line:?} contains an expansion in quotes"),
                    _ => {}
                }
            },
            '\\' => {
                assert_ne!(characters.next().expect("a character is escaped"), '\n', "{line:?}");
                false
            }
            '$' | '`' | '(' | ')' | '{' | '}' => panic!("{line:?} contains {character}"),
            // `2>&1` and `>|` are redirections.
            '&' => !matches!(before, '<' | '>'),
            '|' => before != '>',
            ';' | '\n' => true,
            _ => false,
        };
        before = character;
        if is_separator {
            in_command = false;
        } else if !in_command && !matches!(character, ' ' | '\t') {
            found += 1;
            in_command = true;
        }
    }
    assert_eq!(commands, found, "{line:?}");
}
