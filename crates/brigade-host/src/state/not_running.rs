//! The members of the team file that do not run.

use std::path::PathBuf;

use brigade_core::clock::Timestamp;
use brigade_wire::name::{MemberName, TeamName};
use schemars::JsonSchema;
use serde::Serialize;

use super::MemberState;
use crate::Host;
use crate::spec::MemberSpec;
use crate::stopped::StartedFile;

/// A member of the team file that started the team. The member does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotRunningMember {
    /// The member's name.
    #[schemars(with = "String")]
    pub name: MemberName,
    /// The agent in the file.
    pub agent: String,
    /// The model in the file, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When the member was stopped; `None` if it was not started since the team was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Timestamp>,
    /// The team file. `brigade up` with this file starts the member.
    pub file: PathBuf,
}

/// Returns the members of the team file that are not among the members with a state.
pub(super) fn find(host: &Host, team: &TeamName, known: &[MemberState]) -> Vec<NotRunningMember> {
    let Some(file) = StartedFile::read(&host.registry, team) else { return Vec::new() };
    let missing =
        file.members.into_iter().filter(|spec| !known.iter().any(|state| state.name == spec.name));
    let describe = |spec: MemberSpec| {
        let stopped = host.registry.stopped_member(team, &spec.name).ok().flatten();
        NotRunningMember {
            name: spec.name,
            agent: spec.agent,
            model: spec.model,
            stopped: stopped.map(|stopped| stopped.at),
            file: file.path.clone(),
        }
    };
    missing.map(describe).collect()
}
