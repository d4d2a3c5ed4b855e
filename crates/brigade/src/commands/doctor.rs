//! `brigade doctor`

use anstyle::Style;
use brigade_core::text;
use brigade_host::local_state;
use serde::Serialize;

use super::status::local;
use crate::cli::{DoctorArgs, GlobalArgs};
use crate::context::{CliContext, named_team};
use crate::doctor::backup::BackupFolder;
use crate::doctor::fix::{Fix, SETTLED};
use crate::doctor::guard::MemberGuard;
use crate::doctor::machine::members_to_ask;
use crate::doctor::snapshot::DoctorSnapshot;
use crate::doctor::{Cure, Finding, count, examine, reexamine};
use crate::error::CliError;
use crate::output::{self, BUSY, ERROR, FAINT, HINT, READY, STRONG};
use crate::{exit, login};

/// Maximum number of times that `--fix` applies fixes and checks again. One fix may reveal another problem.
const MAX_ROUNDS: usize = 3;

/// The outcome of one fix.
#[derive(Debug, Serialize)]
struct FixOutcome {
    check: &'static str,
    place: String,
    /// The action taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    did: Option<String>,
    /// The error, if the fix failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

#[derive(Serialize)]
struct DoctorReport<'r> {
    findings: &'r [Finding],
    fixed: &'r [FixOutcome],
}

pub(crate) async fn run(context: &CliContext, doctor: DoctorArgs) -> Result<u8, CliError> {
    let scope = context.named_team();
    let mut snapshot = DoctorSnapshot::read(context, scope).await?;
    snapshot.logins = login::check_members(&members_to_ask(&snapshot)).await;
    let mut findings = examine(&snapshot);
    if scope.is_some()
        && snapshot.teams.is_empty()
        && snapshot.hosted.is_empty()
        && findings.is_empty()
    {
        // Fail with an error that lists the existing teams.
        context.team().await?;
    }
    let mut fixed = Vec::new();
    if doctor.fix {
        let backups = BackupFolder::new(&snapshot);
        for _ in 0..MAX_ROUNDS {
            if !findings.iter().any(|finding| matches!(finding.cure, Cure::Automatic(_))) {
                break;
            }
            fixed.extend(fix_all(context, &backups, findings).await);
            let logins = snapshot.logins;
            snapshot = DoctorSnapshot::read(context, scope).await?;
            snapshot.logins = logins;
            findings = examine(&snapshot);
        }
    }
    for note in &snapshot.notes {
        output::note(note);
    }
    if context.json {
        output::print_json(&DoctorReport { findings: &findings, fixed: &fixed })?;
    } else {
        output::print(&render(&findings, &fixed, count(&snapshot), output::width()))?;
    }
    Ok(if findings.is_empty() { exit::DONE } else { exit::FAILED })
}

/// Runs the checks that need no store, and reports why the NATS server cannot be used. With `--fix`, it fixes nothing and prints a
/// note about that.
pub(crate) fn without_store(
    global: &GlobalArgs,
    doctor: &DoctorArgs,
    unreachable: &CliError,
) -> Result<u8, CliError> {
    let snapshot = DoctorSnapshot::without_store(global, unreachable)?;
    let findings = examine(&snapshot);
    if global.json {
        output::print_json(&DoctorReport { findings: &findings, fixed: &[] })?;
    } else {
        output::print(&render(&findings, &[], count(&snapshot), output::width()))?;
        let teams = local_state::teams(&snapshot.host, named_team(global)?.as_ref())?;
        if !teams.is_empty() {
            output::print(&format!("\n{}", local::render(&teams, unreachable)))?;
        }
    }
    let done = if doctor.fix { "checked, and nothing was fixed" } else { "checked" };
    output::note(&format!("only this host was {done}, because the NATS server cannot be used"));
    Ok(exit::FAILED)
}

/// Applies all automatic fixes. If one fails, the others still run.
async fn fix_all(
    context: &CliContext,
    backups: &BackupFolder,
    findings: Vec<Finding>,
) -> Vec<FixOutcome> {
    let mut fixed = Vec::new();
    for Finding { check, place, cure, .. } in findings {
        let Cure::Automatic(fix) = cure else { continue };
        let (did, failed) = match fix_one(context, backups, check, &place, fix).await {
            Ok(did) => (Some(did), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let outcome = FixOutcome { check, place, did, failed };
        if outcome.did.as_ref().is_some_and(|did| did != SETTLED)
            && let Err(error) = backups.note(&outcome)
        {
            output::note(&format!("cannot write the list of changes: {error}"));
        }
        fixed.push(outcome);
    }
    fixed
}

/// Applies one fix, if the problem still exists. Other programs may have changed something since the check, so the
/// check runs again, while the member that the fix is about cannot start.
async fn fix_one(
    context: &CliContext,
    backups: &BackupFolder,
    check: &str,
    place: &str,
    fix: Fix,
) -> Result<String, CliError> {
    let _guard = match fix.idle_member() {
        Some((team, member)) => {
            let Some(guard) = MemberGuard::take(&context.host()?, team, member).await? else {
                return Ok(SETTLED.to_owned());
            };
            Some(guard)
        }
        None => None,
    };
    let scope = fix.team().or_else(|| context.named_team());
    let snapshot = DoctorSnapshot::read(context, scope).await?;
    match reexamine(&snapshot, check, place) {
        Some(Cure::Automatic(fix)) => fix.apply(context, &snapshot, backups).await,
        Some(Cure::Manual(advice)) => {
            Ok(format!("not changed, because it changed meanwhile; {advice}"))
        }
        None => Ok(SETTLED.to_owned()),
    }
}

fn render(
    findings: &[Finding],
    fixed: &[FixOutcome],
    checks: usize,
    width: Option<usize>,
) -> String {
    let mut text = String::new();
    let mut line = |lead: &str, line: &str, style, indent| {
        text.push_str(&output::hanging(lead, &text::one_line(line), style, indent, width));
    };
    for FixOutcome { check, place, did, failed } in fixed {
        let (mark, outcome) = match (did, failed) {
            (Some(did), _) => (format!("{READY}fixed{READY:#}"), did),
            (None, Some(failed)) => (format!("{ERROR}not fixed{ERROR:#}"), failed),
            (None, None) => continue,
        };
        line(&format!("{mark}  {STRONG}{check}{STRONG:#}  "), place, Style::new(), 4);
        line("  ", outcome, Style::new(), 2);
    }
    if !fixed.is_empty() {
        line("", "", Style::new(), 0);
    }
    for finding in findings {
        let Finding { check, place, what, means, cure } = finding;
        let todo = match cure {
            Cure::Automatic(_) => format!("  {HINT}--fix:{HINT:#} "),
            Cure::Manual(_) => format!("  {HINT}to do:{HINT:#} "),
        };
        line(&format!("{BUSY}{check}{BUSY:#}  "), what, STRONG, 4);
        line("  ", place, Style::new(), 4);
        line("  ", means, FAINT, 2);
        line(&todo, &finding.remedy(), Style::new(), 9);
    }
    let fixable =
        findings.iter().filter(|finding| matches!(finding.cure, Cure::Automatic(_))).count();
    text.push_str(&match (findings.len(), fixable) {
        (0, _) => format!("{READY}no problems found{READY:#} ({checks} checks)\n"),
        (all, 0) => format!("\n{}\n", text::count(all, "problem")),
        (all, fixable) => {
            let problems = text::count(all, "problem");
            format!("\n{problems}; `brigade doctor --fix` can fix {fixable} of them\n")
        }
    });
    text
}
