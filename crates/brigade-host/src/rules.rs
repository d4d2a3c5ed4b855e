//! The rules for permission requests: which ones there are, what they decide, and how one answer becomes a rule.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use brigade_core::approvals::{
    self, AppliedRule, Approval, MemberRules, NumberedRule, RuleSource, RuleVerdict,
};
use brigade_core::handshake::{Answer, First};
use brigade_core::policy::{Rule, RuleDecision, ToolUse};
use brigade_core::seat::Seat;
use brigade_wire::name::{MemberName, TeamName};
use jiff::SignedDuration;
use serde_json::json;

use crate::Host;
use crate::answer::{self, GivenAnswer};
use crate::context::Context;
use crate::error::{HostError, Trouble};
use crate::personal_policy::{PersonalPolicy, PersonalRule};
use crate::spec::{MemberPlace, MemberSpec};

/// How far back to look for requests that a new rule would have answered.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The length of the longest path that is resolved, in bytes. The system accepts no longer ones.
const MAX_PATH: usize = 4096;

/// A rule, and where it applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRule {
    /// The rule with its number and its owner: a member, or the person.
    pub rule: AppliedRule,
    /// The team of a member's rule.
    pub team: Option<TeamName>,
    /// The folder to which a personal rule is limited.
    pub folder: Option<PathBuf>,
}

/// The decision of the rules about a command of a member.
#[derive(Clone, Debug)]
pub struct TestedCommand {
    /// The member and its team. `None` if no member was tested, only the personal rules.
    pub member: Option<(TeamName, MemberName)>,
    /// The folder in which the command would run.
    pub cwd: PathBuf,
    /// The decision of the rules.
    pub verdict: RuleVerdict,
}

/// Where and how long a new rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleScope {
    /// To the asking member, until its current turn ends.
    Turn,
    /// To all members in the folder of the asking member.
    Folder,
    /// To all members.
    Everywhere,
}

/// Rules that would answer requests like one request from now on.
#[derive(Clone, Debug)]
pub struct RuleProposal {
    /// The rules to add.
    pub rules: Vec<PersonalRule>,
    /// Where and how long the rules apply.
    pub scope: RuleScope,
    /// The policy file.
    pub path: PathBuf,
    /// The other requests of the last 30 days that these rules would have answered, and that no rule answers so far.
    pub covered: Vec<Approval>,
    /// The answer to the request, if it was answered before. The rules can still be added.
    pub answered: Option<First>,
}

/// Returns the personal rules, and the rules of the members that run on this host. If the caller named a team, returns only the
/// rules of its members.
pub fn list_rules(context: &Context) -> Result<Vec<ListedRule>, HostError> {
    let personal = PersonalPolicy::of_context(context)?;
    let mut listed = Vec::new();
    for (rule, number) in personal.rules().iter().zip(1..) {
        let PersonalRule { rule, folder } = rule.clone();
        let rule = AppliedRule { source: RuleSource::Person, number, rule };
        listed.push(ListedRule { rule, team: None, folder });
    }
    let host = context.host()?;
    for (team, spec) in members(context, &host)? {
        let mut list = |source: RuleSource, rules: &[Rule]| {
            listed.extend(rules.iter().zip(1..).map(|(rule, number)| {
                let rule = AppliedRule { source: source.clone(), number, rule: rule.clone() };
                ListedRule { rule, team: Some(team.clone()), folder: None }
            }));
        };
        list(RuleSource::Member(spec.name.clone()), &spec.rules);
        list(RuleSource::Turn(spec.name.clone()), &host.registry.turn_rules(&team, &spec.name)?);
    }
    Ok(listed)
}

