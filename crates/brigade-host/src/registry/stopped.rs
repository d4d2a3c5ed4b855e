//! Members that were stopped, so that a person can start them again.

use std::fs;
use std::path::PathBuf;

use brigade_core::clock::Timestamp;
use brigade_wire::name::{MemberName, TeamName};
use serde::{Deserialize, Serialize};

use super::{Registry, read, remove, write};
use crate::error::HostError;
use crate::spec::MemberSpec;

/// The end of the name of a record. The names of members, and so those of their folders, contain no dot.
const STOPPED: &str = ".stopped.json";

/// A member that was stopped on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedMember {
    /// When the member was stopped.
    pub at: Timestamp,
    /// The settings that the member had.
    pub spec: MemberSpec,
}

impl Registry {
    /// Returns the record of a member that was stopped; `None` if the member should run, or if no member of this name was
    /// stopped since the team was started.
    pub fn stopped_member(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<Option<StoppedMember>, HostError> {
        match self.expects(team, name) {
            true => Ok(None),
            false => read(&self.stopped_path(team, name)),
        }
    }

    /// Records that a member was stopped. The record is kept until a member of this name is added or the team is removed.
    pub(crate) fn record_stopped(
        &self,
        team: &TeamName,
        spec: &MemberSpec,
        at: Timestamp,
    ) -> Result<(), HostError> {
        // Another command may have removed the team meanwhile.
        if !self.team_dir(team).exists() {
            return Ok(());
        }
        let stopped = StoppedMember { at, spec: spec.clone() };
        write(&self.stopped_path(team, &spec.name), &stopped)
    }

    /// Removes the record of a member that was stopped.
    pub(super) fn forget_stopped(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<(), HostError> {
        remove(&self.stopped_path(team, name))
    }

    /// Removes the records of all members that were stopped.
    pub(super) fn forget_all_stopped(&self, team: &TeamName) -> Result<(), HostError> {
        let Ok(entries) = fs::read_dir(self.team_dir(team)) else { return Ok(()) };
        for entry in entries.filter_map(Result::ok) {
            if entry.file_name().to_string_lossy().ends_with(STOPPED) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }

    fn stopped_path(&self, team: &TeamName, name: &MemberName) -> PathBuf {
        self.team_dir(team).join(format!("{name}{STOPPED}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_a_stopped_member_lasts_until_a_member_of_this_name_is_added() {
        let state = tempfile::tempdir().unwrap();
        let registry = Registry::new(state.path().join("host/key"));
        let (team, name) = ("demo".parse().unwrap(), "bob".parse().unwrap());
        let spec = MemberSpec::new("bob".parse().unwrap(), "codex".to_owned(), "/project".into());
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!(registry.stopped_member(&team, &name).unwrap(), None);
        registry.add_member(&team, &spec).unwrap();
        registry.record_stopped(&team, &spec, at).unwrap();
        assert_eq!(registry.stopped_member(&team, &name).unwrap(), None, "the member still runs");
        registry.remove_member(&team, &name).unwrap();
        let stopped = StoppedMember { at, spec: spec.clone() };
        assert_eq!(registry.stopped_member(&team, &name).unwrap(), Some(stopped));
        assert!(registry.members(&team).unwrap().is_empty());
        assert!(registry.withdrawn_members(&team).unwrap().is_empty());
        registry.add_member(&team, &spec).unwrap();
        registry.remove_member(&team, &name).unwrap();
        assert_eq!(registry.stopped_member(&team, &name).unwrap(), None);
    }
}
