//! Rules applied to permission requests.

use brigade_core::policy::{Rule, RuleDecision, decide};
use proptest::prelude::*;
use serde_json::{Value, json};

pub(crate) fn rule(ruling: RuleDecision, command: &str) -> Rule {
    Rule { ruling, tool: None, command: Some(command.to_owned()) }
}

fn run(command: &str) -> Value {
    json!({ "command": command })
}

/// Returns whether a rule with this pattern matches a command line.
fn fits(ruling: RuleDecision, pattern: &str, command: &str) -> bool {
    decide(&[rule(ruling, pattern)], "shell", &run(command)).is_some()
}

#[test]
fn an_allowing_rule_matches_a_single_command() {
    for (pattern, command, yes) in [
        ("git status", "git status", true),
        ("git status", "git status -s", false),
        ("git *", "git status -s", true),
        ("git *", "git", false),
        ("git*", "git", true),
        ("git *", "git log; rm -rf /", false),
        ("git *", "git log && rm x", false),
        ("git *", "git log | sh", false),
        ("git *", "git log & rm x", false),
        ("git *", "git log\nrm x", false),
        ("git *", "git log `rm x`", false),
        ("git *", "git log $(rm x)", false),
        ("git *", "git log > /etc/passwd", false),
        ("git *", "git log <(rm x)", false),
        ("git *", "git log $IFS", false),
        ("git *", "cd / && git log", false),
        ("git * | head *", "git log | head -3", true),
        ("git * | head *", "git log | head -3 | sh", false),
        ("git * | head *", "git log | sh | head -3", false),
        ("*", "ls -l", true),
        ("*", "ls; ls", false),
        ("rm build/*", "rm build/x", true),
        ("rm build/*", "rm build/../../x", false),
        ("rm build/*", "rm build/..", false),
        ("rm ../*", "rm ../x", true),
        ("echo one", "/bin/bash -lc 'echo one'", true),
        ("echo *", "/bin/bash -lc 'echo one; rm x'", false),
        ("/bin/bash -lc *", "/bin/bash -lc 'rm x'", false),
    ] {
        assert_eq!(fits(RuleDecision::Allow, pattern, command), yes, "{pattern:?} {command:?}");
    }
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
        ("rm *", "git rm x", false),
        ("rm *", "rmdir x", false),
        ("*secret*", "cat a/secret/b", true),
    ] {
        for ruling in [RuleDecision::Deny, RuleDecision::Ask] {
            assert_eq!(fits(ruling, pattern, command), no, "{pattern:?} {command:?}");
        }
    }
}

#[test]
fn the_first_matching_rule_counts() {
    let rules = [
        rule(RuleDecision::Ask, "git push*"),
        rule(RuleDecision::Allow, "git *"),
        Rule { ruling: RuleDecision::Deny, tool: Some("mcp__*".into()), command: None },
        Rule { ruling: RuleDecision::Allow, tool: Some("read".into()), command: None },
    ];
    for (tool, input, expected) in [
        ("shell", run("git status"), Some((1, RuleDecision::Allow))),
        ("shell", run("git push"), Some((0, RuleDecision::Ask))),
        ("shell", run("git status; git push"), Some((0, RuleDecision::Ask))),
        ("shell", run("git status; ls"), None),
        ("mcp__x__y", json!({}), Some((2, RuleDecision::Deny))),
        ("read", run("anything; at all"), Some((3, RuleDecision::Allow))),
        ("reader", json!({}), None),
        ("shell", json!(["git", "status"]), None),
        (
            "shell",
            json!({ "command": ["bash", "-lc", "git status"] }),
            Some((1, RuleDecision::Allow)),
        ),
    ] {
        assert_eq!(decide(&rules, tool, &input), expected, "{tool} {input}");
    }
    assert_eq!(decide(&[], "shell", &run("ls")), None);
}

#[test]
fn other_tools_are_matched_by_their_json_input() {
    let allow = |pattern: &str, input: &Value| {
        decide(&[rule(RuleDecision::Allow, pattern)], "write", input).is_some()
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
    assert!(decide(&deny, "write", &outside).is_some());
    assert!(decide(&deny, "write", &inside).is_none());
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
        let rule = Rule { ruling: RuleDecision::Deny, tool: Some(pattern.clone()), command: None };
        let (pattern, characters): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
        let fits = decide(&[rule], &text, &json!({})).is_some();
        prop_assert_eq!(fits, matches_simply(&pattern, &characters));
    }

    /// An allow rule never matches a command line with a shell operator, wherever the pattern has stars.
    #[test]
    fn a_star_never_allows_an_operator(
        pattern in "[a-c* ]{0,6}",
        before in "[a-c ]{0,6}",
        operator in operator(),
        after in "[a-c ;|&$'\"]{0,6}",
    ) {
        let line = format!("{before}{operator}{after}");
        // Skip operators that trimming removes, such as a line break at the end.
        prop_assume!(line.trim().contains(operator));
        prop_assert!(!fits(RuleDecision::Allow, &pattern, &line));
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
        let alone = fits(RuleDecision::Allow, &pattern, &command);
        let line = format!("{before}{one} {command}\t{two}{after}");
        prop_assert!(!alone || fits(RuleDecision::Deny, &pattern, &line), "{pattern:?} {line:?}");
        prop_assert!(!alone || fits(RuleDecision::Deny, &pattern, &command));
    }

    /// No input and no rule causes a panic.
    #[test]
    fn arbitrary_input_is_handled(pattern in "\\PC{0,40}", line in any::<String>(), tool in any::<String>()) {
        for ruling in [RuleDecision::Allow, RuleDecision::Ask, RuleDecision::Deny] {
            let decision = decide(&[rule(ruling, &pattern)], &tool, &run(&line));
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
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