/// Returns what the rules decide about a command line: for the named member, or else for each member that runs on this host.
/// The command would run in `dir`, or else in the member's folder. If no member runs, only the personal rules are checked.
pub fn test_command(
    context: &Context,
    line: &str,
    member: Option<&MemberName>,
    dir: Option<&Path>,
) -> Result<Vec<TestedCommand>, HostError> {
    let personal = PersonalPolicy::of_context(context)?;
    let host = context.host()?;
    let input = json!({ "command": line });
    let check = |name: &MemberName, tool, rules: &MemberRules, dir: &Path| {
        let (cwd, folder) = (real_path(dir), real_path(&rules.folder));
        let tool_use = ToolUse { tool, input: &input, cwd: &cwd, folder: &folder, files: &[] };
        let verdict = RuleVerdict::new(name, rules, &tool_use);
        TestedCommand { member: None, cwd: dir.to_owned(), verdict }
    };
    let mut tested = Vec::new();
    for (team, spec) in members(context, &host)? {
        if member.is_some_and(|member| *member != spec.name) {
            continue;
        }
        let rules = member_rules(&host, &personal, &team, &spec)?;
        let dir = dir.map_or(rules.folder.clone(), |dir| context.cwd.join(dir));
        let found = check(&spec.name, shell_tool(&spec.agent), &rules, &dir);
        tested.push(TestedCommand { member: Some((team, spec.name)), ..found });
    }
    match member {
        Some(name) if tested.is_empty() => {
            let team = context.named_team().map(ToString::to_string);
            let error = match team {
                Some(team) => Trouble::NotHere { name: name.to_string(), team },
                None => Trouble::NotOnHost { name: name.to_string() },
            };
            Err(HostError::failed(error).hint("`brigade status` shows the members of this host"))
        }
        None if tested.is_empty() => {
            let folder = dir.map_or(context.cwd.clone(), |dir| context.cwd.join(dir));
            let personal = personal_rules(&personal, &folder);
            let rules = MemberRules { personal, folder: folder.clone(), ..MemberRules::default() };
            Ok(vec![check(&MemberName::lead(), shell_tool(""), &rules, &folder)])
        }
        _ => Ok(tested),
    }
}

/// Returns the rules that would answer requests like this one with `ruling` from now on. Without `patterns`, they are the
/// narrowest rules. Only a person may call this.
pub async fn propose(
    context: &Context,
    seat: &Seat,
    approval: &Approval,
    ruling: RuleDecision,
    patterns: &[String],
    scope: RuleScope,
) -> Result<RuleProposal, HostError> {
    context.require_person("add rules")?;
    let answered = approvals::first_answer(seat, approval).await?;
    if scope != RuleScope::Turn {
        context.config_dir()?;
    }
    let once = match (&answered, scope) {
        (Some(first), _) => {
            let answer = first.describe(context.clock.now());
            format!("request {} needs no answer: {answer}", approval.number)
        }
        (None, RuleScope::Turn) => "answer without `--turn`".to_owned(),
        (None, RuleScope::Folder | RuleScope::Everywhere) => "answer without `--always`".to_owned(),
    };
    let once = once.as_str();
    let (host, team) = (context.host()?, &seat.team);
    if !host.leads(seat).await? {
        let error = HostError::failed(Trouble::RulesNotApplied { team: team.to_string() });
        return Err(error.hint(once));
    }
    let personal = PersonalPolicy::of_context(context)?;
    let spec = host.registry.member(team, &approval.from)?.ok_or_else(|| {
        let (name, team) = (approval.from.to_string(), team.to_string());
        HostError::failed(Trouble::NotHere { name, team })
            .hint(format!("rules apply only to members on this host; {once}"))
    })?;
    if scope == RuleScope::Turn && spec.place == MemberPlace::Native {
        let (name, team) = (spec.name.to_string(), team.to_string());
        let what = "see where its turn ends";
        return Err(HostError::failed(Trouble::ClaudeRuns { name, team, what }).hint(once));
    }
    let rules = member_rules(&host, &personal, team, &spec)?;
    let proposed = approvals::propose_rules(approval, &rules, ruling, patterns, real_path)
        .map_err(|error| HostError::failed(error).hint(once))?;
    let path = personal.path().to_owned();
    let personal_rules = |folder: Option<&PathBuf>| {
        let rules = proposed.iter().cloned();
        rules.map(|rule| PersonalRule { rule, folder: folder.cloned() }).collect()
    };
    if scope == RuleScope::Turn {
        let (rules, covered) = (personal_rules(None), Vec::new());
        return Ok(RuleProposal { rules, scope, path, covered, answered });
    }
    let folder = (scope == RuleScope::Folder).then(|| real_path(&project(&host, team, &spec)));
    let mut of_members = HashMap::new();
    for name in host.registry.members(team)? {
        let Some(spec) = host.registry.member(team, &name)? else { continue };
        let before = member_rules(&host, &personal, team, &spec)?;
        let project = real_path(&project(&host, team, &spec));
        if folder.as_ref().is_none_or(|folder| project.starts_with(folder)) {
            let after = before.with_personal(&proposed);
            of_members.insert(name, (before, after));
        }
    }
    let start = context.clock.now().checked_sub(LOOK_BACK).unwrap_or_default();
    let mut covered = approvals::permission_history(seat, start).await?;
    covered.retain(|past| {
        let decides = |rules: &MemberRules| {
            let verdict = approvals::explain_rules(past, rules, real_path);
            verdict.and_then(|verdict| verdict.decision).map(|(_, decision)| decision)
        };
        past.request_id != approval.request_id
            && of_members.get(&past.from).is_some_and(|(before, after)| {
                decides(after) == Some(ruling) && decides(before) != Some(ruling)
            })
    });
    Ok(RuleProposal { rules: personal_rules(folder.as_ref()), scope, path, covered, answered })
}

