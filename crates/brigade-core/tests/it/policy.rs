//! Rules applied to permission requests.

mod escapes;
mod files;
mod grammar;
mod options;
mod programs;
mod random;
mod syntax;

use std::path::Path;

use brigade_core::policy::{
    Rule, RuleDecision, ToolUse, check_allowed_command, decide, named_files,
};
use proptest::prelude::*;
use serde_json::{Value, json};

pub(crate) const FOLDER: &str = "/project";

pub(crate) fn rule(ruling: RuleDecision, command: &str) -> Rule {
    Rule { ruling, tool: None, command: Some(command.to_owned()) }
}

fn run(command: &str) -> Value {
    json!({ "command": command })
}

/// Applies rules to the use of a tool in the member's folder.
fn decide_in_folder(rules: &[Rule], tool: &str, input: &Value) -> Option<(usize, RuleDecision)> {
    let folder = Path::new(FOLDER);
    let files = named_files(input, &Value::Null, folder);
    decide(rules, &ToolUse { tool, input, cwd: folder, folder, files: &files })
}

/// Returns whether a rule with this pattern matches a command line.
fn fits(ruling: RuleDecision, pattern: &str, command: &str) -> bool {
    decide_in_folder(&[rule(ruling, pattern)], "Bash", &run(command)).is_some()
}

/// The result of applying rules to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ruling {
    Allowed,
    /// No rule decides, or an ask rule does.
    Waits,
    Denied,
}

/// Checks the ruling about a line. Each rule is written as `allow`, `ask` or `deny` and its pattern.
fn check(rules: &[&str], line: &str, expected: Ruling) {
    let parse = |text: &&str| {
        let (ruling, pattern) = text.split_once(' ').unwrap();
        let ruling = match ruling {
            "allow" => RuleDecision::Allow,
            "ask" => RuleDecision::Ask,
            "deny" => RuleDecision::Deny,
            _ => panic!("{text}"),
        };
        rule(ruling, pattern)
    };
    let rules: Vec<Rule> = rules.iter().map(parse).collect();
    let ruling = match decide_in_folder(&rules, "Bash", &run(line)) {
        Some((_, RuleDecision::Allow)) => Ruling::Allowed,
        Some((_, RuleDecision::Deny)) => Ruling::Denied,
        Some((_, RuleDecision::Ask)) | None => Ruling::Waits,
    };
    assert_eq!(ruling, expected, "{line:?} with {rules:?}");
}

/// Checks that the rules allow none of the lines.
fn none_allowed(rules: &[&str], lines: &[&str]) {
    lines.iter().for_each(|line| check(rules, line, Ruling::Waits));
}

/// Checks that the rules allow all of the lines.
fn all_allowed(rules: &[&str], lines: &[&str]) {
    lines.iter().for_each(|line| check(rules, line, Ruling::Allowed));
}

#[test]
fn a_denying_rule_checks_every_part_of_a_line() {
    for (pattern, command, no) in [
        ("rm *", "rm x", true),
        ("rm *", "ls; rm x", true),
        ("rm *", "ls &&\trm\t-rf x", true),
        ("rm *", "echo $(rm x)", true),
        ("rm *", "echo `rm x`", true),
        ("rm *", "true\nrm x", true),
        ("rm *", "env sh -c \"rm x\"", true),
        ("rm *", "bash -lc 'cd /; rm x'", true),
        ("rm *", "r\\m x; 'r'm y", true),
        ("rm *", "r\\\nm x", true),
        ("rm *", "/bin/rm x", true),
        ("rm *", "./bash -lc 'rm x'", true),
        ("rm *", "A=1 B=2 rm x", true),
        ("rm *", "A=1 /bin/rm x", true),
        ("rm *", "sudo -u root rm x", true),
        ("rm *", "timeout 5 /bin/rm x", true),
        ("rm *", "find . | xargs -I% rm %", true),
        ("rm *", "find . -exec rm {} +", true),
        ("rm *", "! rm x", true),
        ("rm *", "cat <<EOF | rm x", true),
        ("rm *", "if true; then rm x; fi", true),
        ("rm *", "for x in a; do A=1 /bin/rm x; done", true),
        ("rm *", "git rm x", false),
        ("rm *", "rmdir x", false),
        ("*secret*", "cat a/secret/b", true),
        ("git push*", "git push --force", true),
        ("git push*", "git status && git push", true),
    ] {
        for ruling in [RuleDecision::Deny, RuleDecision::Ask] {
            assert_eq!(fits(ruling, pattern, command), no, "{pattern:?} {command:?}");
        }
    }
    // Known from Claude Code: after the fiftieth command of a line, deny rules were not checked.
    let line = "echo x; ".repeat(5_000) + "rm x";
    assert!(fits(RuleDecision::Deny, "rm *", &line));
}

