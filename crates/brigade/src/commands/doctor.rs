//! `brigade doctor`

use brigade_core::text;
use serde::Serialize;

use crate::cli::Doctor;
use crate::context::Context;
use crate::doctor::backup::Aside;
use crate::doctor::snapshot::House;
use crate::doctor::{Cure, Finding, count, examine};
use crate::error::CliError;
use crate::exit;
use crate::output::{self, BUSY, ERROR, FAINT, HINT, READY, STRONG};

/// How often it is looked again after something was mended: what one deed uncovers another mends.
const ROUNDS: usize = 3;

/// What was mended, or was not.
#[derive(Debug, Serialize)]
struct Mended {
    check: &'static str,
    place: String,
    /// What was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    did: Option<String>,
    /// Why it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

#[derive(Serialize)]
struct Report<'r> {
    findings: &'r [Finding],
    fixed: &'r [Mended],
}

pub(crate) async fn run(context: &Context, doctor: Doctor) -> Result<u8, CliError> {
    let mut house = House::look(context).await?;
    let mut findings = examine(&house);
    let mut mended = Vec::new();
    if doctor.fix {
        let aside = Aside::new(&house);
        for _ in 0..ROUNDS {
            if !findings.iter().any(|finding| matches!(finding.cure, Cure::Deed(_))) {
                break;
            }
            mended.extend(mend(context, &house, &aside, findings).await);
            house = House::look(context).await?;
            findings = examine(&house);
        }
    }
    if context.json {
        output::print_json(&Report { findings: &findings, fixed: &mended })?;
    } else {
        output::print(&tell(&findings, &mended, count(&house)))?;
    }
    Ok(if findings.is_empty() { exit::DONE } else { exit::FAILED })
}

/// Does what mends; what fails keeps nothing else from being mended.
async fn mend(
    context: &Context,
    house: &House,
    aside: &Aside,
    findings: Vec<Finding>,
) -> Vec<Mended> {
    let mut mended = Vec::new();
    for Finding { check, place, cure, .. } in findings {
        let Cure::Deed(deed) = cure else { continue };
        let (did, failed) = match deed.carry_out(context, house, aside).await {
            Ok(did) => (Some(did), None),
            Err(error) => (None, Some(error.to_string())),
        };
        mended.push(Mended { check, place, did, failed });
    }
    mended
}

fn tell(findings: &[Finding], mended: &[Mended], checks: usize) -> String {
    let mut said = String::new();
    for Mended { check, place, did, failed } in mended {
        let place = text::one_line(place);
        let (mark, line) = match (did, failed) {
            (Some(did), _) => (format!("{READY}fixed{READY:#}"), did),
            (None, Some(failed)) => (format!("{ERROR}not fixed{ERROR:#}"), failed),
            (None, None) => continue,
        };
        said.push_str(&format!(
            "{mark}  {STRONG}{check}{STRONG:#}  {place}\n  {}\n",
            text::one_line(line)
        ));
    }
    if !mended.is_empty() {
        said.push('\n');
    }
    for finding in findings {
        let Finding { check, place, what, means, cure } = finding;
        let [place, what, remedy] =
            [place, what, &finding.remedy()].map(|text| text::one_line(text));
        let todo = match cure {
            Cure::Deed(_) => format!("{HINT}--fix:{HINT:#}"),
            Cure::Advice(_) => format!("{HINT}to do:{HINT:#}"),
        };
        said.push_str(&format!(
            "{BUSY}{check}{BUSY:#}  {STRONG}{what}{STRONG:#}\n  {place}\n  {FAINT}{means}{FAINT:#}\n  {todo} {remedy}\n"
        ));
    }
    let fixable = findings.iter().filter(|finding| matches!(finding.cure, Cure::Deed(_))).count();
    said.push_str(&match (findings.len(), fixable) {
        (0, _) => format!("{READY}nothing is wrong{READY:#}, as far as {checks} checks can tell\n"),
        (all, 0) => format!("\n{all} to see to\n"),
        (all, fixable) => {
            format!("\n{all} to see to; `brigade doctor --fix` mends {fixable} of them\n")
        }
    });
    said
}
