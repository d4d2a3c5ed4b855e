//! Members that a person has paused, and changes of a member's settings.

use std::fs;
use std::time::SystemTime;

use brigade_agents::driver;
use brigade_wire::name::{MemberName, TeamName};

use super::{Registry, SPEC, create_file, remove, write};
use crate::error::{HostError, file_failed};
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

    /// Replaces all settings of a member that should run. The person has agreed to the new folder.
    pub(crate) fn replace_member(
        &self,
        team: &TeamName,
        old: &MemberSpec,
        new: &MemberSpec,
    ) -> Result<(), HostError> {
        if driver::is_command(&new.agent) {
            self.remember_command(&new.agent, &new.cwd)?;
        }
        if old.cwd != new.cwd {
            self.record_folder(team, new)?;
        }
        self.change_member(team, new)
    }

    /// Returns when the settings of a member were last changed, in nanoseconds since 1970.
    pub(crate) fn settings_changed(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<u128, HostError> {
        let path = self.member_dir(team, name).join(SPEC);
        let changed = fs::metadata(&path).and_then(|file| file.modified());
        let changed = changed.map_err(|source| file_failed("read", &path, source))?;
        Ok(changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos())
    }
}
