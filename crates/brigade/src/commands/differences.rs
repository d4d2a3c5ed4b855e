//! The differences between a team file and the running team: prints them for `brigade up` and `brigade up --check`, and applies
//! them for `up --recreate` and `up --remove-orphans`.

use brigade_core::seat::Seat;
use brigade_host::differences::TeamDifferences;
use brigade_host::progress::Ended;
use brigade_host::spec::TeamSpec;
use brigade_host::steer::{self, Recreated};
use brigade_host::up as host_up;
use brigade_wire::name::MemberName;

use crate::cli::UpArgs;
use crate::context::CliContext;
use crate::error::{CliError, Trouble};
use crate::output;
use crate::progress;

/// The changes that `up` made to the running team.
#[derive(Default)]
pub(super) struct AppliedChanges {
    /// The members that have the settings of the file now.
    pub(super) recreated: Vec<MemberName>,
    /// The members that were stopped and removed.
    pub(super) removed: Vec<MemberName>,
    pub(super) failures: Vec<CliError>,
    /// The number of members that were to be changed.
    pub(super) tried: usize,
}

/// Prints the differences that stay. Stops and recreates members if the options ask for it. A failure for one member does not
/// stop the others.
pub(super) async fn apply(
    context: &CliContext,
    lead: &Seat,
    spec: &TeamSpec,
    differences: &TeamDifferences,
    up: &UpArgs,
) -> AppliedChanges {
    let mut applied = AppliedChanges::default();
    let mut left = differences.clone();
    if let Some(named) = &up.recreate {
        let members = host_up::members_to_recreate(spec, differences, named);
        for name in named.iter().filter(|name| differences.of_member(name).is_none()) {
            output::note(&format!("{name} has the settings of the file already"));
        }
        applied.tried += members.len();
        for (wanted, difference) in members {
            let name = &wanted.name;
            left.changed.retain(|member| member.name != *name);
            match steer::recreate(context, lead, wanted, difference, &progress::print).await {
                Ok(how) => {
                    let how = match how {
                        Recreated::Running => "without a restart",
                        Recreated::SameSession => "restarted in the same session",
                        Recreated::NewSession => "restarted in a new session",
                    };
                    let keys = difference.keys();
                    output::eprint_line(&format!("{name}: new settings ({keys}), {how}"));
                    applied.recreated.push(name.clone());
                }
                Err(error) => applied.failures.push(error),
            }
        }
    }
    if up.remove_orphans {
        let orphans = std::mem::take(&mut left.removed);
        applied.tried += orphans.len();
        for (name, ended) in
            host_up::remove_orphans(context, lead, &orphans, &progress::print).await
        {
            match ended {
                Ok(Ended::Refused(why)) => {
                    let error = CliError::failed(Trouble::Refuses { name: name.to_string(), why });
                    let hint = format!("`brigade stop {name} --now` kills it anyway");
                    applied.failures.push(error.hint(hint));
                }
                Ok(_) => applied.removed.push(name),
                Err(error) => applied.failures.push(error),
            }
        }
    }
    note(&left);
    applied
}

/// Prints the differences, and the options that remove them.
pub(super) fn note(differences: &TeamDifferences) {
    for sentence in differences.sentences() {
        output::note(&sentence);
    }
    if !differences.changed.is_empty() {
        output::hint("`brigade up --recreate` restarts members with the settings of the file");
    }
    if !differences.removed.is_empty() {
        output::hint("`brigade up --remove-orphans` stops members that are not in the file");
    }
}
