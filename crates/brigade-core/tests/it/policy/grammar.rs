//! The shell grammar: words that are quoted and read back, and lines of random words.

use brigade_core::policy::shell::{self, Redirection};
use proptest::prelude::*;

use crate::policy_laws;

#[test]
fn a_line_is_split_into_commands() {
    let line = "A=1 b 'c d' \"e\\\"f\" g\\ h <in 2>&1 | i >/dev/null && j >> out & ! k";
    let commands = shell::parse(line).unwrap();
    let texts: Vec<Vec<&str>> = commands.iter().map(|command| command.texts().collect()).collect();
    assert_eq!(texts, [vec!["b", "c d", "e\"f", "g h"], vec!["i"], vec!["j"], vec!["k"]]);
    assert_eq!(commands[0].assignments[0].name, "A");
    assert_eq!(commands[0].assignments[0].value.text(), "1");
    assert_eq!(commands[0].redirections, [Redirection::From("in".to_owned())]);
    assert_eq!(commands[1].redirections, []);
    assert_eq!(commands[2].redirections, [Redirection::To("out".to_owned())]);
}

#[test]
fn an_unclear_line_has_a_reason() {
    for (line, reason) in [
        ("echo $x", "it contains a variable or a substitution"),
        ("(ls)", "it contains a parenthesis"),
        ("ls &&", "a command is missing after the last operator"),
        ("ls ; ; ls", "it contains no program, or an operator without a command"),
        ("echo 'x", "a quote is not closed"),
        ("", "it contains no command"),
        ("if x", "the program's name depends on the shell"),
        ("echo x&>y", "it contains &>, which shells read differently"),
    ] {
        assert_eq!(shell::parse(line).unwrap_err().to_string(), reason, "{line:?}");
    }
    assert!(shell::parse(&"x ".repeat(40_000)).is_err());
}

proptest! {
    /// Quoting words and parsing them gives the same words.
    #[test]
    fn quoted_words_are_read_back(
        program in "[a-z./][a-z0-9./ ;|&$]{0,6}",
        arguments in prop::collection::vec("[ -~\n\té日✨]{0,8}", 0..5),
    ) {
        prop_assume!(!["do", "if", "in", "fi"].contains(&program.as_str()) && program.len() < 3);
        let texts: Vec<&str> = [program.as_str()].into_iter().chain(arguments.iter().map(String::as_str)).collect();
        let line: Vec<String> = texts.iter().map(|text| shell::quote(text)).collect();
        let commands = shell::parse(&line.join(" ")).unwrap();
        prop_assert_eq!(commands.len(), 1);
        prop_assert_eq!(commands[0].texts().collect::<Vec<_>>(), texts);
        prop_assert!(commands[0].words.iter().all(brigade_core::policy::Word::is_literal));
    }

    #[test]
    fn every_invariant_holds_for_any_text(line in any::<String>()) {
        policy_laws::check(line.as_bytes());
    }

    #[test]
    fn every_invariant_holds_for_shell_like_text(
        line in "(echo|a|b|git log|A=1 c|cat src/a.rs)[ a-c'\"\\\\;|&<>$*?~!#=\n0-9/.-]{0,12}( --version)?",
    ) {
        policy_laws::check(line.as_bytes());
    }
}
