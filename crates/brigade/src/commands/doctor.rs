//! `brigade doctor`

use brigade_core::text;
use serde::Serialize;

use crate::cli::DoctorArgs;
use crate::context::CliContext;
use crate::doctor::backup::BackupFolder;
use crate::doctor::snapshot::DoctorSnapshot;
use crate::doctor::{Cure, Finding, count, examine};
use crate::error::CliError;
use crate::exit;
use crate::output::{self, BUSY, ERROR, FAINT, HINT, READY, STRONG};

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
    let mut snapshot = DoctorSnapshot::read(context).await?;
    let mut findings = examine(&snapshot);
    let mut fixed = Vec::new();
    if doctor.fix {
        let backups = BackupFolder::new(&snapshot);
        for _ in 0..MAX_ROUNDS {
            if !findings.iter().any(|finding| matches!(finding.cure, Cure::Automatic(_))) {
                break;
            }
            fixed.extend(fix_all(context, &snapshot, &backups, findings).await);
            snapshot = DoctorSnapshot::read(context).await?;
            findings = examine(&snapshot);
        }
    }
    if context.json {
        output::print_json(&DoctorReport { findings: &findings, fixed: &fixed })?;
    } else {
        output::print(&render(&findings, &fixed, count(&snapshot)))?;
    }
    Ok(if findings.is_empty() { exit::DONE } else { exit::FAILED })
}

/// Applies all automatic fixes. If one fails, the others still run.
async fn fix_all(
    context: &CliContext,
    snapshot: &DoctorSnapshot,
    backups: &BackupFolder,
    findings: Vec<Finding>,
) -> Vec<FixOutcome> {
    let mut fixed = Vec::new();
    for Finding { check, place, cure, .. } in findings {
        let Cure::Automatic(fix) = cure else { continue };
        let (did, failed) = match fix.apply(context, snapshot, backups).await {
            Ok(did) => (Some(did), None),
            Err(error) => (None, Some(error.to_string())),
        };
        fixed.push(FixOutcome { check, place, did, failed });
    }
    fixed
}

fn render(findings: &[Finding], fixed: &[FixOutcome], checks: usize) -> String {
    let mut text = String::new();
    for FixOutcome { check, place, did, failed } in fixed {
        let place = text::one_line(place);
        let (mark, line) = match (did, failed) {
            (Some(did), _) => (format!("{READY}fixed{READY:#}"), did),
            (None, Some(failed)) => (format!("{ERROR}not fixed{ERROR:#}"), failed),
            (None, None) => continue,
        };
        text.push_str(&format!(
            "{mark}  {STRONG}{check}{STRONG:#}  {place}\n  {}\n",
            text::one_line(line)
        ));
    }
    if !fixed.is_empty() {
        text.push('\n');
    }
    for finding in findings {
        let Finding { check, place, what, means, cure } = finding;
        let [place, what, remedy] =
            [place, what, &finding.remedy()].map(|line| text::one_line(line));
        let todo = match cure {
            Cure::Automatic(_) => format!("{HINT}--fix:{HINT:#}"),
            Cure::Manual(_) => format!("{HINT}to do:{HINT:#}"),
        };
        text.push_str(&format!(
            "{BUSY}{check}{BUSY:#}  {STRONG}{what}{STRONG:#}\n  {place}\n  {FAINT}{means}{FAINT:#}\n  {todo} {remedy}\n"
        ));
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
