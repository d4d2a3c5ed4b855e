//! Property tests for parsing team files.

use std::fmt::Write as _;
use std::path::Path;

use brigade_core::policy::{Rule, RuleDecision};
use brigade_wire::name::MemberName;
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use super::{OutsidePaths, parse};
use crate::spec::{
    AccessLevel, ApprovalAuthority, MemberPlace, MemberSpec, Restart, TaskSpec, TeamSpec,
};

const ROOT: &str = "/";

/// A team file with every kind of table.
const FULL_FILE: &str = r#"
team = "parser"
description = "Ship it"
[lead]
agent = "claude"
answers = "lead"
[defaults]
agent = "codex"
env = ["A", "B"]
deny = ["git push*"]
[members.alice]
model = "m"
prompt = """
two
lines"""
[[members.alice.rules]]
ruling = "ask"
tool = "Bash"
[members.bob]
place = "tmux"
plan = true
[tasks.one]
subject = "One"
[tasks.two]
subject = "Two"
after = ["one"]
owner = "bob"
"#;

proptest! {
    #[test]
    fn a_printed_team_is_read_back_unchanged(spec in team()) {
        let text = print(&spec);
        match parse(&text, Path::new(ROOT), OutsidePaths::Use) {
            Ok(read) => prop_assert_eq!(read.spec, spec, "{}", text),
            Err(mistakes) => prop_assert!(false, "{mistakes:?}\n{text}"),
        }
    }

    #[test]
    fn any_text_is_accepted_or_rejected_with_valid_positions(text in any::<String>()) {
        check_mistakes(&text)?;
    }

    #[test]
    fn a_damaged_file_is_accepted_or_rejected_with_valid_positions(
        from in 0..FULL_FILE.len(),
        length in 0..20_usize,
        instead in "[a-z\\[\\]\"='{},.#\n\u{1b}é0 ]{0,6}",
    ) {
        let to = (from + length).min(FULL_FILE.len());
        // The file is ASCII, so every byte offset is a character boundary.
        let (before, rest) = (FULL_FILE.get(..from), FULL_FILE.get(to..));
        prop_assert!(before.is_some() && rest.is_some());
        let text = [before.unwrap_or_default(), &instead, rest.unwrap_or_default()].concat();
        check_mistakes(&text)?;
    }
}

/// Checks that every mistake has a position in the text and is shown without control characters.
fn check_mistakes(text: &str) -> Result<(), TestCaseError> {
    let Err(mistakes) = parse(text, Path::new(ROOT), OutsidePaths::Use) else { return Ok(()) };
    prop_assert!(!mistakes.is_empty());
    for mistake in mistakes {
        let line = text.split('\n').nth(mistake.line - 1);
        prop_assert!(line.is_some_and(|line| mistake.column <= line.chars().count() + 1));
        let shown = mistake.to_string();
        prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
    Ok(())
}

/// Generates text that is not blank.
fn non_blank() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| format!("a{text}"))
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let ruling =
        prop_oneof![Just(RuleDecision::Allow), Just(RuleDecision::Ask), Just(RuleDecision::Deny)];
    let rule = (ruling, option::of(non_blank()), option::of(non_blank()));
    let rule = rule.prop_map(|(ruling, tool, command)| {
        // The pattern of an allow rule for commands must be a command.
        let is_for_commands = ruling == RuleDecision::Allow && tool.is_none();
        let command = if is_for_commands { Some("make *".to_owned()) } else { command };
        Rule { ruling, tool, command }
    });
    vec(rule, 0..3)
}

fn member(name: MemberName) -> impl Strategy<Value = MemberSpec> {
    let agent = prop_oneof![Just("claude".to_owned()), Just("acp:my agent".to_owned())];
    let access = prop_oneof![Just(AccessLevel::Ask), Just(AccessLevel::Full)];
    let place = prop_oneof![
        Just(MemberPlace::Headless),
        Just(MemberPlace::Tmux),
        Just(MemberPlace::Native)
    ];
    let restart = prop_oneof![Just(Restart::Always), Just(Restart::Never)];
    let env = option::of(vec("[A-Z_][A-Z0-9_]{0,5}", 0..3));
    let non_blank = (option::of(non_blank()), option::of(non_blank()));
    let flags = any::<(bool, bool)>();
    let all = (agent, non_blank, flags, access, rules(), env, place, restart);
    all.prop_map(
        move |(agent, (model, prompt), (plan, worktree), access, rules, env, place, restart)| {
            MemberSpec {
                name: name.clone(),
                place: if agent == "claude" { place } else { MemberPlace::Tmux },
                agent,
                program: None,
                model,
                prompt,
                plan,
                access,
                rules,
                cwd: ROOT.into(),
                worktree,
                env,
                restart,
            }
        },
    )
}

