//! Why the supervisor cannot start a member at present. Unlike a failure, the supervisor keeps trying.

use std::fs;

use brigade_wire::name::{MemberName, TeamName};

use super::{PROBLEM, Registry, remove};
use crate::error::{HostError, file_failed};

impl Registry {
    /// Returns why the supervisor cannot start the member, as of its last attempt.
    pub fn problem(&self, team: &TeamName, name: &MemberName) -> Option<String> {
        fs::read_to_string(self.member_dir(team, name).join(PROBLEM)).ok()
    }

    /// Records why the supervisor cannot start the member; `None` if it can.
    pub(crate) fn set_problem(
        &self,
        team: &TeamName,
        name: &MemberName,
        why: Option<&str>,
    ) -> Result<(), HostError> {
        let path = self.member_dir(team, name).join(PROBLEM);
        match why {
            Some(why) => {
                fs::write(&path, why).map_err(|source| file_failed("write", &path, source))
            }
            None => remove(&path),
        }
    }
}
