//! The real folder of a member. A path of the team file can contain a symbolic link that an agent can change, and the
//! person agreed only to the folder to which the link led when the member was added.

use std::fs;
use std::path::PathBuf;

use brigade_wire::name::{MemberName, TeamName};

use super::{Registry, read, write_file};
use crate::error::{HostError, Trouble};
use crate::spec::MemberSpec;

const FOLDER: &str = "folder.json";

impl Registry {
    /// Records the real folder of a new member. A folder that does not exist is not recorded.
    pub(super) fn record_folder(
        &self,
        team: &TeamName,
        spec: &MemberSpec,
    ) -> Result<(), HostError> {
        match fs::canonicalize(&spec.cwd) {
            Ok(folder) => write_file(&self.member_dir(team, &spec.name).join(FOLDER), &folder),
            Err(_) => Ok(()),
        }
    }

    /// Returns the recorded folder of a member. `None` for a member that an earlier version added.
    pub(crate) fn recorded_folder(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<Option<PathBuf>, HostError> {
        read(&self.member_dir(team, name).join(FOLDER))
    }

    /// Fails if the path of the member's folder leads to another folder than when the member was added.
    pub fn check_folder(&self, team: &TeamName, spec: &MemberSpec) -> Result<(), HostError> {
        let recorded = self.recorded_folder(team, &spec.name)?;
        match (recorded, fs::canonicalize(&spec.cwd)) {
            (Some(recorded), Ok(now)) if recorded != now => {
                let (dir, name) = (spec.cwd.clone(), &spec.name);
                let error = HostError::failed(Trouble::FolderChanged { dir, now, recorded });
                Err(error
                    .hint(format!("if you changed it, run `brigade stop {name}` and `brigade up`")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::spec::MemberSpec;

    #[test]
    fn a_changed_link_to_a_members_folder_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new(dir.path().join("state"));
        let team: TeamName = "demo".parse().unwrap();
        let (first, second, link) =
            (dir.path().join("first"), dir.path().join("second"), dir.path().join("link"));
        fs::create_dir(&first).unwrap();
        fs::create_dir(&second).unwrap();
        symlink(&first, &link).unwrap();
        let spec = MemberSpec::new("bob".parse().unwrap(), "codex".to_owned(), link.clone());
        registry.add_member(&team, &spec).unwrap();
        registry.check_folder(&team, &spec).unwrap();
        fs::remove_file(&link).unwrap();
        symlink(&second, &link).unwrap();
        let error = registry.check_folder(&team, &spec).unwrap_err().to_string();
        assert!(error.contains("leads to") && error.contains("second"), "{error}");
        // A second attempt to add the member does not change the recorded folder.
        assert!(!registry.add_member(&team, &spec).unwrap());
        registry.check_folder(&team, &spec).unwrap_err();
        let recorded = registry.recorded_folder(&team, &spec.name).unwrap();
        assert_eq!(recorded, Some(fs::canonicalize(&first).unwrap()));
    }
}