/// The result of [`answer_with_rules`].
#[derive(Debug)]
pub struct AnsweredWithRules {
    /// The answer; `None` if the request was answered before the rules were proposed.
    pub given: Option<GivenAnswer>,
    /// The number of each rule that was added.
    pub added: Result<Vec<usize>, HostError>,
}

/// Answers a request, unless it was answered before the rules were proposed, and adds the rules that [`propose`] returned for it.
/// Adds no rule if the request cannot be answered. Only a person may call this.
pub async fn answer_with_rules(
    context: &Context,
    seat: &Seat,
    approval: &Approval,
    given: Answer<'_>,
    proposal: &RuleProposal,
) -> Result<AnsweredWithRules, HostError> {
    if proposal.scope != RuleScope::Turn {
        let given = match proposal.answered {
            Some(_) => None,
            None => Some(answer::answer_one(context, seat, approval, given).await?),
        };
        let added = PersonalPolicy::add(context, &proposal.rules);
        return Ok(AnsweredWithRules { given, added });
    }
    context.require_person("add rules")?;
    // The agent may ask again as soon as it has the answer, so the rules must exist before.
    let registry = &context.host()?.registry;
    let before = registry.turn_rules(&seat.team, &approval.from)?;
    let rules = proposal.rules.iter().map(|rule| rule.rule.clone());
    let after: Vec<Rule> = before.iter().cloned().chain(rules).collect();
    registry.set_turn_rules(&seat.team, &approval.from, &after)?;
    match answer::answer_one(context, seat, approval, given).await {
        Ok(given) => {
            let added = (before.len() + 1..=after.len()).collect();
            Ok(AnsweredWithRules { given: Some(given), added: Ok(added) })
        }
        Err(error) => {
            // The turn may be over, and another one may have started: none of the rules may stay.
            registry.set_turn_rules(&seat.team, &approval.from, &[])?;
            Err(error)
        }
    }
}

/// Removes the requests that the supervisor is about to answer by a rule, and leaves those that wait for a person.
pub(crate) async fn retain_unruled(
    context: &Context,
    seat: &Seat,
    requests: &mut Vec<Approval>,
) -> Result<(), HostError> {
    let host = context.host()?;
    if requests.is_empty() || !host.leads(seat).await? || host.supervisor()?.is_none() {
        return Ok(());
    }
    // While the rules cannot be read, no rule answers.
    let Ok(personal) = PersonalPolicy::of_context(context) else { return Ok(()) };
    requests.retain(|request| {
        let spec = host.registry.member(&seat.team, &request.from).ok().flatten();
        let rules = spec.and_then(|spec| member_rules(&host, &personal, &seat.team, &spec).ok());
        let verdict = rules.and_then(|rules| approvals::explain_rules(request, &rules, real_path));
        let decision = verdict.and_then(|verdict| verdict.decision);
        decision.is_none_or(|(_, decision)| decision == RuleDecision::Ask)
    });
    Ok(())
}