/// The first rule that completes a decision decides. Several allow rules together can allow a line.
#[test]
fn the_first_rule_that_completes_a_decision_decides() {
    use RuleDecision::{Allow, Ask, Deny};
    let rules = [
        rule(Ask, "git push*"),
        rule(Allow, "git *"),
        Rule { ruling: Deny, tool: Some("mcp__*".into()), command: None },
        Rule { ruling: Allow, tool: Some("read".into()), command: None },
        rule(Allow, "head *"),
        rule(Deny, "rm *"),
        rule(Allow, "ls *"),
    ];
    for (tool, input, expected) in [
        ("Bash", run("git status"), Some((1, Allow))),
        ("Bash", run("git push"), Some((0, Ask))),
        ("Bash", run("git status; git push"), Some((0, Ask))),
        ("Bash", run("git log | head -3"), Some((1, Allow))),
        ("Bash", run("head x; head y"), Some((4, Allow))),
        ("Bash", run("ls | head; git log"), Some((1, Allow))),
        ("Bash", run("ls && rm x"), Some((5, Deny))),
        ("Bash", run("git status; make"), None),
        ("mcp__x__y", json!({}), Some((2, Deny))),
        ("read", run("anything; at all"), Some((3, Allow))),
        ("reader", json!({}), None),
        ("Bash", json!(["git", "status"]), None),
        ("shell", json!({ "command": ["bash", "-lc", "git status"] }), Some((1, Allow))),
        ("shell", json!({ "command": ["git", "status"] }), Some((1, Allow))),
        ("shell", json!({ "command": ["./git", "status"] }), None),
    ] {
        assert_eq!(decide_in_folder(&rules, tool, &input), expected, "{tool} {input}");
    }
    assert_eq!(decide_in_folder(&[], "Bash", &run("ls")), None);
    // A later allow rule does not complete the decision before an earlier deny rule is checked.
    let rules = [rule(Allow, "git *"), rule(Deny, "git push*"), rule(Allow, "ls *")];
    assert_eq!(decide_in_folder(&rules, "Bash", &run("git push")), Some((0, Allow)));
    assert_eq!(decide_in_folder(&rules, "Bash", &run("git push; ls")), Some((1, Deny)));
}

/// Finding 14: a rule without a tool fitted any tool with a field `command`.
#[test]
fn finding_14_a_rule_without_a_tool_is_for_shell_tools() {
    let rules = [rule(RuleDecision::Allow, "cargo test *")];
    let decision = |tool, input: &Value| decide_in_folder(&rules, tool, input).is_some();
    for tool in ["Bash", "commandExecution", "shell", "execute", "run_shell_command", "bash"] {
        assert!(decision(tool, &run("cargo test x")), "{tool}");
    }
    for tool in ["mcp__ssh__run", "server/run", "Write", "", "bash2", "deploy"] {
        assert!(!decision(tool, &run("cargo test x")), "{tool}");
    }
    // A rule that names the tool is for that tool.
    let named = [Rule { tool: Some("server/run".into()), ..rules[0].clone() }];
    assert!(decide_in_folder(&named, "server/run", &run("cargo test x")).is_some());
    assert!(decide_in_folder(&named, "server/run", &run("cargo test x; rm y")).is_none());
    assert!(decide_in_folder(&named, "server/other", &run("cargo test x")).is_none());
    // A deny rule is for all tools.
    let deny = [rule(RuleDecision::Deny, "rm *")];
    assert!(decide_in_folder(&deny, "mcp__ssh__run", &run("rm x")).is_some());
    assert!(decide_in_folder(&deny, "mcp__ssh__run", &json!({ "cmd": "rm x" })).is_some());
}