fn members() -> impl Strategy<Value = Vec<MemberSpec>> {
    let names = btree_set("[a-z0-9][a-z0-9_]{0,6}", 0..4);
    let names = names.prop_map(|names| names.into_iter().collect::<Vec<_>>()).prop_shuffle();
    names.prop_flat_map(|names| {
        let names = names.iter().filter_map(|name| name.parse().ok());
        names.map(|name| member(name).boxed()).collect::<Vec<_>>()
    })
}

/// Generates tasks, each of which waits for some of the earlier tasks.
fn tasks() -> impl Strategy<Value = Vec<TaskSpec>> {
    vec((non_blank(), any::<String>(), any::<u8>(), any::<bool>()), 0..5).prop_map(|all| {
        let key = |at: usize| format!("t{at}");
        let task =
            |(at, (subject, description, waits, is_owned)): (usize, (String, String, u8, bool))| {
                let after = (0..at).filter(|other| waits >> other & 1 == 1).map(key).collect();
                let owner = is_owned.then(MemberName::lead);
                TaskSpec { key: key(at), subject, description, after, owner }
            };
        all.into_iter().enumerate().map(task).collect()
    })
}

fn team() -> impl Strategy<Value = TeamSpec> {
    let lead = option::of((member(MemberName::lead()), any::<bool>()));
    let name = "[a-z0-9][a-z0-9-]{0,9}".prop_filter_map("a name", |name| name.parse().ok());
    (name, any::<String>(), lead, members(), tasks()).prop_map(
        |(team, description, lead, members, tasks)| TeamSpec {
            team,
            description,
            root: ROOT.into(),
            answers: match &lead {
                Some((_, true)) => ApprovalAuthority::Lead,
                _ => ApprovalAuthority::Person,
            },
            lead: lead.map(|(lead, _)| MemberSpec { plan: false, worktree: false, ..lead }),
            members,
            tasks,
        },
    )
}

/// Renders a team as the text of a team file, with all keys.
fn print(team: &TeamSpec) -> String {
    let mut text =
        format!("team = \"{}\"\ndescription = {}\n", team.team, quoted(&team.description));
    if let Some(lead) = &team.lead {
        let _infallible = writeln!(text, "[lead]\nanswers = {}", json(&team.answers));
        print_member(lead, "lead", &mut text);
    }
    for member in &team.members {
        let table = format!("members.{}", member.name);
        let (plan, worktree) = (member.plan, member.worktree);
        let _infallible = writeln!(text, "[{table}]\nplan = {plan}\nworktree = {worktree}");
        print_member(member, &table, &mut text);
    }
    for task in &team.tasks {
        let TaskSpec { key, subject, description, after, owner } = task;
        let (subject, description) = (quoted(subject), quoted(description));
        let _infallible = writeln!(text, "[tasks.{key}]\nsubject = {subject}");
        let _infallible = writeln!(text, "description = {description}\nafter = {}", json(after));
        if let Some(owner) = owner {
            let _infallible = writeln!(text, "owner = \"{owner}\"");
        }
    }
    text
}

fn print_member(member: &MemberSpec, table: &str, text: &mut String) {
    let _infallible =
        writeln!(text, "agent = {}\naccess = {}", quoted(&member.agent), json(&member.access));
    let _infallible =
        writeln!(text, "place = {}\nrestart = {}", json(&member.place), json(&member.restart));
    for (key, value) in [("model", &member.model), ("prompt", &member.prompt)] {
        if let Some(value) = value {
            let _infallible = writeln!(text, "{key} = {}", quoted(value));
        }
    }
    if let Some(env) = &member.env {
        let _infallible = writeln!(text, "env = {}", json(env));
    }
    for rule in &member.rules {
        let _infallible = writeln!(text, "[[{table}.rules]]\nruling = {}", json(&rule.ruling));
        for (key, value) in [("tool", &rule.tool), ("command", &rule.command)] {
            if let Some(value) = value {
                let _infallible = writeln!(text, "{key} = {}", quoted(value));
            }
        }
    }
}

/// Renders a keyword or a list of names as JSON, which is also valid TOML.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Quotes text as JSON. That is also valid TOML once the character U+007F is escaped.
fn quoted(text: &str) -> String {
    json(&text).replace('\u{7f}', "\\u007f")
}