/// Returns the members that run on this host, each with its team. If the caller named a team, only its members.
fn members(context: &Context, host: &Host) -> Result<Vec<(TeamName, MemberSpec)>, HostError> {
    let mut members = Vec::new();
    let is_wanted = |team: &TeamName| context.named_team().is_none_or(|named| named == team);
    for team in host.registry.teams()?.into_iter().filter(is_wanted) {
        for name in host.registry.members(&team)? {
            let spec = host.registry.member(&team, &name)?;
            members.extend(spec.map(|spec| (team.clone(), spec)));
        }
    }
    Ok(members)
}

/// Returns the tool by which an agent runs commands, as it is named in permission requests.
fn shell_tool(agent: &str) -> &'static str {
    match agent {
        "claude" => "Bash",
        "codex" => "commandExecution",
        _ => "execute",
    }
}

/// Returns the rules for a member, and the folder that it works in: its worktree, if it has one.
pub(crate) fn member_rules(
    host: &Host,
    personal: &PersonalPolicy,
    team: &TeamName,
    spec: &MemberSpec,
) -> Result<MemberRules, HostError> {
    let folder = match host.worktree(team, spec) {
        Some(worktree) => worktree.dir,
        None => project(host, team, spec),
    };
    let personal = personal_rules(personal, &project(host, team, spec));
    let turn = host.registry.turn_rules(team, &spec.name)?;
    Ok(MemberRules { rules: spec.rules.clone(), personal, turn, folder })
}

/// Returns the folder for which a member was started. A member with a worktree works in a copy of it.
fn project(host: &Host, team: &TeamName, spec: &MemberSpec) -> PathBuf {
    let recorded = host.registry.recorded_folder(team, &spec.name).ok().flatten();
    match recorded {
        Some(folder) if !spec.worktree => folder,
        _ => spec.cwd.clone(),
    }
}

/// Returns the personal rules that apply to members in this folder.
fn personal_rules(personal: &PersonalPolicy, project: &Path) -> Vec<NumberedRule> {
    let project = real_path(project);
    let applies = |rule: &PersonalRule| {
        rule.folder.as_ref().is_none_or(|folder| {
            let folder = real_path(folder);
            !folder.as_os_str().is_empty() && project.starts_with(folder)
        })
    };
    let rules = personal.rules().iter().zip(1..).filter(|(rule, _)| applies(rule));
    rules.map(|(rule, number)| NumberedRule { number, rule: rule.rule.clone() }).collect()
}

/// Resolves symbolic links and `..` in a path. If the path does not exist, resolves the folder in which it would be
/// created. Returns an empty path for a link to a file that does not exist, and for a `..` after a missing folder:
/// nothing is known about the place to which they lead.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    if path.as_os_str().len() > MAX_PATH {
        return PathBuf::new();
    }
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(real) = fs::canonicalize(ancestor) {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        let is_link = fs::symlink_metadata(ancestor).is_ok_and(|metadata| metadata.is_symlink());
        match ancestor.file_name() {
            Some(name) if !is_link => missing.push(name),
            _ => break,
        }
    }
    PathBuf::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finding 14: a symbolic link in the member's folder must not hide that a command runs elsewhere.
    #[test]
    fn finding_14_symbolic_links_are_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let (outside, inside) = (root.join("outside"), root.join("inside"));
        fs::create_dir(&outside).unwrap();
        fs::create_dir(&inside).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        assert_eq!(real_path(&inside.join("link")), outside);
        assert_eq!(real_path(&inside.join("link/..")), root);
        assert_eq!(real_path(&inside.join("missing")), inside.join("missing"));
        assert_eq!(real_path(&inside.join("a/b")), inside.join("a/b"));
        // A file that is created through a link is where the link leads.
        assert_eq!(real_path(&inside.join("link/new")), outside.join("new"));
        std::os::unix::fs::symlink(outside.join("new"), inside.join("dangling")).unwrap();
        for unknown in ["dangling", "dangling/x", "missing/../x", "missing/.."] {
            assert_eq!(real_path(&inside.join(unknown)), Path::new(""), "{unknown}");
        }
        assert_eq!(real_path(Path::new("")), Path::new(""));
        assert_eq!(real_path(Path::new("~/x")), Path::new(""));
        assert_eq!(real_path(&inside.join("a/".repeat(100_000))), Path::new(""));
    }
}
