//! `brigade policy`

use brigade_core::approvals::{AppliedRule, RuleSource};
use brigade_core::policy::{Rule, RuleDecision};
use brigade_core::text::exact;
use brigade_host::personal_policy::PersonalPolicy;
use brigade_host::rules::{ListedRule, TestedCommand, list_rules, test_command};
use serde_json::{Value, json};

use crate::cli::{PolicyCommand, PolicyTestArgs};
use crate::context::CliContext;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, Cell, FAINT, STRONG, Table};

pub(crate) fn run(context: &CliContext, command: PolicyCommand) -> Result<u8, CliError> {
    match command {
        PolicyCommand::List => list(context),
        PolicyCommand::Test(args) => test(context, &args),
        PolicyCommand::Remove { number } => remove(context, number),
    }
}

fn list(context: &CliContext) -> Result<u8, CliError> {
    let rules = list_rules(context)?;
    if context.json {
        output::print_json(&rules.iter().map(listed_document).collect::<Vec<_>>())?;
    } else if rules.is_empty() {
        output::note("there are no rules; every permission request waits for you");
    } else {
        output::print(&rule_table(&rules).render("", output::width()))?;
    }
    Ok(if rules.is_empty() { exit::NOTHING } else { exit::DONE })
}

fn rule_table(rules: &[ListedRule]) -> Table {
    let mut table = Table::new(&["RULE", "DECIDES", "PATTERN", "APPLIES TO"]);
    for ListedRule { rule, team, folder } in rules {
        let applies_to = match (&rule.source, folder) {
            (RuleSource::Member(name), _) => {
                let team = team.as_ref().map(|team| format!(" of team {team}"));
                format!("{name}{}", team.unwrap_or_default())
            }
            (RuleSource::Turn(name), _) => format!("{name}, until its turn ends"),
            (RuleSource::Person, None) => "every folder".to_owned(),
            (RuleSource::Person, Some(folder)) => folder.display().to_string(),
        };
        table.row([
            Cell::new(STRONG, &rule.to_string()),
            rule.rule.ruling.as_str().into(),
            pattern_text(&rule.rule).into(),
            Cell::new(FAINT, &exact(&applies_to)),
        ]);
    }
    table
}

/// Describes what a rule matches.
pub(crate) fn pattern_text(rule: &Rule) -> String {
    match (&rule.tool, &rule.command) {
        (None, None) => "everything".to_owned(),
        (None, Some(command)) => exact(command),
        (Some(tool), None) => format!("tool {}", exact(tool)),
        (Some(tool), Some(command)) => format!("tool {} with {}", exact(tool), exact(command)),
    }
}

fn rule_document(rule: &AppliedRule) -> Value {
    let (source, member) = match &rule.source {
        RuleSource::Member(name) => ("member", Some(name)),
        RuleSource::Person => ("person", None),
        RuleSource::Turn(name) => ("turn", Some(name)),
    };
    let Rule { ruling, tool, command } = &rule.rule;
    json!({
        "source": source, "member": member, "number": rule.number,
        "ruling": ruling, "tool": tool, "command": command,
    })
}

fn listed_document(ListedRule { rule, team, folder }: &ListedRule) -> Value {
    let mut document = rule_document(rule);
    if let Value::Object(fields) = &mut document {
        fields.insert("team".to_owned(), json!(team));
        fields.insert("folder".to_owned(), json!(folder));
    }
    document
}

fn test(context: &CliContext, args: &PolicyTestArgs) -> Result<u8, CliError> {
    let tested = test_command(context, &args.line, args.member.as_ref(), args.dir.as_deref())?;
    if context.json {
        output::print_json(&tested.iter().map(tested_document).collect::<Vec<_>>())?;
    } else {
        output::print(&tested.iter().map(tested_text).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(exit::DONE)
}

fn tested_document(tested: &TestedCommand) -> Value {
    let (verdict, explained) = (&tested.verdict, &tested.verdict.explanation);
    let parts = explained.parts.iter().map(|part| {
        let rule = part.allowed_by.and_then(|index| verdict.rules.get(index));
        json!({
            "command": part.command,
            "allowed_by": rule.map(rule_document),
            "obstacle": part.obstacle,
        })
    });
    json!({
        "team": tested.member.as_ref().map(|(team, _)| team),
        "member": tested.member.as_ref().map(|(_, name)| name),
        "dir": tested.cwd,
        "decision": verdict.decision.as_ref().map(|(_, decision)| decision),
        "rule": verdict.decision.as_ref().map(|(rule, _)| rule_document(rule)),
        "obstacle": explained.obstacle,
        "parts": parts.collect::<Vec<_>>(),
    })
}

fn tested_text(tested: &TestedCommand) -> String {
    let (verdict, explained) = (&tested.verdict, &tested.verdict.explanation);
    let who = match &tested.member {
        Some((team, name)) => format!("{name} of team {team}"),
        None => format!("a member in {}", exact(&tested.cwd.to_string_lossy())),
    };
    let rule_text = |rule: &AppliedRule| {
        format!("{rule}: {} {}", rule.rule.ruling.as_str(), pattern_text(&rule.rule))
    };
    let (result, shows_parts) = match (&verdict.decision, &explained.obstacle) {
        (Some((_, RuleDecision::Allow)), None) if !explained.parts.is_empty() => {
            ("allowed".to_owned(), true)
        }
        (Some((rule, RuleDecision::Allow)), _) => {
            (format!("allowed by {}", rule_text(rule)), false)
        }
        (Some((rule, RuleDecision::Deny)), _) => (format!("denied by {}", rule_text(rule)), false),
        (Some((rule, RuleDecision::Ask)), _) => {
            (format!("waits for an answer, by {}", rule_text(rule)), false)
        }
        (None, Some(obstacle)) => (format!("waits for an answer: {obstacle}"), false),
        (None, None) => ("waits for an answer: no rule decides".to_owned(), true),
    };
    let mut text = format!("{STRONG}{who}{STRONG:#}: {result}\n");
    let mut table = Table::new(&["", ""]);
    for part in &explained.parts {
        let rule = part.allowed_by.and_then(|index| verdict.rules.get(index));
        let why = match (rule, &part.obstacle) {
            (Some(rule), _) => rule_text(rule),
            (None, Some(obstacle)) => format!("no rule may allow it: {obstacle}"),
            (None, None) => "no rule allows it".to_owned(),
        };
        table.row([exact(&part.command).into(), Cell::new(FAINT, &why)]);
    }
    if shows_parts && !explained.parts.is_empty() {
        let rows = table.render("  ", output::width());
        text += rows.split_once('\n').map_or("", |(_, rows)| rows);
    }
    text
}

fn remove(context: &CliContext, number: usize) -> Result<u8, CliError> {
    let removed = PersonalPolicy::remove(context, number)?;
    if context.json {
        output::print_json(&json!({ "removed": removed }))?;
    } else {
        let ruling = removed.rule.ruling.as_str();
        output::print(&format!("removed: {ruling} {}\n", pattern_text(&removed.rule)))?;
    }
    Ok(exit::DONE)
}
