//! Answers permission requests by rules, and explains what rules decide.

use std::fmt;
use std::path::{Path, PathBuf};

use brigade_wire::name::MemberName;

use super::{Approval, ApprovalSubject, answer, waiting};
use crate::handshake::{self, Answer, HandshakeError};
use crate::mail::MailError;
use crate::policy::{self, Explanation, Rule, RuleDecision, ToolUse};
use crate::seat::{Seat, SeatUser};

/// The rules for a member, and the folder in which they apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberRules {
    /// The member's own rules, in the order in which they are checked.
    pub rules: Vec<Rule>,
    /// The rules of the person who leads that apply to this member. Those that ask or deny are checked before the member's
    /// own rules, those that allow are checked after them. So a member's rule that asks or denies always comes before a
    /// personal rule that allows.
    pub personal: Vec<NumberedRule>,
    /// The rules that a person added for the member's current turn. They are checked next to the personal rules.
    pub turn: Vec<Rule>,
    /// The folder that the member works in.
    pub folder: PathBuf,
}

/// A rule with its position in the file that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedRule {
    /// The position, counted from 1.
    pub number: usize,
    /// The rule.
    pub rule: Rule,
}

/// Where a rule is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSource {
    /// Among the rules of this member.
    Member(MemberName),
    /// In the policy file of the person who leads.
    Person,
    /// Nowhere: a person added it for the current turn of this member.
    Turn(MemberName),
}

/// A rule that applies to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedRule {
    /// Where the rule is written.
    pub source: RuleSource,
    /// The position of the rule there, counted from 1.
    pub number: usize,
    /// The rule.
    pub rule: Rule,
}

impl fmt::Display for AppliedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.user().fmt(f)
    }
}

impl AppliedRule {
    /// Returns the user of the lead's seat when the rule answers.
    fn user(&self) -> SeatUser {
        match &self.source {
            RuleSource::Member(name) => SeatUser::Rule { number: self.number, of: name.clone() },
            RuleSource::Person => SeatUser::PersonalRule { number: self.number },
            RuleSource::Turn(name) => SeatUser::TurnRule { number: self.number, of: name.clone() },
        }
    }
}

impl MemberRules {
    /// Returns the rules in the order in which they are checked.
    pub fn in_order(&self, member: &MemberName) -> Vec<AppliedRule> {
        let personal = self.personal.iter().map(|NumberedRule { number, rule }| AppliedRule {
            source: RuleSource::Person,
            number: *number,
            rule: rule.clone(),
        });
        let turn = self.turn.iter().zip(1..).map(|(rule, number)| AppliedRule {
            source: RuleSource::Turn(member.clone()),
            number,
            rule: rule.clone(),
        });
        let (after, before): (Vec<_>, Vec<_>) =
            turn.chain(personal).partition(|found| found.rule.ruling == RuleDecision::Allow);
        let own = self.rules.iter().enumerate().map(|(index, rule)| AppliedRule {
            source: RuleSource::Member(member.clone()),
            number: index + 1,
            rule: rule.clone(),
        });
        before.into_iter().chain(own).chain(after).collect()
    }
}

/// A request that a rule answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleAnswer {
    /// The request that the rule answered.
    pub approval: Approval,
    /// The rule.
    pub rule: AppliedRule,
    /// The rule's decision.
    pub decision: RuleDecision,
}

/// The decision of the rules about a request, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleVerdict {
    /// The rules, in the order in which they were checked. The explanation refers to them by their index.
    pub rules: Vec<AppliedRule>,
    /// The decision, and the rule that decides. If several rules together allow the commands of a line, it is the first one.
    pub decision: Option<(AppliedRule, RuleDecision)>,
    /// How each part of the request was matched.
    pub explanation: Explanation,
}

