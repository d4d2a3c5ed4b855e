//! Applies the differences between the team file and the running team, if the person asks for it.

use std::time::Duration;

use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;

use crate::context::Context;
use crate::differences::{MemberDifferences, TeamDifferences};
use crate::down;
use crate::error::{HostError, Trouble, members_hint};
use crate::progress::{Ended, ReportProgress};
use crate::shutdown::StopOptions;
use crate::spec::{MemberSpec, TeamSpec};
use crate::worktree::IgnoredFiles;

/// The manner in which `up` stops members that are not in the team file: as `brigade stop` does without options.
const STOP_ORPHANS: StopOptions<'static> = StopOptions {
    ask: Some(Duration::from_secs(30)),
    reason: Some("the member is not in the team file any more"),
    may_refuse: true,
    ignored_files: IgnoredFiles::Keep,
};

/// Stops the members of this host that are not in the team file, and removes them from the team.
pub async fn remove_orphans(
    context: &Context,
    lead: &Seat,
    names: &[MemberName],
    report: ReportProgress<'_>,
) -> Vec<(MemberName, Result<Ended, HostError>)> {
    down::stop_all(context, lead, names, STOP_ORPHANS, report).await
}

/// Fails if one of the members to recreate is not in the team file.
pub fn check_recreated(spec: &TeamSpec, named: &[MemberName]) -> Result<(), HostError> {
    let known: Vec<&MemberName> = members(spec).map(|member| &member.name).collect();
    let Some(unknown) = named.iter().find(|name| !known.contains(name)) else { return Ok(()) };
    let (name, team) = (unknown.to_string(), spec.team.to_string());
    let known: Vec<String> = known.iter().map(ToString::to_string).collect();
    Err(HostError::usage(Trouble::NoMember { name, team }).hint(members_hint(&known)))
}

/// Returns the members to recreate: those of `named` that differ, or all that differ if it is empty.
pub fn members_to_recreate<'s>(
    spec: &'s TeamSpec,
    differences: &'s TeamDifferences,
    named: &[MemberName],
) -> Vec<(&'s MemberSpec, &'s MemberDifferences)> {
    let is_meant = |member: &&MemberSpec| named.is_empty() || named.contains(&member.name);
    let differ = |member: &'s MemberSpec| Some((member, differences.of_member(&member.name)?));
    members(spec).filter(is_meant).filter_map(differ).collect()
}

fn members(spec: &TeamSpec) -> impl Iterator<Item = &MemberSpec> {
    spec.members.iter().chain(&spec.lead)
}
