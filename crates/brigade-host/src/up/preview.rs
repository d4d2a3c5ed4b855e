//! Previews what `up` would do, without a connection to the store.

use brigade_wire::name::MemberName;

use crate::Host;
use crate::differences::TeamDifferences;
use crate::error::HostError;
use crate::team_file::TeamFile;

/// The effect that `up` would have with a team file on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpPreview {
    /// The differences between the file and the running team; `None` if the team is not up on this host.
    pub differences: Option<TeamDifferences>,
    /// The members that `up` would start, in the order of the file; `None` if a team of the same name belongs to another
    /// file, so that `up` would fail.
    pub starts: Option<Vec<MemberName>>,
}

/// Previews `up`. Uses only the registry and the processes of this host: members that run on other hosts count as members to
/// start.
pub fn preview(host: &Host, file: &TeamFile) -> Result<UpPreview, HostError> {
    let (registry, spec) = (&host.registry, &file.spec);
    let team = &spec.team;
    if registry.origin(team)?.is_some_and(|origin| origin.file != file.path) {
        return Ok(UpPreview::default());
    }
    let differences = match registry.team(team)? {
        Some(_) => Some(TeamDifferences::find(registry, spec)?),
        None => None,
    };
    let mut starts = Vec::new();
    for member in spec.lead.iter().chain(&spec.members) {
        if host.member_process(team, &member.name)?.is_none() {
            starts.push(member.name.clone());
        }
    }
    Ok(UpPreview { differences, starts: Some(starts) })
}