/// Finding 14: only the line was compared, although other fields change what runs and with which rights.
#[test]
fn finding_14_unknown_fields_are_not_allowed() {
    let rules = [
        rule(RuleDecision::Allow, "ls *"),
        Rule { ruling: RuleDecision::Allow, tool: Some("Bash".into()), command: None },
    ];
    for (tool, input, allowed) in [
        ("Bash", json!({ "command": "ls", "description": "to see", "timeout": 1000 }), true),
        ("Bash", json!({ "command": "ls", "run_in_background": true }), true),
        ("Bash", json!({ "command": "ls", "dangerouslyDisableSandbox": true }), false),
        ("Bash", json!({ "command": "ls", "description": { "command": "rm" } }), false),
        ("commandExecution", json!({ "command": "/bin/bash -lc 'ls -l'", "cwd": FOLDER }), true),
        ("commandExecution", json!({ "command": "ls", "additionalPermissions": {} }), false),
        ("shell", json!({ "command": ["ls"], "with_escalated_permissions": true }), false),
        ("shell", json!({ "command": ["ls"], "workdir": FOLDER, "timeout_ms": 1000 }), true),
        ("execute", json!({ "command": "ls x", "commands": ["ls x"] }), true),
        ("execute", json!({ "command": "ls x", "commands": ["ls"] }), true),
        ("execute", json!({ "command": "ls x", "commands": ["rm x"] }), false),
        ("execute", json!({ "command": "ls x", "commands": ["PATH=. ls x"] }), false),
        ("execute", json!({ "command": "ls x", "commands": ["ls x > y"] }), false),
        ("execute", json!({ "command": "ls x", "commands": ["$(rm x)"] }), false),
        ("execute", json!({ "command": "ls x", "commands": [1] }), false),
        ("execute", json!({ "command": "ls x", "env": { "PATH": "." } }), false),
        // Gemini CLI reports only a title.
        ("execute", json!({ "title": "ls", "content": "" }), false),
        ("execute", json!({ "command": "ls", "cwd": 7 }), false),
    ] {
        let decision = decide_in_folder(&rules, tool, &input);
        assert_eq!(decision.is_some(), allowed, "{tool} {input}");
    }
}

/// Finding 14: the folder in which a command runs was not part of the match.
#[test]
fn finding_14_a_command_outside_the_members_folder_is_not_allowed() {
    let rules = [
        rule(RuleDecision::Deny, "rm *"),
        rule(RuleDecision::Allow, "ls *"),
        Rule { ruling: RuleDecision::Allow, tool: Some("read".into()), command: None },
    ];
    for (cwd, allowed) in [
        ("/project", true),
        ("/project/sub", true),
        ("/project/sub/../other", true),
        ("/", false),
        ("/project2", false),
        ("/project/..", false),
        ("/project/../etc", false),
        ("work", false),
        ("", false),
    ] {
        let decision = |tool, input: &Value| {
            let (cwd, folder) = (Path::new(cwd), Path::new(FOLDER));
            decide(&rules, &ToolUse { tool, input, cwd, folder, files: &[] })
        };
        assert_eq!(decision("Bash", &run("ls")).is_some(), allowed, "{cwd}");
        assert_eq!(decision("read", &json!({})).is_some(), allowed, "{cwd}");
        assert_eq!(decision("Bash", &run("rm x")), Some((0, RuleDecision::Deny)), "{cwd}");
    }
}

