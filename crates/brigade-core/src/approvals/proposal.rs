//! Finds the rules that would answer a request from now on, so that a person can make a rule out of one answer.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{AppliedRule, Approval, ApprovalSubject, MemberRules, NumberedRule, explain_rules};
use crate::policy::{self, Rule, RuleDecision, shell};

/// Why no personal rule can answer a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NoRule {
    /// The request is a plan.
    #[error("rules never answer plans")]
    Plan,
    /// No rule may allow the request.
    #[error("no rule may allow this request: {0}")]
    NotAllowed(String),
    /// The narrowest rule for this input cannot be written.
    #[error("the input of the tool contains *, which has another meaning in a rule")]
    Star,
    /// A rule that is checked earlier decides.
    #[error("{rule} ({}) is checked first, and a new rule cannot override it", text(rule))]
    Overruled {
        /// The rule that decides.
        rule: Box<AppliedRule>,
    },
    /// A rule already answers such requests in this way.
    #[error("{rule} ({}) already answers such requests", text(rule))]
    Covered {
        /// The rule that decides.
        rule: Box<AppliedRule>,
    },
    /// A pattern can never allow a command.
    #[error("the rule {pattern:?} can never allow a command: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The reason.
        reason: shell::Unclear,
    },
    /// The chosen rules do not decide about the request.
    #[error("the rule would not answer this request{}", not_allowed(left))]
    NotMatched {
        /// The commands that the rules do not allow.
        left: Vec<String>,
    },
}

fn text(rule: &AppliedRule) -> String {
    let pattern = rule.rule.command.as_ref().or(rule.rule.tool.as_ref());
    let ruling = rule.rule.ruling.as_str();
    format!("{ruling} {}", pattern.map_or("everything", String::as_str))
}

fn not_allowed(left: &[String]) -> String {
    if left.is_empty() { String::new() } else { format!(": it does not allow {}", left.join(", ")) }
}

/// Returns the personal rules that would answer requests like this one with `ruling`, in addition to the existing rules. With
/// `patterns`, these patterns are used; otherwise the narrowest ones: the exact command, or the exact input of a tool that
/// runs no command line. A line of several commands needs a rule for each command that no rule allows yet.
///
/// `real_path` resolves paths as for [`explain_rules`].
pub fn propose_rules(
    approval: &Approval,
    rules: &MemberRules,
    ruling: RuleDecision,
    patterns: &[String],
    real_path: impl Fn(&Path) -> PathBuf,
) -> Result<Vec<Rule>, NoRule> {
    let ApprovalSubject::Permission { tool, input, .. } = &approval.subject else {
        return Err(NoRule::Plan);
    };
    let before = explain_rules(approval, rules, &real_path).ok_or(NoRule::Plan)?;
    if let Some((rule, decision)) = before.decision {
        let rule = Box::new(rule);
        match (ruling, decision) {
            (RuleDecision::Allow, RuleDecision::Allow)
            | (RuleDecision::Deny, RuleDecision::Deny) => return Err(NoRule::Covered { rule }),
            (RuleDecision::Allow, RuleDecision::Ask | RuleDecision::Deny) => {
                return Err(NoRule::Overruled { rule });
            }
            // A personal rule that denies is checked before a rule that allows or asks.
            _ => {}
        }
    }
    let is_shell = policy::is_shell_tool(tool);
    let rule = |pattern: &str| Rule {
        ruling,
        tool: (!is_shell).then(|| tool.clone()),
        command: Some(pattern.to_owned()),
    };
    let narrowest: Vec<String> = match ruling {
        RuleDecision::Allow => {
            if let Some(obstacle) = before.explanation.obstacle {
                return Err(NoRule::NotAllowed(obstacle));
            }
            let is_empty =
                input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty);
            if is_empty && !is_shell {
                let why = "the request does not say what the tool would do".to_owned();
                return Err(NoRule::NotAllowed(why));
            }
            if let Some(part) = before.explanation.parts.iter().find(|part| part.obstacle.is_some())
            {
                let obstacle = part.obstacle.clone().unwrap_or_default();
                return Err(NoRule::NotAllowed(format!("{}: {obstacle}", part.command)));
            }
            let parts = before.explanation.parts.iter();
            let parts = parts.filter(|part| part.allowed_by.is_none());
            let mut parts: Vec<String> = parts.map(|part| part.pattern.clone()).collect();
            parts.dedup();
            if is_shell { parts } else { vec![input.to_string()] }
        }
        RuleDecision::Ask | RuleDecision::Deny => {
            vec![policy::command(input).unwrap_or_else(|| input.to_string())]
        }
    };
    if !is_shell && (tool.contains('*') || (patterns.is_empty() && input.to_string().contains('*')))
    {
        return Err(NoRule::Star);
    }
    let chosen = if patterns.is_empty() { &narrowest } else { patterns };
    if ruling == RuleDecision::Allow && is_shell {
        for pattern in chosen {
            policy::check_allowed_command(pattern)
                .map_err(|reason| NoRule::Pattern { pattern: pattern.clone(), reason })?;
        }
    }
    let proposed: Vec<Rule> = chosen.iter().map(|pattern| rule(pattern)).collect();
    let after = explain_rules(approval, &rules.with_personal(&proposed), &real_path);
    let after = after.ok_or(NoRule::Plan)?;
    match after.decision {
        Some((_, decision)) if decision == ruling => Ok(proposed),
        _ => {
            let parts = after.explanation.parts.iter();
            let parts = parts.filter(|part| part.allowed_by.is_none());
            let left = match ruling {
                RuleDecision::Allow => parts.map(|part| part.command.clone()).collect(),
                RuleDecision::Ask | RuleDecision::Deny => Vec::new(),
            };
            Err(NoRule::NotMatched { left })
        }
    }
}

impl MemberRules {
    /// Returns the rules with more personal rules after the existing ones.
    #[must_use]
    pub fn with_personal(&self, more: &[Rule]) -> Self {
        let last = self.personal.iter().map(|found| found.number).max().unwrap_or_default();
        let more = more.iter().zip(last + 1..);
        let more = more.map(|(rule, number)| NumberedRule { number, rule: rule.clone() });
        let personal = self.personal.iter().cloned().chain(more).collect();
        Self { personal, ..self.clone() }
    }
}
