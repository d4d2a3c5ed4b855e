//! Members that a person has paused, and changes of a member's settings.

use brigade_wire::name::{MemberName, TeamName};

use super::{Registry, SPEC, create_file, remove, write};
use crate::error::HostError;
use crate::spec::MemberSpec;

/// Exists while a person has paused the member.
const PAUSED: &str = "paused";

impl Registry {
    /// Returns whether a person has paused the member.
    pub fn is_paused(&self, team: &TeamName, name: &MemberName) -> bool {
        self.member_dir(team, name).join(PAUSED).exists()
    }

    /// Records whether a person has paused the member.
    pub(crate) fn set_paused(
        &self,
        team: &TeamName,
        name: &MemberName,
        paused: bool,
    ) -> Result<(), HostError> {
        let path = self.member_dir(team, name).join(PAUSED);
        if paused { create_file(&path) } else { remove(&path) }
    }

    /// Replaces the settings of a member that should run.
    pub(crate) fn change_member(
        &self,
        team: &TeamName,
        spec: &MemberSpec,
    ) -> Result<(), HostError> {
        write(&self.member_dir(team, &spec.name).join(SPEC), spec)
    }
}