#[test]
fn other_tools_are_matched_by_their_json_input() {
    let allow = |pattern: &str, input: &Value| {
        let rule = Rule { tool: Some("write".into()), ..rule(RuleDecision::Allow, pattern) };
        decide_in_folder(&[rule], "write", input).is_some()
    };
    let inside = json!({ "content": "a \"b\"; c", "path": "src/a.rs" });
    let outside = json!({ "content": "src/a.rs", "path": "/etc/x.rs" });
    let up = json!({ "content": "", "path": "src/../../x.rs" });
    assert!(allow(r#"{"content":"a \"b\"; c","path":"src/*.rs"}"#, &inside));
    assert!(!allow(r#"{"content":"*","path":"src/*"}"#, &inside));
    let only_path = json!({ "path": "src/a.rs", "z": "\"x\"" });
    assert!(allow(r#"{"path":"src/*.rs",*"#, &only_path));
    assert!(!allow(r#"{"path":"src/*.rs"}"#, &only_path));
    assert!(!allow(r#"{"content":"*","path":"src/*"}"#, &outside));
    assert!(!allow(r#"{"content":"","path":"src/*"}"#, &up));
    let deny = [rule(RuleDecision::Deny, "/etc/*")];
    assert!(decide_in_folder(&deny, "write", &outside).is_some());
    assert!(decide_in_folder(&deny, "write", &inside).is_none());
    // Without a tool, an allow rule is about commands.
    let any = [rule(RuleDecision::Allow, "*")];
    assert!(decide_in_folder(&any, "write", &inside).is_none());
}

#[test]
fn a_pattern_that_can_never_match_is_reported() {
    for pattern in ["cargo test *", "*", "A=1 b *", "./x", "git commit -m '*'", "bash ci/test.sh"] {
        check_allowed_command(pattern).unwrap();
    }
    for (pattern, reason) in [
        ("git log | head *", "it contains several commands"),
        ("ls > x", "it contains a redirection"),
        ("sudo ls", "its program runs other commands"),
        ("xargs rm *", "its program runs other commands"),
        ("eval *", "its program runs other commands"),
        ("ls $HOME", "it contains a variable or a substitution"),
        ("ls [ab]", "it contains ? or [ without quotes"),
        ("echo \"x", "a quote is not closed"),
        ("A=1", "it contains no program, or an operator without a command"),
        ("if true", "the program's name depends on the shell"),
        ("", "it contains no command"),
    ] {
        let error = check_allowed_command(pattern).unwrap_err();
        assert_eq!(error.to_string(), reason, "{pattern}");
    }
}

/// A slow but obviously correct way to match patterns with `*`.
fn matches_simply(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|taken| matches_simply(rest, &text[taken..])),
        Some((character, rest)) => {
            text.first() == Some(character) && matches_simply(rest, &text[1..])
        }
    }
}

const OPERATORS: &[&str] =
    &[";", "&&", "||", "|", "&", "\n", "\r\n", "`", "$(", ")", ">", ">>", "<", "<(", "{", "}"];

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(OPERATORS)
}

proptest! {
    #[test]
    fn a_star_matches_any_characters(pattern in "[ab*é]{0,8}", text in "[abé]{0,10}") {
        let tool = Rule { ruling: RuleDecision::Deny, tool: Some(pattern.clone()), command: None };
        let (signs, characters): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
        let expected = matches_simply(&signs, &characters);
        prop_assert_eq!(decide_in_folder(&[tool], &text, &json!({})).is_some(), expected);
        // In an allow rule, a `*` inside a word matches any characters of that word.
        let allowed = fits(RuleDecision::Allow, &format!("x -{pattern}"), &format!("x -{text}"));
        prop_assert_eq!(allowed, expected);
    }

    /// If a rule allows two commands, it allows them in one line, and it allows no other command there.
    #[test]
    fn each_command_of_a_line_needs_a_rule(
        one in "[a-c]{1,3}( [a-c]{1,3}){0,2}",
        two in "[a-c]{1,3}( [a-c]{1,3}){0,2}",
        operator in prop::sample::select(&["; ", " && ", " || ", " | ", " & ", "\n"][..]),
        pattern in "[a-c*]{1,3}( [a-c*]{1,3}){0,2}",
    ) {
        let allows = |line: &str| fits(RuleDecision::Allow, &pattern, line);
        let both = format!("{one}{operator}{two}");
        prop_assert_eq!(allows(&both), allows(&one) && allows(&two));
    }

    /// If a pattern matches a command, a deny rule with that pattern matches any line that contains the command.
    #[test]
    fn an_operator_never_hides_a_denied_command(
        pattern in "[a-c*]{1,3}( [a-c*]{1,3})?",
        command in "[a-c]{1,3}( [a-c]{1,3})?",
        before in "[a-c ]{0,6}",
        (one, two) in (operator(), operator()),
        after in "[a-c ]{0,6}",
    ) {
        // A final ` *` of an allow rule also matches no argument.
        let alone = fits(RuleDecision::Allow, &pattern, &command) && fits(RuleDecision::Deny, &pattern, &command);
        let line = format!("{before}{one} {command}\t{two}{after}");
        prop_assert!(!alone || fits(RuleDecision::Deny, &pattern, &line), "{pattern:?} {line:?}");
    }

    /// No input and no rule causes a panic.
    #[test]
    fn arbitrary_input_is_handled(pattern in "\\PC{0,40}", line in any::<String>(), tool in any::<String>()) {
        for ruling in [RuleDecision::Allow, RuleDecision::Ask, RuleDecision::Deny] {
            let decision = decide_in_folder(&[rule(ruling, &pattern)], &tool, &run(&line));
            prop_assert!(decision.is_none() || decision == Some((0, ruling)));
        }
    }
}

/// Matching a pattern with many stars against a line that almost matches must not take exponential time.
#[test]
fn matching_takes_polynomial_time() {
    let began = std::time::Instant::now();
    let (pattern, line) = ("*a".repeat(40) + "b", "a".repeat(5_000));
    assert!(!fits(RuleDecision::Deny, &pattern, &line));
    assert!(!fits(RuleDecision::Allow, &pattern, &line));
    // Many words after a program that runs others.
    let line = "sudo ".to_owned() + &"a ".repeat(20_000);
    assert!(!fits(RuleDecision::Deny, "*b *c", &line));
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