impl RuleVerdict {
    /// Checks the rules against the use of a tool.
    pub fn new(member: &MemberName, rules: &MemberRules, tool_use: &ToolUse<'_>) -> Self {
        let rules = rules.in_order(member);
        let plain: Vec<Rule> = rules.iter().map(|applied| applied.rule.clone()).collect();
        let explanation = policy::explain(&plain, tool_use);
        let decision = explanation.decision;
        let decision =
            decision.and_then(|(index, ruling)| Some((rules.get(index)?.clone(), ruling)));
        Self { rules, decision, explanation }
    }
}

/// Returns what the rules for the asking member decide about a request; `None` for a plan, which no rule answers.
///
/// `real_path` resolves the symbolic links of a path, because this crate does not read the disk. For a path that does
/// not exist, it resolves the folders that exist. It returns an empty path if it cannot resolve a path.
pub fn explain_rules(
    approval: &Approval,
    rules: &MemberRules,
    real_path: impl Fn(&Path) -> PathBuf,
) -> Option<RuleVerdict> {
    let ApprovalSubject::Permission { tool, input, action, .. } = &approval.subject else {
        return None;
    };
    // Claude Code does not report the folder, but keeps its shell in the folders that it works in.
    let cwd = action.cwd.as_ref().map_or(rules.folder.as_path(), Path::new);
    // An empty path is in no folder.
    let cwd = policy::run_folder(input, cwd).unwrap_or_default();
    let files = policy::named_files(input, &action.request, &cwd);
    let files: Vec<PathBuf> = files.iter().map(|file| real_path(file)).collect();
    let (cwd, folder) = (real_path(&cwd), real_path(&rules.folder));
    let tool_use = ToolUse { tool, input, cwd: &cwd, folder: &folder, files: &files };
    let mut verdict = RuleVerdict::new(&approval.from, rules, &tool_use);
    // A rule is about the tool and its input. It does not grant what the agent asks for in addition.
    let obstacle = if action.widens_permissions() {
        Some("it asks for more permissions than this one call under the agent's usual limits")
    } else if action.has_unknown_request_fields() {
        Some("the request has a field that brigade does not know")
    } else {
        None
    };
    if let Some(obstacle) = obstacle {
        verdict.explanation.obstacle = Some(obstacle.to_owned());
        verdict.decision.take_if(|(_, ruling)| *ruling == RuleDecision::Allow);
    }
    Some(verdict)
}

/// Answers every waiting permission request that a rule for the asking member allows or denies. The other requests
/// keep waiting. Even if several processes and people answer at the same time, each request gets only one answer.
/// Also sends answers that an earlier process decided on but did not send before it died.
///
/// `real_path` resolves paths as for [`explain_rules`].
pub async fn apply_rules(
    seat: &Seat,
    rules_of: impl Fn(&MemberName) -> MemberRules,
    real_path: impl Fn(&Path) -> PathBuf,
) -> Result<Vec<RuleAnswer>, HandshakeError> {
    handshake::finish(seat).await?;
    let mut ruled = Vec::new();
    for approval in waiting(seat).await? {
        let verdict = explain_rules(&approval, &rules_of(&approval.from), &real_path);
        let Some((rule, decision)) = verdict.and_then(|verdict| verdict.decision) else { continue };
        let why = match &rule.source {
            RuleSource::Member(name) => format!("denied by rule {} for {name}", rule.number),
            RuleSource::Person | RuleSource::Turn(_) => format!("denied by {rule}"),
        };
        let reply = match decision {
            RuleDecision::Ask => continue,
            RuleDecision::Allow => Answer::Yes,
            RuleDecision::Deny => Answer::No(&why),
        };
        match answer(&Seat { user: rule.user(), ..seat.clone() }, &approval, reply).await {
            Ok(_) => ruled.push(RuleAnswer { approval, rule, decision }),
            // Another process or person answered first, or the asking member has left.
            Err(
                HandshakeError::Answered { .. } | HandshakeError::Send(MailError::NoMember { .. }),
            ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ruled)
}
