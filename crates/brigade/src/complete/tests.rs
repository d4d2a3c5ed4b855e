use brigade_host::candidates::CandidateKind;
use clap::CommandFactory as _;

use super::*;
use crate::cli::Cli;

fn completion(line: &str) -> Completion {
    complete(&Cli::command(), &split_line(line)[1..])
}

fn source(line: &str) -> ValueSource {
    completion(line).source
}

#[test]
fn the_values_of_an_argument_follow_from_its_type() {
    use CandidateKind::*;
    for (line, expected) in [
        ("brigade send ", Teammate),
        ("brigade --json send ", Teammate),
        ("brigade --team task send ", Teammate),
        ("brigade ask ", Teammate),
        ("brigade stop bob ", Teammate),
        ("brigade interrupt ", Teammate),
        ("brigade inbox ", AnyMember),
        ("brigade --as ", AnyMember),
        ("brigade stop --as ", AnyMember),
        ("brigade task add x --owner ", AnyMember),
        ("brigade logs --member ", AnyMember),
        ("brigade logs --member bob ", AnyMember),
        ("brigade log -m ", AnyMember),
        ("brigade task done ", OpenTask),
        ("brigade tasks done 3 ", OpenTask),
        ("brigade task reopen ", FinishedTask),
        ("brigade task show ", AnyTask),
        ("brigade task add x --blocked-by 1,", AnyTask),
        ("brigade approve ", Request),
        ("brigade deny 3 ", Request),
        ("brigade approvals ", Request),
        ("brigade --team ", Team),
        ("brigade status ", Team),
        ("brigade send --team=", Team),
        ("brigade spawn bob --agent ", Agent),
        ("brigade spawn bob --model ", Model),
        ("brigade task list --label ", Label),
    ] {
        assert_eq!(source(line), ValueSource::Known(expected), "{line}");
    }
    for line in ["brigade send bob ", "brigade spawn ", "brigade team create ", "brigade task add "]
    {
        assert_eq!(source(line), ValueSource::Nothing, "{line}");
    }
    assert_eq!(source("brigade --store "), ValueSource::Stores);
    assert_eq!(source("brigade up --file "), ValueSource::Files);
    assert_eq!(source("brigade --claude-dir "), ValueSource::Folders);
}

#[test]
fn commands_options_and_fixed_values_are_offered() {
    let values = |line: &str| match source(line) {
        ValueSource::Fixed(found) => found.into_iter().map(|candidate| candidate.value).collect(),
        other => vec![format!("{other:?}")],
    };
    assert_eq!(values("brigade history "), ["size", "keep", "compact", "export"]);
    assert_eq!(values("brigade help history "), ["size", "keep", "compact", "export"]);
    assert_eq!(values("brigade ui --view=").first().map(String::as_str), Some("team"));
    assert!(values("brigade ").contains(&"send".to_owned()));
    assert!(!values("brigade ").contains(&"supervise".to_owned()), "a hidden command");
    assert!(values("brigade spawn bob ").contains(&"--agent".to_owned()));
    assert!(!values("brigade spawn bob --agent codex ").contains(&"--agent".to_owned()));
    assert!(values("brigade send bob --").contains(&"--team".to_owned()));
}

#[test]
fn the_rest_of_the_line_is_known() {
    let found =
        completion("brigade --team a --store=b task edit --blocked-by 1 --blocked-by 2,3,4");
    assert_eq!((found.prefix.as_str(), found.current.as_str()), ("2,3,", "4"));
    assert_eq!(found.taken, ["1", "2", "3"]);
    assert_eq!(found.global, ["--team=a", "--store=b"]);
    let found = completion("brigade send --team=de");
    assert_eq!((found.prefix.as_str(), found.current.as_str()), ("--team=", "de"));
    assert_eq!(completion("brigade stop bob ann ").taken, ["bob", "ann"]);
    assert_eq!(completion("brigade send -- ").source, source("brigade send "));
}

/// Every argument either has values that brigade or the shell knows, or is in this list.
#[test]
fn only_free_text_has_no_completion() {
    let mut found = Vec::new();
    list_without_values(&Cli::command(), &mut Vec::new(), &mut found);
    insta::assert_snapshot!(found.join("\n"));
}

fn list_without_values(command: &Command, path: &mut Vec<String>, found: &mut Vec<String>) {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
        if value_source(&names, arg) == ValueSource::Nothing {
            let name = match arg.get_long() {
                Some(long) => format!("--{long}"),
                None => arg.get_id().to_string(),
            };
            found.push(format!("{} {name}", path.join(" ")).trim().to_owned());
        }
    }
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        path.push(subcommand.get_name().to_owned());
        list_without_values(subcommand, path, found);
        path.pop();
    }
}
